"""Members that are taken over, that flood the gateway, that ask a thousand times, and that wait for long."""

import asyncio
import json
from typing import Any

import anyio
import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from adapters.gateway.asking import KEY
from adapters.gateway.test_gateway import calling, team
from adapters.places import KEY_NAME
from engine.helping import PATIENCE, doomed, happened, sound, take_over
from remit import Card, Runtime, Turn
from remit.adapters.gateway.clients import ClientGateway, gateway_for
from remit.adapters.gateway.listener import entered
from remit.adapters.gateway.members import AT_ONCE, WAITING, GatewayMember
from remit.adapters.gateway.verbs import MemberVerbs
from remit.engine.directory import AgentRules
from remit.testing import FakeClock
from remit.testing.models import ModelReply, ModelRequest, Says, model_server
from teams import echo
from teams import team as team_of

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def real_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REAL_KEY", KEY)
    monkeypatch.setenv(KEY_NAME, KEY)


def body(number: int = 0, **more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": f"hi {number}"}], **more}


async def post(gateway: ClientGateway, number: int = 0) -> httpx.Response:
    async with httpx.AsyncClient(timeout=60, verify=False) as client:
        return await client.post(f"{gateway.url}/v1/messages", json=body(number), headers={"x-api-key": gateway.token})


@pytest.mark.rule("gateway.token")
async def test_a_token_is_worth_nothing_once_its_task_was_taken_over(tmp_path: Any):
    clock, told = FakeClock(), list[httpx.Response]()
    inside, go, answered = anyio.Event(), anyio.Event(), anyio.Event()

    async def lead(turn: Turn) -> str:
        async with gateway_for(turn, ["anthropic:m"], keys=[KEY_NAME], base_url=server.url) as gateway:
            inside.set()
            with anyio.CancelScope(shield=True):
                await go.wait()
                told.append(await post(gateway))
                answered.set()
        return "from the dead"

    async with model_server() as server:
        with doomed(tmp_path / "team.db", clock) as dead, team_of(tmp_path / "team.db", clock=clock) as heir:
            dead.add(Card("lead"), lead)
            heir.add(Card("lead"), echo)
            task = await dead.submit("lead", "go")
            await happened(inside)
            await take_over(heir, clock, dead)
            assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == "go"
            go.set()
            await happened(answered)
            assert told[0].status_code in (400, 401)
            assert "over" in told[0].json()["error"]["message"]
            await sound(heir)
        assert not server.requests


@pytest.mark.rule("gateway.token")
async def test_a_token_is_worth_nothing_while_another_task_goes_on():
    """The listener is still open for the other task, so it is the token that is refused."""
    async with team([Says("hi")], "print(json.dumps([token, base.geturl()]))") as (rt, server):

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[int]:
            async with gateway_for(turn, ["anthropic:m"], keys=[KEY_NAME], base_url=server.url) as own:
                token, url = json.loads(await turn.delegate("porter", "x"))
                assert url == own.url
                return [(await post(ClientGateway(url, one))).status_code for one in (token, own.token)]

        assert await rt.run("lead", "go") == [401, 200]


@pytest.mark.rule("gateway.flood")
async def test_a_member_has_eight_requests_at_a_time_and_sixty_four_in_all():
    refused, full, most, here = anyio.Event(), anyio.Event(), 0, 0

    async def script(_: ModelRequest) -> ModelReply:
        nonlocal most, here
        here += 1
        most = max(most, here)
        if here == AT_ONCE:
            full.set()
        await full.wait()
        await refused.wait()
        here -= 1
        return Says("hi")

    async with Runtime() as rt, model_server(script) as server:

        async def it(turn: Turn) -> list[int]:
            told: list[int] = []
            async with gateway_for(turn, ["anthropic:m"], keys=[KEY_NAME], base_url=server.url) as gateway:
                for one in asyncio.as_completed([post(gateway, number) for number in range(WAITING + 5)]):
                    answer = await one
                    told.append(answer.status_code)
                    assert answer.status_code == 200 or "64 requests at once already" in answer.text
                    if told.count(400) == 5:
                        refused.set()
            return sorted(told)

        rt.add(Card("it"), it, rules=AgentRules(iterations=100))
        assert await rt.run("it", "flood") == [200] * WAITING + [400] * 5
        assert most == AT_ONCE
        await sound(rt)


THOUSAND = """
statuses = [ask(f"{task} {number}", stream=number % 2 == 0)[0] for number in range(1000)]
print(json.dumps([len(statuses), sorted(set(statuses))]))
"""


@pytest.mark.deep
@pytest.mark.long
@pytest.mark.rule("gateway.money")
async def test_a_thousand_requests_fit_into_credits_for_one():
    def script(asked: ModelRequest) -> ModelReply:
        return Says(asked.text, usage=(1, 0))

    async with team(script, THOUSAND, max_tokens=4_096) as (rt, server):
        # A request holds 4,096 tokens at $2 and its input; each costs a millionth of a dollar.
        assert json.loads(await rt.run("porter", "x", credits="$0.0099")) == [1_000, [200]]
        assert len(server.requests) == 1_000
        assert (await rt.workspace.money.spend()).total.credits == 1_000


CHAT = """
def chat(**more):
    body = {"model": "gpt-x", "messages": [{"role": "user", "content": task}], **more}
    return send("/v1/chat/completions", body)
print(json.dumps([chat(stream=True), chat(stream=True, stream_options={"include_usage": True}), chat()]))
"""


@pytest.mark.rule("gateway.usage")
async def test_a_chat_that_does_not_ask_for_usage_is_charged_all_the_same():
    async with team([Says("hi", usage=(100, 50))] * 3, CHAT) as (rt, _):
        plain, asked, whole = json.loads(await rt.run("porter", "x", credits="$0.5"))
        assert (await rt.workspace.money.spend()).total.credits == 3 * 200
        assert not await rt.workspace.money.uncertain()
    assert "prompt_tokens" not in plain[1]
    assert plain[1].endswith("data: [DONE]\n\n")
    assert "prompt_tokens" in asked[1]
    assert "prompt_tokens" in whole[1]


EACH = """
hi = [{"role": "user", "content": task}]
print(json.dumps([
    send("/v1/messages", {"model": "claude-x", "max_tokens": 100, "messages": hi, "stream": STREAM}),
    send("/v1/chat/completions", {"model": "gpt-x", "messages": hi, "stream": STREAM}),
    send("/v1/responses", {"model": "gpt-x", "input": hi, "stream": STREAM}),
    send("/v1beta/models/gemini-x:" + ("streamGenerateContent?alt=sse" if STREAM else "generateContent"),
         {"contents": [{"role": "user", "parts": [{"text": task}]}]})]))
"""


@pytest.mark.rule("gateway.usage")
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("usage", ["missing", "negative"])
async def test_an_answer_whose_usage_is_missing_or_negative_is_uncertain_in_every_format(usage: Any, stream: bool):
    models = ["anthropic:claude-x", "openai:gpt-x", "google:gemini-x"]
    async with model_server([Says("hi", usage=usage)] * 4) as server:
        keys = {one: ["REAL_KEY"] for one in ("anthropic", "openai", "google")}
        urls = {"anthropic": server.url, "openai": f"{server.url}/v1", "google": server.url}
        code = EACH.replace("STREAM", str(stream))
        async with team([], code, gateway=models, keys=keys, base_url=urls) as (rt, _):
            answers = json.loads(await rt.run("porter", "x", credits="$0.5"))
            assert [status for status, _ in answers] == [200] * 4
            assert len(await rt.workspace.money.uncertain()) == 4


WAITS = """
            done = await client.call_tool("call_agent", {"agent": "helper", "task": task})
            print(done.content[0].text)
"""


@pytest.mark.long
@pytest.mark.rule("gateway.patience")
async def test_a_verb_may_wait_for_longer_than_any_limit_of_a_connection():
    """Longer than a connection may be idle (5 s), and than the head of a request may take (10 s)."""
    async with team([], calling(WAITS), verbs=True) as (rt, _):

        @rt.agent
        async def helper(turn: Turn) -> str:
            await anyio.sleep(11)
            return f"helped with {turn.task}"

        assert "helped with the work" in await rt.run("porter", "the work")


@pytest.mark.rule("gateway.patience")
async def test_a_client_hears_that_a_verb_still_waits():
    """Claude Code gives a call up after five minutes without a progress message."""
    heard, enough = list[float](), anyio.Event()

    async def on_progress(progress: float, _total: float | None, message: str | None) -> None:
        assert message == "call_agent is not finished"
        heard.append(progress)
        if len(heard) == 3:
            enough.set()

    async def asker(turn: Turn) -> str:
        member = GatewayMember(turn, None, verbs=True)
        async with entered(member) as listener:
            listener.verbs = MemberVerbs(heartbeat=0.01)
            headers = {"Authorization": f"Bearer {member.token}"}
            url = f"{listener.url}/mcp"
            async with (
                httpx2.AsyncClient(headers=headers, verify=False) as http_client,
                Client(streamable_http_client(url, http_client=http_client)) as client,
            ):
                asked = {"agent": "helper", "task": turn.task}
                done = await client.call_tool("call_agent", asked, progress_callback=on_progress)
                return str(done.content)

    async with Runtime() as rt:
        rt.add(Card("asker", asks=["helper"]), asker)

        @rt.agent
        async def helper(turn: Turn) -> str:
            await happened(enough)
            return f"helped with {turn.task}"

        assert "helped with the work" in await rt.run("asker", "the work")
    assert heard[:3] == [1, 2, 3]
