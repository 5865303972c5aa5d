"""An agent that works on as much as it may is waited for, in the order of asking, by whoever is patient enough."""

from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, a_few_rounds, happened, life, named, quiet, reached, sound, until
from engine.test_slots import Crowd
from remit import Card, Outcome, Plan, Runtime, Step, Turn
from remit.errors import BadInput, Refused
from remit.settings import Pace
from teams import team

pytestmark = pytest.mark.anyio


def narrow(rt: Runtime, crowd: Crowd, order: list[str] | None = None, limit: int = 1) -> None:
    async def work(turn: Turn) -> str:
        if order is not None:
            order.append(turn.task)
        await crowd.work(turn.agent)
        return turn.task

    rt.add(Card("narrow", concurrency=limit), work)


@pytest.mark.rule("concurrency.wait", "concurrency.limit")
@pytest.mark.parametrize("limit", [1, 3])
async def test_a_fan_out_of_fifty_over_one_narrow_agent_is_done_in_turn(rt: Runtime, limit: int):
    crowd, order = Crowd(), list[str]()
    narrow(rt, crowd, order, limit)

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[object]:
        return [one.value for one in await turn.delegate_all([("narrow", str(n)) for n in range(50)])]

    with anyio.fail_after(30):
        assert await rt.run("lead", "go") == [str(n) for n in range(50)]
    assert order == [str(n) for n in range(50)]
    assert crowd.most["narrow"] <= limit
    assert not [event for event in await rt.workspace.journal.history() if event.kind == "hop.refused"]
    await sound(rt)


@pytest.mark.rule("concurrency.wait")
async def test_the_steps_of_a_plan_over_one_narrow_agent_are_done_in_turn(rt: Runtime):
    crowd = Crowd()
    narrow(rt, crowd)
    outcome = await rt.run_plan(Plan([Step(str(n), f"Step {n}", agent="narrow") for n in range(8)]))
    assert {step.state for step in outcome.steps.values()} == {"completed"}
    assert crowd.most == {"narrow": 1}


@pytest.mark.rule("concurrency.wait")
async def test_people_wait_for_a_busy_agent_too(rt: Runtime):
    crowd, order = Crowd(), list[str]()
    narrow(rt, crowd, order)
    got: list[str] = []

    async def run(task: str) -> None:
        got.append(await rt.run("narrow", task))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(run, str(number))
    assert got == order
    assert sorted(got, key=int) == [str(number) for number in range(10)]
    assert crowd.most == {"narrow": 1}


@pytest.mark.rule("concurrency.wait")
@pytest.mark.parametrize("who", ["agent", "person"])
@pytest.mark.parametrize(("wait", "after"), [(None, 30), (4, 4)])
async def test_after_a_while_a_busy_agent_is_refused(clock, who: str, wait: float | None, after: float):
    hold, holds = anyio.Event(), anyio.Event()
    how: dict[str, Any] = {} if wait is None else {"busy_timeout": wait}
    with team(clock=clock) as rt:

        @rt.agent(concurrency=1)
        async def busy(turn: Turn) -> None:
            holds.set()
            await hold.wait()

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> object:
            return await turn.delegate("busy", "second", **how)

        outcomes: list[Outcome] = []

        async def ask() -> None:
            if who == "person":
                outcomes.append(await rt.outcome("busy", "second", **how))
            else:
                outcomes.append(await rt.outcome("lead", "go"))

        async with anyio.create_task_group() as group:
            group.start_soon(rt.outcome, "busy", "first")
            await happened(holds)
            group.start_soon(ask)
            await quiet()
            clock.advance(after - 1)
            await quiet()
            assert not outcomes
            clock.advance(1)
            await until(lambda: outcomes)
            hold.set()
        error = outcomes[0].error
        assert "'busy' is busy with 1 of 1 tasks" in str(error)
        if who == "person":
            assert outcomes[0].rule == "concurrency"
        else:
            refused = [event for event in await rt.workspace.journal.history() if event.kind == "hop.refused"]
            assert [event.data["rule"] for event in refused] == ["concurrency"]
        await sound(rt)


@pytest.mark.rule("concurrency.wait")
async def test_nobody_waits_who_does_not_want_to_and_how_long_is_a_setting(clock):
    hold, holds = anyio.Event(), anyio.Event()
    with team(clock=clock, pace=Pace(busy_timeout=0)) as rt:

        @rt.agent(concurrency=1)
        async def busy(turn: Turn) -> None:
            holds.set()
            await hold.wait()

        async with anyio.create_task_group() as group:
            group.start_soon(rt.outcome, "busy", "first")
            await happened(holds)
            settings: list[dict[str, Any]] = [{}, {"busy_timeout": 0}]
            for how in settings:
                with pytest.raises(Refused, match="is busy with 1 of 1 tasks"):
                    await rt.run("busy", "second", **how)
            for wrong in (-1, "soon", float("nan"), True):
                with pytest.raises(BadInput, match="^busy_timeout "):
                    await rt.run("busy", "second", busy_timeout=wrong)  # pyright: ignore[reportArgumentType] - on purpose
            with pytest.raises(BadInput, match="submit takes no 'busy_timeout'"):
                await rt.submit("busy", "second", busy_timeout=1)  # pyright: ignore[reportCallIssue] - on purpose
            hold.set()


