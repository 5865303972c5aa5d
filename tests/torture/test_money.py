"""Teams at random, with money: the books are right whatever happens to them. `make torture` plays many more."""

import logging

import pytest

from deep import some
from torture import money

pytestmark = pytest.mark.anyio

SEEDS = 24


@pytest.fixture(autouse=True)
def in_peace():
    """Those who are taken for dead complain."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.rule("money.leaves", "money.balanced", "money.ends", "money.zombie")
@pytest.mark.parametrize("first", some(range(0, SEEDS, 6)))
async def test_whatever_a_team_does_the_books_are_right(first: int):
    for seed in range(first, first + 6):
        found, _ = await money.check(seed, money.MEMORY)
        assert found == [], f"{money.repeat(seed, 'memory')}\n{found}"


@pytest.mark.deep
@pytest.mark.rule("money.leaves", "money.zombie")
async def test_so_they_are_on_a_file_and_on_a_server(tmp_path, address: str):
    for seed in range(1_000, 1_005):
        for store, where in (("file", str(tmp_path / "team.db")), ("postgres", address)):
            found, _ = await money.check(seed, where)
            assert found == [], f"{money.repeat(seed, store)}\n{found}"
