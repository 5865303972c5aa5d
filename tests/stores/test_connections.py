"""Connections to PostgreSQL: how many a process has, and what is between it and the server."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import anyio
import psycopg
import pytest

from pooler import Mode, Pooler
from postgres import OwnServer
from remit import Card, Turn
from remit.core.entry import Draft
from remit.engine.upkeep.doctor import examine
from remit.errors import StoreError
from remit.stores.postgres.database import PostgresDatabase
from remit.testing.clauses.making import NOW, putting, value_of
from teams import echo, team
from workers.crew import as_url

pytestmark = pytest.mark.anyio

PATIENCE = 30
MOST = 3  # of a process that works, without what beats for it


# -- how many -----------------------------------------------------------------------------------------------------


class Counted:
    """The most connections that were seen at once, by looking all the time."""

    def __init__(self, address: str) -> None:
        self.most = self.looks = 0
        self._address = address
        self._enough = threading.Event()

    def look(self) -> None:
        # A cleaner of the server is no connection of ours, and one that is being opened has no name and no state yet.
        others = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend' AND state IS NOT NULL AND application_name <> 'remit-heartbeat'"
        )
        with psycopg.connect(self._address, autocommit=True) as connection:
            while not self._enough.is_set():
                row = connection.execute(others).fetchone()
                assert row is not None
                self.most = max(self.most, row[0])
                self.looks += 1
                self._enough.wait(0.005)

    def stop(self) -> None:
        self._enough.set()


@contextmanager
def counted(address: str) -> Iterator[Counted]:
    counting = Counted(address)
    thread = threading.Thread(target=counting.look)
    thread.start()
    try:
        yield counting
    finally:
        counting.stop()
        thread.join()


@pytest.mark.rule("postgres.connections")
async def test_a_worker_has_few_connections_however_much_it_does(address: str):
    """Asking, carrying out, delegating, waiting, reading, listening and being woken, all at once."""

    async def lead(turn: Turn) -> str:
        return str(await turn.delegate("echo", turn.task))

    rt = team(as_url(address), hands=20, silence=600)  # so long that no heartbeat is due meanwhile, however slow it is
    rt.add(Card("lead", asks="*"), lead)
    rt.add(Card("echo"), echo)
    with anyio.fail_after(PATIENCE), counted(address) as counting:
        async with rt, rt.serving():
            tasks = await asyncio.gather(*(rt.submit("lead", f"{n}") for n in range(60)))
            looks = (rt.workspace.agents.workers() for _ in range(5))
            found = await asyncio.gather(*(task.result() for task in tasks), *looks)
        assert found[:60] == [f"{n}" for n in range(60)]
    assert counting.looks > 3
    assert counting.most <= MOST


@pytest.mark.rule("postgres.connections")
async def test_browsing_uses_two_more_connections_however_many_browse(address: str):
    rt = team(as_url(address))
    with anyio.fail_after(PATIENCE), counted(address) as counting:
        async with rt:
            await asyncio.gather(*(rt.workspace.tasks.runs() for _ in range(20)))
    assert counting.most <= MOST + 2


# -- poolers ------------------------------------------------------------------------------------------------------


@contextmanager
def pooled(address: str, mode: Mode, *, drops_options: bool = False) -> Iterator[str]:
    with closing(Pooler(address, mode, drops_options=drops_options)) as pooler:
        yield pooler.address


def tables(address: str) -> set[str]:
    """The schemas in which there are tables."""
    with psycopg.connect(address) as connection:
        found = connection.execute(
            "SELECT DISTINCT schemaname FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        return {row[0] for row in found}


@pytest.mark.rule("postgres.pooler")
@pytest.mark.parametrize("drops_options", [False, True])
async def test_a_store_is_made_and_used_through_a_pooler_that_keeps_sessions(
    own_server: OwnServer, new_address, drops_options: bool
):
    address = new_address(empty=True)
    with pooled(address, "session", drops_options=drops_options) as there:
        with closing(PostgresDatabase(there)) as database:
            await database.store("w").tx("op", putting(Draft("notes", "a", 1)))
            assert (await examine(database, NOW)).findings == []
        assert tables(address) == {"remit"}, "whatever the pooler does with settings"
    with closing(PostgresDatabase(address)) as direct:
        assert await value_of(direct.store("w"), "notes", "a") == 1


@pytest.mark.rule("postgres.pooler")
async def test_a_worker_works_through_a_pooler_that_keeps_sessions(own_server: OwnServer, address: str):
    with pooled(address, "session") as there, anyio.fail_after(PATIENCE):
        rt = team(as_url(there), hands=2)
        rt.add(Card("echo"), echo)
        async with rt, rt.serving(), team(as_url(address), hands=0) as asking:
            asking.add(Card("echo"), echo)
            assert await (await asking.submit("echo", "through it")).result() == "through it"


@pytest.mark.rule("postgres.pooler")
@pytest.mark.parametrize("empty", [False, True])
def test_a_pooler_that_lends_sessions_for_a_transaction_is_refused(own_server: OwnServer, new_address, empty: bool):
    address = new_address(empty=empty)
    before = tables(address)
    with pooled(address, "transaction", drops_options=True) as there:
        for _ in range(2):
            with pytest.raises(StoreError, match="Set pool_mode = session"):
                PostgresDatabase(there)
    assert tables(address) == before, "nothing was made"


async def test_an_address_may_have_options_of_its_own(address: str):
    with closing(PostgresDatabase(f"{address} options='-c search_path=public -c work_mem=1MB'")) as database:
        await database.store("w").tx("op", putting(Draft("notes", "a", 1)))
        assert await value_of(database.store("w"), "notes", "a") == 1
