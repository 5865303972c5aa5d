"""Nothing begins again silently: whatever way a record cannot be continued, the task fails with a sentence, and begins
again, on record, where its agent or a person allows it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from agents import Agent as OpenAIAgent
from agents import function_tool
from langchain.agents import create_agent
from langchain.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic_ai import Agent

from adapters.lives import Till, damage, live_until, lived
from adapters.places import KEY, KEY_NAME, KINDS, Place, data_of, join, served, told
from commands import command
from remit import Runtime, Turn
from remit.adapters.langgraph import Middleware
from remit.testing.doubles import PATIENCE
from remit.testing.models import Calls, ModelRequest, Says

pytestmark = pytest.mark.anyio
kinds = pytest.mark.parametrize("kind", KINDS)
AGAIN = "This task was begun before"
EARLY = "the agent ended before it came to all that its model had answered"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


class Shop(Till):
    """A till, and the store of its team."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.store = folder / "team.db"


def script(asked: ModelRequest) -> Any:
    """Say a word, which is no answer where numbers are wanted; charge 1 and 2. In a task that was begun before, end."""
    if AGAIN in str(asked.messages):
        return Says("ended")
    if "WORD" in str(asked.messages) and not any(one["role"] == "assistant" for one in asked.messages):
        return Says("a word")
    number = len([one for one in told(asked) if "charged" in one]) + 1
    return Calls("charge", {"number": number}, id=f"c{number}") if number < 3 else Says("ended")


# -- ways to lose it ----------------------------------------------------------------------------------------------


class Way(NamedTuple):
    """How a record cannot be continued: the agent of the first life and that of later ones, and why it fails."""

    before: Callable[[Runtime, Place, Shop, dict[str, Any]], None]
    after: Callable[[Runtime, Place, Shop, dict[str, Any]], None]
    why: str
    is_model: bool = True  # whether the later agent asks a model, and so may be allowed to begin again by itself
    asks: int = 1  # how many requests it takes to notice, and to begin again


def plainly(kind: str) -> Any:
    def add(rt: Runtime, place: Place, shop: Shop, about: dict[str, Any]) -> None:
        join(rt, kind, place, tools=[shop.charge], **about)

    return add


def with_output(kind: str, output: Any) -> Any:
    """Have the answer be of a type."""

    def add(rt: Runtime, place: Place, shop: Shop, about: dict[str, Any]) -> None:
        join(rt, kind, place, tools=[shop.charge], instructions="WORD", output=output, **about)

    return add


def with_first_result(kind: str) -> Any:
    """Have the first result of a tool be the answer."""

    def add(rt: Runtime, place: Place, shop: Shop, about: dict[str, Any]) -> None:
        if kind == "openai-agents":
            model, tools = place.of_openai("m"), [function_tool(shop.charge)]
            rt.add(OpenAIAgent("it", model=model, tools=[*tools], tool_use_behavior="stop_on_first_tool"), **about)
        else:
            direct = tool("charge", return_direct=True)(shop.charge)
            rt.add(create_agent(place.chat("m"), [direct], middleware=[Middleware()]), name="it", **about)

    return add


def as_function(rt: Runtime, place: Place, shop: Shop, about: dict[str, Any]) -> None:
    @rt.agent
    async def it(turn: Turn) -> str:
        return "ended"


def graph(*nodes: str) -> Any:
    """Have each node of a graph ask the model and charge once."""

    def add(rt: Runtime, place: Place, shop: Shop, about: dict[str, Any]) -> None:
        chat, charge = place.chat("m").bind_tools([shop.charge]), tool(shop.charge)

        async def think(state: MessagesState) -> dict[str, Any]:
            answer: Any = await chat.ainvoke(state["messages"])
            return {"messages": [answer, *[await charge.ainvoke(call) for call in answer.tool_calls]]}

        made = StateGraph(MessagesState)
        for before, node in zip((START, *nodes), nodes, strict=False):
            made.add_node(node, think)
            made.add_edge(before, node)
        made.add_edge(nodes[-1], END)
        rt.add(made.compile(), name="it", **about)

    return add


