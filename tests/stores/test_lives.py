"""A store through its life: event loops that come and go, callers that leave, commits that fail, closing."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from remit.core.entry import Draft
from remit.core.events import Event
from remit.core.kinds.tasks import Begun, ended, started, tokens_used
from remit.core.remit import Remit
from remit.errors import Conflict, StoreError
from remit.ports import Decide, Decision, Store, View
from remit.stores.sqlite.database import SqliteDatabase
from remit.testing.clauses.making import (
    NOW,
    answer_or_error,
    answer_to,
    check_journal,
    child_remit,
    first_remit,
    journal,
    putting,
    raising,
    sound,
    starting,
    value_of,
)

PATIENCE = 30  # seconds after which a test that would hang fails instead


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "team.db"


@pytest.fixture
def held(path: Path) -> Iterator[sqlite3.Connection]:
    """Another writer, who lets no one else write until told to."""
    SqliteDatabase(path).close()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield holder


def put(key: str) -> Decide:
    return putting(Draft("notes", key, key), answer=key)


class Gate:
    """A fault hook that stops a commit on its way until the gate is opened."""

    def __init__(self, hook: str = "store.before-commit") -> None:
        self._hook = hook
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, name: str) -> None:
        if name == self._hook:
            self.reached.set()
            assert self.opened.wait(PATIENCE)

    async def closed(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, PATIENCE)


@pytest.fixture
def gate() -> Iterator[Gate]:
    found = Gate()
    yield found
    found.opened.set()


# -- event loops --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["memory", "file"])
def test_a_store_outlives_event_loops(path: Path, where: str):
    with closing(SqliteDatabase(path if where == "file" else ":memory:")) as database:
        store = database.store("one")
        for number in range(3):
            assert asyncio.run(answer_to(store, f"op {number}", put(str(number)))) == str(number)
        asyncio.run(sound(store))
        assert len(asyncio.run(journal(store))) == 3


def test_a_loop_that_ends_in_the_middle_leaves_the_next_one_a_sound_store(path: Path):
    with closing(SqliteDatabase(path)) as database:
        store = database.store("one")

        async def leave(steps: int) -> None:
            tasks = [asyncio.ensure_future(answer_to(store, f"{steps}/{n}", put(f"{steps}/{n}"))) for n in range(5)]
            for _ in range(steps):
                await asyncio.sleep(0)
            assert len(tasks) == 5  # and the loop ends here, whatever has become of them

        for steps in range(8):
            asyncio.run(leave(steps))
            assert asyncio.run(answer_to(store, f"{steps}/0", put(f"{steps}/0"))) == f"{steps}/0"
            asyncio.run(sound(store))


@pytest.mark.parametrize("where", ["memory", "file"])
def test_an_interrupt_in_a_decision_leaves_the_next_loop_a_sound_store(path: Path, where: str):
    """Ctrl-C can arrive anywhere, in the middle of a decision too."""

    def interrupted(view: View) -> Decision:
        view.entry("notes", "a")
        raise KeyboardInterrupt

    with closing(SqliteDatabase(path if where == "file" else ":memory:")) as database:
        store = database.store("one")
        asyncio.run(store.tx("before", put("before")))
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(store.tx("op", interrupted))
        assert asyncio.run(answer_to(store, "op", put("after"))) == "after"
        asyncio.run(sound(store))


def test_a_second_loop_at_the_same_time_is_told_so(path: Path, held: sqlite3.Connection):
    with closing(SqliteDatabase(path, busy_seconds=PATIENCE)) as database:
        store = database.store("one")
        waiting = threading.Event()
        answers: list[object] = []

        async def first() -> None:
            task = asyncio.ensure_future(answer_to(store, "first", put("first")))
            await asyncio.sleep(0)
            waiting.set()
            answers.append(await task)

        thread = threading.Thread(target=lambda: asyncio.run(first()))
        thread.start()
        assert waiting.wait(PATIENCE)
        try:
            with pytest.raises(StoreError, match="in use by another event loop"):
                asyncio.run(store.tx("second", put("second")))
        finally:
            held.execute("ROLLBACK")
            thread.join(PATIENCE)
        assert answers == ["first"]
        assert asyncio.run(answer_to(store, "second", put("second"))) == "second", "once the first is done, it is free"
        asyncio.run(sound(store))


# -- a commit on its way ------------------------------------------------------------------------------------


@pytest.mark.rule("store.atomic")
@pytest.mark.anyio
async def test_nothing_shows_before_it_is_committed(path: Path, gate: Gate):
    with closing(SqliteDatabase(path, fault=gate)) as database:
        store = database.store("one")
        heard: list[Event] = []
        store.subscribe(heard.extend)
        task = asyncio.ensure_future(answer_to(store, "op", put("a")))
        await gate.closed()
        assert (await value_of(store, "notes", "a"), heard, task.done()) == (None, [], False)
        gate.opened.set()
        assert await task == "a"
        assert await value_of(store, "notes", "a") == "a"
        assert [event.op for event in heard] == ["op"]


@pytest.mark.rule("store.atomic")
@pytest.mark.anyio
async def test_who_stops_waiting_for_a_commit_changes_nothing_about_it(path: Path, gate: Gate):
    with closing(SqliteDatabase(path, fault=gate)) as database:
        store = database.store("one")
        left, stays = (asyncio.ensure_future(answer_to(store, op, put(op))) for op in ("left", "stays"))
        await gate.closed()
        late = asyncio.ensure_future(answer_to(store, "late", put("late")))
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        gate.opened.set()
        assert [await stays, await late] == ["stays", "late"]
        assert (await store.tx("left", raising(Conflict("too late")))).answer == "left", (
            "it was on its way, and it was done"
        )
        await sound(store)


@pytest.mark.rule("store.atomic")
@pytest.mark.anyio
async def test_a_commit_that_fails_once_is_tried_again(path: Path):
    fault = Failing(times=1)
    with closing(SqliteDatabase(path, fault=fault)) as database:
        store = database.store("one")
        answers = await asyncio.gather(*(answer_to(store, f"op {n}", put(str(n))) for n in range(20)))
        assert answers == [str(n) for n in range(20)]
        assert len(await journal(store)) == 20
        await sound(store)


@pytest.mark.rule("store.atomic", "input.half-written")
@pytest.mark.anyio
async def test_a_commit_that_goes_on_failing_is_told_to_everyone_and_leaves_nothing(path: Path):
    fault = Failing(times=1_000)
    with closing(SqliteDatabase(path, fault=fault)) as database:
        store = database.store("one")
        answers = await asyncio.gather(*(answer_or_error(store, f"op {n}", put(str(n))) for n in range(20)))
        assert {str(answer) for answer in answers} == {"the disk is gone"}
        assert await journal(store) == []
        fault.left = 0
        assert await asyncio.gather(*(answer_to(store, f"op {n}", put(str(n))) for n in range(20))) == [
            str(n) for n in range(20)
        ]
        await sound(store)


class Failing:
    """A disk that fails so many commits."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self, name: str) -> None:
        if name == "store.before-commit" and self.left:
            self.left -= 1
            raise StoreError("the disk is gone")


