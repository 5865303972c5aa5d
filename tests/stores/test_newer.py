"""A store that a newer remit has brought up to date while older processes have it open."""

import asyncio
import logging
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import psycopg
import pytest
from anyio import to_thread

from commands import plain_environment
from programs import running
from remit import Card, Runtime, Turn
from remit.core.entry import Draft
from remit.errors import NewerStore
from remit.ports import Store
from remit.stores.opening import database_at
from remit.testing.clauses.making import journal, putting
from teams import echo, team
from workers.crew import as_url

pytestmark = [pytest.mark.anyio, pytest.mark.rule("store.outgrown")]

PATIENCE = 20
SENTENCE = "was brought to schema 99 by a newer remit .* this remit knows up to .* Upgrade remit and start again"


class Where:
    """Where a store is, and how a newer remit would change its number."""

    def __init__(self, where: str, renumber: Callable[[], None]) -> None:
        self.where = where
        self.renumber = renumber


@pytest.fixture(params=["file", "server"])
def place(request: pytest.FixtureRequest, tmp_path) -> Where:
    if request.param == "file":
        path = tmp_path / "team.db"
        database_at(path).close()

        def renumber() -> None:
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA user_version = 99")

        return Where(str(path), renumber)
    address = request.getfixturevalue("address")

    def renumber_there() -> None:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("UPDATE remit.version SET number = 99")

    return Where(as_url(address), renumber_there)


async def test_nothing_more_is_written_by_a_process_that_does_not_know_the_schema(place: Where):
    with closing(database_at(place.where)) as database:
        store = database.store("w")
        await store.tx("before", putting(Draft("notes", "a", 1)))
        before = await journal(store)
        place.renumber()
        for _ in range(2):
            with pytest.raises(NewerStore, match=SENTENCE):
                await store.tx("after", putting(Draft("notes", "a", 2)))
        with pytest.raises(NewerStore, match=SENTENCE):  # nor is anything read that may mean something else by now
            await journal(store)
        assert len(before) == 1


async def test_who_only_listens_notices_it_too(place: Where):
    with closing(database_at(place.where)) as database:
        store = database.store("w")
        rung = asyncio.Event()
        stop = store.listen(rung.set)
        place.renumber()
        with anyio.fail_after(PATIENCE):
            while not await is_refused(store):
                await rung.wait()
                rung.clear()
        stop()


async def is_refused(store: Store) -> bool:
    try:
        await journal(store)
    except NewerStore:
        return True
    return False


def gated(rt: Runtime, begun: anyio.Event) -> None:
    async def stays(turn: Turn) -> str:
        begun.set()
        await anyio.Event().wait()
        return "never"

    rt.add(Card("stays"), stays)
    rt.add(Card("echo"), echo)


@pytest.mark.parametrize("at_work", [False, True])
async def test_a_worker_stops_and_says_so_once(place: Where, at_work: bool, caplog):
    """What it was doing is for others to take over: nothing can be written about it from here."""
    begun = anyio.Event()
    rt = team(place.where, hands=3)
    gated(rt, begun)
    with closing(rt), anyio.fail_after(PATIENCE), caplog.at_level(logging.INFO):
        serving = asyncio.create_task(rt.serve())
        task = await rt.submit("stays" if at_work else "echo", "work")
        await (begun.wait() if at_work else task.result())
        place.renumber()
        with pytest.raises(NewerStore, match=SENTENCE):
            await serving
        assert rt.running() == 0
    said = [record.getMessage() for record in caplog.records if "newer remit" in record.getMessage()]
    assert [line.partition(": ")[0] for line in said] == ["this process has stopped carrying out tasks"]


@pytest.mark.parametrize("words", ["worker team:rt", "serve team:rt --port 0", "serve --port 0"])
async def test_a_command_ends_so_that_its_supervisor_can_start_the_new_version(
    place: Where, tmp_path: Path, words: str
):
    (tmp_path / "team.py").write_text("import remit\nrt = remit.Runtime()\n")
    env = {**plain_environment(), "XDG_STATE_HOME": str(tmp_path)}
    command = ("-m", "remit", *words.split(), "--store", place.where)
    with running(*command, cwd=tmp_path, env=env) as program:
        assert "workspace default" in await to_thread.run_sync(program.stdout.readline)
        place.renumber()
        _, complaints = await to_thread.run_sync(program.communicate, "", PATIENCE)
        assert program.wait() == 5
    assert re.search(SENTENCE, complaints)
