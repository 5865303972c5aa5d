"""Whoever waits for a task of another process is woken when it has moved, and nobody else is."""

import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from engine.helping import PATIENCE, until
from remit.core.entry import Draft
from remit.engine.presence.bell import Bell
from remit.ports import Decision, Store, View
from remit.stores.sqlite.database import SqliteDatabase
from remit.testing import FakeClock
from remit.testing.clauses.making import ending, entry_event, first_remit, starting

pytestmark = pytest.mark.anyio

MANY = 50


class Waiters:
    """Some that wait for a task each, and how often each of them has looked."""

    def __init__(self, bell: Bell) -> None:
        self.bell = bell
        self.looks: dict[str, int] = {}
        self.told: set[str] = set()

    async def wait(self, task: str) -> None:
        def look(view: View) -> bool | None:
            self.looks[task] = self.looks.get(task, 0) + 1
            standing = view.standing(task)
            return None if standing is None or standing.state == "running" else True

        await self.bell.until(task, look)
        self.told.add(task)

    async def all_have_looked(self, before: dict[str, int]) -> None:
        await until(lambda: all(self.looks[task] == looks + 1 for task, looks in before.items()))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "team.db"


@pytest.fixture
def mine(path: Path) -> Iterator[SqliteDatabase]:
    """The database of the process that waits."""
    with closing(SqliteDatabase(path)) as database:
        yield database


@pytest.fixture
def stores(path: Path, mine: SqliteDatabase) -> Iterator[tuple[Store, Store]]:
    """One store, as two processes have it."""
    with closing(SqliteDatabase(path)) as theirs:
        yield mine.store("w"), theirs.store("w")


async def begin(store: Store) -> list[str]:
    for number in range(MANY):
        await store.tx(f"begin {number}", starting(first_remit(f"task{number}", session="s")))
    return [f"task{number}" for number in range(MANY)]


async def waiting(stores: tuple[Store, Store], then: Callable[[Waiters], Awaitable[None]]) -> None:
    """Have all wait until the bell knows where the journal ends, and do something then."""
    tasks = await begin(stores[1])
    waiters = Waiters(Bell(stores[0], FakeClock()))
    with anyio.fail_after(6 * PATIENCE):
        async with anyio.create_task_group() as group:
            for task in tasks:
                group.start_soon(waiters.wait, task)
            await until(lambda: len(waiters.looks) == MANY)
            before = dict(waiters.looks)
            waiters.bell.ring()  # it knows nothing yet: everyone looks for itself
            await waiters.all_have_looked(before)
            await then(waiters)
            group.cancel_scope.cancel()


@pytest.mark.rule("waking.growth")
async def test_only_those_look_whose_task_has_moved(stores: tuple[Store, Store], mine: SqliteDatabase):
    read: list[str] = []

    async def then(waiters: Waiters) -> None:
        looks = sum(waiters.looks.values())
        mine.reader.connection.set_trace_callback(read.append)
        for number in range(3):
            before = dict(waiters.looks)
            await stores[1].tx(f"end {number}", ending(first_remit(f"task{number}", session="s")))
            waiters.bell.ring()
            await until(lambda number=number: f"task{number}" in waiters.told)
            del before[f"task{number}"]
            assert {task: waiters.looks[task] for task in before} == before
        mine.reader.connection.set_trace_callback(None)
        standings = [statement for statement in read if statement.startswith("SELECT t.state, t.fence")]
        assert len(standings) == sum(waiters.looks.values()) - looks, "nobody looks in their place either"

    await waiting(stores, then)


@pytest.mark.rule("waking.growth")
async def test_our_own_events_are_not_read_again(stores: tuple[Store, Store], mine: SqliteDatabase):
    read: list[str] = []

    async def then(waiters: Waiters) -> None:
        await stores[0].tx("mine", ending(first_remit("task0", session="s")))
        await until(lambda: "task0" in waiters.told)
        mine.reader.connection.set_trace_callback(read.append)
        waiters.bell.ring()
        await until(lambda: any("ORDER BY seq DESC" in statement for statement in read))  # where the journal ends
        await stores[1].tx("theirs", ending(first_remit("task1", session="s")))
        waiters.bell.ring()
        await until(lambda: "task1" in waiters.told)
        mine.reader.connection.set_trace_callback(None)

    await waiting(stores, then)
    assert sum("seq >=" in statement for statement in read) == 1


@pytest.mark.rule("waking.growth")
async def test_after_a_great_many_events_everyone_looks_once(stores: tuple[Store, Store]):
    async def then(waiters: Waiters) -> None:
        def write(view: View) -> Decision[None]:
            return Decision(None, [entry_event(view, Draft("notes", str(key), 1)) for key in range(1_001)])

        before = dict(waiters.looks)
        await stores[1].tx("write", write)
        waiters.bell.ring()
        await waiters.all_have_looked(before)

    await waiting(stores, then)


@pytest.mark.rule("waking.growth")
@pytest.mark.parametrize("goes_on", [False, True], ids=["shorter", "as long again"])
async def test_in_a_journal_that_was_put_back_everyone_looks_once(
    stores: tuple[Store, Store], path: Path, *, goes_on: bool
):
    async def then(waiters: Waiters) -> None:
        before = dict(waiters.looks)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DELETE FROM event WHERE seq > ?", (MANY - 1,))
        if goes_on:
            await stores[1].tx("on", lambda view: Decision(None, [entry_event(view, Draft("notes", "a", 1))]))
        waiters.bell.ring()
        await waiters.all_have_looked(before)

    await waiting(stores, then)
