"""Agents made of a model and tools, and guests that somebody else made, over HTTP."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pydantic_ai
import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, NativeOutput, RunContext, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import FunctionToolset

from adapters.pydantic_ai.asking import KEYS, MODELS, dialects, url_for
from adapters.pydantic_ai.turns import ModelDown, StandInTurn, under_way
from remit.adapters.pydantic_ai import AgentStopped, GuestAgent, ModelAgent, guest
from remit.core.command import Command
from remit.core.recovery import ModelTry
from remit.errors import BadInput
from remit.testing.models import Calls, Fails, ModelReply, ModelServer, Says, model_server
from remit.verbs import VERBS

pytestmark = pytest.mark.anyio

VERB_NAMES = {verb.name for verb in VERBS}


class Report(BaseModel):
    title: str
    pages: int = 1
    price: Decimal = Decimal("1.50")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@asynccontextmanager
async def made(
    replies: list[ModelReply] | Any, dialect: str = "chat", **parts: Any
) -> AsyncIterator[tuple[ModelAgent, ModelServer]]:
    async with model_server(replies) as server:
        parts.setdefault("models", [MODELS[dialect]])
        agent = ModelAgent(
            name="coder", keys=["FIRST"], key_of=KEYS.__getitem__, base_url=url_for(server.url, dialect), **parts
        )
        yield agent, server
        await agent.aclose()


async def work(agent: ModelAgent | GuestAgent, turn: StandInTurn | None = None) -> Any:
    turn = turn or StandInTurn("what is 2 and 3?")
    with under_way(turn):
        return await agent(turn)


def ask(context: RunContext[None], what: str) -> str:
    """Ask for something, and have a message follow."""
    context.enqueue(f"and {what}")
    return "asked"


def shouted(context: RunContext[None], text: str) -> str:
    return text.upper()


def test_the_framework_writes_nothing_on_the_screen_of_a_program():
    assert not pydantic_ai.BANNER_ENABLED


@pytest.mark.rule("pydantic.idle")
@pytest.mark.parametrize("output", [None, Report, Report | None, {"type": "object"}])
def test_the_framework_asks_nothing_around_a_run_that_no_code_in_it_can_use(output: Any):
    agent = ModelAgent(name="coder", models=["test"], tools=[add], verbs=True, output=output)
    assert not agent.agent.root_capability.capabilities


@pytest.mark.rule("pydantic.idle")
@pytest.mark.parametrize(
    "parts",
    [
        {"tools": [ask]},
        {"tools": [Tool(add, defer_loading=True)]},
        {"tools": [Tool(add, prepare=lambda _context, shown: shown)]},
        {"tools": [Tool(add, args_validator=lambda _context, a, b: None)]},
        {"output": shouted},
    ],
)
def test_the_framework_is_left_as_it_is_where_code_is_given_the_context_of_its_run(parts: dict[str, Any]):
    agent = ModelAgent(name="coder", models=["test"], **parts)
    assert agent.agent.root_capability.capabilities


@pytest.mark.rule("pydantic.idle")
async def test_a_tool_with_the_context_can_have_a_message_follow():
    async with made([Calls("ask", {"what": "tea"}), Says("done")], tools=[ask]) as (agent, server):
        assert await work(agent) == "done"
        assert "and tea" in str(server.requests[-1].messages[-1])


@pytest.mark.rule("pydantic.defined-once")
async def test_tools_are_defined_once_unless_one_of_them_prepares_its_definition():
    shown: list[list[ToolDefinition]] = []

    def says(history: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        shown.append(info.function_tools)
        calls = [ToolCallPart("add", {"a": 2, "b": 3})] if len(history) == 1 else [TextPart("5")]
        return ModelResponse(calls)

    async def later(context: RunContext[Any], tool: ToolDefinition) -> ToolDefinition | None:
        return replace(tool, description="Take away.") if context.run_step > 1 else None

    await work(ModelAgent(name="coder", models=[("one", FunctionModel(says))], tools=[add]))
    first, second = shown
    assert first == second
    assert [tool.name for tool in first] == ["add"]
    assert first[0].parameters_json_schema is second[0].parameters_json_schema

    shown.clear()
    away = Tool(lambda a: a, name="away", prepare=later)
    await work(ModelAgent(name="coder", models=[("one", FunctionModel(says))], tools=[add, away]))
    assert [[tool.name for tool in tools] for tools in shown] == [["add"], ["add", "away"]]


@dialects
async def test_an_agent_works_with_its_tools(dialect: str):
    script = [Calls("add", {"a": 2, "b": 3}), Says("it is 5")]
    turn = StandInTurn("what is 2 and 3?")
    async with made(script, dialect, instructions="You add.", tools=[add]) as (agent, server):
        assert await work(agent, turn) == "it is 5"
    first, second = server.requests
    assert first.tools == ("add",)
    assert "what is 2 and 3?" in str(first.messages)
    assert "You add." in str(first.body)
    assert second.text == "5"
    assert [call.arguments for call in turn.used] == [{"a": 2, "b": 3}]


@pytest.mark.rule("model.settings")
async def test_settings_go_to_the_provider_with_every_request():
    script = [Calls("add", {"a": 2, "b": 3}), Says("it is 5")]
    async with made(script, tools=[add], settings={"temperature": 0.2, "top_p": 0.9}) as (agent, server):
        await work(agent)
    assert [(one.body["temperature"], one.body["top_p"]) for one in server.requests] == [(0.2, 0.9)] * 2


@pytest.mark.rule("model.settings")
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"temprature": 1}, "there is no setting 'temprature' of a model; did you mean temperature?"),
        ({"temperature": "hot"}, "temperature is a number, such as 0.2, not 'hot'"),
        ({"temperature": True}, "temperature is a number, such as 0.2, not True"),
        ({"max_tokens": 1}, "max_tokens does not belong in settings: it stands beside it"),
        ([1], "settings takes a mapping, such as"),
    ],
)
def test_a_setting_that_no_model_has_is_told(settings: Any, sentence: str):
    with pytest.raises(BadInput, match=sentence):
        ModelAgent(name="coder", models=["test"], settings=settings)


@pytest.mark.rule("model.form")
@dialects
async def test_an_answer_that_does_not_fit_its_schema_is_sent_back_with_what_is_wrong(dialect: str):
    schema = {"type": "object", "properties": {"pages": {"type": "integer"}}, "required": ["pages"]}
    script = [Calls("final_result", {"pages": "ten"}), Calls("final_result", {"pages": 10})]
    async with made(script, dialect, output=schema) as (agent, server):
        assert await work(agent) == {"pages": 10}
    assert "is not of type" in str(server.requests[1].body)
    with pytest.raises(BadInput, match="that is not a JSON Schema"):
        ModelAgent(name="coder", models=["test"], output={"type": "objet"})


@dialects
async def test_a_structured_result_is_json(dialect: str):
    async with made([Calls("final_result", {"title": "A", "pages": 3})], dialect, output=Report) as (agent, _):
        assert await work(agent) == {"title": "A", "pages": 3, "price": "1.50"}


async def test_so_is_one_that_the_model_writes_as_text():
    async with made([Says('{"title": "A"}')], output=NativeOutput(Report)) as (agent, server):
        assert await work(agent) == {"title": "A", "pages": 1, "price": "1.50"}
    assert server.requests[0].tools == ()


async def test_a_run_that_is_repeated_asks_for_nothing_that_was_answered():
    script = [Calls("add", {"a": 2, "b": 3}), Says("it is 5")]
    async with made(script, tools=[add], verbs=True) as (agent, server):
        first = StandInTurn("what is 2 and 3?")
        assert await work(agent, first) == "it is 5"
        again = StandInTurn("what is 3 and 2?", kept=first.kept)
        assert await work(agent, again) == "it is 5"
        assert len(server.requests) == 2


async def test_many_turns_at_once_do_not_mix():
    async with made(lambda request: Says(f"you said {request.text}")) as (agent, _):
        turns = [StandInTurn(f"word {number}") for number in range(8)]

        async def one(turn: StandInTurn) -> Any:
            with under_way(turn):
                return await agent(turn)

        assert await asyncio.gather(*map(one, turns)) == [f"you said {turn.task}" for turn in turns]
        assert all(len(turn.calls) == 1 for turn in turns)


async def test_verbs_are_offered_when_the_card_says_so():
    for verbs in (False, True):
        async with made([Says("hi")], verbs=verbs) as (agent, server):
            await work(agent)
            assert set(server.requests[0].tools) == (VERB_NAMES if verbs else set())


@pytest.mark.rule("pydantic.handed-over")
@dialects
async def test_a_task_that_is_handed_over_ends_the_turn(dialect: str):
    both = Calls("handoff", {"agent": "next"}, also=[Calls("add", {"a": 1, "b": 1}), Calls("list_agents", {})])
    async with made([both], dialect, tools=[add], verbs=True) as (agent, server):
        assert await work(agent) == Command("next")
        assert len(server.requests) == 1


async def test_a_prompt_is_made_of_the_turn():
    async def later(turn: Any) -> str:
        return f"later: {turn.task}"

    for prompt, expected in ((lambda turn: f"now: {turn.task}", "now: x"), (later, "later: x")):
        async with made([Says("hi")], prompt=prompt) as (agent, server):
            await work(agent, StandInTurn("x"))
            assert server.requests[0].text == expected


async def test_the_second_model_is_asked_in_its_own_dialect(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant")
    script = [Calls("final_result", {"title": "A"})] * 2
    async with model_server(script) as server:
        agent = ModelAgent(
            name="coder",
            models=["openai:big", "anthropic:other"],
            keys={"openai": ["FIRST"]},
            key_of=KEYS.__getitem__,
            base_url={"openai": f"{server.url}/v1", "anthropic": server.url},
            output=Report,
        )
        for name, key in (("openai:big", "FIRST"), ("anthropic:other", "")):
            assert (await work(agent, StandInTurn(tries=[ModelTry(name, key)])))["title"] == "A"
        assert [(one.dialect, one.key) for one in server.requests] == [
            ("responses", KEYS["FIRST"]),
            ("messages", "no-key"),
        ]
        await agent.aclose()


# --- what goes wrong ----------------------------------------------------------------------------


async def test_an_unknown_tool_may_be_called_ten_times():
    script = [*(Calls("ad", {}) for _ in range(10)), Says("I give up")]
    async with made(script, tools=[add]) as (agent, server):
        assert await work(agent) == "I give up"
        assert "Unknown tool name: 'ad'" in server.requests[-1].text


@pytest.mark.rule("pydantic.stops")
async def test_the_eleventh_time_ends_it_in_a_plain_sentence():
    async with made([Calls("ad", {}) for _ in range(11)], tools=[add]) as (agent, _):
        with pytest.raises(AgentStopped, match="Tool 'ad' exceeded max retries count of 10") as no:
            await work(agent)
    assert "http" not in str(no.value)
    assert (no.value.__cause__, no.value.__context__) == (None, None)


async def test_a_result_of_the_wrong_shape_is_asked_for_three_times():
    async with made([Calls("final_result", {"pages": 1})] * 3, output=Report) as (agent, _):
        with pytest.raises(AgentStopped, match="xceeded max"):
            await work(agent)


async def test_there_is_no_limit_of_requests_below_the_turns():
    script = [*(Calls("add", {"a": number, "b": 1}) for number in range(60)), Says("done")]
    async with made(script, tools=[add]) as (agent, _):
        assert await work(agent) == "done"


async def test_an_answer_that_ran_out_of_tokens_says_so():
    def long(*_: Any) -> ModelResponse:
        return ModelResponse([TextPart("")], finish_reason="length")

    agent = ModelAgent(name="coder", models=[("one", FunctionModel(long))], max_tokens=50)
    with pytest.raises(AgentStopped, match=r"token limit \(50\) exceeded before any response was generated"):
        await work(agent)


@pytest.mark.rule("pydantic.stops")
async def test_a_filter_is_told_without_the_answer():
    def held(*_: Any) -> ModelResponse:
        return ModelResponse([], finish_reason="content_filter", provider_details={"why": "sk-canary"})

    with pytest.raises(AgentStopped, match="content filter held the answer back") as no:
        await work(ModelAgent(name="coder", models=[("one", FunctionModel(held))]))
    assert "canary" not in str(no.value)


async def test_what_a_turn_raises_comes_out_as_it_is():
    async with made([Fails(400, message="bad key sk-first-canary")]) as (agent, _):
        with pytest.raises(ModelDown):
            await work(agent)


async def test_an_answer_that_may_be_nothing_may_be_empty():
    def nothing(*_: Any) -> ModelResponse:
        return ModelResponse([], finish_reason="stop")

    one = ("one", FunctionModel(nothing))
    assert await work(ModelAgent(name="coder", models=[one], output=Report | None)) is None
    with pytest.raises(ModelDown):
        await work(ModelAgent(name="coder", models=[one]))


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"tools": [add, add]}, "agent coder has two tools named add"),
        (
            {"tools": [Tool(add, name="handoff")], "verbs": True},
            "'handoff' is a verb of every agent that may ask others",
        ),
        ({"max_tokens": 0}, "max_tokens is a whole number of at least 1"),
        ({"models": []}, "name a model"),
        ({"tools": ["add"]}, "a tool is a function"),
    ],
)
def test_an_agent_that_cannot_be_is_refused_when_it_is_made(parts: dict[str, Any], sentence: str):
    with pytest.raises(BadInput, match=sentence):
        ModelAgent(**{"name": "coder", "models": ["test"], **parts})


# --- guests -------------------------------------------------------------------------------------


def own_agent(model: Any, **parts: Any) -> Agent[Any, Any]:
    return Agent(model, name="theirs", instructions="You add.", **parts)


@pytest.mark.rule("pydantic.guest")
async def test_a_guest_works_with_its_own_model_tools_and_dependencies(monkeypatch: pytest.MonkeyPatch):
    agent = own_agent("openai-chat:big", defer_model_check=True, deps_type=int)

    @agent.tool
    def times(ctx: RunContext[int], a: int) -> int:
        """Multiply."""
        return ctx.deps * a

    async with model_server([Calls("times", {"a": 2}), Says("14")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "theirs")
        member = guest(agent, verbs=True, deps=7)
        turn = StandInTurn("twice seven?")
        assert await work(member, turn) == "14"
        await member.aclose()
    assert set(server.requests[0].tools) == {"times", *VERB_NAMES}
    assert server.requests[0].max_tokens == 4_096
    assert server.requests[1].text == "14"
    assert [call.name for call in turn.used] == ["times"]
    [choice] = turn.calls[0].choices
    assert (choice.model, choice.keys) == ("openai-chat:big", ("OPENAI_API_KEY",))


@pytest.mark.rule("pydantic.guest")
async def test_a_guest_is_left_as_it_was():
    agent = own_agent(TestModel(custom_output_text="hi"), tools=[add])
    member = guest(agent, verbs=True)
    await work(member)
    with agent.override(model=TestModel(custom_output_text="alone")):
        result = await agent.run("go")  # outside of any turn, and with its own tools
    assert result.output == "alone"
    assert list(agent.toolsets[0].tools) == ["add"]  # type: ignore[attr-defined]


async def test_tools_that_a_guest_gets_later_are_governed_too():
    agent = own_agent(TestModel())
    member = guest(agent)
    agent.tool_plain(add)
    turn = StandInTurn()
    await work(member, turn)
    assert [call.name for call in turn.used] == ["add"]


@pytest.mark.rule("pydantic.guest")
async def test_toolsets_of_a_guest_are_governed_too():
    agent = own_agent(TestModel(), tools=[add], toolsets=[FunctionToolset([Tool(add, name="more")], id="more")])

    @agent.toolset
    def dynamic(ctx: RunContext[int]) -> Any:
        return FunctionToolset([Tool(add, name="found")])

    turn = StandInTurn()
    await work(guest(agent), turn)
    assert sorted(call.name for call in turn.used) == ["add", "found", "more"]


async def test_of_a_guest_with_fallbacks_each_model_is_a_choice():
    def one(*_: Any) -> ModelResponse:
        return ModelResponse([TextPart("hi")])

    both = FallbackModel(FunctionModel(one, model_name="a"), FunctionModel(one, model_name="b"))
    turn = StandInTurn()
    assert await work(guest(own_agent(both)), turn) == "hi"
    assert [choice.model for choice in turn.calls[0].choices] == ["function:a", "function:b"]


async def test_a_guest_hands_over():
    def answer(*_: Any) -> ModelResponse:
        return ModelResponse([ToolCallPart("handoff", {"agent": "next"}, "c")])

    assert await work(guest(own_agent(FunctionModel(answer)), verbs=True)) == Command("next")


async def test_a_guest_that_leaves_calls_to_others_is_told_how_it_is_done_here():
    agent = own_agent(TestModel(), output_type=[str, DeferredToolRequests], tools=[Tool(add, requires_approval=True)])
    with pytest.raises(AgentStopped, match="let remit ask for approval"):
        await work(guest(agent))


def test_a_guest_without_a_model_or_with_a_verb_of_its_own_is_refused():
    with pytest.raises(BadInput, match="the agent has no model"):
        guest(Agent())
    with pytest.raises(BadInput, match="'handoff' is a verb of every agent that may ask others"):
        guest(own_agent(TestModel(), tools=[Tool(add, name="handoff")]), verbs=True)


# --- cost ---------------------------------------------------------------------------------------


def test_who_does_not_use_it_does_not_import_it():
    code = "import sys, remit; sys.exit(any(name.startswith(('pydantic', 'openai')) for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
