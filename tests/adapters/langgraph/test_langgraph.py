"""LangGraph graphs as guests, over a real client: agents with middleware, and other graphs with a governed model."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain.tools import ToolRuntime, tool
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, tools_condition
from langgraph.types import interrupt
from openai import DefaultAsyncHttpxClient
from pydantic import BaseModel, ValidationError

from adapters.turns import Journal, handed_over, nothing_left, run
from remit.adapters.langgraph import LangGraphGuest, Middleware, boxed, governed, verb_tools
from remit.adapters.langgraph.talking import restored
from remit.core.prices import Usage
from remit.core.recovery import ModelFailure
from remit.errors import BadInput
from remit.testing.models import Calls, ModelServer, Says, Slow, model_server
from remit.testing.models.server import Script

pytestmark = pytest.mark.anyio

DIALECTS = ("chat", "responses")
both = pytest.mark.parametrize("dialect", DIALECTS)


class Verdict(BaseModel):
    good: bool
    why: str


class Served:
    """A server and a model that asks it."""

    def __init__(self, server: ModelServer, model: ChatOpenAI) -> None:
        self.server = server
        self.model = model


@asynccontextmanager
async def served(script: Script, dialect: str = "chat", **how: Any) -> AsyncIterator[Served]:
    # The framework's own client is shared by all models at one address.
    async with model_server(script) as server, DefaultAsyncHttpxClient() as http:
        yield Served(server, chat(f"{server.url}/v1", dialect, http_async_client=http, **how))


def chat(url: str, dialect: str = "chat", **how: Any) -> ChatOpenAI:
    return ChatOpenAI(model="big", base_url=url, api_key="k1", use_responses_api=dialect == "responses", **how)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def fail() -> str:
    """Fail."""
    raise ValueError("no disk")


def agent(one: Served, *tools: Any, middleware: Any = (), **how: Any) -> Any:
    return create_agent(one.model, list(tools), middleware=[*middleware, Middleware()], **how)


def plain(model: Any, tools: Any = ()) -> Any:
    """A graph of one's own: a node that asks, and a ToolNode."""

    async def ask(state: MessagesState) -> Any:
        return {"messages": [await model.bind_tools(tools).ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", tools_condition)
    graph.add_edge("tools", "ask")
    return graph.compile()


def dumped(generation: Any) -> Any:
    """An answer, without what the framework adds to it afterwards."""
    return generation.message.model_dump(exclude={"id", "response_metadata"}), generation.generation_info


# -- agents with middleware -----------------------------------------------------------------------------------------


@pytest.mark.rule("guest.tool")
@both
async def test_a_tool_is_used_through_the_turn_and_its_result_is_told(dialect: str):
    async with served([Calls("add", {"a": 1, "b": 2}, id="c1"), Says("three")], dialect) as one:
        journal = Journal()
        guest = LangGraphGuest(agent(one, add))
        assert await run(guest, journal=journal) == "three"
        assert [(call.name, call.arguments, call.id) for call in journal.used] == [("add", {"a": 1, "b": 2}, "c1")]
        assert one.server.requests[1].text == "3"
        assert journal.calls[0].tools == {"add"}
        assert journal.replies[0].calls == ("add",)
        assert guest.tool_names == {"add"}


@pytest.mark.rule("guest.unknown")
@both
async def test_an_unknown_tool_and_garbage_for_arguments_do_not_end_the_run(dialect: str):
    script = [Calls("ad", {"a": 1}), Calls("add", {"a": "one"}), Calls("call_agent", {"agent": "x"}), Says("I give up")]
    async with served(script, dialect) as one:
        journal = Journal()
        assert await run(LangGraphGuest(agent(one, add)), journal=journal) == "I give up"
        texts = [request.text for request in one.server.requests[1:]]
        assert "ad is not a valid tool" in texts[0]
        assert "Error invoking tool 'add'" in texts[1]
        assert texts[2] == "there is no tool 'call_agent' here"
        assert [call.name for call in journal.used] == ["add"]


@pytest.mark.rule("guest.unknown")
@both
async def test_arguments_that_are_no_json_are_told_to_the_model(dialect: str):
    async with served([Calls("add", "{no json"), Calls("add", "}"), Says("sorry")], dialect) as one:
        journal = Journal()
        for _ in range(2):
            assert await run(LangGraphGuest(agent(one, add)), journal=journal) == "sorry"
        texts = [request.text for request in one.server.requests[1:]]
        assert texts == ["the arguments of 'add' are no JSON object; call it again with one"] * 2
        assert journal.used == []
        assert journal.replies[0].calls == ("add",)


@pytest.mark.parametrize("strategy", [ProviderStrategy, ToolStrategy])
@both
async def test_a_structured_response_is_json_and_is_checked_again(dialect: str, strategy: Any):
    said = {"good": True, "why": "three"}
    last = Calls("Verdict", said) if strategy is ToolStrategy else Says('{"good": true, "why": "three"}')
    async with served([Calls("add", {"a": 1, "b": 2}), last], dialect) as one:
        journal = Journal()
        graph = agent(one, add, response_format=strategy(Verdict))
        for _ in range(2):
            assert await run(LangGraphGuest(graph), journal=journal) == said
        assert journal.sent == len(one.server.requests) == 2
        assert len(journal.used) == 1


@pytest.mark.rule("guest.again")
@both
async def test_a_second_run_reads_again_what_the_first_was_told(dialect: str):
    script = [Calls("add", {"a": 1, "b": 2}, also=[Calls("add", {"a": 3, "b": 4})]), Says("three and seven")]
    async with served(script, dialect) as one:
        journal = Journal()
        graph = agent(one, add)
        for _ in range(2):
            assert await run(LangGraphGuest(graph), journal=journal) == "three and seven"
        assert journal.sent == len(one.server.requests) == 2
        assert len(journal.used) == 2
        for reply in journal.replies:
            (first,), (again,) = reply.response.generations, restored(reply.text).generations
            assert dumped(first) == dumped(again)


@pytest.mark.rule("guest.again")
async def test_what_changes_the_state_is_done_again_when_it_is_read_again():
    todos = [{"content": "add", "status": "pending"}]
    async with served([Calls("write_todos", {"todos": todos}), Says("planned")]) as one:
        journal = Journal()
        graph = agent(one, middleware=[TodoListMiddleware()])
        states: list[Any] = []

        async def guest(turn: Any) -> Any:
            states.append(await graph.ainvoke({"messages": [HumanMessage(turn.task)]}))

        for _ in range(2):
            await run(guest, journal=journal)
        assert journal.sent == 2
        first, second = states
        assert first["todos"] == second["todos"] == todos
        assert [message.text for message in first["messages"]] == [message.text for message in second["messages"]]


async def test_parts_and_artifacts_of_a_result_are_kept():
    @tool(response_format="content_and_artifact")
    async def look() -> Any:
        """Look."""
        return [{"type": "text", "text": "a sea"}], {"pixels": 3}

    async with served([Calls("look", {}), Says("nice")]) as one:
        journal = Journal()
        graph = agent(one, look)
        found: list[ToolMessage] = []

        async def guest(turn: Any) -> Any:
            state = await graph.ainvoke({"messages": [HumanMessage(turn.task)]})
            found.extend(message for message in state["messages"] if isinstance(message, ToolMessage))

        for _ in range(2):
            await run(guest, journal=journal)
        assert [(one.content, one.artifact) for one in found] == [
            ([{"type": "text", "text": "a sea"}], {"pixels": 3})
        ] * 2


async def test_a_tool_that_knows_the_graph_is_given_what_it_wants():
    @tool
    async def count(word: str, runtime: ToolRuntime) -> str:
        """Count."""
        return f"{word}: {len(runtime.state['messages'])}"

    async with served([Calls("count", {"word": "messages"}), Says("ok")]) as one:
        journal = Journal()
        await run(LangGraphGuest(agent(one, count)), journal=journal)
        assert one.server.requests[1].text == "messages: 2"
        assert journal.used[0].arguments == {"word": "messages"}


# -- other graphs ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("guest.model")
@both
async def test_a_graph_of_ones_own_is_governed_at_its_model_and_at_tools_that_are_boxed(dialect: str):
    tools = [boxed(add), fail, *verb_tools()]
    script = [
        Calls("add", {"a": 1, "b": 2}),
        Calls("call_agent", {"agent": "boss", "task": "look"}),
        Calls("call_agent", {"agent": "reviewer", "task": "look"}),
        Says("three"),
    ]
    async with served(script, dialect) as one:
        journal = Journal()
        guest = LangGraphGuest(plain(governed(one.model), tools))
        for _ in range(2):
            assert await run(guest, journal=journal) == "three"
        assert journal.sent == 4
        assert [call.name for call in journal.used] == ["add", "call_agent", "call_agent"]
        texts = [request.text for request in one.server.requests[1:]]
        assert texts == ["3", "there is no agent 'boss' for you; ask reviewer", "reviewer did: look"]


@pytest.mark.rule("guest.handoff")
async def test_a_handoff_comes_out_of_a_graph_of_ones_own():
    calls = Calls(
        "add", {"a": 1, "b": 2}, also=[Calls("handoff", {"agent": "reviewer"}), Calls("add", {"a": 1, "b": 1})]
    )
    async with served([calls]) as one, nothing_left():
        guest = LangGraphGuest(plain(governed(one.model), [boxed(add), *verb_tools()]))
        assert (await handed_over(guest, Journal())).goto == "reviewer"


async def test_a_boxed_tool_keeps_what_the_graph_puts_in_to_itself():
    @tool
    async def count(word: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Count."""
        return f"{word}: {len(state['messages'])}"

    async with served([Calls("count", {"word": "messages"}), Says("ok")]) as one:
        journal = Journal()
        await run(LangGraphGuest(plain(governed(one.model), [boxed(count)])), journal=journal)
        assert one.server.requests[1].text == "messages: 2"
        assert journal.used[0].arguments == {"word": "messages"}


async def test_a_boxed_tool_may_be_called_by_a_node():
    async def guest(_: Any) -> Any:
        tools = [boxed(boxed(add)), boxed(verb_tools()[0])]
        return [await tools[0].ainvoke({"a": 1, "b": 2}), await tools[1].ainvoke("")]

    journal = Journal()
    three, listed = await run(guest, journal=journal)
    assert three == 3
    assert "reviewer" in listed
    assert [call.id for call in journal.used] == ["", ""]


@both
async def test_nodes_that_are_plain_functions_ask_from_their_threads(dialect: str):
    async with served([Calls("add", {"a": 1, "b": 2}), Says("three")], dialect) as one:
        model = governed(one.model).bind_tools([add])

        def ask(state: MessagesState) -> Any:
            return {"messages": [model.invoke(state["messages"])]}

        def use(state: MessagesState) -> Any:
            messages: list[Any] = state["messages"]
            (call,) = messages[-1].tool_calls
            return {"messages": [boxed(add).invoke(call)]}

        def again(state: MessagesState) -> Any:
            chunks = list(model.stream(state["messages"]))
            return {"messages": [AIMessage("".join(chunk.text for chunk in chunks))]}

        graph = StateGraph(MessagesState)
        graph.add_sequence([ask, use, again])
        graph.add_edge(START, "ask")
        graph.add_edge("again", END)
        guest = LangGraphGuest(graph.compile())
        journal = Journal()
        for _ in range(2):
            assert await run(guest, journal=journal) == "three"
        assert journal.sent == 2
        assert [call.name for call in journal.used] == ["add"]


@pytest.mark.rule("guest.again")
@both
async def test_structured_output_of_a_model_is_what_it_was_when_it_is_read_again(dialect: str):
    async with served([Says('{"good": true, "why": "ok"}')], dialect) as one:
        judge = governed(one.model).with_structured_output(Verdict)

        async def guest(_: Any) -> Any:
            return await judge.ainvoke("judge")

        journal = Journal()
        for _ in range(2):
            assert await run(guest, journal=journal) == Verdict(good=True, why="ok")
        assert journal.sent == 1


@pytest.mark.rule("guest.stream")
@both
async def test_a_streaming_caller_gets_the_whole_answer_as_a_stream(dialect: str):
    async with served([Calls("add", {"a": 1, "b": 2}), Says("three it is")], dialect) as one:
        graph = agent(one, add)

        async def guest(turn: Any) -> Any:
            parts = graph.astream({"messages": [HumanMessage(turn.task)]}, stream_mode="messages")
            return [part.text async for part, _ in parts if part.text]

        journal = Journal()
        for _ in range(2):
            assert await run(guest, journal=journal) == ["3", "three it is"]
        assert journal.sent == 2
        assert not any(request.stream for request in one.server.requests)


class Old(BaseChatModel):
    """A model that knows nothing of async."""

    model: str = "old"
    asked: int = 0

    @property
    def _llm_type(self) -> str:
        return "old"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"{messages[-1].text}, {kwargs}"))])

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        for piece in ("la", " la"):
            yield ChatGenerationChunk(message=AIMessageChunk(piece))  # pyright: ignore[reportCallIssue]


@pytest.mark.rule("guest.model")
async def test_a_model_that_knows_nothing_of_async_is_governed_too():
    heard: list[str] = []

    async def guest(turn: Any) -> Any:
        return (await governed(Old()).ainvoke(turn.task)).text

    journal = Journal()
    for _ in range(2):
        assert await run(guest, "sing", journal) == "sing, {'max_tokens': 4096}"
    assert await run(guest, "sing", hear=heard.append) == "la la"
    assert (journal.sent, heard) == (1, ["la", " la"])


@pytest.mark.rule("guest.model")
@pytest.mark.parametrize("sum_", [0, 40])
async def test_input_that_a_cache_keeps_for_an_hour_is_counted_apart(sum_: int):
    details = {
        "cache_read": 50,
        "cache_creation": sum_,  # 0 beside the parts, in newer versions of the provider's package
        "ephemeral_5m_input_tokens": 10,
        "ephemeral_1h_input_tokens": 30,
    }

    class Kept(Old):
        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
            usage: Any = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107, "input_token_details": details}
            return ChatResult(generations=[ChatGeneration(message=AIMessage("hi", usage_metadata=usage))])

    async def guest(turn: Any) -> Any:
        return (await governed(Kept()).ainvoke(turn.task)).text

    journal = Journal()
    await run(guest, "sing", journal)
    assert journal.replies[0].usage == Usage(100, 7, 50, 40, cache_written_1h=30)


# -- failures -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("guest.failures")
async def test_an_answer_that_the_framework_cannot_read_is_broken():
    async with served([Calls("add", "[1]")]) as one:
        journal = Journal()
        with pytest.raises(ValidationError):
            await run(LangGraphGuest(agent(one, add)), journal=journal)
        assert journal.failures == [ModelFailure("broken")]


@pytest.mark.rule("guest.text")
async def test_what_no_store_keeps_is_replaced_before_anyone_sees_it():
    @tool
    async def echo(text: str) -> str:
        """Echo."""
        return text

    async with served([Calls("echo", {"text": "a\0b\ud800c"}), Says("x\0y\ud800z")]) as one:
        journal = Journal()
        assert await run(LangGraphGuest(agent(one, echo)), journal=journal) == "x\ufffdy\ufffdz"
        assert journal.used[0].arguments == {"text": "a\ufffdb\ufffdc"}
        assert all("\0" not in reply.text and reply.text.encode() for reply in journal.replies)


# -- the rest -------------------------------------------------------------------------------------------------------


async def test_the_limit_of_a_model_is_kept_and_the_model_is_not_changed():
    async with served([Says("1"), Says("2")]) as one:
        model = one.model.model_copy(update={"max_tokens": 100})
        journal = Journal()
        await run(LangGraphGuest(create_agent(model, middleware=[Middleware()])), journal=journal)
        await run(LangGraphGuest(plain(governed(one.model.bind(max_tokens=70).bound), [add])), journal=journal)
        assert [request.max_tokens for request in one.server.requests] == [100, 4_096]
        assert (one.model.root_async_client.max_retries, one.model.max_tokens) == (2, None)
        assert governed(governed(one.model)).root_async_client.max_retries == 0


async def test_a_context_that_is_too_long_is_shortened_where_tools_have_spoken():
    @tool
    async def read() -> str:
        """Read."""
        return "x" * 50_000

    async with served([Calls("read", {}), Says("long")]) as one:
        journal = Journal()
        await run(LangGraphGuest(agent(one, read)), journal=journal, trim=2)
        assert 4_000 < len(one.server.requests[1].text) < 4_100
        assert [journal.calls[1].size(trim) > journal.calls[1].size(trim + 1) for trim in (0, 1, 2)] == [True] * 3


@pytest.mark.rule("guest.cancel")
async def test_a_cancelled_node_in_a_thread_leaves_nothing_behind():
    ended, loop = anyio.Event(), asyncio.get_running_loop()
    async with served([Slow(Says("never"), 600)]) as one, nothing_left(), anyio.create_task_group() as group:
        model = governed(one.model)

        def ask(state: MessagesState) -> Any:
            try:
                return {"messages": [model.invoke(state["messages"])]}
            finally:
                loop.call_soon_threadsafe(ended.set)

        graph = StateGraph(MessagesState)
        graph.add_sequence([ask])
        graph.add_edge(START, "ask")
        group.start_soon(run, LangGraphGuest(graph.compile()))
        await one.server.asked(1)
        group.cancel_scope.cancel()
    await ended.wait()


async def test_prompt_is_made_of_the_turn_and_checkpoints_are_not_used():
    async with served([Says("la")]) as one:
        graph = agent(one, checkpointer=InMemorySaver(), name="singer")
        guest = LangGraphGuest(graph, prompt=lambda turn: f"Please {turn.task}", config={"tags": ["mine"]})
        assert await run(guest, "sing") == "la"
        assert one.server.requests[0].text == "Please sing"
        assert guest.name == "singer"


@pytest.mark.rule("guest.model")
async def test_outside_of_a_turn_nothing_is_asked():
    async with served([]) as one:
        with pytest.raises(BadInput, match="the model big works in a turn"):
            await governed(one.model).ainvoke("hi")
        with pytest.raises(BadInput, match="the tool 'add' works in a turn"):
            await boxed(add).ainvoke({"a": 1, "b": 2})
        with pytest.raises(BadInput, match="is asked with await"):
            governed(one.model).invoke("hi")


async def test_a_tool_with_the_name_of_a_verb_is_refused():
    @tool
    async def handoff() -> str:
        """Mine."""
        return ""

    async with served([]) as one:
        with pytest.raises(BadInput, match="'handoff' is a verb"):
            await run(LangGraphGuest(agent(one, handoff)))


@pytest.mark.rule("guest.refused")
async def test_what_is_no_graph_with_messages_is_refused():
    class State(BaseModel):
        count: int = 0

    def stop(_: Any) -> Any:
        return interrupt("may I?")

    def nothing(_: Any) -> Any:
        return {"messages": []}

    graph = StateGraph(State)
    graph.add_sequence([nothing])
    graph.add_edge(START, "nothing")
    with pytest.raises(BadInput, match="the state of the graph has no 'messages'"):
        LangGraphGuest(graph.compile())
    with pytest.raises(BadInput, match="a compiled graph can be joined, not StateGraph"):
        LangGraphGuest(graph)
    asking = StateGraph(MessagesState)
    asking.add_sequence([stop])
    asking.add_edge(START, "stop")
    with pytest.raises(BadInput, match="the graph stopped to ask someone"):
        await run(LangGraphGuest(asking.compile()))
