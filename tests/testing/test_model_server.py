"""The scripted model over real HTTP: three dialects, plain and streamed, every failure, and scripts that fail."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from traceback import extract_tb
from typing import Any, NamedTuple

import anyio
import httpx
import pytest

from remit.errors import Failed
from remit.testing import FakeClock, pass_time
from remit.testing.models import (
    Calls,
    Cut,
    Empty,
    Fails,
    Garbage,
    ModelReply,
    ModelRequest,
    ModelServer,
    Overflow,
    Reset,
    Says,
    ScriptFailed,
    Slow,
    Usage,
    model_server,
)
from remit.testing.models.server import Script

pytestmark = pytest.mark.anyio

DIALECTS = ("chat", "responses", "messages")
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
NO_TLS = False  # else each client reads all certificates of the machine
HELLO = [{"role": "user", "content": "hello"}]
SENTENCE = "the answer is forty-two, as everybody knows by now"
TWO_CALLS = Calls("add", {"a": 1, "b": 2}, also=[Calls("look", {"at": "sky"}, id="mine")], text="let me see")

dialects = pytest.mark.parametrize("dialect", DIALECTS)
streams = pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])


def body(dialect: str = "chat", *, stream: bool = False, **more: Any) -> dict[str, Any]:
    """What a client sends."""
    shown = {
        "chat": {"messages": HELLO, "stream_options": {"include_usage": True}} if stream else {"messages": HELLO},
        "responses": {"input": HELLO},
        "messages": {"messages": HELLO, "max_tokens": 100},
    }
    return {"model": "big", "stream": stream, **shown[dialect], **more}


class Told(NamedTuple):
    """What came back: one object, or the events of a stream."""

    status: int
    headers: httpx.Headers
    whole: Any
    events: list[tuple[str, Any]]


@asynccontextmanager
async def serving(script: Script, **how: Any) -> AsyncIterator[tuple[ModelServer, httpx.AsyncClient]]:
    async with model_server(script, **how) as server, client_of(server) as client:
        yield server, client


def client_of(server: ModelServer) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=server.url, timeout=20, verify=NO_TLS)


async def ask(client: httpx.AsyncClient, dialect: str = "chat", *, stream: bool = False, **more: Any) -> Told:
    keys = {"x-api-key": "k1"} if dialect == "messages" else {"authorization": "Bearer k1"}
    got = await client.post(PATHS[dialect], json=body(dialect, stream=stream, **more), headers=keys)
    if got.headers["content-type"] != "text/event-stream":
        return Told(got.status_code, got.headers, got.json(), [])
    return Told(got.status_code, got.headers, None, [event(part) for part in got.text.split("\n\n") if part])


def event(part: str) -> tuple[str, Any]:
    """One event of a stream: its name and its data."""
    lines = dict(line.split(": ", 1) for line in part.split("\n"))
    assert lines.keys() <= {"event", "data"}
    data = lines["data"]
    return lines.get("event", ""), data if data == "[DONE]" else json.loads(data)


async def one(reply: ModelReply, dialect: str = "chat", *, stream: bool = False, **more: Any) -> Told:
    async with serving([reply]) as (_, client):
        return await ask(client, dialect, stream=stream, **more)


# --- chat completions --------------------------------------------------------------------------


@pytest.mark.rule("script.dialects")
async def test_chat_says():
    async with serving([Says(SENTENCE, usage=(7, 3))], clock=FakeClock(1_800_000_000_000_000)) as (_, client):
        told = await ask(client)

    assert told.whole == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_800_000_000,
        "model": "big",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": SENTENCE, "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


@pytest.mark.rule("script.dialects")
async def test_chat_calls():
    choice = (await one(TWO_CALLS)).whole["choices"][0]

    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "let me see"
    assert choice["message"]["tool_calls"] == [
        {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}},
        {"id": "mine", "type": "function", "function": {"name": "look", "arguments": '{"at": "sky"}'}},
    ]
    assert (await one(Calls("add", {}))).whole["choices"][0]["message"]["content"] is None


@pytest.mark.rule("script.dialects")
async def test_chat_streams_words():
    told = await one(Says(SENTENCE, usage=(7, 3)), stream=True)

    assert told.events[-1] == ("", "[DONE]")
    chunks = [data for _, data in told.events[:-1]]
    assert {(chunk["id"], chunk["object"], chunk["model"]) for chunk in chunks} == {
        ("chatcmpl-1", "chat.completion.chunk", "big")
    }
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert len(deltas) > 4
    assert "".join(delta.get("content", "") for delta in deltas) == SENTENCE
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]] == [None] * (len(deltas) - 1) + ["stop"]
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["total_tokens"]) == ([], 10)
    assert all(chunk["usage"] is None for chunk in chunks[:-1])


@pytest.mark.rule("script.dialects")
async def test_chat_streams_calls():
    told = await one(TWO_CALLS, stream=True)

    parts = [
        call
        for _, data in told.events[:-1]
        for choice in data["choices"]
        for call in choice["delta"].get("tool_calls", ())
    ]
    begun = [part for part in parts if "id" in part]
    assert [(part["index"], part["id"], part["function"]) for part in begun] == [
        (0, "call_1", {"name": "add", "arguments": ""}),
        (1, "mine", {"name": "look", "arguments": ""}),
    ]
    for index, arguments in enumerate([{"a": 1, "b": 2}, {"at": "sky"}]):
        assert json.loads("".join(p["function"]["arguments"] for p in parts if p["index"] == index)) == arguments


@pytest.mark.rule("script.usage")
async def test_a_chat_stream_tells_usage_only_if_it_is_asked_to():
    told = await one(Says("hi"), stream=True, stream_options=None)

    assert all("usage" not in data for _, data in told.events[:-1])


# --- responses ---------------------------------------------------------------------------------


@pytest.mark.rule("script.dialects")
async def test_responses_says_and_calls():
    told = (await one(TWO_CALLS, "responses")).whole

    assert (told["id"], told["object"], told["status"], told["model"]) == ("resp_1", "response", "completed", "big")
    assert (told["error"], told["incomplete_details"], told["tools"]) == (None, None, [])
    message, add, look = told["output"]
    assert (message["type"], message["role"], message["status"]) == ("message", "assistant", "completed")
    assert [(part["type"], part["text"], part["annotations"]) for part in message["content"]] == [
        ("output_text", "let me see", [])
    ]
    assert add == {
        "id": "fc_1_0",
        "type": "function_call",
        "status": "completed",
        "call_id": "call_1",
        "name": "add",
        "arguments": '{"a": 1, "b": 2}',
    }
    assert (look["call_id"], look["name"]) == ("mine", "look")
    usage = told["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0
    assert (usage["input_tokens_details"], usage["output_tokens_details"]) == (
        {"cached_tokens": 0},
        {"reasoning_tokens": 0},
    )


@pytest.mark.rule("script.dialects")
async def test_responses_streams():
    plain = (await one(TWO_CALLS, "responses")).whole

    told = await one(TWO_CALLS, "responses", stream=True)

    names = [name for name, _ in told.events]
    data = [data for _, data in told.events]
    assert [one["type"] for one in data] == names
    assert [one["sequence_number"] for one in data] == list(range(len(data)))
    assert list(dict.fromkeys(names)) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.completed",
    ]
    assert (data[0]["response"]["status"], data[0]["response"]["output"]) == ("in_progress", [])
    assert data[-1]["response"]["output"] == plain["output"]
    assert data[-1]["response"]["usage"] == plain["usage"]
    text = [one for one in data if one["type"] == "response.output_text.delta"]
    assert "".join(one["delta"] for one in text) == "let me see"
    assert {(one["item_id"], one["output_index"], one["content_index"]) for one in text} == {("msg_1", 0, 0)}
    arguments = [one for one in data if one["type"] == "response.function_call_arguments.delta"]
    assert "".join(one["delta"] for one in arguments if one["output_index"] == 2) == '{"at": "sky"}'
    done = [one["item"] for one in data if one["type"] == "response.output_item.done"]
    assert done == plain["output"]
    added = [one["item"] for one in data if one["type"] == "response.output_item.added"]
    assert [item.get("content", item.get("arguments")) for item in added] == [[], "", ""]


@pytest.mark.rule("script.dialects")
async def test_responses_takes_text_for_a_message():
    async with serving([Says("hi")]) as (server, client):
        await ask(client, "responses", input="hello you")

    assert server.requests[0].text == "hello you"


@pytest.mark.rule("script.namespace")
async def test_a_call_of_an_mcp_tool_is_spelled_as_each_format_spells_it():
    call = Calls("call_agent", {"agent": "a"}, namespace="mcp__remit", also=[Calls("add", {})])
    inner = {"type": "function", "name": "call_agent", "parameters": {}}
    offered = [{"type": "namespace", "name": "mcp__remit", "tools": [inner]}, {**inner, "name": "add"}]

    async with serving([call]) as (server, client):
        told = (await ask(client, "responses", tools=offered)).whole

    assert [(one.get("namespace"), one["name"]) for one in told["output"]] == [
        ("mcp__remit", "call_agent"),
        (None, "add"),
    ]
    assert server.requests[0].tools == ("mcp__remit__call_agent", "add")
    events = (await one(call, "responses", stream=True)).events
    added = [data["item"] for name, data in events if name == "response.output_item.added"]
    assert [item.get("namespace") for item in added] == ["mcp__remit", None]
    chat = (await one(call)).whole["choices"][0]["message"]["tool_calls"]
    assert [made["function"]["name"] for made in chat] == ["mcp__remit__call_agent", "add"]
    messages = (await one(call, "messages")).whole["content"]
    assert [block["name"] for block in messages] == ["mcp__remit__call_agent", "add"]


# --- messages ----------------------------------------------------------------------------------


@pytest.mark.rule("script.dialects")
async def test_messages_says_and_calls():
    told = (await one(TWO_CALLS, "messages")).whole

    assert told.pop("usage").keys() == {"input_tokens", "output_tokens"}
    assert told == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "big",
        "stop_sequence": None,
        "content": [
            {"type": "text", "text": "let me see"},
            {"type": "tool_use", "id": "call_1", "name": "add", "input": {"a": 1, "b": 2}},
            {"type": "tool_use", "id": "mine", "name": "look", "input": {"at": "sky"}},
        ],
        "stop_reason": "tool_use",
    }
    assert (await one(Says("hi"), "messages")).whole["stop_reason"] == "end_turn"


@pytest.mark.rule("script.dialects")
async def test_messages_streams():
    told = await one(Calls("add", {"a": 1}, text=SENTENCE, usage=(7, 3)), "messages", stream=True)

    names = [name for name, _ in told.events]
    assert [data["type"] for _, data in told.events] == names
    assert list(dict.fromkeys(names)) == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    begun = told.events[0][1]["message"]
    assert (begun["content"], begun["stop_reason"], begun["usage"]["input_tokens"]) == ([], None, 7)
    starts = [data["content_block"] for name, data in told.events if name == "content_block_start"]
    assert starts == [{"type": "text", "text": ""}, {"type": "tool_use", "id": "call_1", "name": "add", "input": {}}]
    deltas = [(data["index"], data["delta"]) for name, data in told.events if name == "content_block_delta"]
    assert "".join(delta["text"] for _, delta in deltas if delta["type"] == "text_delta") == SENTENCE
    assert json.loads("".join(d["partial_json"] for index, d in deltas if index == 1)) == {"a": 1}
    assert told.events[-2][1] == {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 3},
    }


# --- what every dialect has in common ----------------------------------------------------------


def usage_of(told: Told) -> Any:
    """The figures that a client is told, wherever they stand."""
    if told.whole is not None:
        return told.whole.get("usage")
    found: dict[str, int] = {}
    for _, data in told.events:
        inner = data if isinstance(data, dict) else {}
        for place in (inner, inner.get("response", {}), inner.get("message", {})):
            found |= place.get("usage") or {}
    return found or None


@pytest.mark.rule("script.usage")
@dialects
@streams
async def test_usage_is_right_missing_or_negative(dialect: str, stream: bool):
    right = usage_of(await one(Says(SENTENCE), dialect, stream=stream))
    missing = usage_of(await one(Says(SENTENCE, usage="missing"), dialect, stream=stream))
    negative = usage_of(await one(Says(SENTENCE, usage="negative"), dialect, stream=stream))

    written = "completion_tokens" if dialect == "chat" else "output_tokens"
    assert right[written] == -(-len(SENTENCE) // 4)
    assert missing is None
    assert negative[written] == -5


PARTS = {"cached_tokens": 60, "cache_write_tokens": 10}
CACHED = {
    "chat": {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": PARTS},
    "responses": {"input_tokens": 100, "output_tokens": 7, "input_tokens_details": PARTS},
    "messages": {
        "input_tokens": 30,
        "output_tokens": 7,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 10,
        "cache_creation": {"ephemeral_5m_input_tokens": 6, "ephemeral_1h_input_tokens": 4},
    },
}


@pytest.mark.rule("script.usage")
@dialects
@streams
async def test_usage_has_cached_parts_where_the_format_has_them(dialect: str, stream: bool):
    usage = Usage(100, 7, cached_input=60, cache_written=10, cache_written_1h=4)
    told = usage_of(await one(Says(SENTENCE, usage=usage), dialect, stream=stream))

    assert told.items() >= CACHED[dialect].items()


@pytest.mark.rule("script.limited")
@dialects
@streams
@pytest.mark.parametrize(
    "reply", [Says("half a", limited=True), Calls("add", '{"a', limited=True), Empty(limited=True)], ids=repr
)
async def test_an_answer_that_stopped_at_its_limit_says_so(dialect: str, stream: bool, reply: ModelReply):
    told = await one(reply, dialect, stream=stream)

    text = json.dumps(told.whole if told.whole is not None else [data for _, data in told.events])
    said = {
        "chat": '"finish_reason": "length"',
        "responses": '"reason": "max_output_tokens"',
        "messages": '"stop_reason": "max_tokens"',
    }
    assert said[dialect] in text
    if dialect == "responses":
        last = told.whole if told.whole is not None else told.events[-1][1]["response"]
        assert last["status"] == "incomplete"
        assert told.whole is not None or told.events[-1][0] == "response.incomplete"


@pytest.mark.rule("script.counted")
async def test_tokens_are_counted_without_the_script():
    async with serving([Says("hi")]) as (server, client):
        counted = await client.post("/v1/messages/count_tokens", json={"model": "big", "messages": HELLO})
        wrong = await client.post("/v1/messages/count_tokens", json={"model": "big"})
        answered = await ask(client, "messages")

    assert counted.json() == {"input_tokens": answered.whole["usage"]["input_tokens"]}
    assert (wrong.status_code, wrong.json()["type"]) == (400, "error")
    assert len(server.requests) == 1


@pytest.mark.rule("script.requests")
@dialects
@streams
async def test_a_request_is_recorded_as_it_was_asked(dialect: str, stream: bool):
    named = {"name": "look", "description": "look at it"}
    tool = {"type": "function", "function": named} if dialect == "chat" else {**named, "type": "function"}
    limit = {"chat": "max_tokens", "responses": "max_output_tokens", "messages": "max_tokens"}[dialect]

    async with serving([Says("hi")]) as (server, client):
        await ask(client, dialect, stream=stream, tools=[tool, {"type": "web_search"}], **{limit: 50})
        await server.asked(1)

    request = server.requests[0]
    assert (request.path, request.dialect, request.model, request.key) == (PATHS[dialect], dialect, "big", "k1")
    assert (request.messages, request.tools, request.text) == (tuple(HELLO), ("look", "web_search"), "hello")
    assert (request.max_tokens, request.stream, request.body["model"]) == (50, stream, "big")


@pytest.mark.rule("script.requests")
@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab"),
        ({"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "3"}]}]}, "3"),
        ({"type": "function_call_output", "call_id": "c", "output": "3"}, "3"),
        ({"role": "assistant", "content": None}, ""),
    ],
)
async def test_the_words_of_the_last_message_are_at_hand(message: dict[str, Any], text: str):
    async with serving([Says("hi")], strict=False) as (server, client):
        await ask(client, messages=[*HELLO, message])

    assert server.requests[0].text == text


@pytest.mark.rule("script.order")
async def test_replies_come_in_order_and_a_function_looks_at_the_request():
    async with serving([Says("one"), Fails(503), Says("two")]) as (_, client):
        said = [(await ask(client)).whole for _ in range(3)]
    assert [one.get("choices", [{}])[0].get("message", {}).get("content") for one in said] == ["one", None, "two"]

    def script(request: ModelRequest) -> ModelReply:
        return Fails(401) if request.key != "k2" else Says(f"{request.model} heard {request.text}")

    async with serving(script) as (_, client):
        assert (await ask(client)).status == 401
        headers = {"authorization": "Bearer k2"}
        heard = await client.post(PATHS["chat"], json=body(), headers=headers)
        assert heard.json()["choices"][0]["message"]["content"] == "big heard hello"


@pytest.mark.rule("script.order")
async def test_a_function_may_wait():
    held = asyncio.Event()

    async def script(_: ModelRequest) -> ModelReply:
        await held.wait()
        return Says("at last")

    async with serving(script) as (server, client), asyncio.TaskGroup() as group:
        asking = group.create_task(ask(client))
        await server.asked(1)
        assert not asking.done()
        held.set()

    assert asking.result().whole["choices"][0]["message"]["content"] == "at last"


@pytest.mark.rule("script.dialects")
@dialects
@streams
async def test_what_is_empty_has_the_form_of_an_answer(dialect: str, stream: bool):
    told = await one(Empty(), dialect, stream=stream)

    assert told.status == 200
    if dialect == "chat" and not stream:
        assert told.whole["choices"][0]["message"] == {"role": "assistant", "content": "", "refusal": None}
    elif not stream:
        assert told.whole["output" if dialect == "responses" else "content"] == []
    else:
        assert not any("delta" in name for name, _ in told.events if name != "message_delta")


@pytest.mark.rule("script.dialects")
@dialects
@streams
async def test_hostile_answers_go_through_as_they_are(dialect: str, stream: bool):
    reply = Calls("no such\0tool", "{not json \ud800", text="\0\ud800" + "x" * 5_000_000)

    told = await one(reply, dialect, stream=stream)

    assert told.status == 200
    assert len(told.events) < 100
    text = json.dumps(told.whole if told.whole is not None else [data for _, data in told.events])
    assert "\\u0000\\ud800x" in text
    assert "no such\\u0000tool" in text
    assert "not json" in text.replace('", "', "") or stream


# --- failures ----------------------------------------------------------------------------------

STATUSES = [400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529]


@pytest.mark.rule("script.failures")
@dialects
@streams
async def test_every_status_has_the_form_of_its_provider(dialect: str, stream: bool):
    async with serving([Fails(status) for status in STATUSES]) as (_, client):
        told = [await ask(client, dialect, stream=stream) for _ in STATUSES]

    assert [one.status for one in told] == STATUSES
    errors = [one.whole["error"] for one in told]
    if dialect == "messages":
        assert all(one.whole["type"] == "error" for one in told)
        kinds = dict(zip(STATUSES, (error["type"] for error in errors), strict=True))
        assert (kinds[401], kinds[429], kinds[500]) == ("authentication_error", "rate_limit_error", "api_error")
        assert kinds[529] == "overloaded_error"
    else:
        assert all(error.keys() == {"message", "type", "param", "code"} for error in errors)
        codes = dict(zip(STATUSES, (error["code"] for error in errors), strict=True))
        assert (codes[401], codes[404]) == ("invalid_api_key", "model_not_found")
        assert (codes[429], codes[500]) == ("rate_limit_exceeded", None)


@pytest.mark.rule("script.failures")
async def test_a_failure_says_its_code_its_words_and_how_long_to_wait():
    told = await one(Fails(429, code="insufficient_quota", message="no money", retry_after=7))

    assert told.whole["error"] == {
        "message": "no money",
        "type": "insufficient_quota",
        "param": None,
        "code": "insufficient_quota",
    }
    assert told.headers["retry-after"] == "7"
    assert (await one(Fails(429, retry_after=1.5))).headers["retry-after-ms"] == "1500"
    assert (await one(Fails(429, code="x"), "messages")).whole["error"]["type"] == "x"
    assert "retry-after" not in (await one(Fails(429))).headers


@pytest.mark.rule("script.failures")
@dialects
async def test_an_overflow_is_told_as_the_provider_does(dialect: str):
    told = await one(Overflow(), dialect)

    assert told.status == 400
    assert told.whole["error"]["type"] == "invalid_request_error"
    if dialect == "messages":
        assert "too long" in told.whole["error"]["message"]
    else:
        assert told.whole["error"]["code"] == "context_length_exceeded"


@pytest.mark.rule("script.failures")
@dialects
@streams
async def test_a_reply_is_cut_in_the_middle(dialect: str, stream: bool):
    got = b""

    async def read(client: httpx.AsyncClient) -> None:
        nonlocal got
        async with client.stream("POST", PATHS[dialect], json=body(dialect, stream=stream)) as told:
            assert told.status_code == 200
            async for part in told.aiter_raw():
                got += part

    async with serving([Cut(Says(SENTENCE))]) as (_, client):
        with pytest.raises(httpx.RemoteProtocolError):
            await read(client)

    assert len(got) > 100
    assert b'finish_reason": "stop' not in got
    assert b"total_tokens" not in got
    assert b"message_stop" not in got


@pytest.mark.rule("script.failures")
@dialects
@streams
async def test_a_connection_is_reset(dialect: str, stream: bool):
    async with serving([Reset(), Cut(Reset()), Says("hi")]) as (server, client):
        for _ in range(2):
            with pytest.raises(httpx.TransportError):
                await ask(client, dialect, stream=stream)
        assert (await ask(client, dialect)).status == 200

    assert len(server.requests) == 3


@pytest.mark.rule("script.failures")
@streams
async def test_garbage_is_no_json(stream: bool):
    async with serving([Garbage(), Garbage("", content_type="text/html")]) as (_, client):
        first, second = [await client.post(PATHS["chat"], json=body(stream=stream)) for _ in range(2)]

    assert (first.status_code, second.status_code) == (200, 200)
    assert "bad gateway" in first.text
    assert first.headers["content-type"] == ("text/event-stream" if stream else "application/json")
    assert (second.headers["content-type"], second.text) == ("text/html", "")


@pytest.mark.rule("script.failures")
@streams
async def test_a_slow_reply_drips_by_the_clock(stream: bool):
    clock = FakeClock()
    began = clock.now()
    async with serving([Slow(Says(SENTENCE), 60)], clock=clock) as (server, client), asyncio.TaskGroup() as group:
        asking = group.create_task(ask(client, stream=stream))
        await server.asked(1)

        async def done() -> bool:
            return asking.done()

        await pass_time(clock, done, step=0.5)

    assert clock.now() - began >= 59_000_000
    assert asking.result().status == 200


@pytest.mark.rule("script.failures")
async def test_a_client_does_not_wait_for_what_is_too_slow():
    async with serving(lambda _: Slow(Says("hi"), 60)) as (server, client):
        with pytest.raises(httpx.ReadTimeout):
            await client.post(PATHS["chat"], json=body(), timeout=httpx.Timeout(30, read=0.05))
        await server.asked(1)


@pytest.mark.rule("script.failures")
async def test_a_reset_can_be_late():
    clock = FakeClock()
    began = clock.now()
    async with serving([Slow(Reset(), 9)], clock=clock) as (server, client):
        asking = asyncio.create_task(client.post(PATHS["chat"], json=body()))
        await server.asked(1)

        async def done() -> bool:
            return asking.done()

        await pass_time(clock, done)

    assert isinstance(asking.exception(), httpx.TransportError)
    assert clock.now() - began >= 9_000_000


# --- bad requests, and bad scripts -------------------------------------------------------------


@pytest.mark.rule("script.refuses")
@pytest.mark.parametrize(
    ("path", "sent", "said"),
    [
        ("chat", b"{", "no JSON"),
        ("chat", b"[" * 100_000, "no JSON"),
        ("chat", b"[1]", "no JSON object"),
        ("chat", {"messages": HELLO}, "names no model"),
        ("chat", {"model": "big"}, "no messages; give 'messages'"),
        ("chat", {"model": "big", "messages": []}, "no messages"),
        ("chat", {"model": "big", "messages": ["hello"]}, "no messages"),
        ("messages", {"model": "big", "messages": "hello", "max_tokens": 1}, "no messages"),
        ("messages", {"model": "big", "messages": HELLO}, "'max_tokens' is a whole number"),
        ("chat", {"model": "big", "messages": HELLO, "max_tokens": 0}, "is a whole number of at least 1"),
        ("chat", {"model": "big", "messages": HELLO, "stream": "yes"}, "'stream' is true or false"),
        ("responses", {"model": "big"}, "no messages; give 'input'"),
        ("responses", {"model": "big", "input": ""}, "no messages"),
    ],
)
async def test_a_bad_request_gets_a_sentence(path: str, sent: Any, said: str):
    content = sent if isinstance(sent, bytes) else json.dumps(sent).encode()

    async with serving([]) as (server, client):
        got = await client.post(PATHS[path], content=content)

    assert got.status_code == 400
    assert said in got.json()["error"]["message"]
    assert server.requests == []


@pytest.mark.rule("script.refuses")
async def test_what_is_no_request_to_a_model_is_told_what_is():
    async with serving([], body_limit=1_000) as (_, client):
        elsewhere = await client.post("/chat/completions", json=body())
        wrong = await client.get(PATHS["chat"])
        large = await client.post(PATHS["chat"], content=b"x" * 1_000_000)
        endless = await client.post(PATHS["chat"], content=parts([b"{}"]))
        wide = await client.post(PATHS["chat"], json=body(), headers={"x-much": "x" * 70_000})

    assert (elsewhere.status_code, wrong.status_code, large.status_code) == (404, 405, 413)
    assert "there is no /chat/completions here; ask at /v1/chat/completions" in elsewhere.json()["error"]["message"]
    assert "takes POST, not GET" in wrong.json()["error"]["message"]
    assert "at most 1,000 bytes" in large.json()["error"]["message"]
    assert (endless.status_code, wide.status_code) == (411, 431)


async def parts(content: Sequence[bytes]) -> AsyncIterator[bytes]:
    for part in content:
        yield part


async def raw(server: ModelServer, sent: bytes) -> bytes:
    """Send exactly this, and give back all that comes."""
    with anyio.fail_after(20):
        reader, writer = await connect(server)
        try:
            writer.write(sent)
            writer.write_eof()
            return await reader.read()
        finally:
            writer.close()


@pytest.mark.rule("script.refuses")
async def test_what_is_no_http_is_refused_and_who_hangs_up_is_let_go():
    async with model_server() as server:
        assert b"400 Bad Request" in await raw(server, b"hello\r\n\r\n")
        assert b"411 Length Required" in await raw(server, b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n")
        assert b"413 " in await raw(server, b"POST / HTTP/1.1\r\ncontent-length: 99999999999999\r\n\r\n")
        assert await raw(server, b"") == b""
        assert await raw(server, b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\n{") == b""


@pytest.mark.rule("script.refuses")
async def test_there_are_only_so_many_connections():
    async with serving(lambda _: Slow(Says("hi"), 60), connections=2) as (server, client), asyncio.TaskGroup() as group:
        asking = [group.create_task(ask(client)) for _ in range(2)]
        await server.asked(2)

        told = await client.post(PATHS["chat"], json=body())

        assert told.status_code == 503
        assert "2 connections at a time" in told.json()["error"]["message"]
        for one in asking:
            one.cancel()


@pytest.mark.rule("script.refuses")
async def test_a_connection_above_the_number_that_may_be_turned_away_is_reset():
    async with model_server(connections=1) as server:
        held = [await connect(server) for _ in range(2)]
        assert b"503 Service Unavailable" in await held[1][0].readline()
        third, writer = await connect(server)
        try:
            with pytest.raises(ConnectionResetError):
                await third.readline()
        finally:
            for one in (writer, held[0][1], held[1][1]):
                one.close()


async def connect(server: ModelServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))


@pytest.mark.rule("script.faults")
async def test_a_script_that_ran_out_says_so_to_the_client_and_at_the_end():
    async def run() -> None:
        async with serving([Says("one")]) as (_, client):
            await ask(client)
            told = await ask(client)
            assert told.status == 400
            assert "the script ran out after 1 replies" in told.whole["error"]["message"]

    with pytest.raises(ScriptFailed, match="request 2, to big: the script ran out after 1 replies"):
        await run()


@pytest.mark.rule("script.faults")
async def test_a_script_that_fails_is_told_at_the_end():
    def broken(request: ModelRequest) -> ModelReply:
        raise KeyError(request.model)

    def wordless(_: ModelRequest) -> Any:
        return "hi"

    async def run(script: Script) -> None:
        async with serving(script) as (server, client):
            assert (await ask(client)).status == 400
            assert "asked 1 times" in repr(server)

    for script, said in ((broken, "KeyError: 'big'"), (wordless, "replies with Says")):
        with pytest.raises(ScriptFailed, match=said):
            await run(script)


@pytest.mark.rule("script.faults")
@pytest.mark.parametrize("consequence", [AssertionError("not ok"), Failed("'coder' failed", agent="coder", task="t1")])
async def test_a_bug_in_the_script_fails_the_test_in_place_of_what_followed_from_it(consequence: Exception):
    def broken(request: ModelRequest) -> ModelReply:
        raise KeyError(request.model)

    async def run() -> None:
        async with serving(broken) as (_, client):
            await ask(client)
            raise consequence

    with pytest.raises(ScriptFailed, match="KeyError: 'big'") as failed:
        await run()
    bug = failed.value.__cause__
    assert isinstance(bug, KeyError)
    assert [frame.filename for frame in extract_tb(bug.__traceback__)] == [__file__]


@pytest.mark.rule("script.faults")
async def test_an_assertion_fails_as_it_is_if_the_script_has_no_bug():
    async def run() -> None:
        async with serving([Says("one")]) as (_, client):
            await ask(client)
            raise AssertionError("its own")

    with pytest.raises(AssertionError, match="its own"):
        await run()


@pytest.mark.rule("script.faults")
async def test_a_test_that_fails_is_not_told_of_the_script_instead():
    async def run() -> None:
        async with serving([]) as (_, client):
            await ask(client)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run()


@pytest.mark.rule("script.refuses")
async def test_a_connection_is_used_again_unless_it_is_to_be_closed():
    async with serving([Says("one"), Says("two")]) as (_, client):
        await ask(client)
        got = await client.post(PATHS["chat"], json=body(), headers={"connection": "close"})

    assert got.status_code == 200


# --- strict providers -------------------------------------------------------------------------


def chat_call(id_: str = "c1") -> dict[str, Any]:
    called = {"id": id_, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [called]}


def chat_result(id_: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": "seen"}


def item(kind: str, **more: Any) -> dict[str, Any]:
    about = {"name": "look", "arguments": "{}"} if kind == "function_call" else {"output": "seen"}
    return {"type": kind, "call_id": "c1", **about, **more}


def blocks(role: str, *given: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(given)}


USE: dict[str, Any] = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
RESULT: dict[str, Any] = {"type": "tool_result", "tool_use_id": "c1", "content": "seen"}
CALL, OUTPUT = item("function_call"), item("function_call_output")

ALLOWED: list[tuple[str, list[dict[str, Any]]]] = [
    ("chat", [chat_call(), chat_result()]),
    ("responses", [CALL, OUTPUT]),
    ("messages", [blocks("assistant", USE), blocks("user", RESULT, {"type": "text", "text": "and?"})]),
]
REFUSED: dict[str, tuple[str, list[dict[str, Any]], str]] = {
    "chat: no result": ("chat", [chat_call()], "call 'c1' has no result"),
    "chat: no result before others": ("chat", [chat_call(), *HELLO, chat_result()], "call 'c1' has no result"),
    "chat: no call": ("chat", [chat_result()], "has the result of call 'c1', which does not precede it"),
    "chat: an unknown field": ("chat", [{"role": "user", "content": "x", "rs_1": ""}], "has an unknown field 'rs_1'"),
    "chat: an unknown role": ("chat", [{"role": "oracle", "content": "x"}], "there are no messages of kind 'oracle'"),
    "chat: a bad id": ("chat", [chat_call("c 1"), chat_result("c 1")], "'c 1' is no id of a call"),
    "chat: nothing said": ("chat", [{"role": "assistant", "content": None}], "has neither words nor calls"),
    "chat: no calls": ("chat", [{"role": "assistant", "content": "x", "tool_calls": []}], "is an empty list"),
    "responses: no result": ("responses", [CALL], "call 'c1' has no result"),
    "responses: no call": ("responses", [OUTPUT, CALL], "there is a result of call 'c1', and no such call before it"),
    "responses: an id of another kind": ("responses", [item("function_call", id="c9"), OUTPUT], "the id 'c9' is not"),
    "responses: an unknown field": ("responses", [item("function_call", x=1), OUTPUT], "has an unknown field 'x'"),
    "messages: no result": ("messages", [blocks("assistant", USE)], "call 'c1' has no result"),
    "messages: a late result": (
        "messages",
        [blocks("assistant", USE), *HELLO, blocks("user", RESULT)],
        "call 'c1' has no result in the next message",
    ),
    "messages: no call": ("messages", [blocks("user", RESULT)], "there is a result of call 'c1', and no such call"),
    "messages: a bad id": ("messages", [blocks("assistant", USE | {"id": "a.b:0"}), *HELLO], "'a.b:0' is no id"),
    "messages: two of one id": ("messages", [blocks("assistant", USE, USE), *HELLO], "two calls have the id 'c1'"),
    "messages: no words": ("messages", [blocks("user", {"type": "text", "text": " "})], "a block of text has no words"),
    "messages: nothing": ("messages", [blocks("user")], "a message has no content"),
    "messages: an unknown block": ("messages", [blocks("user", {"type": "x"})], "no messages of kind 'x'"),
}


@pytest.mark.rule("script.strict")
@pytest.mark.parametrize(("dialect", "more"), ALLOWED)
async def test_what_strict_providers_allow_is_answered(dialect: str, more: list[dict[str, Any]]):
    name = "input" if dialect == "responses" else "messages"
    assert (await one(Says("hi"), dialect, **{name: [*HELLO, *more]})).status == 200


@pytest.mark.rule("script.strict")
@pytest.mark.parametrize("what", REFUSED)
async def test_what_strict_providers_refuse_is_refused_and_fails_the_test(what: str):
    dialect, more, sentence = REFUSED[what]
    name = "input" if dialect == "responses" else "messages"
    with pytest.raises(ScriptFailed, match=re.escape(sentence)):
        assert (await one(Says("hi"), dialect, **{name: [*HELLO, *more]})).status == 400


@pytest.mark.rule("script.strict")
async def test_strict_providers_know_the_fields_of_a_request_and_the_names_of_tools():
    with pytest.raises(ScriptFailed, match="the request has an unknown field 'rs_1'"):
        await one(Says("hi"), rs_1="")
    with pytest.raises(ScriptFailed, match="the name of tool 'look at' is not one of letters"):
        await one(Says("hi"), tools=[{"type": "function", "function": {"name": "look at"}}])
    with pytest.raises(ScriptFailed, match="the first message is not the user's"):
        await one(Says("hi"), "messages", messages=[{"role": "assistant", "content": "x"}, *HELLO])
    async with serving([Says("hi")], strict=False) as (_, client):
        assert (await ask(client, rs_1="")).status == 200
