"""Shared by all tests: the async backend, a runtime with a clock and ids under our control."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

import remit
from remit.testing import FakeClock

settings.register_profile("ci", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("nightly", deadline=None, max_examples=5_000)
settings.load_profile("ci")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "file"])
def rt(request: pytest.FixtureRequest, tmp_path, clock: FakeClock) -> Iterator[remit.Runtime]:
    """A runtime on a store in memory, and the same on a file."""
    where = ":memory:" if request.param == "memory" else tmp_path / "team.db"
    with remit.Runtime(where, clock=clock) as runtime:
        yield runtime
