"""Several conversations in one task, run again: each goes on with its own answers, and none is given those of another.

Every answer names the conversation that it belongs to, so that a request with the words of another one is found out.
"""

import asyncio
import operator
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
from agents import Agent as OpenAIAgent
from agents import RunConfig, Runner, function_tool, handoff
from agents.extensions.handoff_filters import remove_all_tools
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory

from adapters.lives import Interrupted, Life, live_until, lived, two_lives
from adapters.places import KEY, KEY_NAME, KINDS, Place, join, served, told
from remit import Runtime, Turn
from remit.adapters.langgraph import Middleware
from remit.testing.models import Calls, ModelRequest, Says

pytestmark = pytest.mark.anyio
FRAMEWORKS = KINDS[1:]
MAY_BE_DONE = "'work' was begun before the task was interrupted and may have been done"
_TAG = re.compile(r"#\w+")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


def tags(asked: ModelRequest) -> set[str]:
    """The conversations whose words are in a request, from what was asked and what the model answered."""
    words = [one for one in asked.messages if one["role"] in ("user", "assistant")]
    return {*_TAG.findall(str(words))}


class Work:
    """A tool that is used in every conversation: in the first life the ones with these names hold there."""

    def __init__(self, *held: str) -> None:
        self.life = Life(holds=len(held))
        self.used: list[str] = []
        self._held = held

    async def work(self, who: str) -> str:
        """Work."""
        self.used.append(who)
        if who in self._held:
            await self.life.hold()
        return f"worked for {who}"

    def script(self, asked: ModelRequest) -> Any:
        """Work in each conversation, and say in whose name. One that is led calls what leads on."""
        [tag] = tags(asked)
        who = tag.removeprefix("#")
        if told(asked):
            return Says(f"{tag} done: {told(asked)[-1]}")
        return Calls("work", {"who": who}, id=f"{who}-1", text=f"{tag} works")


def runs(framework: str, place: Place, tool: Callable[..., Any]) -> Callable[[str], Any]:
    """Make a function that runs an agent of this framework on a task."""
    match framework:
        case "pydantic-ai":
            agent = Agent(place.of_pydantic("m"), tools=[tool])

            async def run(task: str) -> str:
                return (await agent.run(task)).output
        case "openai-agents":
            guest = OpenAIAgent("inner", model=place.of_openai("m"), tools=[function_tool(tool)])

            async def run(task: str) -> str:
                return str((await Runner.run(guest, task, run_config=RunConfig(tracing_disabled=True))).final_output)
        case _:
            graph: Any = create_agent(place.chat("m"), [tool])

            async def run(task: str) -> str:
                return (await graph.ainvoke({"messages": [("user", task)]}))["messages"][-1].text

    return run


# -- inside of a tool ---------------------------------------------------------------------------------------------

INSIDE: dict[str, tuple[Sequence[str], Sequence[str], bool]] = {
    # the conversations, those that the first life ends in, and whether they are had at once
    "one": (["a"], ["a"], False),
    "one after the other": (["a", "b"], ["b"], False),
    "at once": (["a", "b", "c"], ["b", "c"], True),
    "the same at once": (["a", "a"], ["a", "a"], True),
    "the same again": (["a", "a", "b"], ["b"], False),
}


@pytest.mark.rule("talk.position")
@pytest.mark.parametrize("case", INSIDE)
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_agents_that_a_tool_runs_go_on_with_their_own_answers(tmp_path: Path, framework: str, case: str):
    names, held, at_once = INSIDE[case]
    work = Work(*held)

    def script(asked: ModelRequest) -> Any:
        if tags(asked):
            return work.script(asked)
        return Says(told(asked)[-1]) if told(asked) else Calls("ask", {}, id="o")

    async with served(script) as place:
        run = runs(framework, place, work.work)

        async def ask() -> str:
            """Ask others."""
            tasks = [f"#{name}" for name in names]
            said = await asyncio.gather(*map(run, tasks)) if at_once else [await run(task) for task in tasks]
            return " | ".join(said)

        def team(rt: Runtime) -> None:
            join(rt, "native", place, tools=[ask], repeat={"ask": "again"})

        async with two_lives(tmp_path / "team.db", team, work.life) as (_, outcome):
            said = str(outcome.value).split(" | ")
        for name, one in zip(names, said, strict=True):
            assert one.startswith(f"#{name} done: ")
            assert (MAY_BE_DONE if name in held else f"worked for {name}") in one
        assert sorted(work.used) == sorted(names)
        beyond = len(place.server.requests) - 2 * len(names) - 2
        # One that was not held may have been waiting for an answer when the first life ended.
        assert 0 <= beyond <= (len(names) - len(held) if at_once else 0)
        assert all(len(tags(asked)) <= 1 or not told(asked) for asked in place.server.requests)


