"""A full disk, a file that is held or gone, rows that cannot be read: told clearly, and work goes on afterwards."""

import asyncio
import json
import os
import sqlite3
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import remit
from programs import ran, running
from remit.errors import StoreBusy, StoreError
from remit.runtime.workspace import opening_of, subscribe
from remit.settings import Pace, Serving
from remit.stores.sqlite.database import SqliteDatabase

HANDS = Path(__file__).parent / "hands.py"
BIG = "x" * 20_000
SECONDS = 10.0
QUICK = Serving(
    pace=Pace(poll_interval=0.05, retry_store=(0.02,))
)  # a worker looks more often than it does outside of tests

pytestmark = pytest.mark.anyio


def connection_of(rt: remit.Runtime, which: str) -> Any:
    """A connection of the file that a runtime works with."""
    return getattr(opening_of(rt.workspace).database, which).connection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "team.db"


@asynccontextmanager
async def team(path: Path, ran: list[str] | None = None) -> AsyncIterator[remit.Runtime]:
    """A runtime whose worker must outlive whatever happens meanwhile."""
    with closing(SqliteDatabase(path, busy_seconds=0.05)) as database:
        rt = remit.Runtime(database, serving=QUICK)

        @rt.agent(writes=["notes"])
        async def clerk(turn: remit.Turn) -> str:
            if ran is not None:
                ran.append(turn.task)
            await turn.context.set("notes", turn.task, BIG)
            return turn.task

        serving = asyncio.create_task(rt.serve())
        await asyncio.sleep(0)
        try:
            yield rt
            assert not serving.done(), "the worker is still at work"
            health = await rt.workspace.check()
            assert health.findings == []
        finally:
            serving.cancel()
            await asyncio.wait([serving])


async def all_done(rt: remit.Runtime) -> None:
    """Until nothing is open any more."""
    changed = asyncio.Event()
    stop = subscribe(rt.workspace, lambda _events: changed.set())
    try:
        async with asyncio.timeout(SECONDS):
            while await rt.workspace.tasks.list(state="open"):
                await changed.wait()
                changed.clear()
    except TimeoutError:
        pytest.fail(f"still open: {await rt.workspace.tasks.list(state='open')}")
    finally:
        stop()


async def refused(rt: remit.Runtime) -> tuple[list[str], str]:
    """Submits until the store refuses; what it had acknowledged by then, and what it said."""
    acknowledged: list[str] = []
    for number in range(500):
        try:
            task = await rt.submit("clerk", f"task {number}")
            acknowledged.append(task.id)
            await rt.workspace.context().set("filler", str(number), BIG)
        except StoreError as error:
            return acknowledged, str(error)
    pytest.fail("nothing was refused")


async def completed(rt: remit.Runtime, acknowledged: list[str]) -> None:
    await all_done(rt)
    assert {(await rt.workspace.tasks.get(one).status()).state for one in acknowledged} == {"completed"}
    ends = Counter(event.task for event in await rt.workspace.journal.history() if event.kind == "task.completed")
    assert set(ends.values()) == {1}


# -- the disk ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("fault.disk")
async def test_work_goes_on_when_there_is_room_again(path: Path):
    async with team(path) as rt:
        assert isinstance(opening_of(rt.workspace).database, SqliteDatabase)
        run = connection_of(rt, "writer").execute
        await rt.submit("clerk", "before")
        await all_done(rt)
        (pages,) = run("PRAGMA page_count").fetchone()
        run(f"PRAGMA max_page_count = {pages + 60}")
        acknowledged, said = await refused(rt)
        assert acknowledged
        assert said == f"{path}: the disk is full; make room and try again"
        assert len(await rt.workspace.tasks.list()) >= len(acknowledged), "reading goes on"
        run("PRAGMA max_page_count = 1073741823")
        await completed(rt, acknowledged)


@pytest.mark.rule("fault.disk")
def test_work_goes_on_when_files_may_grow_again(path: Path):
    done = ran(HANDS, "limit", path, path.with_suffix(".log"), timeout=90)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert str(path) in told["said"]
    assert told["serving"]
    assert told["findings"] == []
    acks = [json.loads(line)[1] for line in path.with_suffix(".log").read_text().splitlines()]
    assert acks
    assert {told["ended"][task] for task in acks} == {"completed"}
    assert told["ended"]["after"] == "completed"


