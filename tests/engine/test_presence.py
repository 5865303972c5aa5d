"""Who is there: heartbeats, the process table, and watchers that could not look."""

import asyncio
import os
import resource
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import pytest

from engine.helping import PATIENCE, a_few_rounds, doomed, happened, life, quiet, sound, take_over, until
from forking import in_a_fork
from inside import last_look
from remit import Card, Runtime, Turn
from remit.core.times import SECOND
from remit.engine.presence.heartbeat import BLOCKS, LoopWatch
from remit.engine.presence.peers import PATIENCE as TIMES
from remit.engine.presence.peers import Fate, Peers, ProcessTable, process_address, process_ended, process_number
from remit.errors import StoreError
from remit.ports import Beat, Decide, Decision, View
from remit.runtime.workspace import opening_of
from remit.stores.opening import database_at
from remit.stores.sqlite.database import SqliteDatabase
from remit.testing import FakeClock
from teams import echo, team
from workers.crew import as_url
from wrapped import Wrapped

T = TypeVar("T")

pytestmark = pytest.mark.anyio

SILENCE = 15
FAR = "another machine"


class Table(ProcessTable):
    """A process table that says what it is told."""

    def __init__(self, fate: Fate) -> None:
        super().__init__()
        self.says = fate

    def fate(self, address: str) -> Fate:
        return self.says


def watched(clock: FakeClock, peers: Peers, seconds: float, *beats: Beat, unseen: tuple[str, ...] = ()) -> list[str]:
    """Who is gone after so many seconds in which someone looked each second."""
    gone = peers.gone(beats, unseen)
    for _ in range(round(seconds)):
        clock.advance(1)
        gone = peers.gone(beats, unseen)
    return [beat.worker for beat in gone]


# -- watching ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("presence.patience")
@pytest.mark.parametrize(
    ("fate", "seconds"),
    [(Fate.ENDED, 0), (Fate.UNKNOWN, SILENCE), (Fate.STOPPED, SILENCE), (Fate.ALIVE, SILENCE * TIMES)],
)
def test_how_long_a_silent_process_is_waited_for_depends_on_what_is_known_of_it(clock, fate: Fate, seconds: int):
    peers = Peers(clock, SILENCE, 1, Table(fate))
    if seconds:
        assert watched(clock, peers, seconds - 1, Beat("w", FAR, 1)) == []
        clock.advance(1)
    assert watched(clock, peers, 0, Beat("w", FAR, 1)) == ["w"]


@pytest.mark.rule("presence.watch")
def test_heartbeat_timeouts_restart_after_a_pause_in_polling(clock):
    peers = Peers(clock, SILENCE, 1)
    assert watched(clock, peers, SILENCE - 1, Beat("w", FAR, 1)) == []
    clock.advance(SILENCE / 2 + 1)
    assert watched(clock, peers, SILENCE - 1, Beat("w", FAR, 1)) == []
    assert watched(clock, peers, 1, Beat("w", FAR, 1)) == ["w"]


@pytest.mark.rule("presence.watch")
def test_a_short_silence_is_watched_with_rounds_that_are_not_shorter(clock):
    """Looking every second, one cannot tell half a second apart; a look or two that fail are no gap."""
    peers = Peers(clock, 1, 1)
    peers.gone([Beat("w", FAR, 1)])
    clock.advance(3)
    assert peers.gone([Beat("w", FAR, 1)]) == [Beat("w", FAR, 1)]


@pytest.mark.rule("presence.unseen")
def test_a_worker_that_holds_tasks_without_any_heartbeat_is_watched_like_a_silent_one(clock):
    peers = Peers(clock, SILENCE, 1)
    assert watched(clock, peers, SILENCE - 1, unseen=("w",)) == []
    assert watched(clock, peers, 1, unseen=("w",)) == ["w"]


