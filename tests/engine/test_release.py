"""What a process puts back when it stops: it is taken up where it was, and nothing new is taken."""

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, a_few_rounds, happened, life, quiet, reached, serving, sound
from remit import Card, Runtime, Turn
from teams import echo, team
from wrapped import Wrapped

pytestmark = pytest.mark.anyio


class Slow(Wrapped):
    """A store that answers a submission or a claim late: it is on record when `decided` is set, and answered after
    `go`."""

    def __init__(self, store: Path, of: str = "submit") -> None:
        super().__init__(store)
        self.of = of
        self.decided, self.go = anyio.Event(), anyio.Event()

    def store(self, workspace: str) -> Any:
        return SlowStore(super().store(workspace), self)


class SlowStore:
    def __init__(self, store: Any, slow: Slow) -> None:
        self.workspace, self.subscribe, self.listen = store.workspace, store.subscribe, store.listen
        self.read, self.browse = store.read, store.browse
        self._store, self._slow = store, slow

    async def tx(self, op: str, *given: Any) -> Any:
        answer = await self._store.tx(op, *given)
        if op.endswith("/submit") if self._slow.of == "submit" else isinstance(answer[1], list) and answer[1]:
            self._slow.decided.set()
            await self._slow.go.wait()
        return answer


@pytest.mark.rule("crash.release")
async def test_what_is_being_submitted_while_draining_is_not_begun_after_it(tmp_path, clock):
    slow = Slow(tmp_path / "team.db")
    with team(slow, clock=clock) as rt:
        left: list[int] = []

        @rt.agent
        async def coder(turn: Turn) -> None:
            await anyio.sleep_forever()

        rt.lend()

        async def submit() -> None:
            await rt.submit("coder", "x")

        async def drain() -> None:
            left.append(await rt.drain(0))

        async with anyio.create_task_group() as group:
            group.start_soon(submit)
            await happened(slow.decided)
            assert (await rt.workspace.tasks.list())[0].state == "running"  # it is begun at once, as a hand was free
            group.start_soon(drain)
            await quiet()
            assert left == []
            slow.go.set()
        assert left == [1]
        assert (await rt.workspace.tasks.list())[0].state == "pending"
        assert ((await rt.workspace.agents.workers()).workers, rt.running()) == ([], 0)
        await sound(rt)


@pytest.mark.rule("crash.release")
async def test_draining_requeues_a_task_whose_submitter_left_before_it_started(tmp_path, clock):
    """Whoever submits it goes away while the store answers: it is on record as ours, and nobody here knows of it."""
    slow = Slow(tmp_path / "team.db")
    with team(slow, clock=clock) as rt:
        rt.add(Card("coder"), echo)
        rt.lend()
        async with anyio.create_task_group() as group:
            group.start_soon(rt.submit, "coder", "x")
            await happened(slow.decided)
            group.cancel_scope.cancel()
        assert (await rt.workspace.tasks.list())[0].state == "running"
        assert await rt.drain(0) == 0
        assert (await rt.workspace.tasks.list())[0].state == "pending"
        await sound(rt)


@pytest.mark.rule("crash.release")
@pytest.mark.parametrize("how", ["drained", "cancelled"])
async def test_what_is_put_back_is_taken_up_where_it_was(tmp_path, clock, how: str):
    did: list[str] = []
    inside, go = anyio.Event(), anyio.Event()

    async def lead(turn: Turn) -> list:
        paid = await turn.once("pay", lambda: did.append("pay") or 5)
        done = await turn.delegate("quick", "x")
        return [paid, done, await turn.delegate("slow", "x")]

    async def quick(turn: Turn) -> str:
        did.append("quick")
        return "quick"

    async def slow(turn: Turn) -> str:
        await turn.once("slow", lambda: did.append("slow"))
        inside.set()
        await go.wait()
        return "slow"

    with team(tmp_path / "team.db", clock=clock) as one:
        one.add(Card("lead", asks="*"), lead)
        one.add(Card("quick"), quick)
        one.add(Card("slow"), slow)
        two = one.at(tmp_path / "team.db")
        async with serving(one):
            task = await one.submit("lead", "go")
            await happened(inside)
            if how == "drained":
                assert await one.drain(0) == 1
        await reached(two, task.id, "pending")
        status = await task.status()
        assert (status.state, status.attempt) == ("pending", 0)
        go.set()
        async with serving(two):
            assert await two.workspace.tasks.get(task.id).result(PATIENCE) == [5, "quick", "slow"]
        assert did == ["pay", "quick", "slow"]
        assert len(await two.workspace.tasks.list()) == 3
        assert (await life(two, task.id))[-3:] == ["released", "claimed", "completed"]
        await sound(two)