@contextmanager
def mounted(folder: Path) -> Iterator[Callable[[str], None]]:
    """A file system of its own, two megabytes large; calling it mounts it again with other options."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount file systems, and not everywhere")

    def change(options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True, timeout=10)

    try:
        yield change
    finally:
        subprocess.run(["umount", str(folder)], check=True, timeout=10)


@pytest.mark.rule("fault.disk")
async def test_a_disk_that_is_really_full(tmp_path: Path):
    with mounted(tmp_path) as change:
        async with team(tmp_path / "team.db") as rt:
            acknowledged, said = await refused(rt)
            assert "the disk is full; make room and try again" in said
            assert len(await rt.workspace.tasks.list(limit=1_000)) >= len(acknowledged)
            change("size=200m")
            await completed(rt, acknowledged)


# -- held by others, and gone for a while ---------------------------------------------------------------------------


@contextmanager
def holding(path: Path) -> Iterator[Callable[[], object]]:
    """Another process that writes, and does not come to an end until it is told to."""
    with running(HANDS, "hold", path) as other:
        assert other.stdout.readline() == "held\n"
        yield lambda: other.communicate("let go\n", timeout=10)


@pytest.mark.rule("fault.locked")
async def test_a_file_that_another_process_holds_is_worked_on_when_it_lets_go(path: Path):
    async with team(path) as rt:
        first = await rt.submit("clerk", "before")
        await all_done(rt)
        with holding(path) as let_go:
            for _ in range(3):
                with pytest.raises(StoreBusy, match="another process has been writing for 0.05 s; try again"):
                    await rt.submit("clerk", "meanwhile")
            assert (await first.status()).state == "completed", "reading goes on"
            let_go()
        await completed(rt, [first.id, (await rt.submit("clerk", "meanwhile")).id])


@pytest.mark.rule("fault.locked")
async def test_what_runs_while_the_file_is_held_is_finished_afterwards(path: Path):
    """The agent's own write meets the lock, in the middle of its work."""
    ran: list[str] = []
    async with team(path) as rt:
        begun = asyncio.Event()
        go = asyncio.Event()

        @rt.agent
        async def slow(turn: remit.Turn) -> str:
            ran.append(turn.task)
            begun.set()
            await go.wait()
            return await turn.once("write", str, turn.task)

        task = await rt.submit("slow", "in the middle")
        await asyncio.wait_for(begun.wait(), 10)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            go.set()
            with pytest.raises(StoreBusy):
                await rt.submit("slow", "another")
            other.execute("ROLLBACK")
        await completed(rt, [task.id])
        assert ran.count("in the middle") <= 4


def renamed(path: Path, to: Path) -> Path:
    return path.replace(to)


@pytest.mark.rule("fault.gone")
async def test_nothing_is_acknowledged_while_the_file_is_not_where_it_was(path: Path):
    async with team(path) as rt:
        before = await rt.submit("clerk", "before")
        await all_done(rt)
        away = renamed(path, path.with_suffix(".away"))
        with pytest.raises(StoreError, match="team.db: the file was moved, removed or replaced; put it back"):
            await rt.submit("clerk", "meanwhile")
        os.close(os.open(path, os.O_CREAT))
        with pytest.raises(StoreError, match="team.db: the file was moved, removed or replaced; put it back"):
            await rt.submit("clerk", "meanwhile")
        assert (await before.status()).state == "completed", "reading goes on"
        renamed(away, path)
        await completed(rt, [before.id, (await rt.submit("clerk", "meanwhile")).id])
    with remit.Runtime(path, serving=Serving(concurrency=0)) as rt:
        assert len(await rt.workspace.tasks.list()) == 2


@contextmanager
def opened(path: Path, flags: int) -> Iterator[None]:
    """As if the file was opened in another way: what is not allowed then is an I/O error."""
    found = [int(fd.name) for fd in Path("/proc/self/fd").iterdir() if os.path.realpath(fd) == str(path)]
    assert found
    kept = [(fd, os.dup(fd)) for fd in found]
    other = os.open(path, flags)
    for fd in found:
        os.dup2(other, fd)
    try:
        yield
    finally:
        for fd, before in kept:
            os.dup2(before, fd)
            os.close(before)
        os.close(other)


