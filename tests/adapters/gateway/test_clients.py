"""Clients of providers inside agents and their tools: through the gateway, they are paid and recorded like the rest."""

import asyncio
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import APIConnectionError, AsyncOpenAI, BadRequestError, OpenAI

from adapters.places import KEY, KEY_NAME, KINDS, came_back, data_of, join, priced, served
from engine.helping import sound
from remit import Runtime, Turn
from remit.adapters.gateway.clients import ClientGateway, gateway_for
from remit.errors import BadInput
from remit.testing.models import Calls, ModelReply, ModelRequest, Says, model_server

pytestmark = pytest.mark.anyio

HELLO: Any = [{"role": "user", "content": "hello"}]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


async def asked(gateway: ClientGateway, model: str = "m") -> str:
    async with AsyncOpenAI(**gateway.openai) as client:
        answer = await client.chat.completions.create(model=model, messages=HELLO)
    return answer.choices[0].message.content or ""


@pytest.mark.rule("gateway.clients")
async def test_the_clients_of_a_function_ask_under_its_task():
    script = [Says("hi", usage=(12, 3)), Says("salut", usage=(12, 3)), Says("hallo", usage=(12, 3))]
    async with model_server(script) as server, priced("m", "c") as rt:

        @rt.agent
        async def it(turn: Turn) -> str:
            keys = {"openai": [KEY_NAME], "anthropic": [KEY_NAME]}
            urls = {"openai": f"{server.url}/v1", "anthropic": server.url}
            async with gateway_for(turn, ["openai:m", "anthropic:c"], keys=keys, base_url=urls) as gateway:
                assert gateway.token not in repr(gateway)
                said = [await asked(gateway)]
                async with AsyncAnthropic(**gateway.anthropic) as client:
                    answer = await client.messages.create(model="c", max_tokens=100, messages=HELLO)
                    said.append(getattr(answer.content[0], "text", ""))
                blocking = OpenAI(**gateway.openai)
                found = await asyncio.to_thread(blocking.chat.completions.create, model="m", messages=HELLO)
                said.append(str(found.choices[0].message.content))
                blocking.close()
                with pytest.raises(BadRequestError, match="the model 'x' is not one that may be asked: m"):
                    await asked(gateway, "x")
            with pytest.raises(APIConnectionError):
                await asked(gateway)
            return " ".join(said)

        assert await rt.run("it", "greet", credits="$1") == "hi salut hallo"
        assert [one.key for one in server.requests] == [KEY] * 3
        assert (await rt.workspace.money.spend()).total.credits == 3 * (12 + 2 * 3)
        assert len(await data_of(rt, "model.answered")) == 3
        await sound(rt)


def script(request: ModelRequest) -> ModelReply:
    if request.model == "inner":
        return Says("from a client", usage=(12, 3))
    return Says("done", usage=(12, 3)) if came_back(request) else Calls("look", {}, usage=(12, 3))


@pytest.mark.rule("gateway.clients")
@pytest.mark.parametrize("kind", KINDS)
async def test_the_client_of_a_tool_asks_under_the_task_of_its_agent(kind: str):
    async with served(script) as place, priced("m", "inner") as rt:

        async def look() -> str:
            """Look with another model."""
            async with gateway_for(rt.turn, ["openai:inner"], keys=[KEY_NAME], base_url=place.url) as gateway:
                return await asked(gateway, "inner")

        join(rt, kind, place, tools=[look])
        assert await rt.run("it", "look", credits="$1") == "done"
        assert [one.model for one in place.server.requests] == ["m", "inner", "m"]
        assert (await rt.workspace.money.spend()).total.credits == 3 * (12 + 2 * 3)
        await sound(rt)


@pytest.mark.rule("gateway.clients")
@pytest.mark.parametrize("kind", KINDS[1:])
async def test_a_guest_takes_no_gateway_because_it_needs_none(kind: str):
    async with served([]) as place:
        rt = Runtime()
        with pytest.raises(BadInput, match=r"the models of a guest go through the turn already.*gateway_for"):
            join(rt, kind, place, gateway=True)


@pytest.mark.rule("gateway.clients")
async def test_a_gateway_for_clients_names_its_models():
    async with Runtime() as rt:

        @rt.agent
        async def it(turn: Turn) -> str:
            for wrong in (False, "openai:m", ["m"]):
                with pytest.raises(BadInput):
                    async with gateway_for(turn, wrong):
                        pass
            return "refused"

        assert await rt.run("it", "x") == "refused"
        assert ClientGateway("http://127.0.0.1:1", "t").google == {
            "api_key": "t",
            "http_options": {"base_url": "http://127.0.0.1:1"},
        }