@pytest.mark.rule("crash.release")
@pytest.mark.parametrize("how", ["completed", "failed"])
async def test_what_ends_while_its_asker_is_put_back_counts_if_it_is_done_and_is_taken_up_if_not(
    tmp_path, clock, how: str
):
    did: list[str] = []
    inside, go = anyio.Event(), anyio.Event()

    async def lead(turn: Turn) -> str:
        return await turn.delegate("hand", "x")

    async def hand(turn: Turn) -> str:
        did.append("hand")
        with anyio.CancelScope(shield=True):  # as while something is being recorded
            inside.set()
            await go.wait()
        if how == "failed" and len(did) == 1:
            raise ValueError("its asker was gone")
        return "done"

    with team(tmp_path / "team.db", clock=clock) as one:
        one.add(Card("lead", asks="*"), lead)
        one.add(Card("hand"), hand)
        two = one.at(tmp_path / "team.db")
        async with serving(one):
            task = await one.submit("lead", "go")
            await happened(inside)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.drain, 0)
                await quiet()
                go.set()
        async with serving(two):
            assert await two.workspace.tasks.get(task.id).result(PATIENCE) == "done"
        assert did == ["hand"] * (1 if how == "completed" else 2)
        assert sorted(record.state for record in await two.workspace.tasks.list()) == ["completed"] * 2
        assert (await life(two, task.id))[-3:] == ["released", "claimed", "completed"]
        await sound(two)


@pytest.mark.rule("crash.release")
async def test_releasing_is_not_an_attempt_however_often_it_happens(rt: Runtime):
    inside = anyio.Event()

    @rt.agent
    async def coder(turn: Turn) -> str:
        inside.set()
        await anyio.sleep_forever()
        return ""

    task = await rt.submit("coder", "x", attempts=1)
    for _ in range(3):
        await happened(inside)
        inside = anyio.Event()
        assert await rt.drain(0) == 1
        rt.lend()
    await happened(inside)
    assert (await task.status()).attempt == 1
    await task.cancel()
    assert (await task.wait(PATIENCE)).state == "cancelled"
    await sound(rt)


@pytest.mark.rule("crash.release")
async def test_draining_waits_for_what_ends_in_time_and_takes_nothing_new(rt: Runtime):
    inside, go = anyio.Event(), anyio.Event()

    @rt.agent(concurrency=1)
    async def coder(turn: Turn) -> str:
        inside.set()
        await go.wait()
        return "in time"

    first = await rt.submit("coder", "1")
    await happened(inside)
    second = await rt.submit("coder", "2")
    left: list[int] = []

    async def drain() -> None:
        left.append(await rt.drain(PATIENCE))

    async with anyio.create_task_group() as group:
        group.start_soon(drain)
        await quiet()
        go.set()
    assert left == [0]
    assert (await first.status()).state == "completed"
    assert (await second.status()).state == "pending"
    rt.lend()
    assert await second.result(PATIENCE) == "in time"
    await sound(rt)


@pytest.mark.rule("crash.release")
async def test_one_that_waits_for_another_or_for_a_slot_is_put_back_too(clock):
    """Parent waits, child runs, a second parent has waited and stands in the queue for the only slot."""
    with team(clock=clock, concurrency=1) as rt:
        go, inside = anyio.Event(), anyio.Event()

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            return await (await turn.submit("child", turn.task)).result()

        @rt.agent
        async def child(turn: Turn) -> str:
            if turn.task == "slow":
                inside.set()
                await go.wait()
            return turn.task

        tasks = [await rt.submit("lead", name) for name in ("quick", "slow", "other")]
        await happened(inside)
        assert await rt.drain(0) >= 2
        assert {one.state for one in await rt.workspace.tasks.list(state="open")} == {"pending"}
        assert rt.running() == 0
        go.set()
        async with serving(rt):
            assert [await task.result(PATIENCE) for task in tasks] == ["quick", "slow", "other"]
        await sound(rt)


@pytest.mark.rule("crash.release")
async def test_what_was_submitted_a_moment_ago_is_put_back_too(rt: Runtime):
    began: list[int] = []

    @rt.agent
    async def coder(turn: Turn) -> str:
        began.append(1)
        await anyio.lowlevel.checkpoint()
        return "ok"

    async with serving(rt):
        first = await rt.submit("coder", "1")
        await first.wait(PATIENCE)
        second = await rt.submit("coder", "2")
    if (await second.status()).state != "completed":
        assert (await second.status()).state == "pending"
    async with serving(rt):
        assert await second.result(PATIENCE) == "ok"
    await sound(rt)