@pytest.mark.rule("presence.unseen")
@pytest.mark.parametrize("state", ["running", "waiting", "cancelling"])
async def test_what_a_worker_without_a_heartbeat_has_is_taken_over(tmp_path, clock, state: str):
    """Its row is gone though it holds something: whatever may have come of it, its task must not run for ever."""
    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        inside = anyio.Event()

        async def lead(turn: Turn) -> None:
            if state == "waiting":
                await (await turn.submit("nobody", "x")).wait()
            inside.set()
            await anyio.sleep_forever()

        dead.add(Card("lead", asks="*"), lead)
        dead.add(Card("nobody", concurrency=1), lead)
        heir.add(Card("lead", asks="*"), echo)
        heir.add(Card("nobody"), echo)
        task = await dead.submit("lead", "go")
        await happened(inside)
        if state == "cancelling":
            await heir.workspace.tasks.cancel(task.id)
        row = Beat(dead.worker, FAR, 0)
        await opening_of(dead.workspace).ground.store.tx("lost", lambda _view: Decision(None, (), row))
        assert await heir.workspace.journal.read(lambda view: view.unseen()) == [dead.worker]
        await take_over(heir, clock, dead)
        end = "cancelled" if state == "cancelling" else "completed"
        assert (await heir.workspace.tasks.get(task.id).wait(PATIENCE)).state == end
        assert await heir.workspace.journal.read(lambda view: view.unseen()) == []
        await sound(heir)


@pytest.mark.rule("presence.unseen")
async def test_in_memory_nobody_says_that_they_are_there_and_nobody_is_taken_over(clock):
    with closing(SqliteDatabase()) as database:
        first, second = team(database, clock=clock), team(database, clock=clock)
        inside, go = anyio.Event(), anyio.Event()

        async def coder(turn: Turn) -> str:
            inside.set()
            await go.wait()
            return "once"

        first.add(Card("coder"), coder)
        second.add(Card("coder"), echo)
        task = await first.submit("coder", "x")
        await happened(inside)
        second.lend()
        for _ in range(2 * SILENCE):
            clock.advance(1)
            await a_few_rounds()
        go.set()
        assert await task.result(PATIENCE) == "once"
        assert "lost" not in await life(first, task.id)


class BeatsAfterLook(Wrapped):
    """A database in which something happens right after someone has looked who is there."""

    after_look: Callable[[], None] = staticmethod(lambda: None)

    def looking(self, view: View) -> View:
        return cast("View", _Looked(view, self.after_look))


class _Looked:
    def __init__(self, view: View, after_look: Callable[[], None]) -> None:
        self._view = view
        self._after_look = after_look

    def __getattr__(self, name: str) -> Any:
        if name == "unseen":  # who is there has been answered, as of one moment
            self._after_look()
        return getattr(self._view, name)


@pytest.mark.rule("presence.recheck")
async def test_one_that_has_beaten_since_it_was_looked_at_is_not_taken_over(tmp_path, clock):
    """It is seen silent, says that it is there, and only then the decision is made."""
    path = tmp_path / "team.db"
    watching = BeatsAfterLook(path)
    with doomed(path, clock) as slow, team(watching, clock=clock) as heir:
        inside, go = anyio.Event(), anyio.Event()

        async def coder(turn: Turn) -> str:
            inside.set()
            await go.wait()
            return "once"

        slow.add(Card("coder"), coder)
        heir.add(Card("coder"), echo)
        task = await slow.submit("coder", "x")
        await happened(inside)
        with closing(SqliteDatabase(path).pulse("default")) as pulse:  # pyright: ignore[reportArgumentType]
            counts = count(2)
            since: list[int] = []  # when the last heartbeat was first seen

            def beat() -> None:
                if not since:
                    since.append(clock.ticks())
                elif clock.ticks() - since[0] >= SILENCE * SECOND:
                    pulse.write(Beat(slow.worker, FAR, next(counts)))
                    since.clear()

            watching.after_look = beat
            heir.lend()
            for _ in range(3 * SILENCE):
                clock.advance(1)
                await until(lambda: last_look(heir) == clock.ticks())
                await quiet()  # a decision that is on its way is written
            assert next(counts) > 3
        go.set()
        assert await task.result(PATIENCE) == "once"
        assert "lost" not in await life(heir, task.id)
        await sound(heir)


