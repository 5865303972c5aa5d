"""Guests do not escape: agents that a tool runs, agents as tools, and graphs whose models nobody wrapped."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import agents
import pydantic_ai
import pytest
from agents import FunctionTool, OpenAIChatCompletionsModel, RunConfig, Runner, RunResult, function_tool
from agents.tool import ApplyPatchTool
from langchain.agents import create_agent
from langchain.tools import ToolRuntime, tool
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.types import Command, Send
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic import BaseModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from programs import ran
from remit import Bounds, Card, Runtime
from remit.adapters.pydantic_ai import guest
from remit.errors import BadInput
from remit.testing.models import Calls, ModelReply, ModelRequest, ModelServer, Says, model_server

pytestmark = pytest.mark.anyio

UNTRACED = RunConfig(tracing_disabled=True)
FRAMEWORKS = ("pydantic-ai", "openai-agents", "langgraph")


def script(asked: ModelRequest) -> ModelReply:
    """A writer asks a librarian by its tool `ask`; the librarian looks it up by its tool `look`."""
    if "LIBRARIAN" in str(asked.messages[0]):
        return Says("It was opened in 1937.") if asked.messages[-1]["role"] == "tool" else Calls("look", {"what": "x"})
    if asked.messages[-1]["role"] == "tool":
        return Says(f"told: {asked.text}")
    return Calls("ask", {"input": "When was it opened?"})


@dataclass
class House:
    """A server, and what makes agents of one framework that ask it."""

    server: ModelServer
    framework: str
    make: Callable[..., Any]
    run: Callable[[Any, str], Any]
    run_in_thread: Callable[[Any, str], str]


def pydantic_house(server: ModelServer, http: Any) -> House:
    provider = OpenAIProvider(base_url=f"{server.url}/v1", api_key="k", http_client=http)
    model = OpenAIChatModel("big", provider=provider)

    def make(name: str, told: str, *tools: Any, **more: Any) -> Any:
        return pydantic_ai.Agent(model, name=name, instructions=told, tools=list(tools), **more)

    async def run(agent: Any, task: str) -> str:
        return (await agent.run(task)).output

    # As agent.run_sync does, which leaves the loop of its thread open.
    return House(server, "pydantic-ai", make, run, lambda agent, task: asyncio.run(run(agent, task)))


def openai_house(server: ModelServer, http: Any) -> House:
    client = AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k", http_client=http)
    model = OpenAIChatCompletionsModel("big", client)

    def make(name: str, told: str, *tools: Any, **more: Any) -> Any:
        made = [one if isinstance(one, FunctionTool) else function_tool(one) for one in tools]
        return agents.Agent(name, instructions=told, model=model, tools=made, **more)

    async def run(agent: Any, task: str) -> str:
        return (await Runner.run(agent, task, run_config=UNTRACED)).final_output

    def run_in_thread(agent: Any, task: str) -> str:
        return Runner.run_sync(agent, task, run_config=UNTRACED).final_output

    return House(server, "openai-agents", make, run, run_in_thread)


def langgraph_house(server: ModelServer, http: Any) -> House:
    chat = ChatOpenAI(model="big", base_url=f"{server.url}/v1", api_key="k", http_async_client=http)  # pyright: ignore[reportArgumentType]

    def make(name: str, told: str, *tools: Any, **more: Any) -> Any:
        return create_agent(chat, list(tools), system_prompt=told, name=name, **more)

    async def run(agent: Any, task: str) -> str:
        return (await agent.ainvoke({"messages": [("user", task)]}))["messages"][-1].text

    def run_in_thread(agent: Any, task: str) -> str:
        return agent.invoke({"messages": [("user", task)]})["messages"][-1].text

    return House(server, "langgraph", make, run, run_in_thread)


HOUSES = {"pydantic-ai": pydantic_house, "openai-agents": openai_house, "langgraph": langgraph_house}


@asynccontextmanager
async def house(framework: str, said: Any = script) -> AsyncIterator[House]:
    async with model_server(said) as server, DefaultAsyncHttpxClient() as http:
        yield HOUSES[framework](server, http)


def look(what: str) -> str:
    """Look it up."""
    return f"a page about {what}"


def a_writer(there: House, *, in_thread: bool = False) -> Any:
    """A writer whose tool runs a librarian itself, as the framework's own documentation has it."""
    librarian = there.make("librarian", "LIBRARIAN", look)

    async def ask(input: str) -> str:
        """Ask the librarian."""
        return await there.run(librarian, input)

    def ask_in_thread(input: str) -> str:
        """Ask the librarian."""
        return there.run_in_thread(librarian, input)

    ask_in_thread.__name__ = "ask"
    return there.make("writer", "WRITER", ask_in_thread if in_thread else ask)