@pytest.mark.rule("concurrency.wait", "concurrency.line")
@pytest.mark.parametrize("how", [{}, {"hands": 1}, {"concurrency": 1}, {"hands": 2, "concurrency": 1}])
async def test_two_narrow_agents_that_ask_each_others_kind_do_not_block_each_other(tmp_path, how: dict[str, int]):
    crowd = Crowd()

    async def asks_other(turn: Turn) -> str:
        await crowd.work(turn.agent)
        if turn.asker:
            return turn.task
        return await turn.delegate("b" if turn.agent == "a" else "a", turn.task)

    with team(tmp_path / "team.db", **how) as rt:
        rt.add(Card("a", asks="*", concurrency=1), asks_other)
        rt.add(Card("b", asks="*", concurrency=1), asks_other)
        with anyio.fail_after(30):
            tasks = [await rt.submit("ab"[n % 2], f"{n}") for n in range(20)]
            assert [await task.result() for task in tasks] == [f"{n}" for n in range(20)]
        assert set(crowd.most.values()) == {1}
        if "concurrency" in how or how.get("hands") == 1:
            assert crowd.most_in_all == 1
        await sound(rt)


@pytest.mark.rule("concurrency.wait")
async def test_a_task_that_waits_for_a_busy_agent_holds_no_slot_meanwhile(clock):
    """The only slot of the workspace is with one who waits for a busy agent; another task gets it meanwhile."""
    hold, holds = anyio.Event(), anyio.Event()
    with team(clock=clock, concurrency=1) as rt:

        @rt.agent(concurrency=1)
        async def busy(turn: Turn) -> str:
            holds.set()
            await hold.wait()
            return turn.task

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> object:
            return await turn.delegate("busy", turn.task)

        @rt.agent
        async def other(turn: Turn) -> str:
            return "done meanwhile"

        async with anyio.create_task_group() as group:
            group.start_soon(rt.run, "busy", "a person's")
            await happened(holds)
            first = await rt.submit("lead", "waits")
            await reached(rt, first.id, "waiting")
            second = await rt.submit("other", "x")
            assert await second.result(PATIENCE) == "done meanwhile"
            hold.set()
            assert await first.result(PATIENCE) == "waits"
            assert await life(rt, first.id) == ["started", "waiting", "resumed", "completed"]
        await sound(rt)


@pytest.mark.rule("concurrency.wait")
async def test_one_who_waits_for_a_busy_agent_comes_before_what_is_new_in_its_queue(clock):
    crowd, order, go, holds = Crowd(), list[str](), anyio.Event(), anyio.Event()
    with team(clock=clock) as rt:

        @rt.agent(concurrency=1)
        async def busy(turn: Turn) -> str:
            order.append(turn.task)
            holds.set()
            await go.wait()
            await crowd.work("busy")
            return turn.task

        first = await rt.submit("busy", "first")
        await happened(holds)
        async with anyio.create_task_group() as group:
            group.start_soon(rt.run, "busy", "waits here")
            await quiet()
            last = await rt.submit("busy", "new")
            go.set()
            assert await last.result(PATIENCE) == "new"
        assert (await first.wait()).ok
        assert order == ["first", "waits here", "new"]
        assert crowd.most_in_all == 1


@pytest.mark.rule("concurrency.wait")
async def test_one_who_is_cancelled_while_it_waits_leaves_its_place_to_the_next(clock):
    order, hold, holds = list[str](), anyio.Event(), anyio.Event()
    with team(clock=clock) as rt:

        @rt.agent(concurrency=1)
        async def busy(turn: Turn) -> str:
            order.append(turn.task)
            holds.set()
            await hold.wait()
            return turn.task

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> object:
            return await turn.delegate("busy", turn.task)

        async with anyio.create_task_group() as group:
            group.start_soon(rt.outcome, "busy", "first")
            await happened(holds)
            gone = await rt.submit("lead", "gone")
            await reached(rt, gone.id, "waiting")
            group.start_soon(rt.outcome, "busy", "last")
            await a_few_rounds(20)
            await gone.cancel()
            assert (await gone.wait(PATIENCE)).state == "cancelled"
            hold.set()
        assert order == ["first", "last"]
        assert not await rt.workspace.tasks.list(state="open")
        await sound(rt)


@pytest.mark.rule("concurrency.wait")
async def test_an_agent_that_another_process_keeps_busy_is_waited_for(tmp_path):
    hold, holds = anyio.Event(), anyio.Event()
    with team(tmp_path / "team.db") as one, team(tmp_path / "team.db") as two:
        for rt in (one, two):

            @rt.agent(concurrency=1)
            async def busy(turn: Turn) -> str:
                holds.set()
                await hold.wait()
                return turn.task

        async with anyio.create_task_group() as group:
            group.start_soon(one.run, "busy", "first")
            await happened(holds)
            await named(two, "busy")
            got: list[str] = []

            async def run() -> None:
                got.append(await two.run("busy", "second"))

            group.start_soon(run)
            await quiet()
            assert not got
            hold.set()
            await until(lambda: got)
        await sound(one)