@pytest.mark.rule("presence.leave")
async def test_a_worker_that_still_has_something_does_not_say_that_it_left(tmp_path, clock):
    with team(tmp_path / "team.db", clock=clock, hands=0) as rt:
        inside = anyio.Event()

        @rt.agent
        async def coder(turn: Turn) -> None:
            inside.set()
            await anyio.sleep_forever()

        async def run() -> None:
            with suppress(StoreError):  # its end cannot be written any more
                await rt.run("coder", "x")

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await happened(inside)
            worker = rt.worker
            async with rt:
                pass  # it is closed although something runs
            with team(tmp_path / "team.db") as onlooker:
                beats = await onlooker.workspace.journal.read(lambda view: view.workers())
            assert [beat.worker for beat in beats] == [worker]
            group.cancel_scope.cancel()


async def test_a_worker_that_has_nothing_leaves(tmp_path, clock):
    async with team(tmp_path / "team.db", clock=clock) as rt:
        rt.add(Card("coder"), echo)
        assert await rt.run("coder", "x") == "x"
    with team(tmp_path / "team.db") as onlooker:
        assert await onlooker.workspace.journal.read(lambda view: view.workers()) == []


class Full(Wrapped):
    """A database whose disk is full from some moment on."""

    full = False

    def around(self, decide: Decide[T]) -> Decide[T]:
        def decided(view: View) -> Decision[T]:
            if self.full:
                raise StoreError("the disk is full; make room and try again")
            return decide(view)

        return decided


@pytest.mark.rule("presence.leave")
async def test_a_worker_that_cannot_report_its_exit_exits_all_the_same(tmp_path, clock, caplog):
    full = Full(tmp_path / "team.db")
    with team(full, clock=clock) as rt:
        rt.add(Card("coder"), echo)
        assert await (await rt.submit("coder", "x")).result(PATIENCE) == "x"
        full.full = True
        assert await rt.drain(0) == 0
        assert "could not say that this process has left: the disk is full" in caplog.text
        full.full = False


# -- the process table --------------------------------------------------------------------------------------------


def stat(folder: Path, state: str, began: str, number: int | None = None) -> ProcessTable:
    """A process table with one line, for this process or another."""
    place = folder / str(number or os.getpid())
    place.mkdir()
    (place / "stat").write_text(f"1 (a name) x) {state} " + " ".join(["0"] * 18) + f" {began} 0 0")
    return ProcessTable(folder)


@pytest.mark.rule("presence.table")
@pytest.mark.parametrize(
    ("state", "fate"),
    [
        ("R", Fate.ALIVE),
        ("S", Fate.ALIVE),
        ("D", Fate.ALIVE),
        ("T", Fate.STOPPED),
        ("Z", Fate.ENDED),
        ("X", Fate.ENDED),
    ],
)
def test_the_process_table_tells_who_is_alive_who_is_stopped_and_who_has_ended(tmp_path, state: str, fate: Fate):
    table = stat(tmp_path, state, "77")
    address = table.address()
    assert address.endswith(f":{os.getpid()}:77")
    assert table.fate(address) is fate


@pytest.mark.rule("presence.table")
def test_a_number_that_was_given_to_another_process_is_not_the_one_that_had_it(tmp_path):
    table = stat(tmp_path, "S", "77")
    assert table.fate(f"{table.address()}8") is Fate.ENDED


@pytest.mark.rule("presence.table")
def test_a_process_that_is_hidden_has_not_ended(tmp_path):
    """With hidepid the table has no lines for the processes of others, and the system knows their numbers."""
    assert ProcessTable(tmp_path).fate(process_address()) is Fate.UNKNOWN
    of_root = process_address().replace(f":{os.getpid()}:", ":1:")
    assert ProcessTable(tmp_path).fate(of_root) is Fate.UNKNOWN