async def seen(rt: Runtime) -> list[str]:
    """The models and tools in the journal, in their order."""
    events = await rt.workspace.journal.history()
    named = {"model.answered": lambda data: "model", "tool.done": lambda data: f"{data['tool']} {data['outcome']}"}
    return [named[event.kind](event.data) for event in events if event.kind in named]


# -- runs inside a tool -----------------------------------------------------------------------------------------


@pytest.mark.rule("guest.nested")
@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_an_agent_that_a_tool_runs_is_governed_without_being_asked(framework: str, in_thread: bool):
    async with house(framework) as there, Runtime() as rt:
        rt.add(a_writer(there, in_thread=in_thread))
        assert await rt.run("writer", "write") == "told: It was opened in 1937."
        assert len(there.server.requests) == 4
        assert await seen(rt) == ["model", "model", "look done", "model", "ask done", "model"]


@pytest.mark.rule("guest.nested")
@pytest.mark.parametrize("outer", FRAMEWORKS)
async def test_agents_of_other_frameworks_inside_a_tool_are_governed_too(outer: str):
    for inner in FRAMEWORKS:
        async with house(outer) as there, house(inner) as elsewhere, Runtime() as rt:
            librarian = elsewhere.make("librarian", "LIBRARIAN", look)

            async def ask(input: str) -> str:
                """Ask the librarian."""
                return await elsewhere.run(librarian, input)  # noqa: B023 - it is run in here

            rt.add(there.make("writer", "WRITER", ask))
            assert await rt.run("writer", "write") == "told: It was opened in 1937."
            assert await seen(rt) == ["model", "model", "look done", "model", "ask done", "model"]


@pytest.mark.rule("guest.nested")
async def test_an_agent_that_a_tool_of_a_model_runs_is_governed_too():
    async with house("pydantic-ai") as there, Runtime() as rt:
        librarian = there.make("librarian", "LIBRARIAN", look)

        async def ask(input: str) -> str:
            """Ask the librarian."""
            return await there.run(librarian, input)

        model = librarian.model
        rt.model_agent("writer", model, instructions="WRITER", tools=[ask])
        assert await rt.run("writer", "write") == "told: It was opened in 1937."
        assert await seen(rt) == ["model", "model", "look done", "model", "ask done", "model"]


@pytest.mark.rule("guest.nested")
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_rules_for_tools_hold_for_agents_that_a_tool_runs(framework: str):
    def twice(asked: ModelRequest) -> ModelReply:
        if "LIBRARIAN" in str(asked.messages[0]) and asked.messages[-1]["role"] == "tool":
            return Says(asked.text)
        return script(asked)

    async with house(framework, twice) as there, Runtime() as rt:
        rt.add(a_writer(there), deny=["look"])
        said = "'writer' may not use 'look' for this task; you may use others, or finish without it"
        assert await rt.run("writer", "write") == f"told: {said}"
        bounded = await rt.run("writer", "write", within=Bounds(tools=["ask"]))
        assert bounded == "told: 'writer' may not use 'look' for this task; you may use ask, or finish without it"


@pytest.mark.rule("guest.nested")
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_a_plain_function_runs_agents_as_it_likes(framework: str):
    async with house(framework) as there, Runtime() as rt:
        librarian = there.make("librarian", "LIBRARIAN", look)

        @rt.agent
        async def clerk(turn: Any) -> str:
            return await there.run(librarian, turn.task)

        writer = there.make("writer", "WRITER")
        rt.add(writer, asks=["clerk"])
        assert await rt.run("clerk", "when?") == "It was opened in 1937."
        assert await there.run(librarian, "when?") == "It was opened in 1937."
        assert await seen(rt) == []