def test_a_store_in_memory_goes_on_committing_after_a_decision_that_raised():
    """Transactions stay open for some hundred jobs, and one that raises must not keep one open for ever."""
    commits: list[str] = []
    with closing(SqliteDatabase(fault=commits.append)) as database:
        store = database.store("one")

        async def work() -> None:
            for number in range(600):
                decide = raising(KeyError(number)) if number % 2 else put(str(number))
                await answer_or_error(store, f"op {number}", decide)
            await sound(store)

        asyncio.run(work())
    assert commits.count("store.after-commit") >= 2


# -- closing ------------------------------------------------------------------------------------------------


@pytest.mark.rule("store.crash")
@pytest.mark.anyio
async def test_closing_waits_for_the_commit_that_is_on_its_way(path: Path, gate: Gate):
    database = SqliteDatabase(path, fault=gate)
    store = database.store("one")
    early = asyncio.ensure_future(answer_to(store, "early", put("early")))
    await gate.closed()
    late = asyncio.ensure_future(answer_or_error(store, "late", put("late")))
    await asyncio.sleep(0)
    opener = threading.Thread(target=gate.opened.set)
    opener.start()
    database.close()
    opener.join()
    assert await asyncio.wait_for(early, PATIENCE) == "early"
    assert isinstance(await asyncio.wait_for(late, PATIENCE), StoreError)
    with closing(SqliteDatabase(path)) as again:
        assert await value_of(again.store("one"), "notes", "early") == "early"
        assert await value_of(again.store("one"), "notes", "late") is None
        await sound(again.store("one"))