@pytest.mark.rule("presence.table")
def test_a_process_that_neither_the_table_nor_the_system_knows_has_ended():
    with subprocess.Popen(["true"]) as child:
        child.wait()
    gone = process_address().replace(f":{os.getpid()}:", f":{child.pid}:")
    assert process_ended(gone)
    assert not process_ended(process_address())


@pytest.mark.rule("presence.table")
def test_without_file_descriptors_nobody_is_taken_for_gone():
    address = process_address()
    few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    kept: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, most), most))
    try:
        with suppress(OSError):
            while True:
                kept.append(os.dup(0))
        assert ProcessTable().fate(address) is Fate.UNKNOWN
        assert ProcessTable().address() == f":{os.getpid()}:"
    finally:
        for one in kept:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, most))
    assert ProcessTable().fate(address) is Fate.ALIVE


@pytest.mark.rule("presence.table")
@pytest.mark.parametrize("address", ["", "here", "a:b", "a:b:c", ":1:2", "m:1:", "another machine:1:2", "m:²:1"])
def test_of_what_is_no_address_of_this_machine_nothing_is_known(address: str):
    assert ProcessTable().fate(address) is Fate.UNKNOWN
    assert process_number(address) == ""


@pytest.mark.rule("presence.table")
def test_an_unreadable_line_says_nothing(tmp_path):
    (tmp_path / str(os.getpid())).mkdir()
    (tmp_path / str(os.getpid()) / "stat").write_text("")
    assert ProcessTable(tmp_path).fate(process_address()) is Fate.UNKNOWN
    absurd = process_address().replace(f":{os.getpid()}:", f":{10**30}:")
    assert ProcessTable(tmp_path).fate(absurd) is Fate.UNKNOWN


# -- the thread ---------------------------------------------------------------------------------------------------


@pytest.fixture(params=["file", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path) -> str:
    return str(tmp_path / "team.db") if request.param == "file" else as_url(request.getfixturevalue("address"))


async def counted(rt: Runtime, worker: str) -> int:
    return await rt.workspace.journal.read(
        lambda view: sum(beat.count for beat in view.workers() if beat.worker == worker)
    )


def in_a_thread(where: str, worker: str) -> Callable[[], int]:
    """Look at a worker's heartbeats from a loop of one's own: the one that is tested does not run."""

    def look() -> int:
        with team(where, hands=0) as rt:
            return asyncio.run(counted(rt, worker))

    return look


@pytest.mark.rule("presence.thread")
async def test_a_process_whose_loop_is_blocked_goes_on_saying_that_it_is_there(where: str, caplog):
    with team(where, silence=0.3) as rt:
        seen: list[int] = []

        @rt.agent
        async def blocking(turn: Turn) -> str:
            look = in_a_thread(where, rt.worker)
            with ThreadPoolExecutor(1) as other:
                first = other.submit(look).result()
                while other.submit(look).result() < first + 5:  # holds up the loop until others have heard it
                    pass
            seen.append(first)
            return "done"

        assert await rt.run("blocking", "x") == "done"
        assert seen
        messages = [record.getMessage() for record in caplog.records]
        said = [message for message in messages if message.startswith("'blocking' blocks the event loop")]
        assert len(said) == 1
        assert "run it in a thread" in said[0]
        assert "test_presence.py" in said[0]


class Stuck:
    """A loop that runs and does not answer."""

    def is_running(self) -> bool:
        return True

    def call_soon_threadsafe(self, call: Callable[[], None]) -> None:
        """Do nothing."""


@pytest.mark.rule("presence.hung")
def test_a_loop_that_does_not_answer_for_far_too_long_is_not_alive(clock, caplog):
    watch = LoopWatch(cast("asyncio.AbstractEventLoop", Stuck()), clock, SILENCE)
    assert watch.alive()
    clock.advance(BLOCKS - 1)
    assert watch.alive()
    assert "blocks" not in caplog.text
    clock.advance(1)
    assert watch.alive()
    assert "an agent blocks the event loop since 5 s" in caplog.text
    clock.advance(SILENCE * TIMES - 1 - BLOCKS)
    assert watch.alive()
    clock.advance(1)
    assert not watch.alive()
    assert caplog.text.count("blocks the event loop") == 1


@pytest.mark.rule("presence.hung")
def test_a_loop_that_is_not_run_is_not_alive(clock):
    loop = asyncio.new_event_loop()
    watch = LoopWatch(loop, clock, SILENCE)
    assert not watch.alive()
    loop.close()
    assert not watch.alive()


def beating() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "remit-beat"]


