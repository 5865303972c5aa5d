"""A function of the owner that raises fails the task in whose name it is called, with its place, and leaves nothing."""

import asyncio
import inspect
import sys
from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, sound
from remit import Card, Command, Plan, Runtime, Send, Step, Turn
from remit.core.lifecycle import TERMINAL
from remit.core.prices import Usage
from remit.engine.directory import AgentRules
from remit.errors import Failed, Refused
from remit.ports.models import ToolCall
from remit.settings import Policy, System
from remit.testing import FakeClock
from remit.verbs import VERBS
from teams import echo

pytestmark = [pytest.mark.anyio, pytest.mark.rule("owner.function")]


def broken(*_: Any) -> Any:
    raise KeyError("my bug")


async def broken_later(*_: Any) -> Any:
    await asyncio.sleep(0)
    raise KeyError("my bug")


async def delegate(turn: Turn) -> Any:
    return await turn.delegate("b", "x")


async def outcome(turn: Turn) -> Any:
    return str(await turn.outcome("b", "x"))


async def delegate_all(turn: Turn) -> Any:
    return str(await turn.delegate_all([("b", "x"), ("b", "y")]))


async def in_a_group(turn: Turn) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(turn.delegate, "b", "x")
        group.start_soon(turn.delegate, "b", "y")


async def submit(turn: Turn) -> Any:
    return await (await turn.submit("b", "x")).result()


async def spawn(turn: Turn) -> Any:
    return str(await turn.spawn("b", "x"))


async def handoff(_turn: Turn) -> Command:
    return Command("b", {"phase": "x"})


async def allowed_first(turn: Turn) -> Any:
    return await turn.hand_off("b", {"phase": "x"})


async def fan_out(_turn: Turn) -> Command:
    return Command([Send("b", {"phase": "x"}), Send("c", {"phase": "x"})], join="a")


async def plan(turn: Turn) -> Any:
    return str(await turn.run_plan(Plan([Step("s", "do it", agent="b")])))


async def as_a_tool(turn: Turn) -> Any:
    [ask] = [verb for verb in VERBS if verb.name == "call_agent"]

    async def do(given: dict[str, Any]) -> Any:
        return await ask.call(turn, given)

    return await turn.tool(ToolCall("call_agent", {"agent": "b", "task": "x"}, "c1"), do)


PASSAGES = [
    delegate,
    outcome,
    delegate_all,
    in_a_group,
    submit,
    spawn,
    handoff,
    allowed_first,
    fan_out,
    plan,
    as_a_tool,
]


def catching(passage: Any) -> Any:
    """An agent that makes nothing of an error."""

    async def agent(turn: Turn) -> Any:
        try:
            return await passage(turn)
        except Exception:
            return "went on"

    return agent


async def nothing_is_left(rt: Runtime) -> None:
    """No task runs, nobody holds money or a slot, and the journal is sound."""

    tasks = await rt.workspace.tasks.list()
    assert all(task.state in TERMINAL for task in tasks)
    held = await rt.workspace.journal.read(lambda view: [hold for task in tasks for hold in view.holds(task.id)])
    assert all(hold.state not in ("held", "started") for hold in held)
    assert await rt.workspace.questions.list() == []
    await sound(rt)


@pytest.mark.case("edges/approve_raises")
@pytest.mark.parametrize("store", ["memory", "file"])
@pytest.mark.parametrize("passage", PASSAGES, ids=lambda one: one.__name__)
async def test_an_approval_rule_that_raises_fails_the_task_at_every_passage(tmp_path, passage: Any, store: str):
    where = ":memory:" if store == "memory" else tmp_path / "team.db"
    with Runtime(where, policy=Policy(needs_approval=broken)) as rt:
        rt.add(Card("a", asks="*", tools="call_agent"), passage)
        for name in ("b", "c"):
            rt.add(Card(name, tools="exec"), echo)
        with anyio.fail_after(PATIENCE):
            ended = await rt.outcome("a", "x")
        assert ended.state == "failed", ended
        assert "KeyError: 'my bug' in Policy(needs_approval=...) (test_owners_functions.py:" in str(ended.error)
        assert " in broken)" in str(ended.error)
        await nothing_is_left(rt)


