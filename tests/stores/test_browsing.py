"""Long looks: beside the event loop, as of one moment, and never in the way of a close or a fork."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from forking import in_a_fork
from remit.core.entry import Draft
from remit.engine.upkeep.doctor import examine
from remit.errors import StoreError
from remit.ports import Decision, Span, View
from remit.stores.sqlite.database import SqliteDatabase
from remit.stores.views import SqlView
from remit.testing.clauses import transactions
from remit.testing.clauses.making import NOW, entry_event, putting

pytestmark = pytest.mark.anyio

PATIENCE = 20.0


@pytest.fixture
def where(tmp_path: Path) -> Path:
    return tmp_path / "team.db"


@pytest.fixture
def database(where: Path) -> Iterator[SqliteDatabase]:
    with closing(SqliteDatabase(where, busy_seconds=1.0)) as database:
        yield database


class Endless:
    """A look that asks for ever, unless it is stopped; `begun` counts how often it began."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.is_enough = threading.Event()
        self.stopped = threading.Event()

    def __call__(self, view: View) -> str:
        self.begun.release()
        try:
            while not self.is_enough.is_set():
                view.events(Span(limit=1))
        except BaseException:
            self.stopped.set()
            raise
        return "enough"

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.acquire, timeout=PATIENCE)

    async def was_stopped(self) -> None:
        assert await asyncio.to_thread(self.stopped.wait, PATIENCE)


@pytest.mark.rule("store.browse")
async def test_the_loop_and_short_looks_go_on_while_a_long_look_is_under_way(database: SqliteDatabase):
    await transactions.a_long_look_holds_up_nothing(database)


@pytest.mark.rule("store.browse")
async def test_a_look_that_nobody_waits_for_any_more_stops(database: SqliteDatabase):
    look = Endless()
    waiting = asyncio.ensure_future(database.store("one").browse(look))
    await look.has_begun()
    waiting.cancel()
    await look.was_stopped()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await database.store("one").browse(lambda view: view.head())).seq == 0, "others look on"


@pytest.mark.rule("store.browse")
async def test_closing_the_store_stops_long_reads_and_tells_the_callers_that_wait(
    database: SqliteDatabase, where: Path
):
    look = Endless()
    waiting = asyncio.ensure_future(database.store("one").browse(look))
    await look.has_begun()
    database.close()
    with pytest.raises(StoreError, match="the store is closed"):
        await waiting
    with pytest.raises(StoreError, match="the store is closed"):
        await database.store("one").browse(look)
    assert not where.with_name("team.db-wal").exists(), "nobody has the file open any more"


@pytest.mark.rule("store.browse")
async def test_a_look_that_asks_nothing_cannot_hold_up_a_close(tmp_path: Path):
    database = SqliteDatabase(tmp_path / "team.db", busy_seconds=0.05)
    begun, go_on = threading.Event(), threading.Event()

    def look(view: View) -> object:
        begun.set()
        go_on.wait(PATIENCE)
        return view.head()

    waiting = asyncio.ensure_future(database.store("one").browse(look))
    assert await asyncio.to_thread(begun.wait, PATIENCE)
    database.close()
    go_on.set()
    with pytest.raises(StoreError, match="the store is closed"):
        await waiting


@pytest.mark.rule("store.browse")
@pytest.mark.rule("runtime.fork")
async def test_a_long_read_starts_again_after_a_fork(database: SqliteDatabase, where: Path):
    """The file is closed meanwhile, so the child may open it."""
    look = Endless()
    waiting = asyncio.ensure_future(database.store("one").browse(look))
    await look.has_begun()
    assert in_a_fork(lambda: SqliteDatabase(where).close()) == "None"
    await look.has_begun()
    look.is_enough.set()
    assert await waiting == "enough"


@pytest.mark.rule("runtime.fork")
def test_a_child_cannot_browse_in_what_its_parent_has_opened(database: SqliteDatabase):
    store = database.store("one")

    def head() -> int:
        return asyncio.run(store.browse(lambda view: view.head())).seq

    assert head() == 0
    assert "opened by the process that this one was forked from" in in_a_fork(head)
    assert head() == 0


@pytest.mark.rule("runtime.fork")
async def test_a_child_is_told_if_a_look_could_not_be_stopped_before_the_fork(tmp_path: Path):
    where = tmp_path / "team.db"
    with closing(SqliteDatabase(where, busy_seconds=0.05)) as database:
        begun, go_on = threading.Event(), threading.Event()

        def look(view: View) -> object:
            begun.set()
            go_on.wait(PATIENCE)
            return view.head().seq

        waiting = asyncio.ensure_future(database.store("one").browse(look))
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        answer = in_a_fork(lambda: SqliteDatabase(where))
        assert "cannot be opened here" in answer
        go_on.set()
        assert await waiting == 0
        await database.store("one").tx("after", putting(Draft("notes", "a", "written")))


@pytest.mark.rule("store.browse")
def test_a_file_that_was_replaced_is_not_looked_at(database: SqliteDatabase, where: Path):
    elsewhere = where.rename(where.with_name("elsewhere.db"))
    with pytest.raises(StoreError, match="moved, removed or replaced"):
        asyncio.run(database.store("one").browse(lambda view: view.head()))
    assert not where.exists(), "and no new one is made"
    elsewhere.rename(where)


@pytest.mark.rule("store.browse")
async def test_the_doctor_examines_beside_the_loop_and_says_how_far_it_is(database: SqliteDatabase):
    store = database.store("one")
    await store.tx("op", putting(Draft("notes", "a", "written")))
    came, go_on = threading.Event(), threading.Event()
    told: list[tuple[str, int, int]] = []

    def tell(workspace: str, event: int, of: int) -> None:
        told.append((workspace, event, of))
        came.set()
        assert go_on.wait(PATIENCE), "the loop goes on meanwhile"

    async def meanwhile() -> None:
        assert await asyncio.to_thread(came.wait, PATIENCE)
        assert (await store.read(lambda view: view.head())).seq == 1
        go_on.set()

    health, _ = await asyncio.gather(examine(database, NOW, tell=tell), meanwhile())
    assert health.sound
    assert told == [("one", 0, 1)]


# -- what is held ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("journal.pages")
async def test_of_a_long_journal_no_more_is_held_than_a_page_and_what_is_wanted():
    """Three entries among five thousand, from both ends."""
    sizes: list[int] = []
    with closing(SqliteDatabase()) as database:
        drafts = [Draft("notes", f"key {number}", number) for number in range(5_000)]
        await database.store("one").tx(
            "op", lambda view: Decision(None, tuple(entry_event(view, draft, agent=_who(draft)) for draft in drafts))
        )

        def ask(name: str, row: object) -> object:
            rows = database.writer.query(name, row)  # pyright: ignore[reportArgumentType]
            sizes.append(len(rows))
            return rows

        view = SqlView("one", ask)  # pyright: ignore[reportArgumentType]
        kinds = frozenset({"task.started"})
        for latest in (False, True):
            assert view.events(Span(kinds=kinds, latest=latest)) == []
            assert len(view.events(Span(agent="rare", latest=latest))) == 3
            assert max(sizes) <= 2_000
            assert sum(sizes) <= 5_003, "nothing is read twice"
            sizes.clear()
        assert [event.seq for event in view.events(Span())] == [*range(1, 5_001)]
        assert [event.seq for event in view.events(Span(latest=True))] == [*range(1, 5_001)]
        assert max(sizes) <= 2_000


def _who(draft: Draft) -> str:
    return "rare" if draft.key in ("key 1", "key 2500", "key 4999") else "busy"
