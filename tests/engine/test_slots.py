"""Slots: neither an agent nor the workspace works on more at a time than allowed, and who waits holds none."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from engine.helping import PATIENCE, Shaky, a_few_rounds, happened, named, quiet, reached, sound, until
from remit import Card, Runtime, Turn
from remit.core.breaker import BreakerPolicy
from remit.core.remit import DELEGATION_TIME
from remit.testing import FakeClock, pass_time
from teams import echo, team

pytestmark = pytest.mark.anyio


class Crowd:
    """Counts how many agents are at work at the same time, and each of them."""

    def __init__(self) -> None:
        self.now: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.most_in_all = 0

    def __call__(self, agent: str, change: int) -> None:
        self.now[agent] = self.now.get(agent, 0) + change
        self.most[agent] = max(self.most.get(agent, 0), self.now[agent])
        self.most_in_all = max(self.most_in_all, sum(self.now.values()))

    async def work(self, agent: str) -> None:
        self(agent, 1)
        await a_few_rounds()
        self(agent, -1)


@pytest.mark.rule("concurrency.queue")
async def test_neither_an_agent_nor_the_workspace_does_more_at_a_time_than_allowed(clock):
    crowd = Crowd()

    async def work(turn: Turn) -> None:
        await crowd.work(turn.agent)

    with team(clock=clock, concurrency=5) as rt:
        rt.add(Card("narrow", concurrency=2), work)
        rt.add(Card("wide"), work)
        names = ["narrow", "wide"] * 40
        for task in [await rt.submit(name, f"{n}") for n, name in enumerate(names)]:
            assert (await task.wait(PATIENCE)).ok
        assert crowd.most == {"narrow": 2, "wide": crowd.most["wide"]}
        assert crowd.most_in_all == 5
        await sound(rt)


@pytest.mark.untraced
@pytest.mark.rule("concurrency.queue")
@pytest.mark.parametrize("how", ["workspace", "agent"])
@pytest.mark.parametrize("hands", [1, 4, 100])
async def test_a_waiting_task_holds_no_slot(clock, how: str, hands: int):
    """Forty that wait for three each, four at a time: all of them end, and four is never exceeded."""
    crowd = Crowd()

    async def parent(turn: Turn) -> int:
        crowd(turn.agent, 1)
        parts = [await turn.submit("child", f"{turn.task} {n}") for n in range(3)]
        total = 0
        for part in parts:
            crowd(turn.agent, -1)
            total += int(await part.result())
            crowd(turn.agent, 1)
        crowd(turn.agent, -1)
        return total

    async def child(turn: Turn) -> int:
        await crowd.work(turn.agent)
        return 1

    each = 4 if how == "agent" else None
    with team(clock=clock, concurrency=4 if how == "workspace" else None, hands=hands) as rt:
        rt.add(Card("parent", asks="*", concurrency=each), parent)
        rt.add(Card("child", concurrency=each), child)
        with anyio.fail_after(30):
            tasks = [await rt.submit("parent", f"{n}") for n in range(40)]
            assert [await task.result() for task in tasks] == [3] * 40
        assert all(most <= 4 for most in crowd.most.values()), crowd.most
        if how == "workspace":
            assert crowd.most_in_all <= 4
        await sound(rt)


@pytest.mark.rule("concurrency.queue")
async def test_who_gave_up_waiting_gets_its_slot_back_before_it_goes_on(clock):
    """The child has the only slot. Its asker waits for it no longer, but cannot go on beside it either."""
    crowd, go = Crowd(), anyio.Event()

    with team(clock=clock, concurrency=1) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            task = await turn.submit("child", "x")
            with pytest.raises(TimeoutError):
                await task.wait(2)
            await crowd.work("lead")
            return "went on"

        @rt.agent
        async def child(turn: Turn) -> None:
            crowd("child", 1)
            await go.wait()
            crowd("child", -1)

        task = await rt.submit("lead", "go")
        await reached(rt, task.id, "waiting")
        await until(lambda: crowd.now.get("child"))
        await quiet()
        clock.advance(2)
        await reached(rt, task.id, "pending")
        go.set()
        assert await task.result(PATIENCE) == "went on"
        assert crowd.most_in_all == 1
        await sound(rt)


@pytest.mark.rule("concurrency.queue")
async def test_a_caller_who_gives_up_by_its_own_scope_leaves_a_sound_record(clock):
    go, patience = anyio.Event(), anyio.CancelScope()
    with team(clock=clock, concurrency=1) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            task = await turn.submit("child", "x")
            with patience:
                await task.wait()
            return "went on"

        @rt.agent
        async def child(turn: Turn) -> None:
            await go.wait()

        task = await rt.submit("lead", "go")
        await reached(rt, task.id, "waiting")
        patience.cancel()
        assert await task.result(PATIENCE) == "went on"
        go.set()
        await sound(rt)


@pytest.mark.rule("concurrency.queue")
async def test_a_task_tried_again_counts_once(clock):
    crowd = Crowd()
    failed: set[str] = set()

    async def work(turn: Turn) -> None:
        await crowd.work(turn.agent)
        if turn.task not in failed:
            failed.add(turn.task)
            raise Shaky

    with team(clock=clock, concurrency=2, breaker=BreakerPolicy(failures=1_000)) as rt:
        rt.add(Card("coder"), work)
        tasks = [await rt.submit("coder", f"{n}") for n in range(20)]
        for task in tasks:
            await reached(rt, task.id, "pending")

        async def all_ended() -> bool:
            return not await rt.workspace.tasks.list(state="open")

        await pass_time(clock, all_ended, step=2)
        assert {(await task.status()).state for task in tasks} == {"completed"}
        assert crowd.most_in_all == 2
        await sound(rt)


@asynccontextmanager
async def slot_taken(rt: Runtime, seconds: int | None = None) -> AsyncGenerator[str]:
    """Let a run of `lead` wait for its slot, which another run has for so many seconds. Yield the task that waits; both
    runs end after the body."""
    second, go = anyio.Event(), anyio.Event()
    got: list[str] = []

    @rt.agent(asks="*", concurrency=1)
    async def lead(turn: Turn) -> str:
        if turn.task == "waits":
            return (await (await turn.submit("child", "x")).wait()).state
        second.set()
        await go.wait()
        return "worked"

    async def run(task: str, seconds: int | None) -> None:
        got.append(await rt.run("lead", task, timeout=seconds))

    async with anyio.create_task_group() as group:
        group.start_soon(run, "waits", None)
        await until(rt.running)
        task = await named(rt, "lead")
        await reached(rt, task, "waiting")
        group.start_soon(run, "works", seconds)
        await happened(second)
        await rt.workspace.tasks.cancel(await named(rt, "child"))
        await reached(rt, task, "pending")
        yield task
        go.set()
        await until(lambda: len(got) == 2)
    assert sorted(got) == ["cancelled", "worked"]


@pytest.mark.rule("concurrency.queue")
async def test_who_waited_gets_a_slot_again_also_where_nobody_lends_a_hand(clock):
    with team(clock=clock, hands=0) as rt:
        rt.add(Card("child"), echo)
        async with slot_taken(rt):
            pass
        await sound(rt)


@pytest.mark.rule("concurrency.queue")
async def test_a_machine_that_sleeps_does_not_fail_a_run_that_waits_for_its_slot(clock: FakeClock):
    with team(clock=clock) as rt:

        @rt.agent
        async def child(turn: Turn) -> None:
            if turn.task == "x":
                await anyio.sleep_forever()

        async with slot_taken(rt, seconds=7_200) as task:
            clock.jump(3_600)  # longer than the time of an attempt
            await rt.submit("child", "wakes the worker")
            for _ in range(40):  # it looks for late tasks now and then
                clock.advance(1)
                await a_few_rounds()
            await reached(rt, task, "pending")
        resumed = await rt.workspace.journal.history(kinds=["task.resumed"])
        assert [event.data["until"] for event in resumed] == [clock.now() + DELEGATION_TIME]
        await sound(rt)


async def test_an_agents_limit_holds_after_a_delegation_too(clock):
    crowd = Crowd()
    with team(clock=clock) as rt:

        @rt.agent(asks="*", concurrency=1)
        async def lead(turn: Turn) -> None:
            await turn.delegate("child", "x")
            await crowd.work("lead")

        @rt.agent
        async def child(turn: Turn) -> None:
            await crowd.work("child")

        for task in [await rt.submit("lead", str(n)) for n in range(6)]:
            await task.wait(PATIENCE)
        assert crowd.most["lead"] == 1
