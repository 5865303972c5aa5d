"""A store that is busy or away while something ends: what has happened is told until it is kept, and done once."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, happened, life, sound, until
from remit import Card, Command, Runtime, Turn
from remit.errors import BadInput, StoreBusy, StoreError
from remit.runtime.workspace import opening_of
from remit.settings import Pace
from remit.stores.sqlite.database import SqliteDatabase
from remit.testing import FakeClock, pass_time
from teams import echo, team

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "team.db"


@contextmanager
def impatient(path: Path, clock: FakeClock, **how: Any) -> Iterator[Runtime]:
    """A runtime that is told at once when another program holds the file."""
    with closing(SqliteDatabase(path, busy_seconds=0.02)) as database, team(database, clock=clock, **how) as rt:
        yield rt


class Holder:
    """Another program that holds the file: a backup, a shell."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def take(self) -> None:
        self._connection = sqlite3.connect(self._path, isolation_level=None)
        self._connection.execute("BEGIN IMMEDIATE")

    def let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@pytest.fixture
def holder(path: Path) -> Iterator[Holder]:
    holder = Holder(path)
    yield holder
    holder.let_go()


def warned(caplog: pytest.LogCaptureFixture) -> int:
    return sum("could not be recorded, trying again" in record.message for record in caplog.records)


def locking(rt: Runtime, holder: Holder, name: str = "till") -> list[str]:
    """An agent that is done when another program has the file; gives what it did."""
    did: list[str] = []

    async def till(turn: Turn) -> str:
        did.append(turn.task)
        if len(did) == 1:
            holder.take()
        return f"receipt {len(did)}"

    rt.add(Card(name, concurrency=1), till)
    return did


@asynccontextmanager
async def meanwhile(asked: Any) -> AsyncIterator["asyncio.Task[Any]"]:
    """Have something done beside the body."""
    task = asyncio.ensure_future(asked)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def said_again(clock: FakeClock, caplog: pytest.LogCaptureFixture, times: int = 1) -> None:
    async def so() -> bool:
        return warned(caplog) >= times

    await pass_time(clock, so)


async def done(clock: FakeClock, task: "asyncio.Task[Any]") -> Any:
    async def so() -> bool:
        return task.done()

    await pass_time(clock, so, step=0.5)
    return task.result()


@pytest.mark.rule("end.kept")
@pytest.mark.parametrize("how", ["run", "submit"])
async def test_an_end_is_told_until_it_is_kept_and_nothing_is_done_again(path, clock, holder, caplog, how: str):
    with impatient(path, clock) as rt:
        did = locking(rt, holder)

        async def asked() -> Any:
            return await (rt.run("till", "order 7") if how == "run" else (await rt.submit("till", "order 7")).result())

        async with meanwhile(asked()) as asking:
            await said_again(clock, caplog)
            assert not asking.done()
            holder.let_go()
            assert await done(clock, asking) == "receipt 1"
        (status,) = await rt.workspace.tasks.list()
        assert (did, status.attempt, status.state) == (["order 7"], 1, "completed")
        assert await life(rt, status.id) == ["started", "completed"]
        await sound(rt)


@pytest.mark.rule("end.kept")
async def test_a_childs_end_is_told_until_it_is_kept_and_its_slot_is_free_again(path, clock, holder, caplog):
    with impatient(path, clock) as rt:
        did = locking(rt, holder)

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[str]:
            return [await turn.delegate("till", text) for text in ("bread", "apples")]

        async with meanwhile(rt.run("lead", "x")) as asking:
            await said_again(clock, caplog)
            holder.let_go()
            assert await done(clock, asking) == ["receipt 1", "receipt 2"]
        assert did == ["bread", "apples"]
        await sound(rt)


@pytest.mark.rule("end.kept")
async def test_a_caller_that_cannot_wait_does_not_wait_and_the_end_is_written_concurrently(path, clock, holder, caplog):
    with impatient(path, clock) as rt:
        inside = anyio.Event()

        @rt.agent
        async def coder(turn: Turn) -> None:
            inside.set()
            await anyio.sleep_forever()

        asking = asyncio.ensure_future(rt.run("coder", "x"))
        await happened(inside)
        holder.take()
        asking.cancel()
        with anyio.fail_after(PATIENCE):
            await asyncio.wait([asking])
        assert asking.cancelled()
        (status,) = await rt.workspace.tasks.list()
        assert status.state == "running"
        await said_again(clock, caplog)
        holder.let_go()

        async def told() -> bool:
            return (await rt.workspace.tasks.list())[0].state == "cancelled"

        await pass_time(clock, told)
        await sound(rt)


@pytest.mark.rule("end.kept")
async def test_a_warning_is_given_once_and_then_every_half_minute(path, clock, holder, caplog):
    with impatient(path, clock) as rt:
        locking(rt, holder)
        async with meanwhile(rt.run("till", "x")) as asking:
            began = clock.ticks()
            await said_again(clock, caplog, 3)
            assert (clock.ticks() - began) / 1e6 >= 60
            (first, *_) = [record for record in caplog.records if "trying again" in record.message]
            (status,) = await rt.workspace.tasks.list()
            assert first.levelno == logging.WARNING
            assert first.message.startswith(f"the end of task {status.id} could not be recorded, trying again: ")
            holder.let_go()
            await done(clock, asking)


