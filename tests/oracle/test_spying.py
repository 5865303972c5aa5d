"""Noninterference: what a holder may not see leaves no trace in anything it can look at."""

from collections.abc import Callable

import pytest

from deep import some
from oracle import spying
from remit import Turn
from remit.engine.context import Context
from remit.stores.opening import database_at
from remit.stores.postgres.database import PostgresDatabase
from remit.types import TurnArtifacts

pytestmark = pytest.mark.anyio

PAIRS, POSTGRES = 100, 10  # `make torture` takes many more
PART = 50


@pytest.mark.rule("sight.no-trace", "store.workspace", "board.session", "message.once")
@pytest.mark.parametrize("first", some(range(0, PAIRS, PART)))
async def test_worlds_that_differ_in_what_is_hidden_look_the_same(first: int):
    databases = (database_at(":memory:"), database_at(":memory:"))
    for seed in range(first, first + PART):
        await spying.check(seed, databases)


@pytest.mark.deep
@pytest.mark.rule("sight.no-trace", "postgres.engine")
async def test_so_they_do_on_postgres(new_address: Callable[[], str]):
    databases = (PostgresDatabase(new_address()), PostgresDatabase(new_address()))
    try:
        for seed in range(PAIRS, PAIRS + POSTGRES):
            await spying.check(seed, databases)
    finally:
        for database in databases:
            database.close()


def test_whatever_a_turn_and_its_context_can_do_is_tried_by_spies():
    can = {name for kind in (Turn, Context, TurnArtifacts) for name in dir(kind) if not name.startswith("_")}
    assert can - spying.tried() == spying.UNTRIED, "add a row to TRIES in tests/oracle/spying.py"


def test_the_spies_try_everything_and_something_is_hidden_from_them():
    cases = [spying.made(seed) for seed in range(PAIRS)]
    assert {name for case in cases for name, _, _ in case.tries} == set(spying.TRIES)
    assert sum(bool(case.hidden) for case in cases) > PAIRS * 0.9
