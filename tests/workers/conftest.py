"""A crew for each test, gone at its end."""

from collections.abc import Iterator

import pytest

from workers.crew import Crew


@pytest.fixture
def crew(address: str, tmp_path) -> Iterator[Crew]:
    made = Crew(address, tmp_path)
    try:
        yield made
    finally:
        said = made.close()
        if said:
            print(said)  # shown with a test that failed