@pytest.mark.rule("presence.thread")
async def test_the_thread_ends_with_the_work_and_with_the_store(where: str):
    with team(where, silence=0.2) as rt:
        rt.add(Card("coder"), echo)
        assert await rt.run("coder", "x") == "x"
        await ended(beating)
        assert await rt.run("coder", "y") == "y"
        async with rt.serving():
            assert beating() == ["remit-beat"]
    assert beating() == []


@pytest.mark.rule("presence.thread")
def test_the_thread_ends_with_its_loop(tmp_path):
    rt = team(tmp_path / "team.db", silence=0.2)
    inside = anyio.Event()

    async def stay(turn: Turn) -> None:
        inside.set()
        await anyio.sleep_forever()

    async def leave_it_running() -> None:
        await rt.submit("stays", "x")
        await happened(inside)

    rt.add(Card("stays"), stay)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave_it_running())
    assert beating() == ["remit-beat"]
    loop.close()
    deadline = time.monotonic() + PATIENCE
    while beating() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert beating() == []
    rt.close()


async def ended(threads: Callable[[], list[str]]) -> None:
    with anyio.fail_after(PATIENCE):
        while threads():  # noqa: ASYNC110 - no event tells of the end of a thread
            await anyio.sleep(0.01)


@pytest.mark.rule("presence.thread")
def test_after_a_fork_heartbeats_go_on_in_the_parent_and_not_in_the_child(where: str):
    with closing(database_at(where)) as database:
        pulse = database.pulse("default")
        assert pulse is not None
        pulse.write(Beat("w", FAR, 1))
        assert "was opened by the process that this one was forked from" in in_a_fork(
            lambda: pulse.write(Beat("w", FAR, 7))
        )
        pulse.write(Beat("w", FAR, 2))
        assert in_a_thread(where, "w")() == 2
        pulse.close()


@pytest.mark.rule("presence.thread")
def test_a_heartbeat_is_not_written_into_a_file_that_was_replaced(tmp_path):
    path = tmp_path / "team.db"
    with closing(SqliteDatabase(path)) as database:
        pulse = database.pulse("default")
        assert pulse is not None
        for _ in range(2):  # as the first and as a later one
            path.rename(tmp_path / "moved.db")
            with pytest.raises(StoreError, match="moved, removed or replaced"):
                pulse.write(Beat("w", FAR, 1))
            assert not path.exists()
            (tmp_path / "moved.db").rename(path)
            pulse.write(Beat("w", FAR, 1))
        pulse.close()


class Unwell:
    """What heartbeats are written with, and cannot be for some time."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.written: list[Beat] = []
        self.closed = 0

    def write(self, beat: Beat) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreError("no server answers there")
        self.written.append(beat)

    def close(self) -> None:
        self.closed += 1


class UnwellDatabase(Wrapped):
    def __init__(self, store: Path, pulse: Unwell) -> None:
        super().__init__(store)
        self._pulse = pulse

    def pulse(self, workspace: str) -> Unwell:
        return self._pulse


@pytest.mark.rule("presence.thread")
async def test_a_store_that_is_away_costs_heartbeats_a_warning_and_they_go_on(tmp_path, caplog):
    pulse = Unwell(2)
    with team(UnwellDatabase(tmp_path / "team.db", pulse), silence=0.1) as rt:
        async with rt.serving():
            await until(lambda: pulse.written)
    assert caplog.text.count("could not write a heartbeat: no server answers there") == 2
    assert pulse.closed == 1
