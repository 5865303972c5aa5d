"""A crew for each test, gone at its end."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from workers.crew import Crew, as_url


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most of the engine's tests that are made again on PostgreSQL to `make deep`."""
    for item in items:
        if isinstance(item, pytest.Function) and item.originalname in getattr(item.module, "AGAIN", ()):
            item.add_marker("deep")


@pytest.fixture
def crew(address: str, tmp_path) -> Iterator[Crew]:
    with _gone_at_its_end(Crew(as_url(address), tmp_path)) as made:
        yield made


@pytest.fixture
def crew_on_file(tmp_path) -> Iterator[Crew]:
    """The same on SQLite."""
    with _gone_at_its_end(Crew(str(tmp_path / "team.db"), tmp_path)) as made:
        yield made


@contextmanager
def _gone_at_its_end(crew: Crew) -> Iterator[Crew]:
    try:
        yield crew
    finally:
        said = crew.close()
        if said:
            print(said)  # shown with a test that failed
