"""Agents of openai-agents as guests, over a real client: answers, tools, verbs, handoffs, and what is read again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from agents import (
    Agent,
    ApplyPatchTool,
    Model,
    ModelProvider,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIProvider,
    OpenAIResponsesModel,
    RunConfig,
    RunContextWrapper,
    Runner,
    WebSearchTool,
    function_tool,
    handoff,
)
from agents.exceptions import ModelBehaviorError
from agents.mcp import MCPServer
from mcp.types import CallToolResult, TextContent
from mcp.types import Tool as MCPTool
from openai import AsyncOpenAI
from pydantic import BaseModel

from adapters.turns import Journal, run
from remit.adapters.openai_agents import GovernedOpenAIModel, OpenAIAgentsGuest
from remit.adapters.openai_agents.talking import restored
from remit.core.recovery import ModelFailure
from remit.errors import BadInput
from remit.testing.models import Calls, ModelServer, Says, model_server
from remit.testing.models.server import Script

pytestmark = pytest.mark.anyio

DIALECTS = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}


class Verdict(BaseModel):
    good: bool
    why: str


class Served:
    """A server and a model that asks it."""

    def __init__(self, server: ModelServer, client: AsyncOpenAI, dialect: str) -> None:
        self.server = server
        self.model: Model = DIALECTS[dialect]("big", client)
        self.provider: ModelProvider = OpenAIProvider(openai_client=client, use_responses=dialect == "responses")


@asynccontextmanager
async def served(script: Script, dialect: str = "chat", **how: Any) -> AsyncIterator[Served]:
    async with (
        model_server(script) as server,
        AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k1", **how) as client,
    ):
        yield Served(server, client, dialect)


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


both = pytest.mark.parametrize("dialect", DIALECTS)


@pytest.mark.rule("guest.tool")
@both
async def test_a_tool_is_used_through_the_turn_and_its_result_is_told(dialect: str):
    async with served([Calls("add", {"a": 1, "b": 2}, id="c1"), Says("three")], dialect) as one:
        journal = Journal()
        guest = OpenAIAgentsGuest(Agent("a", model=one.model, tools=[add]))
        assert await run(guest, journal=journal) == "three"
        assert [(call.name, call.arguments, call.id) for call in journal.used] == [("add", {"a": 1, "b": 2}, "c1")]
        assert one.server.requests[1].text == "3"
        assert journal.calls[0].tools == {"add"}
        assert journal.replies[0].calls == ("add",)


@pytest.mark.rule("guest.unknown")
@both
async def test_an_unknown_tool_and_garbage_for_arguments_do_not_end_the_run(dialect: str):
    script = [Calls("ad", {"a": 1}), Calls("add", "{no json"), Calls("add", "[1]"), Says("I give up")]
    async with served(script, dialect) as one:
        journal = Journal()
        assert await run(OpenAIAgentsGuest(Agent("a", model=one.model, tools=[add])), journal=journal) == "I give up"
        texts = [request.text for request in one.server.requests[1:]]
        assert "ad" in texts[0]
        assert texts[1:] == ["the arguments of 'add' are no JSON object; call it again with one"] * 2
        assert journal.used == []


async def test_a_tool_has_its_own_time_and_what_it_gives_back_becomes_json():
    @function_tool(timeout=0.01)
    async def wait() -> str:
        """Wait."""
        await anyio.sleep_forever()
        return ""

    @function_tool
    async def judge() -> Verdict:
        """Judge."""
        return Verdict(good=True, why="it works")

    script = [Calls("wait", {}, also=[Calls("judge", {})]), Says("done")]
    async with served(script, "responses") as one:
        await run(OpenAIAgentsGuest(Agent("a", model=one.model, tools=[wait, judge])))
        told = [item["output"] for item in one.server.requests[1].messages if "output" in item]
        assert "TimeoutError" in told[0]
        assert told[1] == '{"good":true,"why":"it works"}'


@pytest.mark.rule("guest.model")
async def test_agents_that_are_handed_off_to_inside_are_governed_too():
    async with served([]) as one:
        billing = Agent("billing", model=one.model, tools=[add])
        support = Agent("support", model="other", tools=[add], handoffs=[handoff(billing, input_filter=lambda it: it)])
        billing.handoffs.append(support)
        script = [
            *(Calls("transfer_to_support", {}), Calls("transfer_to_billing", {})),
            *(Calls("add", {"a": 2, "b": 2}), Says("four")),
        ]
        async with served(script) as two:
            first = Agent("triage", model=two.model, handoffs=[support])
            billing.model = two.model
            journal = Journal()
            guest = OpenAIAgentsGuest(first, run_config=RunConfig(model_provider=two.provider))
            assert await run(guest, journal=journal) == "four"
            assert [request.model for request in two.server.requests] == ["big", "other", "big", "big"]
            assert journal.sent == 4
            assert [call.name for call in journal.used] == ["add"]
            assert journal.calls[1].tools == {"add", "transfer_to_billing"}
            assert first.handoffs == [support]


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("output", "said", "found"),
    [
        (Verdict, '{"good": true, "why": "ok"}', {"good": True, "why": "ok"}),
        (Point, '{"response": {"x": 1}}', {"x": 1}),
        (list[int], '{"response": [1, 2]}', [1, 2]),
    ],
    ids=["model", "dataclass", "list"],
)
async def test_a_structured_output_is_json(output: Any, said: str, found: Any):
    async with served([Says(said)]) as one:
        assert await run(OpenAIAgentsGuest(Agent("a", model=one.model, output_type=output))) == found


@pytest.mark.rule("guest.again")
@both
async def test_a_second_run_reads_again_what_the_first_was_told(dialect: str):
    script = [Calls("add", {"a": 1, "b": 2}), Says('{"good": true, "why": "three"}')]
    async with served(script, dialect) as one:
        journal = Journal()
        agent = Agent("a", model=one.model, tools=[add], output_type=Verdict)
        first = await run(OpenAIAgentsGuest(agent), journal=journal)
        assert await run(OpenAIAgentsGuest(agent), journal=journal) == first
        assert journal.sent == len(one.server.requests) == 2
        assert len(journal.used) == 1
        for reply in journal.replies:
            assert restored(reply.text) == reply.response


@pytest.mark.rule("talk.position")
async def test_a_recorded_answer_counts_whatever_has_changed_of_tools_and_model():
    @function_tool(name_override="plus")
    def plus(a: int, b: int) -> int:
        """Add, in other words."""
        return a + b

    async with served([Says("one"), Says("two")]) as one:
        journal = Journal()
        for tool in (add, plus):
            assert await run(OpenAIAgentsGuest(Agent("a", model=one.model, tools=[tool])), journal=journal) == "one"
        guest = OpenAIAgentsGuest(
            Agent("a", model="small", tools=[add]), run_config=RunConfig(model_provider=one.provider)
        )
        assert await run(guest, journal=journal) == "one"


@pytest.mark.rule("guest.text")
async def test_what_no_store_keeps_is_replaced_before_anyone_sees_it():
    async with served([Calls("echo", {"text": "a\0b\ud800c"}), Says("x\0y\ud800z")]) as one:
        heard: list[str] = []

        @function_tool
        async def echo(text: str) -> str:
            """Echo."""
            heard.append(text)
            return text

        journal = Journal()
        found = await run(OpenAIAgentsGuest(Agent("a", model=one.model, tools=[echo])), journal=journal)
        assert found == "x\ufffdy\ufffdz"
        assert heard == ["a\ufffdb\ufffdc"]
        assert "\0" not in journal.replies[1].text
        assert journal.replies[1].text.encode()
        assert restored(journal.replies[1].text) == journal.replies[1].response


async def test_settings_of_the_agent_are_kept_and_limits_are_spelled_as_the_api_wants():
    script = [Says("1"), Says("2"), Says("3")]
    async with served(script) as one:
        for settings, most in (
            (ModelSettings(max_tokens=100, temperature=0.5), 100),
            (ModelSettings(extra_args={"max_completion_tokens": 200}), 200),
        ):
            journal = Journal()
            await run(OpenAIAgentsGuest(Agent("a", model=one.model, model_settings=settings)), journal=journal)
            assert (journal.calls[0].most, one.server.requests[-1].max_tokens) == (most, most)
        assert one.server.requests[0].body["temperature"] == 0.5
        assert "max_tokens" not in one.server.requests[1].body
        await run(OpenAIAgentsGuest(Agent("a", model=one.model), max_tokens=50))
        assert one.server.requests[2].max_tokens == 50


async def test_a_context_that_is_too_long_is_shortened_where_tools_have_spoken():
    @function_tool
    async def read() -> str:
        """Read."""
        return "x" * 50_000

    async with served([Calls("read", {}), Says("long")]) as one:
        journal = Journal()
        await run(OpenAIAgentsGuest(Agent("a", model=one.model, tools=[read])), journal=journal, trim=1)
        assert 16_000 < len(one.server.requests[1].text) < 16_100
        assert "[34,000 characters left out]" in one.server.requests[1].text
        assert [journal.calls[1].size(trim) > journal.calls[1].size(trim + 1) for trim in (0, 1, 2)] == [True] * 3


class Shelf(MCPServer):
    """A server of one tool."""

    @property
    def name(self) -> str:
        return "shelf"

    async def connect(self) -> None: ...
    async def cleanup(self) -> None: ...

    async def list_tools(self, *_: Any, **__: Any) -> Any:
        return [MCPTool(name="fetch", description="Fetch.", input_schema={"type": "object", "properties": {}})]

    async def call_tool(self, *_: Any, **__: Any) -> Any:
        return CallToolResult(content=[TextContent(type="text", text="a book")])

    async def list_prompts(self) -> Any: ...
    async def get_prompt(self, *_: Any, **__: Any) -> Any: ...


@pytest.mark.rule("guest.tool")
async def test_tools_of_mcp_servers_are_used_through_the_turn():
    async with served([Calls("fetch", {}, also=[Calls("add", {"a": 1, "b": 2})]), Says("read")], "responses") as one:
        journal = Journal()
        guest = OpenAIAgentsGuest(Agent("a", model=one.model, tools=[add], mcp_servers=[Shelf()]))
        assert await run(guest, journal=journal, refused=("add",)) == "read"
        assert [call.name for call in journal.used] == ["fetch"]
        told = [item["output"] for item in one.server.requests[1].messages if "output" in item]
        assert "a book" in str(told[0])


# -- streams ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("guest.stream")
@both
async def test_an_agent_that_streams_itself_is_told_the_whole_as_a_stream(dialect: str):
    async with served([Calls("add", {"a": 1, "b": 2}), Says("three")], dialect) as one:
        agent = Agent("a", model=GovernedOpenAIModel(one.model), tools=[add])

        async def guest(turn: Any) -> Any:
            result = Runner.run_streamed(agent, turn.task, run_config=RunConfig(tracing_disabled=True))
            kinds = [event.data.type async for event in result.stream_events() if event.type == "raw_response_event"]
            return [result.final_output, kinds]

        journal = Journal()
        for _ in range(2):
            answer, kinds = await run(guest, journal=journal)
            assert answer == "three"
            assert kinds.count("response.completed") == 2
            assert "response.output_text.delta" in kinds
        assert journal.sent == 2
        assert not any(request.stream for request in one.server.requests)


# -- failures -----------------------------------------------------------------------------------------------------


async def test_an_error_that_is_not_the_models_is_left_alone():
    class Odd(Model):
        async def get_response(self, *args: Any, **named: Any) -> Any:
            raise KeyError("mine")

        async def stream_response(self, *args: Any, **named: Any) -> AsyncIterator[Any]:
            for event in ():
                yield event

    journal = Journal()
    with pytest.raises(KeyError):
        await run(OpenAIAgentsGuest(Agent("a", model=Odd())), journal=journal)
    with pytest.raises(ModelBehaviorError, match="the stream ended before the answer did"):
        await run(OpenAIAgentsGuest(Agent("a", model=Odd())), journal=journal, hear=print)
    assert journal.failures == [None, ModelFailure("broken")]


# -- the rest -----------------------------------------------------------------------------------------------------


async def test_prompt_and_context_are_made_of_the_turn():
    @function_tool
    async def who(wrapper: RunContextWrapper[Any]) -> str:
        """Tell who."""
        return wrapper.context

    async with served([Calls("who", {}), Says("ok")]) as one:
        guest = OpenAIAgentsGuest(
            Agent("a", instructions="Help.", model=one.model, tools=[who]),
            prompt=lambda turn: f"Please {turn.task}",
            context=lambda turn: turn.agent,
        )
        await run(guest, "sing")
        assert one.server.requests[0].text == "Please sing"
        assert one.server.requests[1].text == "guest"
        assert (guest.name, guest.instructions, guest.tool_names) == ("a", "Help.", {"who"})


@pytest.mark.rule("guest.model")
async def test_outside_of_a_turn_nothing_is_asked():
    async with served([]) as one:
        with pytest.raises(BadInput, match="the model big works in a turn"):
            await Runner.run(Agent("a", model=GovernedOpenAIModel(one.model)), "hi")


@pytest.mark.rule("guest.refused")
async def test_what_cannot_be_governed_is_refused_when_it_is_joined():
    class Editor:
        pass

    @function_tool(needs_approval=True)
    async def deploy() -> str:
        """Deploy."""
        return ""

    @function_tool
    async def handoff() -> str:
        """Mine."""
        return ""

    for tools, sentence in (
        ([ApplyPatchTool(editor=Editor())], "'apply_patch' is a ApplyPatchTool, which remit cannot govern"),
        ([deploy], "'deploy' needs approval by the framework"),
        ([handoff], "'handoff' is a verb"),
    ):
        with pytest.raises(BadInput, match=sentence):
            OpenAIAgentsGuest(Agent("a", tools=tools), verbs=True)
    with pytest.raises(BadInput, match="an Agent of openai-agents can be joined, not str"):
        OpenAIAgentsGuest("agent")
    assert OpenAIAgentsGuest(Agent("a", tools=[WebSearchTool(), add])).tool_names == {"add"}