@pytest.mark.rule("fault.gone")
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
async def test_a_disk_that_cannot_be_written_for_a_while(path: Path):
    async with team(path) as rt:
        before = await rt.submit("clerk", "before")
        await all_done(rt)
        with opened(Path(f"{path}-wal"), os.O_RDONLY):
            for _ in range(3):
                with pytest.raises(StoreError, match="disk could not be read or written .SQLITE_IOERR_WRITE"):
                    await rt.submit("clerk", "meanwhile")
            assert (await before.status()).state == "completed", "reading goes on"
        await completed(rt, [before.id, (await rt.submit("clerk", "meanwhile")).id])


@pytest.mark.rule("fault.gone")
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
async def test_a_disk_that_cannot_be_read_for_a_while(path: Path):
    async with team(path) as rt:
        before = await rt.submit("clerk", "before")
        await all_done(rt)
        assert isinstance(opening_of(rt.workspace).database, SqliteDatabase)
        with opened(Path(f"{path}-wal"), os.O_WRONLY):
            connection_of(rt, "reader").execute("PRAGMA shrink_memory")
            with pytest.raises(StoreError, match="disk could not be read or written .SQLITE_IOERR_READ"):
                await rt.workspace.journal.history()
        await completed(rt, [before.id, (await rt.submit("clerk", "after")).id])


def overwritten(path: Path, with_: bytes) -> bytes:
    """What was there before."""
    before = path.read_bytes()
    with path.open("r+b") as file:
        file.write(with_.ljust(len(before), b"\0"))
    return before


def empty_log(path: Path) -> None:
    """Move what the log has into the file, by a connection of its own: a worker may be using the others."""
    with closing(sqlite3.connect(path, timeout=30)) as own:
        assert own.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


@pytest.mark.rule("fault.gone")
async def test_a_file_that_is_damaged_is_told_as_such_and_goes_on_once_it_is_mended(path: Path):
    async with team(path) as rt:
        task = await rt.submit("clerk", "before")
        await all_done(rt)
        assert isinstance(opening_of(rt.workspace).database, SqliteDatabase)
        await asyncio.to_thread(empty_log, path)
        whole = overwritten(path, b"")
        for connection in (
            connection_of(rt, "writer"),
            connection_of(rt, "reader"),
        ):
            connection.execute("PRAGMA shrink_memory")  # what is remembered is still right
        with pytest.raises(StoreError, match="team.db: "):
            await task.status()
        overwritten(path, whole)
        await completed(rt, [task.id, (await rt.submit("clerk", "after")).id])


# -- rows that cannot be read ---------------------------------------------------------------------------------------

GIANT = json.dumps({"task": "x" * 5_000_000, "deep": [[[[]]]] * 100})
ROWS = {
    "not json": "UPDATE event SET data = '{broken' WHERE task = :task AND kind = 'task.submitted'",
    "not an object": "UPDATE event SET data = '[1, 2]' WHERE task = :task AND kind = 'task.submitted'",
    "emptied": "UPDATE event SET data = '' WHERE task = :task AND kind = 'task.submitted'",
    "parts missing": "UPDATE event SET data = '{\"task\": \"x\"}' WHERE task = :task AND kind = 'task.submitted'",
    "giant": f"UPDATE event SET data = '{GIANT}' WHERE task = :task AND kind = 'task.submitted'",
    "deep": f"UPDATE event SET data = '{'[' * 100_000}{']' * 100_000}' WHERE task = :task AND kind = 'task.submitted'",
    "unknown kind": "UPDATE event SET kind = 'task.teleported' WHERE task = :task AND kind = 'task.submitted'",
    "gone": "DELETE FROM event WHERE task = :task AND kind = 'task.submitted'",
    "bytes": "UPDATE event SET data = x'ff00fe' WHERE task = :task AND kind = 'task.submitted'",
    "strange agent": "UPDATE task SET holder = char(0) || 'nobody' WHERE id = :task",
    "strange figures": "UPDATE task SET attempt = 'many', fence = 'high' WHERE id = :task",
}


