"""A model whose requests go through the turn: what it asks, with which key, what it makes of the answer."""

import asyncio
import gc
import json
import warnings
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers.openai import OpenAIProvider

from adapters.pydantic_ai.asking import KEYS, MODELS, PROMPT, TOOLS, ask, dialects, governed_model, streams, url_for
from adapters.pydantic_ai.turns import ModelDown, StandInTurn, under_way
from adapters.serving import served_elsewhere
from remit.adapters.pydantic_ai import Clients, GovernedModel, key_in_environment
from remit.core.prices import Usage
from remit.core.recovery import Choice, ModelFailure, ModelTry, key_mark
from remit.errors import BadInput
from remit.testing.models import Calls, Fails, Says, model_server

pytestmark = pytest.mark.anyio


@streams
@dialects
async def test_an_answer_comes_back_with_what_it_cost(dialect: str, listens: bool):
    said = "good morning to you all"
    answer, turn, server = await ask(Says(said, usage=(120, 30)), dialect, listens=listens)
    assert answer.text == said
    [reply], [request] = turn.replies, server.requests
    assert (reply.model, reply.usage, reply.calls) == (MODELS[dialect], Usage(120, 30), ())
    assert request.key == KEYS["FIRST"]
    assert (request.max_tokens, request.stream) == (4_096, listens)
    assert "".join(turn.heard) == (said if listens else "")
    assert len(turn.heard) > 1 or not listens


@streams
@dialects
async def test_cached_parts_are_counted_where_the_format_has_them(dialect: str, listens: bool):
    usage = Usage(120, 30, cached_input=60, cache_written=20, cache_written_1h=15)
    _, turn, _ = await ask(Says("hello", usage=usage), dialect, listens=listens)
    [reply] = turn.replies
    assert reply.usage == (usage if dialect == "messages" else replace(usage, cache_written_1h=0))


@streams
@dialects
async def test_calls_of_tools_are_named(dialect: str, listens: bool):
    wanted = Calls("add", {"a": 1}, also=[Calls("look", {"at": "sky"})], text="let me see")
    answer, turn, _ = await ask(wanted, dialect, listens=listens)
    assert [(call.tool_name, call.args_as_dict()) for call in answer.tool_calls] == [
        ("add", {"a": 1}),
        ("look", {"at": "sky"}),
    ]
    assert turn.replies[0].calls == ("add", "look")
    assert turn.calls[0].tools == {"add", "look"}
    assert "".join(turn.heard) == ("let me see" if listens else "")


FALSE = ["missing", "negative", (0, 0), (10**15, 5), (5, 10**15)]
# A client of that dialect cannot read an answer without usage at all; see below.
TOLD = [(usage, dialect) for usage in FALSE for dialect in MODELS if (usage, dialect) != ("missing", "messages")]


@pytest.mark.rule("pydantic.usage")
@streams
@pytest.mark.filterwarnings("ignore::pydantic_ai.exceptions.UsageExtractionFailedWarning")
@pytest.mark.parametrize(("usage", "dialect"), TOLD)
async def test_usage_that_cannot_be_true_is_none(usage: Any, dialect: str, listens: bool):
    _, turn, _ = await ask(Says("hi", usage=usage), dialect, listens=listens)
    assert turn.replies[0].usage is None


@dialects
async def test_what_a_turn_is_told_of_a_request(dialect: str):
    _, turn, _ = await ask(Says("hi"), dialect, settings={"max_tokens": 500})
    [call] = turn.calls
    [choice] = call.choices
    assert (choice.model, choice.keys, choice.named) == (MODELS[dialect], ("FIRST", "SECOND"), True)
    assert choice.provider.startswith("anthropic@127.0.0.1:" if dialect == "messages" else "openai@127.0.0.1:")
    assert choice.marks == (key_mark(KEYS["FIRST"]), key_mark(KEYS["SECOND"]))
    assert call.most == 500
    assert 0 < call.size(0) < 50