@pytest.mark.rule("guest.nested-loop")
@pytest.mark.parametrize("framework", ["pydantic-ai", "openai-agents"])
async def test_agents_that_run_each_other_in_tools_are_refused_as_a_delegation_is(framework: str):
    def insists(asked: ModelRequest) -> ModelReply:
        last = asked.messages[-1]
        return Says(f"told: {asked.text}") if last["role"] == "tool" else Calls("ask", {"input": "you?"})

    async with house(framework, insists) as there, Runtime() as rt:
        both: dict[str, Any] = {}

        def asking(name: str) -> Any:
            async def ask(input: str) -> str:
                """Ask the other."""
                return await there.run(both[name], input)

            return ask

        both["left"] = there.make("left", "LEFT", asking("right"))
        both["right"] = there.make("right", "RIGHT", asking("left"))
        rt.add(both["left"])
        said = "'left' is already at work in this task (left > right); finish the task yourself"
        assert await rt.run("left", "go") == f"told: told: {said}"
        assert len(there.server.requests) == 4


@pytest.mark.rule("guest.nested-loop")
@pytest.mark.parametrize("framework", ["pydantic-ai", "openai-agents"])
async def test_agents_in_tools_of_agents_in_tools_go_as_deep_as_delegations(framework: str):
    def insists(asked: ModelRequest) -> ModelReply:
        return Says(asked.text) if asked.messages[-1]["role"] == "tool" else Calls("ask", {"input": "you?"})

    async with house(framework, insists) as there, Runtime() as rt:
        below: Any = there.make("a4", "A4", look)

        def asking(below: Any) -> Any:
            async def ask(input: str) -> str:
                """Ask the next."""
                return await there.run(below, input)

            return ask

        for name in ("a3", "a2", "a1", "a0"):
            below = there.make(name, name, asking(below))
        rt.add(below, name="a0")
        assert await rt.run("a0", "go") == (
            "'a4' was not run: this delegation is 3 deep (a0 > a1 > a2 > a3) and at most 3 is allowed; finish the task "
            "yourself with what you have"
        )


@pytest.mark.rule("guest.nested")
async def test_runs_in_streams_and_with_settings_of_their_own_are_governed_too():
    async with house("openai-agents") as there, Runtime() as rt:
        librarian = there.make("librarian", "LIBRARIAN", look)

        async def ask(input: str) -> str:
            """Ask the librarian."""
            found = Runner.run_streamed(librarian, input, run_config=RunConfig(workflow_name="mine"))
            async for _ in found.stream_events():
                pass
            return found.final_output

        rt.add(there.make("writer", "WRITER", ask))
        assert await rt.run("writer", "write") == "told: It was opened in 1937."
        assert await seen(rt) == ["model", "model", "look done", "model", "ask done", "model"]


@pytest.mark.rule("guest.nested")
async def test_a_run_that_is_resumed_by_its_framework_is_refused():
    async with house("openai-agents") as there, Runtime() as rt:
        librarian = there.make("librarian", "LIBRARIAN", look)
        before = await Runner.run(librarian, "when?", run_config=UNTRACED)

        async def ask(input: str) -> str:
            """Ask the librarian."""
            return (await Runner.run(librarian, before.to_state())).final_output

        rt.add(there.make("writer", "WRITER", ask))
        assert "'librarian' is resumed from a RunState, which remit cannot govern" in await rt.run("writer", "write")


LATE = """
import asyncio, sys
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from remit import Runtime

def look() -> str:
    assert not {"agents", "langchain_core.language_models.chat_models"} & sys.modules.keys()
    from agents.run import get_default_agent_runner
    from langchain.agents import create_agent
    from langchain_core.language_models.chat_models import BaseChatModel
    return f"{type(get_default_agent_runner()).__name__} {hasattr(BaseChatModel.agenerate, '__wrapped__')}"

async def main():
    async with Runtime() as rt:
        rt.add(Agent(TestModel(), name="late", tools=[look]))
        print(await rt.run("late", "go"))

asyncio.run(main())
"""


