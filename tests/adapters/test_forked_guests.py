"""Forks of runs of every kind of agent: what was recorded up to an event is neither asked, done nor paid again."""

from pathlib import Path
from typing import Any

import pytest
from agents import Agent as OpenAIAgent
from agents import function_tool
from langgraph.graph import START, MessagesState, StateGraph

from adapters.places import KEY, KEY_NAME, KINDS, join, priced, served
from adapters.processes import python
from adapters.test_nested_runs import FRAMEWORKS, a_writer, house, script
from deep import some
from engine.helping import PATIENCE, sound
from remit import Card, Runtime, Task, Turn
from remit.adapters.process import program
from remit.testing.models import Calls, ModelReply, ModelRequest, Says
from remit.types import Event

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


class Desk:
    """A lead that works with a guest, which has a tool and asks another guest, and what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.asked = 0

    def plays(self, request: ModelRequest) -> ModelReply:
        self.asked += 1
        results = sum(
            one.get("role") == "tool" or one.get("type") == "function_call_output" for one in request.messages
        )
        desk: list[ModelReply] = [
            Calls("look_up", {"day": "Monday"}, id="d1"),
            Calls("call_agent", {"agent": "helper", "task": "on Sunday?"}, id="d2"),
            Says("It is open."),
        ]
        helper: list[ModelReply] = [Calls("look_up", {"day": "Sunday"}, id="h1"), Says("It is.")]
        return (helper if request.model == "small" else desk)[results]

    def look_up(self, day: str) -> str:
        """Look up when it is open."""
        self.done.append(day)
        return f"{day}: 9 to 5"


async def history(rt: Runtime, run: str) -> list[Event]:
    return await rt.workspace.journal.history(run=run)


def kinds(events: list[Event]) -> list[str]:
    return [event.kind for event in events]


def payments(events: list[Event]) -> int:
    return sum(event.kind in ("hold.settled", "credits.spent") for event in events)


async def forked_everywhere(rt: Runtime, run: Task, desk: Desk) -> None:
    """Fork a run at each of its events, and count what the fork asks, does and pays."""
    result = await run.result(PATIENCE)
    events, asked, done = await history(rt, run.id), desk.asked, len(desk.done)
    for event in events:
        desk.asked, desk.done = 0, []
        before = [one for one in events if one.seq <= event.seq]
        fork = await rt.workspace.fork(run.id, event.seq)
        assert await fork.result(PATIENCE) == result, event
        assert desk.asked == asked - kinds(before).count("model.answered"), event
        used = sum(one.kind == "tool.done" and one.data["tool"] == "look_up" for one in before)
        assert len(desk.done) == done - used, event
        if paid := payments(events):
            assert payments(await history(rt, fork.id)) == paid - kinds(before).count("model.answered"), event
    assert await history(rt, run.id) == events
    await sound(rt)


@pytest.mark.rule("fork.nothing-again", "fork.original")
@pytest.mark.parametrize("kind", some(KINDS, 2))
async def test_a_guest_is_forked_at_any_event(kind: str):
    desk = Desk()
    async with served(desk.plays) as place, priced("big", "small") as rt:
        join(rt, kind, place, "helper", model="small", tools=[desk.look_up])
        join(rt, kind, place, "desk", model="big", tools=[desk.look_up], asks=["helper"])

        @rt.agent(asks=["desk"])
        async def lead(turn: Turn) -> str:
            return await turn.delegate("desk", turn.task)

        await rt.workspace.money.grant("$5")
        await forked_everywhere(rt, await rt.submit("lead", "Is it open?"), desk)


@pytest.mark.rule("fork.nothing-again")
@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_an_agent_that_a_tool_of_a_guest_runs_is_forked_with_it(framework: str, in_thread: bool):
    desk = Desk()

    def plays(request: ModelRequest) -> ModelReply:
        desk.asked += 1
        return script(request)

    async with house(framework, plays) as there, Runtime() as rt:
        rt.add(a_writer(there, in_thread=in_thread))
        await forked_everywhere(rt, await rt.submit("writer", "write"), desk)


@pytest.mark.rule("fork.nothing-again")
async def test_a_handoff_inside_a_guest_and_a_tool_that_is_an_agent_are_forked_at_any_event():
    desk = Desk()

    def plays(request: ModelRequest) -> ModelReply:
        desk.asked += 1
        replies: dict[str, list[ModelReply]] = {
            "front": [Calls("transfer_to_back", {}, id="f1")],
            "back": [
                Calls("look_up", {"day": "Monday"}, id="b1"),
                Calls("helper", {"input": "x"}, id="b2"),
                Says("Yes."),
            ],
            "helper": [Calls("look_up", {"day": "Sunday"}, id="h1"), Says("It is.")],
        }
        used = sum(one.get("role") == "tool" for one in request.messages)
        return replies[request.model][used - (request.model == "back")]

    async with served(plays) as place, priced("front", "back", "helper") as rt:
        looks: Any = function_tool(desk.look_up)
        helper = OpenAIAgent("helper", model=place.of_openai("helper"), tools=[looks])
        asks = helper.as_tool("helper", "Ask the helper.")
        back = OpenAIAgent("back", model=place.of_openai("back"), tools=[looks, asks])
        rt.add(OpenAIAgent("front", model=place.of_openai("front"), handoffs=[back]))
        await forked_everywhere(rt, await rt.submit("front", "Is it open?"), desk)


@pytest.mark.rule("fork.nothing-again")
async def test_a_graph_with_nodes_side_by_side_is_forked_at_any_event():
    desk = Desk()

    def plays(request: ModelRequest) -> ModelReply:
        desk.asked += 1
        return Says(f"{request.model} says so")

    async with served(plays) as place, priced("left", "right", "end") as rt:
        graph: Any = StateGraph(MessagesState)
        for name in ("left", "right", "end"):
            model = place.chat(name)

            async def ask(state: MessagesState, model: Any = model) -> Any:
                return {"messages": [await model.ainvoke(state["messages"])]}

            graph.add_node(name, ask)
        for name in ("left", "right"):
            graph.add_edge(START, name)
            graph.add_edge(name, "end")
        rt.add(graph.compile(), name="it")
        await forked_everywhere(rt, await rt.submit("it", "go"), desk)


@pytest.mark.rule("fork.nothing-again", "fork.programs")
async def test_a_program_that_had_ended_is_not_run_again_and_one_that_had_not_is(tmp_path: Path):
    ran = tmp_path / "ran"
    code = f"import sys; open({str(ran)!r}, 'a').write(sys.stdin.read() + '\\n'); print('done')"
    async with Runtime() as rt:
        rt.add(Card("tool"), program(python(code)))

        @rt.agent(asks=["tool"])
        async def lead(turn: Turn) -> str:
            return await turn.delegate("tool", "first") + await turn.delegate("tool", "second")

        run = await rt.submit("lead", "go")
        assert await run.result(PATIENCE) == "donedone"
        events = await history(rt, run.id)
        for event in events:
            ran.unlink(missing_ok=True)
            assert await (await rt.workspace.fork(run.id, event.seq)).result(PATIENCE) == "donedone"
            ended = [one for one in events if one.seq <= event.seq and one.kind == "task.completed"]
            left = ["first", "second"][sum(one.agent == "tool" for one in ended) :]
            assert (ran.read_text().split() if ran.exists() else []) == left, event
        await sound(rt)