async def test_a_try_says_which_key_how_many_tokens_and_how_short():
    long = [
        *PROMPT,
        ModelResponse([ToolCallPart("look", {}, "c")]),
        ModelRequest([ToolReturnPart("look", "x" * 20_000, "c")]),
    ]
    turn = StandInTurn(tries=[ModelTry(MODELS["chat"], "SECOND", trim=1)])
    async with model_server([Says("hi")]) as server, governed_model(server.url, max_tokens=300) as model:
        with under_way(turn):
            await model.request(long, None, TOOLS)
    [request] = server.requests
    assert (request.key, request.max_tokens) == (KEYS["SECOND"], 300)
    assert len(request.text) < 9_000
    [call] = turn.calls
    assert call.size(0) > 5_000 > call.size(1)


@dialects
async def test_a_request_that_was_answered_before_is_answered_from_the_journal(dialect: str):
    turn = StandInTurn()
    async with model_server([Calls("look", {"at": "sky"})]) as server, governed_model(server.url, dialect) as model:
        with under_way(turn):
            first = await model.request(PROMPT, None, TOOLS)
        with under_way(StandInTurn(kept=turn.kept)):
            again = await model.request([ModelRequest.user_text_prompt("hello", instructions="be brief")], None, TOOLS)
    assert replace(again, provider_details=None) == replace(first, provider_details=None)  # dates are text in there
    assert len(server.requests) == 1


async def test_a_guest_that_streams_gets_the_whole_answer_as_a_stream():
    async with model_server([Says("good morning")]) as server, governed_model(server.url) as model:
        with under_way(StandInTurn()):
            async with Agent(model).run_stream("hello") as run:
                assert [piece async for piece in run.stream_text(delta=True)] == ["good morning"]


async def test_outside_of_a_turn_there_is_a_clear_error():
    with pytest.raises(BadInput, match=r"model openai-chat:big works inside of a turn only"):
        async with governed_model("http://127.0.0.1:9") as model:
            await model.request(PROMPT, None, TOOLS)


# --- hostile answers ----------------------------------------------------------------------------


@streams
@dialects
async def test_five_megabytes_are_an_answer(dialect: str, listens: bool):
    text = "words and more words\n" * 250_000
    answer, turn, _ = await ask(Says(text), dialect, listens=listens)
    assert answer.text == text
    assert len(turn.replies[0].text) > 5_000_000


@streams
@dialects
async def test_nul_and_half_characters_do_not_reach_the_journal(dialect: str, listens: bool):
    bad = Calls("look", {"at": "a\0b\ud800c"}, text="nul \0 and half \ud83d a character")
    answer, turn, _ = await ask(bad, dialect, listens=listens)
    assert answer.text == "nul  and half \ufffd a character"
    assert answer.tool_calls[0].args_as_dict() == {"at": "ab\ufffdc"}
    turn.replies[0].text.encode()
    assert "\0" not in str(json.loads(turn.replies[0].text))
    "".join(turn.heard).encode()


@streams
@dialects
async def test_calls_under_one_id_become_two(dialect: str, listens: bool):
    twice = Calls("look", {"at": "sky"}, id="same", also=[Calls("look", {"at": "sea"}, id="same")])
    answer, _, _ = await ask(twice, dialect, listens=listens)
    assert [call.tool_call_id for call in answer.tool_calls] == ["same", "same_2"]


@streams
@dialects
async def test_arguments_that_are_no_json_are_kept_as_they_came(dialect: str, listens: bool):
    answer, turn, _ = await ask(Calls("look", '{"at": "sk'), dialect, listens=listens)
    assert answer.tool_calls[0].tool_name == "look"
    assert turn.replies[0].calls == ("look",)


# --- clients ------------------------------------------------------------------------------------