def of_another(before: str, after: str) -> str:
    names = {"native": "pydantic-ai", "langgraph": "langchain"}
    was, now = names.get(before, before), names.get(after, after)
    return f"its record is one of {was}, and the agent is {now} now"


WAYS: dict[str, Way] = {
    **{
        f"{kind} ends early": Way(with_output(kind, int), with_output(kind, None), EARLY)
        for kind in ("native", "pydantic-ai")
    },
    **{
        f"{kind} ends early": Way(plainly(kind), with_first_result(kind), EARLY)
        for kind in ("openai-agents", "langgraph")
    },
    **{
        f"{kind} became a function": Way(
            plainly(kind), as_function, "and the agent asks no model that way now", is_model=False
        )
        for kind in KINDS
    },
    **{
        f"{before} became {after}": Way(plainly(before), plainly(after), of_another(before, after))
        for before, after in zip(KINDS, (*KINDS[2:], *KINDS[:2]), strict=True)
    },
    "a graph's nodes were renamed": Way(graph("a", "b"), graph("x", "y"), EARLY, asks=4),
}


@pytest.mark.rule("talk.lost", "talk.restart")
@pytest.mark.parametrize("way", WAYS)
async def test_a_conversation_that_takes_another_way_fails_until_a_person_has_it_begin_again(tmp_path: Path, way: str):
    how, shop = WAYS[way], Shop(tmp_path)
    async with served(script) as place:
        await live_until(shop.store, lambda rt: how.before(rt, place, shop, {}), shop.life)
        before = len(place.server.requests)
        async with lived(shop.store, lambda rt: how.after(rt, place, shop, {})) as (rt, outcome):
            assert outcome.state == "failed"
            assert "the conversation of 'it' with its model cannot be continued: " in str(outcome.error)
            assert how.why in str(outcome.error)
            assert f"remit retry {outcome.id} --restart" in str(outcome.error)
            assert await data_of(rt, "talk.restarted") == []
            assert shop.charged == [1, 2]

            again = await (await rt.workspace.tasks.retry(outcome.id, restart=True)).wait(PATIENCE)
            assert again.value == "ended"
            [begun] = await data_of(rt, "talk.restarted")
            assert [one["outcome"] for one in begun["tools"]] == ["done", "begun"]
        assert shop.charged == [1, 2]
        assert len(place.server.requests) <= before + how.asks


@pytest.mark.rule("talk.restart")
@pytest.mark.parametrize("way", [way for way, how in WAYS.items() if how.is_model])
async def test_a_conversation_that_takes_another_way_begins_again_where_its_agent_allows_it(tmp_path: Path, way: str):
    how, shop = WAYS[way], Shop(tmp_path)
    async with served(script) as place:
        await live_until(shop.store, lambda rt: how.before(rt, place, shop, {"on_lost": "restart"}), shop.life)
        async with lived(shop.store, lambda rt: how.after(rt, place, shop, {"on_lost": "restart"})) as (rt, outcome):
            assert outcome.value == "ended"
            [begun] = await data_of(rt, "talk.restarted")
            assert how.why in begun["why"]
        assert shop.charged == [1, 2]


@pytest.mark.rule("talk.position")
@pytest.mark.parametrize(("before", "after"), [("native", "pydantic-ai"), ("pydantic-ai", "native")])
async def test_a_model_agent_and_a_guest_of_the_same_framework_continue_each_others_conversations(
    tmp_path: Path, before: str, after: str
):
    shop = Shop(tmp_path)
    async with served(script) as place:
        await live_until(shop.store, lambda rt: plainly(before)(rt, place, shop, {}), shop.life)
        async with lived(shop.store, lambda rt: plainly(after)(rt, place, shop, {"repeat": {"charge": "again"}})) as it:
            assert it.outcome.value == "ended"
        assert shop.charged == [1, 2, 2]
        assert len(place.server.requests) == 3