@pytest.mark.rule("guest.nested")
def test_frameworks_that_a_tool_imports_for_the_first_time_are_governed_at_once(tmp_path: Path):
    program = tmp_path / "late.py"
    program.write_text(LATE)
    done = ran(program, timeout=60)
    assert done.stderr == ""
    assert done.stdout == '{"look":"NestingRunner True"}\n'


# -- agents as tools -----------------------------------------------------------------------------------------------


@pytest.mark.rule("guest.agent-tools")
async def test_an_agent_as_a_tool_becomes_a_member_under_the_name_of_its_tool():
    async with house("openai-agents") as there, Runtime() as rt:
        librarian = there.make("librarian", "LIBRARIAN", look)
        rt.add(there.make("writer", "WRITER", librarian.as_tool("ask", "Knows books")))
        cards = {card.name: card for card in rt.cards()}
        assert (cards["ask"].role, cards["ask"].instructions) == ("Knows books", "LIBRARIAN")
        assert cards["writer"].asks == {"ask"}
        assert cards["writer"].tools == {"ask"}
        assert (rt.stack("ask").models, rt.stack("ask").max_tokens) == (("big",), 4_096)
        assert await rt.run("writer", "write") == "told: It was opened in 1937."
        assert len(there.server.requests) == 4
        assert there.server.requests[0].tools == ("ask",)
        done = [
            (event.agent, event.kind)
            for event in await rt.workspace.journal.history()
            if event.kind.startswith("task.")
        ]
        assert done == [
            ("writer", "task.started"),
            ("ask", "task.started"),
            ("ask", "task.completed"),
            ("writer", "task.completed"),
        ]
        assert await rt.run("ask", "When was it opened?") == "It was opened in 1937."


@pytest.mark.rule("trust.task", "guest.agent-tools")
async def test_an_agent_as_a_tool_is_told_an_untrusted_task_as_quoted_lines():
    async with house("openai-agents") as there, Runtime() as rt:
        rt.add(there.make("writer", "WRITER", there.make("librarian", "LIBRARIAN").as_tool("ask", "Knows books")))
        await rt.run("ask", "When?\nOBEY", trust="untrusted")
        assert "> When?\n> OBEY" in str(there.server.requests[0].messages[-1]["content"])


@pytest.mark.rule("trust.task")
async def test_a_guest_that_an_owner_wrapped_by_hand_is_told_an_untrusted_task_as_quoted_lines():
    async with house("pydantic-ai") as there, Runtime() as rt:
        rt.add(Card("it"), guest(there.make("it", "LIBRARIAN")))
        await rt.run("it", "When?\nOBEY", trust="untrusted")
        assert "> When?\n> OBEY" in str(there.server.requests[0].messages[-1]["content"])


class Wanted(BaseModel):
    book: str
    page: int


@pytest.mark.rule("guest.agent-tools")
async def test_an_agent_as_a_tool_keeps_its_own_input_and_output():
    def structured(asked: ModelRequest) -> ModelReply:
        if "LIBRARIAN" in str(asked.messages[0]):
            return Says(f"read {asked.text}")
        if asked.messages[-1]["role"] == "tool":
            return Says(asked.text)
        return Calls("ask", {"book": "Bridges", "page": 7})

    async def shouted(result: RunResult | Any) -> str:
        return str(result.final_output).upper()

    def built(options: Any) -> str:
        return f"page {options['params']['page']}"

    async with house("openai-agents", structured) as there, Runtime() as rt:
        librarian = there.make("librarian", "LIBRARIAN")
        ask = librarian.as_tool(
            "ask", "Knows books", custom_output_extractor=shouted, parameters=Wanted, input_builder=built
        )
        rt.add(there.make("writer", "WRITER", ask))
        assert await rt.run("writer", "write") == "READ PAGE 7"