@pytest.mark.rule("drain.nothing-new")
async def test_what_a_finishing_turn_submits_while_draining_is_left_to_others(rt: Runtime):
    inside, go = anyio.Event(), anyio.Event()
    began: list[str] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        inside.set()
        await go.wait()
        return (await turn.submit("coder", "from a finishing turn")).id

    @rt.agent
    async def coder(turn: Turn) -> str:
        began.append(turn.task)
        return "done"

    first = await rt.submit("lead", "x")
    await happened(inside)
    left: list[int] = []

    async def drain() -> None:
        left.append(await rt.drain(PATIENCE))

    async with anyio.create_task_group() as group:
        group.start_soon(drain)
        await quiet()
        go.set()
    second = await first.result(PATIENCE) if (await first.status()).ended is not None else ""
    assert (left, began) == ([0], [])
    assert (await rt.workspace.tasks.get(str(second)).status()).state == "pending"
    await sound(rt)


@pytest.mark.case("resume/drain")
@pytest.mark.rule("drain.nothing-new")
async def test_what_a_claim_brings_while_draining_is_not_begun(tmp_path, clock):
    """The claim was on its way when draining began; not a line of the agent's code is run."""
    slow = Slow(tmp_path / "team.db", of="claim")
    began: list[str] = []

    async def coder(turn: Turn) -> None:
        began.append(turn.task)

    with team(tmp_path / "team.db", clock=clock, hands=0) as asks, team(slow, clock=clock) as rt:
        for one in (asks, rt):
            one.add(Card("coder"), coder)
        task = await asks.submit("coder", "x")
        left: list[int] = []

        async def drain() -> None:
            left.append(await rt.drain(0))

        async with anyio.create_task_group() as group:
            rt.lend()
            await happened(slow.decided)
            assert (await task.status()).state == "running"
            group.start_soon(drain)
            await quiet()
            slow.go.set()
        status = await task.status()
        assert (left, began, status.state, status.attempt) == ([1], [], "pending", 0)
        await sound(rt)


@pytest.mark.rule("drain.counts")
async def test_what_is_put_back_is_counted_also_if_its_agent_will_not_hear_of_it(rt: Runtime):
    """An answer that comes after the task has gone back does not count: it is carried out again."""
    inside = anyio.Event()

    @rt.agent
    async def coder(turn: Turn) -> str:
        inside.set()
        try:
            await anyio.sleep_forever()
        except BaseException:  # it says that it is done at this very moment
            return "done"
        raise AssertionError

    task = await rt.submit("coder", "x")
    await happened(inside)
    assert await rt.drain(0) == 1
    assert (await task.status()).state == "pending"
    await sound(rt)


@pytest.mark.rule("drain.nothing-new")
async def test_cancelling_serve_stops_a_worker_that_was_lent_before(rt: Runtime):
    inside = anyio.Event()

    @rt.agent
    async def coder(turn: Turn) -> None:
        inside.set()
        await anyio.sleep_forever()

    task = await rt.submit("coder", "x")  # a worker is lent for it
    await happened(inside)
    async with anyio.create_task_group() as group:
        group.start_soon(rt.serve)
        await quiet()
        group.cancel_scope.cancel()
    assert (await task.status()).state == "pending"
    assert rt.running() == 0
    await sound(rt)


@pytest.mark.rule("drain.starting")
async def test_draining_stops_tasks_that_still_wait_for_the_store():
    with team("postgresql://127.0.0.1:1/nowhere") as rt:
        waiting = asyncio.ensure_future(rt.serve())
        await a_few_rounds()
        assert not waiting.done()
        assert await rt.drain(0) == 0
        with anyio.fail_after(PATIENCE):
            await waiting


@pytest.mark.rule("crash.release")
async def test_draining_does_not_wait_for_a_person(tmp_path, clock):
    async def lead(turn: Turn) -> str:
        return await turn.delegate("painter", "x")

    async def painter(turn: Turn) -> str:
        return await turn.ask_human("Which?", ["red", "blue"])

    with team(tmp_path / "team.db", clock=clock) as one:
        one.add(Card("lead", asks="*"), lead)
        one.add(Card("painter"), painter)
        two = one.at(tmp_path / "team.db")
        async with serving(one):
            task = await one.submit("lead", "go")
            await reached(one, task.id, "waiting")
            [question] = await one.workspace.questions.list()
            with anyio.fail_after(PATIENCE):  # the clock stands still
                assert await one.drain(30) == 1
        await two.workspace.questions.answer(question.id, "blue", by="ann")
        async with serving(two):
            assert await two.workspace.tasks.get(task.id).result(PATIENCE) == "blue"
        await sound(two)