# -- handoffs -----------------------------------------------------------------------------------------------------


@pytest.mark.rule("talk.position")
@pytest.mark.parametrize("kind", KINDS)
async def test_the_agent_that_a_task_was_handed_to_goes_on_with_its_own_answers(tmp_path: Path, kind: str):
    """Both conversations begin with the same task; the first life ends in the turn of the second agent."""
    work = Work("b")

    def script(asked: ModelRequest) -> Any:
        me = "a" if "handoff" in asked.tools else "b"
        assert tags(asked) <= {f"#{me}"}
        if told(asked):
            return Says(f"#{me} done: {told(asked)[-1]}") if me == "b" else Calls("handoff", {"agent": "b"}, id="h")
        return Calls("work", {"who": me}, id="c1", text=f"#{me} works")

    async with served(script) as place:

        def team(rt: Runtime) -> None:
            join(rt, kind, place, "a", tools=[work.work], repeat={"work": "again"}, asks=["b"])
            join(rt, kind, place, "b", tools=[work.work], repeat={"work": "again"})

        async with two_lives(tmp_path / "team.db", team, work.life, "a") as (_, outcome):
            assert (outcome.by, outcome.value) == ("b", "#b done: worked for b")
        assert work.used == ["a", "b", "b"]
        assert len(place.server.requests) == 4


@pytest.mark.rule("talk.position")
@pytest.mark.parametrize("held", ["a", "b"])
async def test_a_handoff_inside_openai_agents_goes_on_where_it_was(tmp_path: Path, held: str):
    """It is one conversation. In the second life its agents are told something else, and the next request says so."""
    work = Work(held)

    def script(asked: ModelRequest) -> Any:
        me = "a" if "transfer_to_b" in asked.tools else "b"
        match len(told(asked)):
            case 0:
                return Calls("work", {"who": me}, id="c1")
            case 1:
                return Calls("transfer_to_b", {}, id="c2")
            case 2:
                return Calls("work", {"who": me}, id="c3")
            case _:
                return Says(" | ".join(told(asked)))

    async with served(script) as place:

        def team(rt: Runtime) -> None:
            how: Any = {"model": place.of_openai("m"), "tools": [function_tool(work.work)]}
            b = OpenAIAgent("b", instructions=f"B in life {work.life.number}", **how)
            a = OpenAIAgent("a", instructions=f"A in life {work.life.number}", handoffs=[b], **how)
            rt.add(a, name="it", repeat={"work": "again"})

        async with two_lives(tmp_path / "team.db", team, work.life) as (_, outcome):
            first, _, second = str(outcome.value).split(" | ")
            assert (first, second) == ("worked for a", "worked for b")
        assert work.used == (["a", "a", "b"] if held == "a" else ["a", "b", "b"])
        assert len(place.server.requests) == 4
        said = [str(asked.messages[0]["content"]) for asked in place.server.requests]
        assert [one[0] for one in said] == ["A", "A", "B", "B"]
        assert [one[-1] for one in said] == (list("1222") if held == "a" else list("1112"))


# -- graphs -------------------------------------------------------------------------------------------------------


class Parts(MessagesState):
    done: Annotated[list[str], operator.add]


@pytest.mark.rule("talk.position")
async def test_parallel_nodes_of_a_graph_go_on_with_their_own_answers(tmp_path: Path):
    """Nodes that were sent out at once ask twice each; some had their first answer when the first life ended."""
    work, names = Work("b", "d"), ["a", "b", "c", "d"]

    def script(asked: ModelRequest) -> Any:
        [tag] = tags(asked)
        return Says(f"{tag} {sum(one['role'] == 'assistant' for one in asked.messages)}")

    async with served(script) as place:
        chat = place.chat("m")

        async def part(state: dict[str, str]) -> dict[str, Any]:
            name = state["name"]
            said: list[Any] = [HumanMessage(f"#{name}")]
            said += [await chat.ainvoke(said), HumanMessage("go on")]
            await work.work(name)
            said.append(await chat.ainvoke(said))
            return {"done": [f"{said[1].text} {said[-1].text}"]}

        def team(rt: Runtime) -> None:
            graph = StateGraph(Parts)
            graph.add_node("begin", lambda _: {})
            graph.add_node("part", part)  # pyright: ignore[reportArgumentType]
            graph.add_node("end", lambda state: {"messages": [AIMessage(" | ".join(state["done"]))]})
            graph.add_edge(START, "begin")
            graph.add_conditional_edges("begin", lambda _: [Send("part", {"name": name}) for name in names], ["part"])
            graph.add_edge("part", "end")
            graph.add_edge("end", END)
            rt.add(graph.compile(), name="it")

        async with two_lives(tmp_path / "team.db", team, work.life) as (_, outcome):
            assert str(outcome.value).split(" | ") == [f"#{name} 0 #{name} 1" for name in names]
        beyond = len(place.server.requests) - 2 * len(names)
        assert 0 <= beyond <= 2  # a and c may have been waiting for an answer when the first life ended


