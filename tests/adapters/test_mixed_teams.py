"""One team of models and of agents of other frameworks, over HTTP with their real clients."""

from typing import Any

import pytest
from agents import Agent as OpenAIAgent
from langgraph.graph import END, START, MessagesState, StateGraph

from adapters.places import KEY, KEY_NAME, KINDS, Place, came_back, join, priced, served
from engine.helping import sound
from remit import Bounds, Runtime
from remit.adapters.langgraph import governed
from remit.testing.models import Calls, ModelRequest, Says

pytestmark = pytest.mark.anyio

NAMES = ("native", "guest", "oa", "lg", "plain")
DEEP = Bounds(depth=5)


def calls(agent: str, task: str) -> Calls:
    return Calls("call_agent", {"agent": agent, "task": task})


def script(asked: ModelRequest) -> Any:
    """Each model delegates to the next with its first request, and answers with what it got; the last tries to go back
    to the first."""
    at = NAMES.index(asked.model)
    if came_back(asked):
        return Says(f"{asked.model}({asked.text})")
    if asked.model == "plain":
        return Says("plain answers")
    return calls(NAMES[at + 1], f"for {NAMES[at + 1]}")


def team(rt: Runtime, place: Place) -> None:
    """Add an agent of each kind; every one may ask the next."""
    for kind, name, *asks in zip(KINDS, NAMES, NAMES[1:], strict=False):
        join(rt, kind, place, name, model=name, asks=[*asks, "native"] if name == "lg" else asks)
    rt.add(plain_graph(place), name="plain")


def plain_graph(place: Place) -> Any:
    llm = governed(place.chat("plain"))

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await llm.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_edge(START, "think")
    graph.add_edge("think", END)
    return graph.compile()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


@pytest.mark.rule("model.guests")
async def test_five_kinds_of_agents_delegate_to_each_other_and_the_bill_is_the_sum_of_its_leaves():
    async with served(script) as place, priced(*NAMES, bounds=DEEP) as rt:
        team(rt, place)
        outcome = await rt.outcome("native", "go", credits="$1")
        assert outcome.value == "native(guest(oa(lg(plain answers))))"
        assert len(place.server.requests) == 9
        history: list[Any] = await rt.workspace.journal.history()
        answered = [event for event in history if event.kind == "model.answered"]
        settled = [event.data["costs"]["credits"] for event in history if event.kind == "hold.settled"]
        assert [event.agent for event in answered] == [
            *("native", "guest", "oa", "lg", "plain", "lg", "oa", "guest", "native")
        ]
        assert sum(settled) == sum(event.data["cost"] for event in answered) > 0
        assert [event.kind for event in history].count("tool.done") == 4
        await sound(rt)


@pytest.mark.rule("model.guests", "chain.loop")
async def test_a_loop_is_refused_inside_a_guest_as_a_sentence_to_its_model():
    told: list[str] = []

    def back(asked: ModelRequest) -> Any:
        if asked.model == "lg" and not came_back(asked):
            return calls("native", "once more")
        if came_back(asked) and asked.model == "lg":
            told.append(str(asked.text))
            return Says("so be it")
        return script(asked)

    async with served(back) as place, priced(*NAMES, bounds=DEEP) as rt:
        team(rt, place)
        assert await rt.run("native", "go") == "native(guest(oa(so be it)))"
    assert told[0].startswith("'native' is already in this delegation (native > guest > oa > lg); ask someone else")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.rule("model.guests", "tool.policy")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("deny", [(), ("add",)])
async def test_tools_of_every_framework_are_used_and_denied_alike(kind: str, deny: tuple[str, ...]):
    told: list[Any] = []

    def uses(asked: ModelRequest) -> Any:
        if not came_back(asked):
            return Calls("add", {"a": 2, "b": 3})
        told.append(asked.text)
        return Says("done")

    async with served(uses) as place, Runtime() as rt:
        join(rt, kind, place, tools=[add], deny=deny)
        assert await rt.run("it", "add") == "done"
        history = await rt.workspace.journal.history()
        (used,) = [event.data["outcome"] for event in history if event.kind == "tool.done"]
    assert used == ("refused" if deny else "done")
    refused = "'it' may not use 'add' for this task; you may use no tools, or finish without it"
    assert told == [refused if deny else "5"]


@pytest.mark.rule("guest.handoff")
async def test_handoffs_of_a_guest_s_own_are_the_team_s_if_the_team_has_who_is_meant():
    told: list[str] = []

    def hands(asked: ModelRequest) -> Any:
        if asked.model == "triage" and came_back(asked):
            told.append(asked.text)
            return Calls("transfer_to_inner", {})
        if asked.model == "triage":
            return Calls("transfer_to_desk", {"update": {"context": {"order": 5003}}})
        return Calls("transfer_to_triage", {}) if asked.model == "desk" else Says(f"{asked.model} did it")

    def agent(name: str, *handoffs: Any) -> OpenAIAgent[Any]:
        return OpenAIAgent(name, model=place.of_openai(name), handoffs=[*handoffs])

    async with served(hands) as place, Runtime() as rt:
        desk = agent("desk")
        triage = agent("triage", desk, agent("inner"))
        desk.handoffs = [triage]
        rt.add(triage, asks=["desk"])
        rt.add(desk, asks=["triage"])
        assert await rt.run("triage", "where is it?") == "inner did it"
        assert [one.model for one in place.server.requests] == ["triage", "desk", "triage", "triage", "inner"]
        assert [event.kind for event in await rt.workspace.journal.history()].count("task.handed") == 2
    assert '"order":5003' in place.server.requests[1].text
    assert told[0].startswith("'triage' has just handed the same thing to 'desk', and it came back")