@pytest.mark.parametrize("passage", [one for one in PASSAGES if one is not in_a_group], ids=lambda one: one.__name__)
async def test_an_agent_that_catches_what_an_approval_rule_raised_fails_too(passage: Any):
    with Runtime(policy=Policy(needs_approval=broken)) as rt:
        rt.add(Card("a", asks="*", tools="call_agent"), catching(passage))
        for name in ("b", "c"):
            rt.add(Card(name, tools="exec"), echo)
        with anyio.fail_after(PATIENCE):
            ended = await rt.outcome("a", "x")
        assert ended.state == "failed", ended
        assert "KeyError: 'my bug' in Policy(needs_approval=...) (test_owners_functions.py:" in str(ended.error)
        await nothing_is_left(rt)


async def find(turn: Turn) -> Any:
    return str(await turn.find("cook"))


async def delegate_by_capability(turn: Turn) -> Any:
    return await turn.delegate(capability="cook", task="x")


async def submit_by_capability(turn: Turn) -> Any:
    return str(await turn.submit(capability="cook", task="x"))


async def handoff_by_capability(turn: Turn) -> Any:
    return await turn.hand_off(capability="cook")


async def capability_as_a_tool(turn: Turn) -> Any:
    [ask] = [verb for verb in VERBS if verb.name == "call_agent"]

    async def do(given: dict[str, Any]) -> Any:
        return await ask.call(turn, given)

    return await turn.tool(ToolCall("call_agent", {"capability": "cook", "task": "x"}, "c1"), do)


@pytest.mark.parametrize("catches", [False, True])
@pytest.mark.parametrize("function", [broken, broken_later], ids=["plain", "async"])
@pytest.mark.parametrize(
    "passage",
    [find, delegate_by_capability, submit_by_capability, handoff_by_capability, capability_as_a_tool],
    ids=lambda one: one.__name__,
)
async def test_an_embedding_that_raises_fails_the_task(passage: Any, function: Any, catches: bool):
    with Runtime(system=System(embed=function)) as rt:
        rt.add(Card("a", asks="*", tools="call_agent"), catching(passage) if catches else passage)
        for name in ("b", "c"):
            rt.add(Card(name, can="cook"), echo)
        with anyio.fail_after(PATIENCE):
            ended = await rt.outcome("a", "x")
        assert ended.state == "failed", ended
        assert "KeyError: 'my bug' in System(embed=...) (test_owners_functions.py:" in str(ended.error)
        await nothing_is_left(rt)


@pytest.mark.parametrize("function", [broken, broken_later], ids=["plain", "async"])
@pytest.mark.parametrize("who", ["person", "agent", "agent that catches"])
async def test_a_function_that_approves_steps_and_raises_fails_the_plan(rt: Runtime, who: str, function: Any):
    begun = anyio.Event()

    async def slow(turn: Turn) -> None:
        begun.set()
        await anyio.sleep_forever()

    async def approve(step: Step) -> bool:
        if step.id == "slow":
            return True
        await begun.wait()
        result = function(step)
        return await result if inspect.isawaitable(result) else result

    steps = Plan([Step("slow", "S", agent="slow"), Step("b", "B", agent="b"), Step("c", "C", agent="b", after=["b"])])

    async def leads(turn: Turn) -> Any:
        return str(await turn.run_plan(steps, approve_steps=approve))

    rt.add(Card("slow"), slow)
    rt.add(Card("b"), echo)
    rt.add(Card("a", asks="*"), catching(leads) if who == "agent that catches" else leads)
    with anyio.fail_after(PATIENCE):
        if who == "person":
            with pytest.raises(
                Failed, match="KeyError: 'my bug' in approve_steps= of this plan .test_owners_functions.py:"
            ):
                await rt.run_plan(steps, approve_steps=approve)
        else:
            ended = await rt.outcome("a", "x")
            assert ended.state == "failed", ended
            assert "KeyError: 'my bug' in approve_steps= of this plan (test_owners_functions.py:" in str(ended.error)
    await nothing_is_left(rt)


