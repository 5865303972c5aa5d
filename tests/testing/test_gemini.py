"""The scripted model in Google's dialect, over real HTTP."""

import json
from typing import Any

import httpx
import pytest

from remit.testing.models import Calls, Empty, Fails, ModelReply, Overflow, Says, ScriptFailed, Usage, model_server

pytestmark = pytest.mark.anyio

HELLO = [{"role": "user", "parts": [{"text": "hello"}]}]
SENTENCE = "the answer is forty-two, as everybody knows by now"
CALL = {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]}
RESULT = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "seen"}}}]}

streams = pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])


async def one(reply: ModelReply, *, stream: bool = False, **more: Any) -> tuple[int, list[Any]]:
    """The status, and the parts of the answer."""
    way = "streamGenerateContent?alt=sse" if stream else "generateContent"
    async with model_server([reply]) as server, httpx.AsyncClient(base_url=server.url, verify=False) as client:
        body = {"contents": HELLO, **more}
        got = await client.post(f"/v1beta/models/gemini-x:{way}", json=body, headers={"x-goog-api-key": "k1"})
        request = server.requests[0]
        assert (request.dialect, request.model, request.key, request.stream) == ("gemini", "gemini-x", "k1", stream)
    if got.headers["content-type"] != "text/event-stream":
        return got.status_code, [got.json()]
    return got.status_code, [json.loads(part.removeprefix("data: ")) for part in got.text.split("\n\n") if part]


def parts(told: list[Any]) -> list[Any]:
    return [part for body in told for part in body["candidates"][0]["content"]["parts"]]


@pytest.mark.rule("script.dialects")
@streams
async def test_gemini_says_and_calls(stream: bool):
    reply = Calls("call_agent", {"a": 1}, text=SENTENCE, namespace="mcp_remit", usage=Usage(100, 7, cached_input=60))
    status, told = await one(reply, stream=stream)

    assert status == 200
    assert "".join(part.get("text", "") for part in parts(told)) == SENTENCE
    calls = [part["functionCall"] for part in parts(told) if "functionCall" in part]
    assert calls == [{"id": "call_1", "name": "mcp_remit__call_agent", "args": {"a": 1}}]
    assert told[-1]["candidates"][0]["finishReason"] == "STOP"
    assert told[-1]["usageMetadata"] == {
        "promptTokenCount": 100,
        "candidatesTokenCount": 7,
        "totalTokenCount": 107,
        "cachedContentTokenCount": 60,
    }
    assert all("usageMetadata" not in body for body in told[:-1])
    assert len(told) > 4 or not stream


@pytest.mark.rule("script.limited", "script.usage")
@streams
async def test_an_answer_of_gemini_can_stop_at_its_limit_and_hide_its_usage(stream: bool):
    for reply in (Says("half a", usage="missing", limited=True), Empty(usage="missing", limited=True)):
        _, told = await one(reply, stream=stream)
        assert told[-1]["candidates"][0]["finishReason"] == "MAX_TOKENS"
        assert "usageMetadata" not in told[-1]
    _, told = await one(Calls("add", "no json"), stream=stream)
    assert [part["functionCall"]["args"] for part in parts(told) if "functionCall" in part] == ["no json"]


@pytest.mark.rule("script.requests")
async def test_a_request_of_gemini_is_recorded():
    tools = [{"functionDeclarations": [{"name": "look"}, {"name": "add"}]}, {"googleSearch": {}}]
    async with model_server([Says("hi")]) as server, httpx.AsyncClient(base_url=server.url, verify=False) as client:
        body = {"contents": [*HELLO, CALL, RESULT], "tools": tools, "generationConfig": {"maxOutputTokens": 50}}
        await client.post("/v1beta/models/gemini-x:generateContent", json=body)
    request = server.requests[0]
    assert (request.tools, request.max_tokens) == (("look", "add", "googleSearch"), 50)
    assert request.text == '{"output": "seen"}'


@pytest.mark.rule("script.failures")
async def test_gemini_fails_in_its_own_words():
    status, (told,) = await one(Fails(429))
    assert (status, told["error"]["code"], told["error"]["status"]) == (429, 429, "RESOURCE_EXHAUSTED")
    status, (told,) = await one(Overflow())
    assert (status, told["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert "exceeds the maximum number of tokens" in told["error"]["message"]


@pytest.mark.rule("script.strict")
@pytest.mark.parametrize(
    ("contents", "sentence"),
    [
        ([*HELLO, CALL], "1 calls have no result"),
        ([*HELLO, CALL, *HELLO], "has 1 calls, and this content has 0 results"),
        ([*HELLO, RESULT], "has 0 calls, and this content has 1 results"),
        ([{"role": "user", "parts": []}], "a content has no parts"),
        ([{"role": "oracle", "parts": [{"text": "x"}]}], "no messages of kind 'oracle'"),
    ],
)
async def test_gemini_is_strict(contents: list[Any], sentence: str):
    with pytest.raises(ScriptFailed, match=sentence):
        await one(Says("hi"), contents=contents)
