"""The formats of model requests: what is read of an answer, wherever its bytes are cut, and what is held back."""

import json
from typing import Any

import pytest

from remit.adapters.gateway.gemini import Gemini, gemini_at
from remit.adapters.gateway.reading import MOST_KEPT, AnswerTooLarge, StreamedAnswer
from remit.adapters.gateway.tools import ToolPermit
from remit.adapters.gateway.wires import WIRES, WireFormat
from remit.core.allow import ANY
from remit.core.prices import Usage
from remit.core.remit import Kit
from remit.errors import BadInput

GEMINI = Gemini("gemini-x", streams=True)
MESSAGES, CHAT, RESPONSES = WIRES["/v1/messages"], WIRES["/v1/chat/completions"], WIRES["/v1/responses"]


def sse(*events: Any) -> bytes:
    return b"".join(f"event: {one.get('type', '')}\ndata: {json.dumps(one)}\n\n".encode() for one in events)


MESSAGES_STREAM = sse(
    {
        "type": "message_start",
        "message": {
            "model": "claude-x",
            "usage": {
                "input_tokens": 10,
                "cache_read_input_tokens": 5,
                "cache_creation_input_tokens": 3,
                "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 2},
                "output_tokens": 1,
            },
        },
    },
    {"type": "ping"},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Ich prüfe "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "das."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t1", "name": "Bash"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"command":'}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '"ls"}'}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}},
    {"type": "message_stop"},
)


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"model": "gpt-x", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None}