@pytest.mark.anyio
async def test_closing_tells_those_who_wait_for_another_process(path: Path, held: sqlite3.Connection):
    database = SqliteDatabase(path, busy_seconds=60)
    store = database.store("one")
    waiting = [asyncio.ensure_future(answer_or_error(store, f"op {n}", put(str(n)))) for n in range(3)]
    for _ in range(5):
        await asyncio.sleep(0)
    database.close()
    answers = await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE)
    assert [type(answer) for answer in answers] == [StoreError] * 3
    held.execute("ROLLBACK")
    with closing(SqliteDatabase(path)) as again:
        assert await journal(again.store("one")) == []


@pytest.mark.parametrize("where", ["memory", "file"])
@pytest.mark.parametrize("used", [True, False], ids=["used", "fresh"])
@pytest.mark.parametrize(
    "use",
    [
        lambda database, store: asyncio.run(store.tx("op", put("a"))),
        lambda database, store: asyncio.run(journal(store)),
        lambda database, store: asyncio.run(journal(database.store("two"))),
        lambda database, store: database.workspaces(),
    ],
    ids=["tx", "read", "store", "workspaces"],
)
def test_what_is_closed_says_so(path: Path, where: str, used: bool, use: Callable[[SqliteDatabase, Store], object]):
    database = SqliteDatabase(path if where == "file" else ":memory:")
    store = database.store("one")
    if used:
        asyncio.run(store.tx("before", put("before")))
    database.close()
    database.close()  # twice is as good as once
    with pytest.raises(StoreError, match="closed"):
        use(database, store)


@pytest.mark.rule("journal.chain", "journal.one-event")
@pytest.mark.anyio
async def test_what_was_written_is_there_when_it_is_opened_again(path: Path):
    for number in range(4):
        with closing(SqliteDatabase(path)) as database:
            store = database.store("one")
            await asyncio.gather(*(store.tx(f"{number}/{n}", put(f"{n}")) for n in range(30)))
            await store.read(check_journal)
            assert len(await journal(store)) == 30 * (number + 1)


@pytest.mark.rule("journal.one-event")
@pytest.mark.anyio
async def test_the_figures_of_a_run_go_on_when_it_is_opened_again(path: Path):
    root = first_remit("root", session="s")
    for life in range(3):
        with closing(SqliteDatabase(path)) as database:
            store = database.store("one")
            if life == 0:
                await store.tx("start", starting(root))
            await store.tx(f"part {life}", lambda _view, life=life: grown(root, life))
            await store.tx(f"part {life}", lambda _view, life=life: grown(root, life))
            assert (await store.tx("look", lambda view: Decision([*view.run("root")]))).answer == figures(life + 1)
            assert [*await store.read(lambda view: view.run("root"))] == figures(life + 1)
            await sound(store)


@pytest.mark.rule("journal.one-event")
@pytest.mark.anyio
async def test_two_databases_on_one_file_count_the_same_run(path: Path):
    """Each remembers the figures, and notices when the other has counted."""
    root = first_remit("root", session="s")
    with closing(SqliteDatabase(path)) as left, closing(SqliteDatabase(path)) as right:
        stores = (left.store("one"), right.store("one"))
        await stores[0].tx("start", starting(root))
        for number in range(10):
            store = stores[number % 2]
            await store.tx(f"part {number}", lambda _view, number=number: grown(root, number))
            assert (await store.tx("look", lambda view: Decision([*view.run("root")]))).answer == figures(number + 1)


def grown(root: Remit, number: int) -> Decision:
    """A part joins and ends."""
    part = child_remit(root, f"part{number}", holder=f"helper{number}")
    end = ended(part, "task.completed", NOW, {"result": 1, "tokens": 10})
    return Decision(None, (started(part, NOW, Begun(joins=True)), tokens_used(part, 10, NOW), end))


def figures(parts: int) -> list[object]:
    members = {"lead", *(f"helper{number}" for number in range(parts))}
    return ["root", members, 1 + parts, 0, 10 * parts, 0, 0, 0]


@pytest.mark.rule("store.atomic", "journal.chain")
@pytest.mark.anyio
async def test_two_databases_on_one_file_take_turns(path: Path):
    """Each finds what the other wrote in between: the journal is one."""
    with closing(SqliteDatabase(path)) as left, closing(SqliteDatabase(path)) as right:
        stores = (left.store("one"), right.store("one"))
        for number in range(10):
            for side, store in enumerate(stores):
                assert (await store.tx(f"{number}/{side}", put(f"{number}/{side}"))).answer == f"{number}/{side}"
        asked = (answer_to(stores[n % 2], f"op {n // 2}", put(f"{n // 2}")) for n in range(100))
        assert await asyncio.gather(*asked) == [f"{n // 2}" for n in range(100)]
        for store in stores:
            assert len(await journal(store)) == 70
            await sound(store)