@pytest.mark.rule("guest.agent-tools")
async def test_agents_as_tools_of_agents_as_tools_and_of_several_are_members_once():
    async with house("openai-agents") as there, Runtime() as rt:
        inner = there.make("inner", "INNER")
        inner_tool = inner.as_tool("inner_tool", "inside")
        outer = there.make("outer", "OUTER", inner_tool)
        inner.tools = [outer.as_tool("outer_tool", "outside")]
        rt.add(there.make("first", "FIRST", outer.as_tool("outer_tool", "outside")))
        rt.add(there.make("second", "SECOND", inner.as_tool("inner_tool", "inside")))
        assert {card.name: card.asks for card in rt.cards()} == {
            "first": {"outer-tool"},
            "second": {"inner-tool"},
            "outer-tool": {"inner-tool"},
            "inner-tool": {"outer-tool"},
        }
        another = there.make("another", "ANOTHER").as_tool("inner_tool", "another")
        with pytest.raises(BadInput, match="there is already an agent 'inner-tool'; give the tool another name"):
            rt.add(there.make("third", "THIRD", another))
        assert len(rt.cards()) == 4


@pytest.mark.rule("guest.agent-tools")
async def test_agents_as_tools_that_ask_each_other_are_stopped_as_members_are():
    def insists(asked: ModelRequest) -> ModelReply:
        if asked.messages[-1]["role"] == "tool":
            return Says(asked.text)
        return Calls(next(iter(asked.tools)), {"input": "you?"})

    async with house("openai-agents", insists) as there, Runtime() as rt:
        left, right = there.make("left", "LEFT"), there.make("right", "RIGHT")
        left.tools, right.tools = [right.as_tool("right", "r")], [left.as_tool("left", "l")]
        rt.add(there.make("lead", "LEAD", left.as_tool("left", "l")))
        said = (
            "'left' is already in this delegation (lead > left > right); ask someone else or finish the task yourself"
        )
        assert await rt.run("lead", "go") == said


@pytest.mark.rule("guest.agent-tools")
async def test_rules_of_the_agent_hold_for_those_that_it_has_as_tools():
    used: list[str] = []

    async def before(turn: Any, call: Any) -> None:
        used.append(f"{turn.agent} {call.name}")

    async with house("openai-agents") as there, Runtime() as rt:
        librarian = there.make("librarian", "LIBRARIAN", look)
        rt.add(there.make("writer", "WRITER", librarian.as_tool("ask", "Knows books")), before=[before])
        assert await rt.run("writer", "write") == "told: It was opened in 1937."
        assert used == ["writer ask", "ask look"]


# -- graphs that nobody wrapped ---------------------------------------------------------------------------------------


@pytest.mark.rule("guest.graph-tools")
@pytest.mark.parametrize("how", [{"deny": ["exec"]}, {"deny": "*"}, {"approve_tools": ["exec"]}])
async def test_rules_for_tools_hold_in_a_graph_that_nobody_wrapped(how: dict[str, Any]):
    done: list[str] = []

    @tool("exec")
    def execute(cmd: str) -> str:
        """Run a command."""
        done.append(cmd)
        return "ran"

    def said(asked: ModelRequest) -> ModelReply:
        return Says(asked.text) if asked.messages[-1]["role"] == "tool" else Calls("exec", {"cmd": "x"})

    async with house("langgraph", said) as there, Runtime() as rt:
        rt.add(there.make("shell", "SHELL", execute), **how)
        async with rt.serving():
            task = await rt.submit("shell", "go")
            if "approve_tools" in how:
                async for events in rt.workspace.journal.follow(run=task.id):
                    if any(event.kind == "question.asked" for event in events):
                        break
                question = (await rt.workspace.questions.list())[0]
                assert "exec" in question.text
                await rt.workspace.questions.reject(question.id, by="ann")
            assert "exec" in await task.result()
    assert done == []


@pytest.mark.rule("guest.graph-tools")
async def test_tools_and_models_of_subgraphs_and_plain_nodes_are_governed():
    async with house("langgraph") as there, Runtime() as rt:
        librarian = there.make("librarian", "LIBRARIAN", look)
        shout = tool(lambda text: text.upper(), description="Shout.")
        shout.name = "shout"

        async def louder(state: MessagesState) -> dict[str, Any]:
            return {"messages": [AIMessage(await shout.ainvoke({"text": state["messages"][-1].text}))]}

        made = StateGraph(MessagesState).add_node("librarian", librarian).add_node("louder", louder)
        graph = made.add_edge(START, "librarian").add_edge("librarian", "louder").compile()
        rt.add(graph, name="pipeline")
        assert {card.name: card.tools for card in rt.cards()} == {"pipeline": {"look"}}
        assert await rt.run("pipeline", "when?") == "IT WAS OPENED IN 1937."
        assert await seen(rt) == ["model", "look done", "model", "shout done"]