@pytest.mark.rule("fault.rows")
@pytest.mark.parametrize("what", ROWS)
async def test_one_row_that_cannot_be_read_stops_one_task(what: str, path: Path):
    with remit.Runtime(path, serving=Serving(concurrency=0)) as rt:

        @rt.agent
        async def clerk(turn: remit.Turn) -> str:
            return turn.task

        tasks = [(await rt.submit("clerk", f"task {number}")).id for number in range(5)]
    bad = tasks.pop(1)
    with closing(sqlite3.connect(path)) as connection:
        try:
            connection.execute(ROWS[what], {"task": bad})
        except sqlite3.IntegrityError:
            return  # the file itself does not take such a row
        connection.commit()

    with remit.Runtime(path, serving=QUICK) as rt:
        rt.agent(clerk)
        serving = asyncio.create_task(rt.serve())
        await asyncio.sleep(0)
        async with asyncio.timeout(SECONDS):
            for task in tasks:
                outcome = await rt.workspace.tasks.get(task).wait()
                assert outcome.ok, outcome
        assert not serving.done(), "the worker is still at work"
        later = await rt.submit("clerk", "later")
        assert await later.result(SECONDS) == "later"
        assert not (await rt.workspace.check()).sound, "the doctor tells of it"
        serving.cancel()
        await asyncio.wait([serving])


LEADS = {
    "no lead": "UPDATE event SET data = json_remove(data, '$.lead') WHERE task = :task AND kind = 'task.submitted'",
    "odd lead": "UPDATE event SET data = json_set(data, '$.lead', 7) WHERE task = :task AND kind = 'task.submitted'",
}


@pytest.mark.rule("fault.rows")
@pytest.mark.parametrize("what", [*ROWS, *LEADS])
async def test_one_plan_that_cannot_be_read_stops_one_plan(what: str, path: Path):
    with remit.Runtime(path, serving=Serving(concurrency=0)) as rt:

        @rt.agent
        async def clerk(turn: remit.Turn) -> str:
            return turn.task

        plans = [remit.Plan([remit.Step("a", f"step {number}", agent="clerk")]) for number in range(3)]
        bad, *tasks = [(await rt.submit_plan(plan)).id for plan in plans]
    with closing(sqlite3.connect(path)) as connection:
        try:
            connection.execute({**ROWS, **LEADS}[what], {"task": bad})
        except sqlite3.IntegrityError:
            return  # the file itself does not take such a row
        connection.commit()

    with remit.Runtime(path, serving=QUICK) as rt:
        rt.agent(clerk)
        async with rt.serving(), asyncio.timeout(SECONDS):
            for task in tasks:
                assert (await rt.workspace.tasks.get(task).plan_outcome()).ok
        assert not (await rt.workspace.check()).sound, "the doctor tells of it"


# -- two processes --------------------------------------------------------------------------------------------------


@pytest.mark.rule("fault.two-processes")
async def test_two_processes_share_a_file_and_one_is_killed(path: Path):
    log = path.with_suffix(".log")
    log.touch()

    def lines(kind: str) -> list[list[str]]:
        return [line[1:] for line in map(json.loads, log.read_text().splitlines()) if line[0] == kind]

    words = (HANDS, "work", path, log)
    with running(*words, "stays", "100", "60") as stays, running(*words, "goes", "100", "30") as goes:
        async with asyncio.timeout(SECONDS):
            while len(lines("submitted")) < 2 or ["goes"] not in lines("stalled"):
                assert stays.poll() is None
                assert goes.poll() is None
                await asyncio.sleep(0.01)
        goes.kill()
        goes.wait()
        _, complaints = stays.communicate("go on\n", timeout=60)
        assert stays.wait() == 0, complaints
    acks = dict(lines("ack"))
    assert len(acks) == 200
    with remit.Runtime(path) as rt:
        assert {(await rt.workspace.tasks.get(task).status()).state for task in acks.values()} == {"completed"}
        kinds = Counter((event.kind, event.task) for event in await rt.workspace.journal.history())
        assert all(kinds["task.completed", task] == kinds["effect.done", task] == 1 for task in acks.values())
        assert (await rt.workspace.check()).findings == []
    done = Counter(task for task, _ in lines("effect"))
    assert {name for _, name in lines("effect")} == {"stays", "goes"}, "both worked"
    assert set(done) == set(acks)
    assert max(done.values()) <= 2
