"""Agents inside one guest that insist: what passes between them inside their framework is counted as well."""

import itertools
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from agents import handoff
from langchain.tools import tool
from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.types import Command
from pydantic import BaseModel

from adapters.insisting import LONG, NUMBERS
from adapters.test_nested_runs import FRAMEWORKS, House, house
from remit import Runtime
from remit.settings import Loops, Policy
from remit.testing.models import Calls, ModelReply, ModelRequest, Says

pytestmark = pytest.mark.anyio
Script = Callable[[ModelRequest], ModelReply]


class Why(BaseModel):
    """What an agent says when it hands over."""

    reason: str


def tool_of(request: ModelRequest, begins: str) -> str:
    return next((name for name in request.tools if name.startswith(begins)), "")


def transfers(*, changing: bool) -> Script:
    """Whoever is asked hands over to the next, on and on."""

    def script(request: ModelRequest) -> ModelReply:
        return Calls(tool_of(request, "transfer_to"), {"reason": f"because {next(NUMBERS)}" if changing else "so"})

    return script


def asks_on(*, changing: bool, answer: Callable[[], str] = lambda: LONG) -> Script:
    """Whoever can ask does so, on and on; the others answer."""

    def script(request: ModelRequest) -> ModelReply:
        found = tool_of(request, "ask_")
        return Calls(found, {"input": f"go {next(NUMBERS)}" if changing else "go"}) if found else Says(answer())

    return script


def handing_in_a_circle(there: House, length: int) -> Any:
    made = [there.make(f"m{number}", f"M{number}") for number in range(length)]
    for one, after in zip(made, [*made[1:], made[0]], strict=True):
        one.handoffs.append(handoff(after, on_handoff=lambda _context, _why: None, input_type=Why))
    return made[0]


def swarm(there: House) -> Any:
    """Two agents of one graph that hand over to each other."""

    def hand_to(name: str) -> Any:
        @tool(f"transfer_to_{name}")
        def transfer(
            reason: str, state: Annotated[dict[str, Any], InjectedState], call: Annotated[str, InjectedToolCallId]
        ) -> Command:
            """Hand over."""
            done = ToolMessage(f"handed over to {name}", tool_call_id=call)
            return Command(goto=name, graph=Command.PARENT, update={"messages": [*state["messages"], done]})

        return transfer

    graph = StateGraph(MessagesState)
    for name, other in (("a", "b"), ("b", "a")):
        graph.add_node(name, there.make(name, name.upper(), hand_to(other)), destinations=(other,))
    return graph.add_edge(START, "a").compile()


def running_each_other(there: House, pairs: dict[str, str]) -> Any:
    """Agents whose tools run each other: by whom, whom."""
    made: dict[str, Any] = {}

    def asking(name: str) -> Any:
        async def ask(input: str) -> str:
            """Ask the other."""
            return await there.run(made[name], input)

        ask.__name__ = f"ask_{name}"
        return ask

    for name in "ba":
        made[name] = there.make(name, name.upper(), *([asking(pairs[name])] if name in pairs else []))
    return made["a"]


# -- loops ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("loops.inside")
@pytest.mark.parametrize("changing", [False, True])
@pytest.mark.parametrize(("length", "most"), [(2, 11), (3, 12), (4, 13)])
async def test_agents_that_hand_over_inside_their_framework_end_soon(length: int, most: int, changing: bool):
    async with house("openai-agents", transfers(changing=changing)) as there, Runtime() as rt:
        rt.add(handing_in_a_circle(there, length), name="m0")
        outcome = await rt.outcome("m0", "go")
        assert len(there.server.requests) <= most
        assert str(outcome.error) == (
            "'m0' was stopped: it goes on with what brings nothing new: 8 times in a row nothing new came of what it "
            "did"
        )
        told = [request.text for request in there.server.requests if "at 8 it is not done any more" in request.text]
        assert told[0] == "[5 times in a row nothing new came of what you did; at 8 it is not done any more]"