@pytest.mark.rule("guest.graph-tools")
async def test_tools_that_hand_over_inside_a_graph_are_used_through_the_turn():
    @tool
    def to_librarian(
        state: Annotated[dict[str, Any], InjectedState], call: Annotated[str, InjectedToolCallId]
    ) -> Command[Any]:
        """Hand over to the librarian."""
        told = [*state["messages"], ToolMessage("handed over", tool_call_id=call)]
        return Command(goto=[Send("librarian", {"messages": told})], graph=Command.PARENT)

    def said(asked: ModelRequest) -> ModelReply:
        if "LIBRARIAN" in str(asked.messages[0]):
            return script(asked) if asked.messages[-1]["content"] != "handed over" else Calls("look", {"what": "x"})
        return Calls("to_librarian", {})

    async with house("langgraph", said) as there, Runtime() as rt:
        librarian = there.make("librarian", "LIBRARIAN", look)
        desk = there.make("desk", "DESK", to_librarian)
        made = StateGraph(MessagesState).add_node("desk", desk, destinations=("librarian",))
        rt.add(made.add_node("librarian", librarian).add_edge(START, "desk").compile(), name="swarm")
        assert await rt.run("swarm", "when?") == "It was opened in 1937."
        assert await seen(rt) == ["model", "to_librarian done", "model", "look done", "model"]


@pytest.mark.rule("guest.nested")
async def test_a_completion_model_and_a_request_that_blocks_the_loop_are_refused_with_a_sentence():
    async with house("langgraph") as there, Runtime() as rt:
        chat = ChatOpenAI(model="big", base_url=f"{there.server.url}/v1", api_key="k")  # pyright: ignore[reportArgumentType]

        async def completes(state: MessagesState) -> dict[str, Any]:
            return {"messages": [AIMessage(await FakeListLLM(responses=["x"]).ainvoke("hm"))]}

        async def blocks(state: MessagesState) -> dict[str, Any]:
            return {"messages": [chat.invoke("hm")]}

        for name, node, sentence in (
            ("completes", completes, "FakeListLLM is a completion model, which remit cannot govern"),
            ("blocks", blocks, "a governed model or tool is asked with await"),
        ):
            graph = StateGraph(MessagesState).add_node(name, node).add_edge(START, name).compile()
            rt.add(graph, name=name)
            rt.add(graph, name=f"{name}-allowed", ungoverned="allow")
            outcome = await rt.outcome(name, "go")
            assert sentence in str(outcome.error)
        assert await rt.run("completes-allowed", "go") == "x"
        assert there.server.requests == []


# -- what one knows ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("guest.ungoverned")
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_a_guest_with_ungoverned_allow_runs_agents_in_tools_as_before(framework: str):
    async with house(framework) as there, Runtime() as rt:
        rt.add(a_writer(there), ungoverned="allow")
        assert await rt.run("writer", "write") == "told: It was opened in 1937."
        assert len(there.server.requests) == 4
        own = [] if framework == "langgraph" else ["model"]
        assert await seen(rt) == [*own, "ask done", *own]


@pytest.mark.rule("guest.ungoverned")
async def test_tools_out_of_reach_and_agents_as_tools_may_be_left_alone():
    class Editor:
        pass

    async with house("openai-agents") as there, Runtime() as rt:
        librarian = there.make("librarian", "LIBRARIAN", look)
        writer = there.make("writer", "WRITER", librarian.as_tool("ask", "Knows books"))
        rt.add(writer, ungoverned="allow")
        assert [card.name for card in rt.cards()] == ["writer"]
        assert await rt.run("writer", "write") == "told: It was opened in 1937."
        assert await seen(rt) == ["model", "ask done", "model"]
        writer.tools = [ApplyPatchTool(editor=Editor())]  # pyright: ignore[reportArgumentType]
        with pytest.raises(BadInput, match='make it a function tool, or pass ungoverned="allow"'):
            rt.add(writer, name="patcher")
        rt.add(writer, name="patcher", ungoverned="allow")
        with pytest.raises(BadInput, match="ungoverned is refuse or one of allow, not 'alow'"):
            rt.add(writer, name="typo", ungoverned="alow")  # pyright: ignore[reportCallIssue, reportArgumentType]