# -- inside a tool ------------------------------------------------------------------------------------------------


def cut(kept: dict[str, Any]) -> dict[str, Any]:
    return {"text": kept["text"][: len(kept["text"]) // 2]}


@pytest.mark.rule("talk.lost", "talk.restart")
@pytest.mark.parametrize("catches", [False, True])
@kinds
async def test_a_conversation_that_is_lost_inside_a_tool_is_lost_for_its_turn(tmp_path: Path, kind: str, catches: bool):
    """Also if the tool catches the error: its model would be told something that nobody said."""
    shop = Shop(tmp_path)

    def said(asked: ModelRequest) -> Any:
        if "INNER" in str(asked.messages):
            return script(asked)
        return Says("ended") if told(asked) or AGAIN in str(asked.messages) else Calls("ask", {}, id="a")

    async with served(said) as place:
        inner = Agent(place.of_pydantic("m"), instructions="INNER", tools=[shop.charge])

        async def ask() -> str:
            """Ask somebody."""
            try:
                return (await inner.run("charge both")).output
            except Exception:
                if catches:
                    return "no"
                raise

        def team(rt: Runtime) -> None:
            join(rt, kind, place, tools=[ask], repeat={"ask": "again"})

        await live_until(shop.store, team, shop.life)
        before = len(place.server.requests)
        damage(shop.store, cut, place="/tool/%/talk/%")
        async with lived(shop.store, team) as (rt, outcome):
            assert outcome.state == "failed"
            assert "the conversation of 'it' with its model cannot be continued: " in str(outcome.error)
            assert len(place.server.requests) == before
            again = await (await rt.workspace.tasks.retry(outcome.id, restart=True)).wait(PATIENCE)
            assert again.value == "ended"
            [begun] = await data_of(rt, "talk.restarted")
            used = [(one["tool"], one["outcome"]) for one in begun["tools"]]
            assert used == [("charge", "done"), ("charge", "begun")]
        assert shop.charged == [1, 2]


# -- by hand ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("talk.restart")
@pytest.mark.parametrize("whose", ["run", "subtask"])
async def test_a_person_has_a_conversation_begin_again_on_the_command_line(tmp_path: Path, whose: str):
    """Of the run that it is part of, or of the task itself, as the sentence says."""
    shop = Shop(tmp_path)
    async with served(script) as place:

        def team(rt: Runtime) -> None:
            join(rt, "native", place, tools=[shop.charge])

            @rt.agent(asks=["it"])
            async def lead(turn: Turn) -> object:
                return await turn.delegate("it", "charge both")

        await live_until(shop.store, team, shop.life, "lead")
        damage(shop.store, cut)
        async with lived(shop.store, team, "lead") as (rt, outcome):
            assert outcome.state == "failed"
            [it] = await rt.workspace.tasks.list(agent="it")
            assert f"remit retry {it.id} --restart" in str(outcome.error)
        typed = it.id if whose == "subtask" else outcome.id
        plain = command(tmp_path, "retry", outcome.id, "--store", str(shop.store), "--json")
        assert plain.returncode == 0, plain.stderr
        async with Runtime(shop.store) as rt:
            team(rt)
            async with rt.serving():
                same = await rt.workspace.tasks.get(json.loads(plain.stdout)["task"]).wait(PATIENCE)
                assert "cannot be continued" in str(same.error)  # as nobody has said that it may begin again
        restarted = command(tmp_path, "retry", typed, "--restart", "--store", str(shop.store), "--json")
        assert restarted.returncode == 0, restarted.stderr
        async with Runtime(shop.store) as rt:
            team(rt)
            async with rt.serving():
                again = rt.workspace.tasks.get(json.loads(restarted.stdout)["task"])
                assert (await again.wait(PATIENCE)).value == "ended"
            assert len(await data_of(rt, "talk.restarted")) == 1
        assert shop.charged == [1, 2]