@pytest.mark.rule("pydantic.loops")
def test_a_second_event_loop_has_clients_of_its_own():
    """Although nobody closed those of the first: also of a model that answers only when another does not, and of one
    that was given as an object."""

    def main(url: str) -> None:
        own = OpenAIChatModel("third", provider=OpenAIProvider(base_url=url, api_key="mine"))
        names = ["openai-chat:first", "openai-chat:second", "own"]
        agent = Agent(GovernedModel(Clients([*names[:2], ("own", own)], ["FIRST"], url, KEYS.__getitem__)))

        async def asked() -> list[str]:
            tries = [ModelTry(name, "" if name == "own" else "FIRST") for name in names]
            with under_way(StandInTurn(tries=tries)):
                return [(await agent.run("hello")).output for _ in names]

        expected = ["first sk-first-canary", "second sk-first-canary", "third mine"]
        assert [asyncio.run(asked()) for _ in range(3)] == [expected] * 3

    with served_elsewhere(lambda request: Says(f"{request.model} {request.key}")) as url, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of connections that went down with their loop
        main(f"{url}/v1")
        gc.collect()


async def test_clients_are_made_once_and_closed():
    async with model_server(lambda _: Says("hi")) as server:
        clients = Clients(["openai-chat:big"], ["FIRST", "SECOND"], f"{server.url}/v1", KEYS.__getitem__)
        found = await asyncio.gather(*(clients.find("openai-chat:big", "FIRST") for _ in range(5)))
        assert len({id(model) for model in found}) == 1
        assert await clients.find("openai-chat:big", "SECOND") is not found[0]
        await clients.aclose()
        await clients.aclose()
        assert found[0].provider.client.is_closed()