CACHED = {"cached_tokens": 5, "cache_write_tokens": 3}
CHAT_STREAM = (
    sse(
        chunk({"role": "assistant", "content": "Ich prüfe "}),
        chunk({"content": "das."}),
        chunk({"tool_calls": [{"index": 0, "id": "t1", "function": {"name": "Bash", "arguments": '{"command":'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"ls"}'}}]}),
        chunk({}, "tool_calls"),
        {
            "model": "gpt-x",
            "choices": [],
            "usage": {"prompt_tokens": 18, "completion_tokens": 20, "prompt_tokens_details": CACHED},
        },
    )
    + b"data: [DONE]\n\n"
)
RESPONSES_STREAM = sse(
    {"type": "response.created", "response": {"model": "gpt-x"}},
    {"type": "response.output_text.delta", "delta": "Ich prüfe "},
    {"type": "response.output_text.delta", "delta": "das."},
    {
        "type": "response.output_item.done",
        "output_index": 1,
        "item": {"type": "function_call", "call_id": "t1", "name": "Bash", "arguments": '{"command":"ls"}'},
    },
    {
        "type": "response.completed",
        "response": {
            "model": "gpt-x",
            "usage": {"input_tokens": 18, "output_tokens": 20, "input_tokens_details": CACHED},
        },
    },
)


def content(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": [*parts]}, **more}], "modelVersion": "gemini-x"}


GEMINI_STREAM = sse(
    content({"text": "thinking", "thought": True}),
    content({"text": "Ich prüfe "}),
    {**content({"text": "das."}), "usageMetadata": {"promptTokenCount": 18}},
    content({"functionCall": {"id": "t1", "name": "Bash", "args": {"command": "ls"}}}),
    {
        **content({"text": ""}, finishReason="STOP"),
        "usageMetadata": {
            "promptTokenCount": 18,
            "cachedContentTokenCount": 5,
            "candidatesTokenCount": 12,
            "thoughtsTokenCount": 8,
        },
    },
)
STREAMS = {
    "gemini": (GEMINI, GEMINI_STREAM, Usage(18, 20, 5)),
    "messages": (MESSAGES, MESSAGES_STREAM, Usage(18, 20, 5, 3, cache_written_1h=2)),
    "chat": (CHAT, CHAT_STREAM, Usage(18, 20, 5, 3)),
    "responses": (RESPONSES, RESPONSES_STREAM, Usage(18, 20, 5, 3)),
}


def read(wire: WireFormat, pieces: list[bytes]) -> tuple[bytes, StreamedAnswer]:
    """What is passed on of these pieces, and the reader that holds the rest."""
    reader = wire.reader(streams=True)
    assert isinstance(reader, StreamedAnswer)
    passed = b"".join(reader.feed(piece) for piece in pieces)
    reader.finish()
    return passed, reader


@pytest.mark.rule("gateway.bytes")
@pytest.mark.parametrize("name", STREAMS)
def test_an_answer_is_read_alike_wherever_its_bytes_are_cut(name: str):
    wire, stream, usage = STREAMS[name]
    for place in range(1, len(stream)):
        passed, reader = read(wire, [stream[:place], stream[place:]])
        found = reader.answer
        assert passed + reader.held == stream, "not a byte is lost or changed"
        assert (found.text, found.usage, found.ended) == ("Ich prüfe das.", usage, True)
        (call,) = found.calls
        assert (call.id, call.name, json.loads(call.arguments)) == ("t1", "Bash", {"command": "ls"})


@pytest.mark.rule("gateway.recorded-first")
@pytest.mark.parametrize("name", STREAMS)
def test_a_finished_tool_call_and_the_end_are_held_back(name: str):
    wire, stream, _ = STREAMS[name]
    passed, reader = read(wire, [stream])
    assert "prüfe".encode() in b"".join(json.dumps(one, ensure_ascii=False).encode() for one in events(passed))
    assert b"message_stop" not in passed
    assert b"response.completed" not in passed
    assert b"[DONE]" not in passed
    assert reader.held
    if name in ("responses", "gemini"):
        assert b'"Bash"' not in passed
    if name == "messages":
        assert passed.count(b"content_block_stop") == 2, "an event and its data, of the text only"


def events(data: bytes) -> list[Any]:
    lines = [line[6:] for line in data.decode().split("\n") if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


def test_lines_may_end_in_any_way():
    wire, stream, usage = STREAMS["messages"]
    for end in (b"\r\n", b"\r"):
        changed = stream.replace(b"\n", end)
        for place in (1, 7, len(changed) // 2, len(changed) - 1):
            passed, reader = read(wire, [changed[:place], changed[place:]])
            assert passed + reader.held == changed
            assert reader.answer.usage == usage


@pytest.mark.rule("gateway.usage")
def test_usage_that_is_missing_or_cannot_be_true_is_no_usage():
    for usage in ({}, {"input_tokens": -1, "output_tokens": 3}, {"input_tokens": "7"}, {"input_tokens": True}, None):
        start = {"type": "message_start", "message": {"usage": usage}}
        _, reader = read(MESSAGES, [sse(start, {"type": "message_stop"})])
        assert reader.answer.usage is None
    _, reader = read(CHAT, [sse(chunk({"content": "x"}, "stop")) + b"data: [DONE]\n\n"])
    assert reader.answer.usage is None
    for usage in ({"candidatesTokenCount": 3}, {"promptTokenCount": 5, "candidatesTokenCount": -1}, {}, None):
        _, reader = read(GEMINI, [sse({**content({"text": "x"}, finishReason="STOP"), "usageMetadata": usage})])
        assert (reader.answer.usage, reader.answer.ended) == (None, True)


@pytest.mark.rule("gateway.usage")
def test_usage_that_is_repeated_without_the_ages_of_the_cache_keeps_them():
    usage = {"input_tokens": 10, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 3, "output_tokens": 1}
    ages = {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 2}
    begun = {"type": "message_start", "message": {"model": "claude-x", "usage": {**usage, "cache_creation": ages}}}
    _, reader = read(MESSAGES, [sse(begun, {"type": "message_delta", "usage": {**usage, "output_tokens": 7}})])
    assert reader.answer.usage == Usage(13, 7, 0, 3, cache_written_1h=2)


@pytest.mark.rule("gateway.usage")
def test_a_program_that_did_not_ask_for_usage_does_not_see_it():
    body = {"model": "gpt-x", "stream": True, "messages": []}
    sent = CHAT.rewritten(body, "gpt-x", 100, "openai")
    assert sent["stream_options"] == {"include_usage": True}
    reader = CHAT.reader(streams=True, drops_usage=CHAT.drops_usage(body))
    passed = reader.feed(CHAT_STREAM)
    assert b"prompt_tokens" not in passed + reader.held
    assert reader.answer.usage == Usage(18, 20, 5, 3)
    assert not CHAT.drops_usage({**body, "stream_options": {"include_usage": True}})


WHOLE: dict[str, tuple[WireFormat, dict[str, Any]]] = {
    "gemini": (
        GEMINI,
        {
            **content(
                {"text": "hi"}, {"functionCall": {"id": "t", "name": "f", "args": {"a": 1}}}, finishReason="STOP"
            ),
            "usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 2},
        },
    ),
    "messages": (
        MESSAGES,
        {
            "type": "message",
            "model": "claude-x",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
            ],
            "usage": {"input_tokens": 4, "output_tokens": 2},
        },
    ),
    "chat": (
        CHAT,
        {
            "model": "gpt-x",
            "choices": [
                {
                    "message": {
                        "content": "hi",
                        "tool_calls": [{"id": "t", "function": {"name": "f", "arguments": '{"a": 1}'}}],
                    }
                }
            ],
            "usage": {"prompt_tokens": 4, "completion_tokens": 2},
        },
    ),
    "responses": (
        RESPONSES,
        {
            "model": "gpt-x",
            "status": "completed",
            "output": [
                {"type": "message", "content": [{"type": "output_text", "text": "hi"}]},
                {"type": "function_call", "call_id": "t", "name": "f", "arguments": '{"a": 1}'},
            ],
            "usage": {"input_tokens": 4, "output_tokens": 2},
        },
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_an_answer_that_is_not_streamed_is_read_whole(name: str):
    wire, body = WHOLE[name]
    reader = wire.reader(streams=False)
    data = json.dumps(body).encode()
    assert reader.feed(data[:9]) + reader.feed(data[9:]) == b""
    reader.finish()
    assert reader.held == data
    assert (reader.answer.text, reader.answer.usage, reader.answer.ended) == ("hi", Usage(4, 2), True)
    assert reader.answer.calls == (("t", "f", '{"a": 1}'),)


@pytest.mark.parametrize("wire", [*WIRES.values(), GEMINI], ids=lambda wire: wire.name)
def test_what_a_provider_sends_is_not_trusted(wire: WireFormat):
    for body in (b"[]", b"null", b"{", b'{"content": 7, "choices": {"a": 1}, "output": "x"}', b"\xff\xfe"):
        reader = wire.reader(streams=False)
        reader.feed(body)
        reader.finish()
        assert not reader.answer.calls
        assert reader.answer.usage is None
        streamed = wire.reader(streams=True)
        streamed.feed(b"data: " + body + b"\n\n")
        streamed.finish()
        assert not streamed.answer.ended


def test_an_answer_has_a_limit():
    reader = MESSAGES.reader(streams=True)
    piece = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x" * 2**20}}
    stream = sse(*[piece] * 8)
    with pytest.raises(AnswerTooLarge, match=f"{MOST_KEPT:,}"):
        reader.feed(stream)


@pytest.mark.rule("gateway.limit")
def test_a_lower_limit_lowers_the_budget_of_thinking():
    body = {"model": "m", "max_tokens": 32_000, "thinking": {"type": "enabled", "budget_tokens": 31_999}}
    assert MESSAGES.rewritten(body, "m", 8_000, "anthropic")["thinking"] == {"type": "enabled", "budget_tokens": 7_999}
    assert "thinking" not in MESSAGES.rewritten(body, "m", 1_000, "anthropic")
    assert RESPONSES.rewritten({"model": "m"}, "m", 8_000, "openai")["max_output_tokens"] == 8_000
    assert CHAT.rewritten({"model": "m"}, "m", 8_000, "openai")["max_completion_tokens"] == 8_000
    assert CHAT.rewritten({"model": "m"}, "m", 8_000, "groq")["max_tokens"] == 8_000
    assert CHAT.rewritten({"model": "m", "max_tokens": 9_000}, "m", 8_000, "openai")["max_tokens"] == 8_000


NOTHING_LISTED = ToolPermit(Kit(ANY), ())


@pytest.mark.rule("gateway.hosted")
def test_tools_that_the_provider_runs_for_money_are_taken_out():
    tools = [{"name": "Bash", "input_schema": {}}, {"type": "web_search_20250305", "name": "web_search"}]
    sent = MESSAGES.permitted_request({"tools": tools, "mcp_servers": [{}]}, NOTHING_LISTED)
    assert sent == {"tools": tools[:1]}
    hosted = [{"type": "web_search"}, {"type": "code_interpreter"}, {"type": "mcp", "server_url": "x"}]
    asked = {"tools": hosted, "tool_choice": "required", "parallel_tool_calls": True}
    assert RESPONSES.permitted_request(asked, NOTHING_LISTED) == {}
    assert CHAT.permitted_request({"web_search_options": {}}, NOTHING_LISTED) == {}


@pytest.mark.rule("gateway.hosted")
def test_tools_of_the_provider_stay_if_the_card_lists_them():
    listed = ToolPermit(Kit(ANY), ("web_search", "mcp"))
    body = {"tools": [{"type": "web_search_20250305", "name": "web_search"}], "mcp_servers": [{}]}
    assert MESSAGES.permitted_request(body, listed) == body
    two = {"tools": [{"type": "web_search_preview"}, {"type": "image_generation"}]}
    assert RESPONSES.permitted_request(two, listed) == {"tools": two["tools"][:1]}
    assert CHAT.permitted_request({"web_search_options": {}}, listed) == {"web_search_options": {}}


CHOSEN: dict[str, tuple[WireFormat, list[dict[str, Any]], dict[str, Any]]] = {
    "messages": (MESSAGES, [{"name": "Bash"}, {"name": "Read"}], {"type": "tool", "name": "Bash"}),
    "chat": (
        CHAT,
        [{"type": "function", "function": {"name": name}} for name in ("Bash", "Read")],
        {"type": "function", "function": {"name": "Bash"}},
    ),
    "responses": (
        RESPONSES,
        [{"type": "function", "name": name} for name in ("Bash", "Read")],
        {"type": "function", "name": "Bash"},
    ),
}


@pytest.mark.rule("gateway.tools")
@pytest.mark.parametrize("name", CHOSEN)
def test_a_tool_that_is_denied_is_taken_out_with_the_choice_of_it(name: str):
    wire, tools, choice = CHOSEN[name]
    body = {"tools": tools, "tool_choice": choice}
    denied = ToolPermit(Kit(ANY, frozenset({"Bash"})), ())
    assert wire.permitted_request(body, denied) == {"tools": tools[1:]}
    bounded = ToolPermit(Kit(frozenset({"Bash"})), ())
    assert wire.permitted_request(body, bounded) == {"tools": tools[:1], "tool_choice": choice}
    assert wire.permitted_request(body, ToolPermit(Kit(), ())) == {}
    auto = {"tools": tools, "tool_choice": {"type": "auto"}}
    assert wire.permitted_request(auto, denied) == {"tools": tools[1:], "tool_choice": {"type": "auto"}}


@pytest.mark.rule("gateway.tools")
def test_a_verb_is_known_by_its_own_name():
    inner = [{"type": "function", "name": name} for name in ("call_agent", "handoff")]
    denied = ToolPermit(Kit(ANY, frozenset({"handoff"})), ())
    nested = {"type": "namespace", "name": "mcp__remit", "tools": inner}
    assert RESPONSES.permitted_request({"tools": [nested]}, denied) == {"tools": [{**nested, "tools": inner[:1]}]}
    assert RESPONSES.permitted_request({"tools": [nested]}, ToolPermit(Kit(), ())) == {}
    flat = [{"name": "mcp__remit__call_agent"}, {"name": "mcp__remit__handoff"}, {"name": "mcp__other__handoff"}]
    assert MESSAGES.permitted_request({"tools": flat}, denied) == {"tools": [flat[0], flat[2]]}


@pytest.mark.rule("gateway.hosted")
def test_what_the_provider_ran_is_named():
    use = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    start = {"type": "content_block_start", "index": 0, "content_block": {**use, "input": {}}}
    _, reader = read(MESSAGES, [sse(start, {"type": "content_block_stop", "index": 0}, {"type": "message_stop"})])
    assert (reader.answer.hosted, reader.answer.calls) == (["web_search"], ())
    done = {"type": "response.output_item.done", "output_index": 0, "item": {"type": "web_search_call", "id": "w"}}
    passed, reader = read(RESPONSES, [sse(done)])
    assert (reader.answer.hosted, reader.answer.calls, reader.held) == (["web_search"], (), b"")
    assert b"web_search_call" in passed
    whole = CHAT.reader(streams=False)
    message = {"content": "found", "annotations": [{"type": "url_citation"}]}
    whole.feed(json.dumps({"choices": [{"message": message}]}).encode())
    whole.finish()
    assert whole.answer.hosted == ["web_search"]
    assert whole.answer.items()[0] == {"type": "hosted_tool_call", "name": "web_search", "arguments": ""}


@pytest.mark.parametrize(
    ("wire", "body", "says"),
    [
        (MESSAGES, {}, "model is missing"),
        (MESSAGES, {"model": "m", "max_tokens": 0}, "at least 1"),
        (MESSAGES, {"model": "m", "stream": "yes"}, "true or false"),
        (CHAT, {"model": "m", "n": 3}, "n is 1"),
        (RESPONSES, {"model": "m", "background": True}, "background"),
        (GEMINI, {"generationConfig": {"candidateCount": 2}}, "candidateCount is 1"),
        (GEMINI, {"generationConfig": {"maxOutputTokens": 0}}, "at least 1"),
    ],
)
def test_a_request_that_cannot_be_passed_on_is_refused(wire: WireFormat, body: dict[str, Any], says: str):
    with pytest.raises(BadInput, match=says):
        wire.read_request(body)


def test_the_new_part_of_a_request_is_what_follows_the_last_answer():
    messages = MESSAGES.read_request(
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": "do it"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]},
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "done"}]},
                        {"type": "text", "text": "go on"},
                    ],
                },
            ],
        }
    )
    result = {"type": "function_call_output", "call_id": "t1", "output": "done"}
    assert messages.news == [result, {"type": "message", "role": "user", "content": "go on"}]
    chat = CHAT.read_request(
        {
            "model": "m",
            "messages": [
                {"role": "assistant", "content": ""},
                {"role": "tool", "tool_call_id": "t1", "content": "done"},
            ],
        }
    )
    assert chat.news == [result]
    given = [
        {"type": "function_call", "call_id": "t1"},
        {"type": "function_call_output", "call_id": "t1", "output": "done"},
    ]
    assert RESPONSES.read_request({"model": "m", "input": given}).news == [result]
    assert RESPONSES.read_request({"model": "m", "input": "hi"}).news == [
        {"type": "message", "role": "user", "content": "hi"}
    ]


def test_names_of_tools_are_read_in_every_form():
    assert CHAT.read_request({"model": "m", "tools": [{"type": "function", "function": {"name": "f"}}]}).tools == {"f"}
    nested = [{"type": "namespace", "name": "mcp__remit", "tools": [{"type": "function", "name": "call_agent"}]}]
    assert RESPONSES.read_request({"model": "m", "tools": [*nested, {"type": "local_shell"}]}).tools == {
        "call_agent",
        "local_shell",
    }


@pytest.mark.rule("gateway.gemini")
def test_a_request_of_gemini_is_read_from_its_path():
    assert gemini_at("/v1/messages", b"") is None
    assert gemini_at("/v1beta/models/m:countTokens", b"") is None
    with pytest.raises(BadInput, match="alt=sse"):
        gemini_at("/v1beta/models/m:streamGenerateContent", b"key=x")
    stable = gemini_at("/v1/models/m:generateContent", b"")
    assert stable is not None
    assert stable.place("n") == "/v1/models/n:generateContent"
    whole = gemini_at("/v1beta/models/m:generateContent", b"")
    streamed = gemini_at("/v1beta/models/m:streamGenerateContent", b"alt=sse")
    assert whole is not None
    assert streamed is not None
    assert (whole.read_request({}).model, whole.read_request({}).streams, streamed.read_request({}).streams) == (
        "m",
        False,
        True,
    )
    assert whole.place("n") == "/v1beta/models/n:generateContent"
    assert streamed.place("n") == "/v1beta/models/n:streamGenerateContent?alt=sse"
    tools = [{"functionDeclarations": [{"name": "Bash"}]}, {"google_search": {}}]
    assert whole.read_request({"tools": tools, "generationConfig": {"maxOutputTokens": 7}})[1:4] == (
        7,
        False,
        {"Bash", "web_search"},
    )


@pytest.mark.rule("gateway.gemini", "gateway.limit")
def test_a_request_of_gemini_gets_its_limit():
    sent = GEMINI.rewritten({"contents": []}, "m", 8_000, "google")
    assert sent == {"contents": [], "generationConfig": {"maxOutputTokens": 8_000}}
    config = {"max_output_tokens": 9, "thinkingConfig": {"thinkingBudget": 9_000, "includeThoughts": True}}
    sent = GEMINI.rewritten({"generation_config": config}, "m", 8_000, "google")
    thinking = {"thinkingBudget": 7_999, "includeThoughts": True}
    assert sent == {"generationConfig": {"maxOutputTokens": 8_000, "thinkingConfig": thinking}}


@pytest.mark.rule("gateway.gemini", "gateway.tools", "gateway.hosted")
def test_tools_of_gemini_are_taken_out():
    tools = [{"functionDeclarations": [{"name": "Bash"}, {"name": "mcp_remit_handoff"}]}, {"googleSearch": {}}]
    body = {"tools": tools, "toolConfig": {"functionCallingConfig": {"allowedFunctionNames": ["Bash"]}}}
    assert GEMINI.permitted_request(body, NOTHING_LISTED) == {"tools": tools[:1]}
    assert GEMINI.permitted_request(body, ToolPermit(Kit(ANY), ("web_search",))) == body
    denied = ToolPermit(Kit(ANY, frozenset({"Bash"})), ())
    assert GEMINI.permitted_request(body, denied) == {
        "tools": [{"functionDeclarations": [{"name": "mcp_remit_handoff"}]}]
    }
    assert GEMINI.permitted_request(body, ToolPermit(Kit(), ())) == {}
    used = content({"executableCode": {}}, groundingMetadata={"a": 1}, urlContextMetadata={"b": 1})
    _, reader = read(GEMINI, [sse(used)])
    assert reader.answer.hosted == ["code_execution", "web_search", "web_fetch"]


@pytest.mark.rule("gateway.gemini")
def test_what_is_new_in_a_request_of_gemini():
    answers = [{"id": "t1", "name": "Bash", "response": {"output": "done"}}, {"name": "Read", "response": {"x": 1}}]
    contents = [
        {"role": "user", "parts": [{"text": "do it"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "Bash"}}]},
        {"role": "user", "parts": [*({"functionResponse": one} for one in answers), {"text": "go on"}]},
    ]
    assert GEMINI.read_request({"contents": contents}).news == [
        {"type": "function_call_output", "call_id": "t1", "output": "done"},
        {"type": "function_call_output", "call_id": "Read", "output": '{"x": 1}'},
        {"type": "message", "role": "user", "content": "go on"},
    ]
    assert len(GEMINI.read_request({"contents": contents[:1]}).news) == 1


@pytest.mark.rule("gateway.gemini", "gateway.cut")
def test_an_answer_of_gemini_can_fail_or_be_blocked():
    _, reader = read(GEMINI, [sse({"error": {"message": "overloaded"}})])
    assert (reader.answer.failed, reader.answer.ended) == ("overloaded", False)
    _, reader = read(GEMINI, [sse({"promptFeedback": {"blockReason": "SAFETY"}})])
    assert reader.answer.ended
    assert json.loads(GEMINI.cut("no", again=False)[6:])["error"]["message"] == "no"


@pytest.mark.rule("gateway.refusal")
def test_a_refusal_stops_every_program():
    for wire in (MESSAGES, CHAT, GEMINI):
        for streams in (True, False):
            refusal = wire.refusal("not now", streams=streams)
            assert refusal.status == 400
            assert ("x-should-retry", "false") in refusal.headers
            assert json.loads(refusal.body)["error"]["message"] == "not now"
    streamed = RESPONSES.refusal("not now", streams=True)
    assert streamed.status == 200
    (event,) = events(streamed.body)
    assert event["response"]["error"] == {"code": "invalid_prompt", "message": "not now"}