@pytest.mark.rule("loops.inside")
@pytest.mark.parametrize("changing", [False, True])
async def test_agents_of_a_graph_that_hand_over_to_each_other_end_soon(changing: bool):
    async with house("langgraph", transfers(changing=changing)) as there, Runtime() as rt:
        rt.add(swarm(there), name="swarm")
        outcome = await rt.outcome("swarm", "go")
        assert len(there.server.requests) <= 12
        assert "'swarm' was stopped: it goes on with what brings nothing new" in str(outcome.error)
        assert any("[5 times in a row nothing new came" in str(one.messages[-1]) for one in there.server.requests)


@pytest.mark.rule("loops.inside")
@pytest.mark.parametrize("changing", [False, True])
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_a_tool_that_runs_an_agent_on_and_on_for_the_same_answer_ends_soon(framework: str, changing: bool):
    async with house(framework, asks_on(changing=changing)) as there, Runtime() as rt:
        rt.add(running_each_other(there, {"a": "b"}), name="a")
        outcome = await rt.outcome("a", "go")
        assert len(there.server.requests) <= 20
        assert "'a' was stopped: it goes on with what brings nothing new: 'ask_b' was not used" in str(outcome.error)


@pytest.mark.rule("loops.inside", "guest.nested-loop")
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_agents_that_run_each_other_in_their_tools_and_insist_end_at_once(framework: str):
    async with house(framework, asks_on(changing=True)) as there, Runtime() as rt:
        rt.add(running_each_other(there, {"a": "b", "b": "a"}), name="a")
        outcome = await rt.outcome("a", "go")
        assert len(there.server.requests) <= 4
        assert "refused again and again: 'a' is already at work in this task (a > b)" in str(outcome.error)


@pytest.mark.rule("loops.inside")
@pytest.mark.parametrize(("changing", "most"), [(False, 9), (True, 20)])
async def test_an_agent_as_a_tool_counts_as_the_agent_that_is_asked(changing: bool, most: int):
    async with house("openai-agents", asks_on(changing=changing)) as there, Runtime() as rt:
        boss = there.make("a", "A", there.make("b", "B").as_tool("ask_b", "ask b"))
        rt.add(boss, name="a")
        outcome = await rt.outcome("a", "go")
        assert len(there.server.requests) <= most
        assert not outcome.ok


@pytest.mark.rule("loops.settings")
async def test_loops_inside_a_guest_go_on_if_their_rule_is_off():
    async with (
        house("openai-agents", transfers(changing=False)) as there,
        Runtime(policy=Policy(loops=Loops(stale_asks=None))) as rt,
    ):
        rt.add(handing_in_a_circle(there, 2), name="m0", iterations=20)
        await rt.outcome("m0", "go")
        assert len(there.server.requests) == 20


# -- work -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("loops.legitimate")
async def test_handing_to_and_fro_inside_a_framework_is_work_if_tools_bring_something_new():
    steps = itertools.cycle(("look", "transfer_to"))

    def script(request: ModelRequest) -> ModelReply:
        if len(there.server.requests) > 40:
            return Says("done")
        step = next(steps)
        return Calls(tool_of(request, step), {"what": f"{next(NUMBERS)}"} if step == "look" else {"reason": "so"})

    async with house("openai-agents", script) as there, Runtime() as rt:

        def look(what: str) -> str:
            """Look it up."""
            return f"a page about {what}"

        first, second = there.make("m0", "M0", look), there.make("m1", "M1", look)
        for one, other in ((first, second), (second, first)):
            one.handoffs.append(handoff(other, on_handoff=lambda _context, _why: None, input_type=Why))
        rt.add(first, name="m0")
        assert await rt.run("m0", "go") == "done"


@pytest.mark.rule("loops.legitimate")
@pytest.mark.parametrize("answer", ["yes", "a long answer of its own for each of them, number {}"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_a_tool_that_runs_an_agent_may_map_over_many(framework: str, answer: str):
    left = iter(range(20))

    def script(request: ModelRequest) -> ModelReply:
        if not tool_of(request, "ask_"):
            return Says(answer.format(next(NUMBERS)))
        number = next(left, None)
        return Says("all of them") if number is None else Calls("ask_b", {"input": f"review number {number}"})

    async with house(framework, script) as there, Runtime() as rt:
        rt.add(running_each_other(there, {"a": "b"}), name="a")
        assert await rt.run("a", "go") == "all of them"
        assert not any("nothing new" in str(request.messages) for request in there.server.requests)