# -- histories that a guest rewrites ------------------------------------------------------------------------------


def shortened(messages: list[Any]) -> list[Any]:
    """Keep what is first, and the last answer with what came of it."""
    return [messages[0], *messages[-2:]] if len(messages) > 3 else messages


@wrap_model_call
async def shortening(request: Any, handler: Any) -> Any:
    return await handler(request.override(messages=shortened(request.messages)))


def shorten(rt: Runtime, kind: str, place: Place, tool: Callable[..., Any]) -> None:
    """Add a guest that shortens its history itself."""
    if kind == "pydantic-ai":
        guest = Agent(place.of_pydantic("m"), tools=[tool], capabilities=[ProcessHistory(shortened)])
        rt.add(guest, name="it")
    else:
        rt.add(create_agent(place.chat("m"), [tool], middleware=[shortening, Middleware()]), name="it")


@pytest.mark.rule("talk.rewritten")
@pytest.mark.parametrize("at", [0, 3, 5])
@pytest.mark.parametrize("kind", ["pydantic-ai", "langgraph"])
async def test_what_a_guest_leaves_out_of_its_history_is_not_sent(tmp_path: Path, kind: str, at: int):
    work = Work()

    def script(asked: ModelRequest) -> Any:
        number = int(told(asked)[-1].removeprefix("worked for ")) if told(asked) else 0
        return Calls("work", {"who": str(number + 1)}, id=f"c{number}") if number < 4 else Says("done")

    interrupted = Interrupted(script, work.life, at)
    async with served(interrupted) as place:

        def team(rt: Runtime) -> None:
            shorten(rt, kind, place, work.work)

        if at:
            await live_until(tmp_path / "team.db", team, work.life)
        async with lived(tmp_path / "team.db", team) as (_, outcome):
            assert outcome.value == "done"
    assert work.used == ["1", "2", "3", "4"]
    assert [len(asked.messages) for asked in interrupted.answered] == [1, 3, 3, 3, 3]
    assert [told(asked) for asked in interrupted.answered[1:]] == [[f"worked for {number}"] for number in range(1, 5)]


@pytest.mark.rule("talk.rewritten", "talk.position")
async def test_an_agent_that_is_handed_nothing_but_the_task_goes_on_with_its_own_answers(tmp_path: Path):
    """What was said before is filtered out in the handoff, and the task reads otherwise in the second life."""
    work = Work("b")

    def script(asked: ModelRequest) -> Any:
        me = "a" if "transfer_to_b" in asked.tools else "b"
        if not told(asked):
            return Calls("work", {"who": me}, id=f"{me}1")
        return Calls("transfer_to_b", {}, id="h") if me == "a" else Says(told(asked)[-1])

    async with served(script) as place:

        def team(rt: Runtime) -> None:
            how: Any = {"model": place.of_openai("m"), "tools": [function_tool(work.work)]}
            b = OpenAIAgent("b", **how)
            a = OpenAIAgent("a", handoffs=[handoff(b, input_filter=remove_all_tools)], **how)
            rt.add(a, name="it", repeat={"work": "again"}, reads=["rates"])

            @rt.agent(asks="*", reads=["rates"])
            async def lead(turn: Turn) -> Any:
                return await turn.delegate("it", turn.task, sees=["rates"])

        async def change(rt: Runtime) -> None:
            await rt.workspace.context().set("rates", "usd", "1.07")

        async with two_lives(tmp_path / "team.db", team, work.life, "lead", change) as (_, outcome):
            assert outcome.value == "worked for b"
        assert work.used == ["a", "b", "b"]
        assert len(place.server.requests) == 4