@pytest.mark.parametrize("function", [broken, broken_later], ids=["plain", "async"])
@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_hook_that_raises_fails_the_task(rt: Runtime, where: str, function: Any):
    used: list[Any] = []

    async def look(given: dict[str, Any]) -> str:
        used.append(given)
        return "private"

    async def coder(turn: Turn) -> Any:
        try:
            return await turn.tool(ToolCall("look", {}, "c1"), look)
        except Exception:
            return "went on"

    rt.add(Card("coder", tools="look"), coder, rules=AgentRules(**{where: (function,)}))
    ended = await rt.outcome("coder", "x")
    assert ended.state == "failed"
    assert f"KeyError: 'my bug' in {'a before' if where == 'before' else 'an after'}= hook" in str(ended.error)
    assert f"in {function.__name__})" in str(ended.error)
    assert len(used) == (where == "after")
    await nothing_is_left(rt)


@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_hook_that_exits_fails_the_task_and_not_the_process(rt: Runtime, where: str):
    async def leave(*_: Any) -> None:
        sys.exit(2)

    async def look(_: dict[str, Any]) -> str:
        return "private"

    async def coder(turn: Turn) -> Any:
        return await asyncio.create_task(turn.tool(ToolCall("look", {}, "c1"), look))  # as frameworks use tools

    rt.add(Card("coder", tools="look"), coder, rules=AgentRules(**{where: (leave,)}))
    ended = await rt.outcome("coder", "x")
    assert f"SystemExit: 2 in {'a before' if where == 'before' else 'an after'}= hook" in str(ended.error)
    await nothing_is_left(rt)


@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_cancellation_that_a_hook_makes_itself_is_its_failure(rt: Runtime, where: str):
    async def wait(*_: Any) -> None:
        inner = asyncio.ensure_future(asyncio.sleep(3_600))
        inner.cancel()
        await inner

    async def look(_: dict[str, Any]) -> str:
        return "private"

    async def coder(turn: Turn) -> Any:
        return await asyncio.create_task(turn.tool(ToolCall("look", {}, "c1"), look))

    rt.add(Card("coder", tools="look"), coder, rules=AgentRules(**{where: (wait,)}))
    ended = await rt.outcome("coder", "x")
    assert "CancelledError" in str(ended.error)
    assert f"in {'a before' if where == 'before' else 'an after'}= hook" in str(ended.error)
    await nothing_is_left(rt)


async def test_a_hook_that_refuses_is_an_answer_to_the_model(rt: Runtime):
    def no(*_: Any) -> Any:
        raise Refused("not today", rule="mine")

    async def coder(turn: Turn) -> Any:
        return await turn.tool(ToolCall("look", {}, "c1"), lambda given: echo(turn))

    rt.add(Card("coder", tools="look"), coder, rules=AgentRules(before=(no,)))
    assert await rt.run("coder", "x") == "not today"


async def test_prices_that_raise_fail_the_task_and_hold_nothing(clock: FakeClock):
    class Prices:
        def cost(self, model: str, usage: Usage) -> int | None:
            return broken(model, usage)

        worst = cost

    with Runtime(":memory:", system=System(clock=clock, prices=Prices())) as rt:  # pyright: ignore[reportArgumentType]

        async def payer(turn: Turn) -> None:
            async with turn.paid_call("$0.05", why="photo", model="m1") as call:
                call.report_usage(Usage(10, 10))

        rt.add(Card("payer"), payer)
        ended = await rt.outcome("payer", "x", credits="$1")
        assert ended.state == "failed"
        assert "KeyError: 'my bug' in System(prices=...) (test_owners_functions.py:" in str(ended.error)
        await nothing_is_left(rt)


async def test_a_classifier_that_raises_lets_nothing_begin(clock: FakeClock):
    with Runtime(":memory:", policy=Policy(classify=broken), system=System(clock=clock)) as rt:
        rt.add(Card("a"), echo)
        for ask in (rt.outcome, rt.submit):
            with pytest.raises(KeyError, match="my bug"):
                await ask("a", "x")
        assert await rt.workspace.tasks.list() == []