@pytest.mark.rule("pydantic.keys")
async def test_no_key_is_shown_to_another_provider(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant")
    shown: list[str] = []
    models = ["openai-chat:big", "anthropic:other", "openai:big"]
    clients = Clients(models, ["FIRST"], "http://127.0.0.1:9/v1", lambda name: shown.append(name) or KEYS[name])
    assert clients.choices == (
        Choice("openai-chat:big", ("FIRST",), "openai@127.0.0.1:9", named=True),
        Choice("anthropic:other", provider="anthropic"),
        Choice("openai:big", ("FIRST",), "openai@127.0.0.1:9", named=True),
    )
    other = await clients.find("anthropic:other", "")
    assert (other.base_url, other.provider.client.api_key) == ("https://api.anthropic.com", "sk-ant")
    assert shown == []
    await clients.aclose()


def test_keys_and_addresses_go_by_provider_or_model():
    keys = {"openai": ["A"], "anthropic": ["B", "C"], "openai:special": ["D"]}
    clients = Clients(["openai:big", "openai:special", "anthropic:other", "groq:x"][:3], keys)
    assert [choice.keys for choice in clients.choices] == [("A",), ("D",), ("B", "C")]


def test_a_key_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(BadInput, match="there is no key: set the environment variable MY_KEY"):
        key_in_environment("MY_KEY")
    monkeypatch.setenv("MY_KEY", "sk")
    assert key_in_environment("MY_KEY") == "sk"


async def test_without_any_key_the_error_says_what_to_set_and_points_nowhere(monkeypatch: pytest.MonkeyPatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(BadInput, match="model 'openai:big' cannot be asked: Set the `OPENAI_API_KEY`") as no:
        await Clients(["openai:big"]).find("openai:big", "")
    assert "http" not in str(no.value)


async def test_an_address_from_the_environment_is_used(monkeypatch: pytest.MonkeyPatch):
    async with model_server([Says("hi")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", url_for(server.url, "chat"))
        clients = Clients(["openai-chat:big"])
        with under_way(StandInTurn()):
            await GovernedModel(clients).request(PROMPT, None, TOOLS)
        await clients.aclose()
        assert len(server.requests) == 1


@pytest.mark.rule("pydantic.answers")
async def test_an_answer_that_a_client_stumbles_over_is_broken():
    with pytest.raises(ModelDown) as down:
        await ask(Says("hi", usage="missing"), "messages")  # which is never left out there
    assert down.value.failure == ModelFailure("broken")


async def test_an_error_in_a_model_of_ones_own_is_told_as_it_is():
    def wrong(*_: Any) -> ModelResponse:
        raise ValueError("mine")

    with under_way(StandInTurn()), pytest.raises(ValueError, match="mine"):
        await GovernedModel(Clients([("one", FunctionModel(wrong))])).request(PROMPT, None, TOOLS)


@pytest.mark.parametrize(
    ("models", "sentence"),
    [
        ([], "name a model, such as"),
        (["gpt-5"], "a model is named as 'provider:model'"),
        (["openai:"], "a model is named as 'provider:model'"),
        (["opnai:gpt-5"], "there is no provider 'opnai'"),
        (["openai:x", "openai:x"], "two models are named 'openai:x'"),
        ([TestModel(), TestModel()], "two models are named 'test:test'"),
        ([7], "a model is a name, one of pydantic-ai's models, or"),
    ],
)
def test_models_that_cannot_be_are_refused(models: list[Any], sentence: str):
    with pytest.raises(BadInput, match=sentence):
        Clients(models)


async def test_what_a_provider_does_not_take_is_refused():
    for name, options in (
        ("deepseek:x", {"base_url": "http://127.0.0.1:9"}),
        ("gateway/openai:x", {"keys": ["FIRST"]}),
    ):
        clients = Clients([name], key_of=KEYS.__getitem__, **options)
        with pytest.raises(BadInput, match=r"takes no (base_url|api_key); give a model object"):
            await clients.find(name, "FIRST" if "keys" in options else "")


# --- models that are objects --------------------------------------------------------------------


async def test_a_model_given_as_an_object_keeps_its_settings():
    async with model_server([Fails(503), Says("hi")]) as server:
        own = OpenAIChatModel(
            "big",
            provider=OpenAIProvider(base_url=f"{server.url}/v1", api_key="mine"),
            settings={"max_tokens": 77, "temperature": 0.5},
        )
        model = GovernedModel(Clients([WrapperModel(own)]))
        turn = StandInTurn()
        with under_way(turn):
            with pytest.raises(ModelDown):  # its client does not ask again either
                await Agent(model).run("hello")
            await Agent(model).run("hello")
        assert [request.max_tokens for request in server.requests] == [77, 77]
        assert server.requests[1].body["temperature"] == 0.5
        assert [(one.model, one.keys, one.provider) for one in turn.calls[0].choices] == [("openai:big", (), "")]
        await own.provider.client.close()


def test_of_a_fallback_the_models_inside_are_asked():
    inside = FallbackModel(TestModel(model_name="a"), TestModel(model_name="b"))
    assert [choice.model for choice in Clients([inside]).choices] == ["test:a", "test:b"]


async def test_a_model_that_cannot_stream_is_heard_at_once():
    class Silent(Model[Any]):
        @property
        def model_name(self) -> str:
            return "silent"

        @property
        def system(self) -> str:
            return "own"

        async def request(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> ModelResponse:
            return ModelResponse([TextPart("good\0 morning")])

    model = GovernedModel(Clients([WrapperModel(Silent())]))
    turn = StandInTurn(listens=True)
    with under_way(turn):
        assert (await model.request(PROMPT, None, ModelRequestParameters())).text == "good morning"
    assert turn.heard == ["good morning"]


async def test_an_answer_that_cannot_be_written_down_is_broken():
    def strange(*_: Any) -> ModelResponse:
        return ModelResponse([TextPart("hi")], provider_details={"x": "\ud800"})

    model = GovernedModel(Clients([("one", FunctionModel(strange))]))
    with under_way(StandInTurn()), pytest.raises(ModelDown) as down:
        await model.request([ModelRequest([UserPromptPart("?")])], None, TOOLS)
    assert down.value.failure == ModelFailure("broken")
