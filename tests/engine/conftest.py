"""A runtime on every kind of store, for what must hold on all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from remit import Runtime
from remit.testing import FakeClock
from teams import team


@pytest.fixture(params=["memory", "file", "postgres"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Runtime]:
    where: str | Path = ":memory:"
    if request.param == "file":
        where = tmp_path / "team.db"
    elif request.param == "postgres":
        where = request.getfixturevalue("address")
    with team(where, clock=clock) as runtime:
        yield runtime