@pytest.mark.rule("end.given-up")
async def test_what_is_given_up_has_failed_and_frees_its_slot_and_is_not_run_again(path, clock, holder):
    """The foreground was told that the store failed, so nobody is to do it behind its back."""
    with impatient(path, clock, pace=Pace(store_timeout=20)) as rt:
        did = locking(rt, holder)
        rt.lend()
        async with meanwhile(rt.run("till", "order 7")) as asking:
            with pytest.raises(StoreBusy):
                await done(clock, asking)
        holder.let_go()

        async def ended() -> bool:
            return (await rt.workspace.tasks.list())[0].state == "failed"

        await pass_time(clock, ended)
        (status,) = await rt.workspace.tasks.list()
        outcome = await rt.workspace.tasks.get(status.id).wait()
        assert "the store was away, and its end could not be recorded" in str(outcome.error)
        assert did == ["order 7"]
        assert await rt.run("till", "order 8", busy_timeout=0) == "receipt 2"
        await sound(rt)


@pytest.mark.rule("end.given-up")
async def test_a_child_whose_end_was_given_up_frees_its_slot_though_its_asker_goes_on(path, clock, holder):
    with impatient(path, clock, pace=Pace(store_timeout=0)) as rt:
        locking(rt, holder)
        told, again = anyio.Event(), anyio.Event()

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            try:
                await turn.delegate("till", "bread")
            except StoreBusy:
                told.set()
            await again.wait()
            return await turn.delegate("till", "apples", busy_timeout=0)

        rt.lend()
        async with meanwhile(rt.run("lead", "x")) as asking:
            await happened(told)
            holder.let_go()

            async def ended() -> bool:
                return [one.state for one in await rt.workspace.tasks.list(agent="till")] == ["failed"]

            await pass_time(clock, ended)
            again.set()
            assert await done(clock, asking) == "receipt 2"
        await sound(rt)


@pytest.mark.rule("end.given-up")
async def test_a_task_from_the_queue_whose_end_was_given_up_is_run_again(path, clock, holder):
    with impatient(path, clock, pace=Pace(store_timeout=0)) as rt:
        did = locking(rt, holder)
        task = await rt.submit("till", "order 7")
        await until(lambda: did)
        await until(lambda: not rt.running())
        holder.let_go()

        async def ended() -> bool:
            return (await task.status()).ended is not None

        await pass_time(clock, ended)
        assert await task.result() == "receipt 2"
        assert await life(rt, task.id) == ["started", "lost", "claimed", "completed"]
        await sound(rt)


@pytest.mark.rule("drain.away")
async def test_draining_ends_though_the_store_is_away_and_counts_what_is_left(path, clock, holder, caplog):
    with impatient(path, clock) as rt:
        locking(rt, holder)
        inside = anyio.Event()

        @rt.agent
        async def slow(turn: Turn) -> None:
            inside.set()
            await anyio.sleep_forever()

        waiting = await rt.submit("slow", "x")
        await happened(inside)
        ending = await rt.submit("till", "order 7")
        await said_again(clock, caplog)
        with anyio.fail_after(PATIENCE):
            assert await rt.drain(0) == 2
        holder.let_go()
        assert {(await task.status()).state for task in (waiting, ending)} == {"running"}
        beats = await rt.workspace.journal.read(lambda view: view.workers())
        assert [beat.worker for beat in beats] == [rt.worker], "whoever takes over must find out that it is gone"


@pytest.mark.rule("drain.away")
async def test_leaving_does_not_fail_because_the_store_is_away(path, clock, holder, caplog):
    with closing(SqliteDatabase(path, busy_seconds=0.02)) as database:
        async with team(database, clock=clock) as rt:
            rt.add(Card("coder"), echo)
            assert await (await rt.submit("coder", "x")).result(PATIENCE) == "x"
            holder.take()
        assert any("could not say that this process has left" in record.message for record in caplog.records)


@pytest.mark.rule("end.kept")
async def test_what_does_not_pass_is_told_at_once(path, clock):
    with impatient(path, clock) as rt:

        @rt.agent
        async def coder(turn: Turn) -> None:
            opening_of(rt.workspace).database.close()

        with pytest.raises(StoreError, match="closed"):
            await rt.run("coder", "x")


@pytest.mark.rule("end.kept")
async def test_a_handoff_that_cannot_be_recorded_is_a_failure_that_is_told(path, clock, holder, caplog):
    with impatient(path, clock) as rt:

        @rt.agent(asks="*")
        async def first(turn: Turn) -> Command:
            holder.take()
            return Command("second")

        rt.add(Card("second"), echo)
        async with meanwhile(rt.outcome("first", "x")) as asking:
            await said_again(clock, caplog)
            holder.let_go()
            outcome = await done(clock, asking)
        assert outcome.state == "failed"
        assert "another process has been writing" in str(outcome.error)
        assert await life(rt, outcome.id) == ["started", "failed"]


def test_how_long_to_insist_is_checked_where_it_is_said():
    assert Pace(store_timeout=0).store_timeout == 0
    with pytest.raises(BadInput, match="store_timeout"):
        Pace(store_timeout=-1)


@pytest.mark.rule("effect.insist")
@pytest.mark.case("resume/step_locked")
async def test_an_effect_is_told_until_it_is_kept_and_is_not_done_again(path, clock, holder, caplog):
    """Another program holds the file while it is to be kept: nobody dies, and nothing is done twice."""
    charged: list[str] = []

    async def charge() -> str:
        charged.append("5")
        holder.take()
        return f"receipt {len(charged)}"

    with impatient(path, clock) as rt:

        @rt.agent
        async def till(turn: Turn) -> str:
            return await turn.once("charge", charge)

        task = await rt.submit("till", "order 7")
        await said_again(clock, caplog)
        holder.let_go()
        async with meanwhile(task.result()) as result:
            assert await done(clock, result) == "receipt 1"
        assert charged == ["5"]
        assert (await task.status()).attempt == 1
        await sound(rt)