# -- dependencies -----------------------------------------------------------------------------------------------------


@dataclass
class Shop:
    name: str


def selling(framework: str) -> Any:
    if framework == "pydantic-ai":

        def ask(ctx: pydantic_ai.RunContext[Shop], input: str) -> str:
            """Ask."""
            return ctx.deps.name

        return ask
    if framework == "openai-agents":

        @function_tool(name_override="ask")
        def ask_openai(ctx: agents.RunContextWrapper[Shop], input: str) -> str:
            """Ask."""
            return ctx.context.name

        return ask_openai

    @tool("ask")
    def ask_graph(input: str, runtime: ToolRuntime[Shop]) -> str:
        """Ask."""
        return runtime.context.name

    return ask_graph


def a_seller(there: House) -> Any:
    declared = {"pydantic-ai": {"deps_type": Shop}, "langgraph": {"context_schema": Shop}}.get(there.framework, {})
    made = there.make("seller", "SELLER", selling(there.framework), **declared)
    if there.framework == "openai-agents":
        return agents.Agent[Shop]("seller", instructions="SELLER", model=made.model, tools=made.tools)
    return made


@pytest.mark.rule("guest.deps")
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_dependencies_are_a_value_or_made_of_the_turn(framework: str):
    async def later(turn: Any) -> Shop:
        await asyncio.sleep(0)
        return Shop(f"{turn.agent} for {turn.task}")

    for given, name in ((Shop("corner"), "corner"), (lambda turn: Shop(turn.task), "go"), (later, "seller for go")):
        async with house(framework) as there, Runtime() as rt:
            rt.add(a_seller(there), deps=given)
            assert await rt.run("seller", "go") == f"told: {name}"


@pytest.mark.rule("guest.deps")
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_an_agent_that_declares_dependencies_and_gets_none_is_refused(framework: str):
    async with house(framework) as there, Runtime() as rt:
        with pytest.raises(BadInput, match=r"'seller' declares deps of type Shop and was given none: pass .*deps=Shop"):
            rt.add(a_seller(there))
        with pytest.raises(BadInput, match="deps of 'seller' is the class Shop itself; pass Shop"):
            rt.add(a_seller(there), deps=Shop)
        assert rt.cards() == []
        rt.add(a_seller(there), deps=None)


@pytest.mark.rule("guest.deps")
async def test_agents_as_tools_have_the_dependencies_of_the_agent():
    def said(asked: ModelRequest) -> ModelReply:
        if asked.messages[-1]["role"] == "tool":
            return Says(asked.text)
        return Calls(next(iter(asked.tools)), {"input": "?"})

    async with house("openai-agents", said) as there, Runtime() as rt:
        rt.add(there.make("lead", "LEAD", a_seller(there).as_tool("sell", "sells")), deps=Shop("corner"))
        assert await rt.run("lead", "go") == "corner"


@pytest.mark.rule("guest.refused")
@pytest.mark.parametrize("word", ["tools", "keys", "base_url", "max_tokens", "fallback", "temperature"])
def test_what_a_guest_brings_itself_is_not_taken_in_silence(word: str):
    agent = pydantic_ai.Agent("test", name="theirs")
    with Runtime() as rt, pytest.raises(BadInput, match=f"add takes no '{word}' for an agent of another framework"):
        rt.add(agent, **cast("Any", {word: []}))


def test_a_model_takes_no_dependencies():
    with Runtime() as rt, pytest.raises(BadInput, match="model_agent takes no 'deps'"):
        rt.model_agent("m", "test", deps=1)  # pyright: ignore[reportCallIssue]
