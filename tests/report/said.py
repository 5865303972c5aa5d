"""What frameworks write of a conversation, and who said what in it. The report and the dashboard read the same."""

from typing import Any

from remit.report.talk import CalledTool, Utterance

SAID: list[tuple[Any, list[Utterance]]] = [
    # pydantic-ai
    (
        [
            {
                "kind": "response",
                "parts": [
                    {"part_kind": "thinking", "content": "hm"},
                    {"part_kind": "text", "content": "I look"},
                    {"part_kind": "tool-call", "tool_name": "look", "args": '{"a":1}', "tool_call_id": "c1"},
                    {"part_kind": "tool-call", "tool_name": "look", "args": {"a": 2}, "tool_call_id": "c2"},
                    {"part_kind": "tool-call", "tool_name": "list"},
                    "odd",
                ],
            }
        ],
        [
            Utterance("model", "hm"),
            Utterance("model", "I look"),
            Utterance("model", calls=(CalledTool("look", '{"a":1}', "c1"),)),
            Utterance("model", calls=(CalledTool("look", '{"a":2}', "c2"),)),
            Utterance("model", calls=(CalledTool("list"),)),
        ],
    ),
    (
        {
            "kind": "request",
            "parts": [
                {"part_kind": "system-prompt", "content": "be kind"},
                {"part_kind": "user-prompt", "content": ["see", {"kind": "image-url", "url": "x"}]},
                {"part_kind": "tool-return", "tool_name": "look", "content": {"n": 1}, "tool_call_id": "c1"},
                {
                    "part_kind": "retry-prompt",
                    "tool_name": "look",
                    "content": [{"msg": "no"}],
                    "tool_call_id": "c2",
                },
                {"part_kind": "retry-prompt", "content": "again"},
            ],
        },
        [
            Utterance("prompt", "be kind"),
            Utterance("prompt", "see\n[image-url]"),
            Utterance("tool", '{"n":1}', call="c1"),
            Utterance("tool", "no", call="c2"),
            Utterance("prompt", "again"),
        ],
    ),
    # openai-agents
    (
        {
            "output": [
                {"type": "reasoning", "summary": []},
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look"}]},
                {"type": "function_call", "name": "look", "arguments": "{}", "call_id": "c1"},
                {"type": "web_search_call", "id": "w"},
                "odd",
            ],
            "usage": {},
        },
        [
            Utterance("model", "hm"),
            Utterance("model", "I look"),
            Utterance("model", calls=(CalledTool("look", "{}", "c1"),)),
            Utterance("model", calls=(CalledTool("web_search_call"),)),
            Utterance("model", "odd"),
        ],
    ),
    (
        [
            {"role": "user", "content": "find it"},
            {"type": "function_call_output", "call_id": "c1", "output": "there"},
            {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        ],
        [Utterance("prompt", "find it"), Utterance("tool", "there", call="c1"), Utterance("model", "no")],
    ),
    # langchain
    (
        [
            {
                "message": {
                    "type": "ai",
                    "data": {
                        "content": [{"type": "text", "text": "I look"}],
                        "tool_calls": [{"name": "look", "args": {"a": 1}, "id": "c1"}],
                    },
                },
                "info": None,
            }
        ],
        [Utterance("model", "I look", (CalledTool("look", '{"a":1}', "c1"),))],
    ),
    (
        [
            {"type": "human", "data": {"content": "find it"}},
            {"type": "tool", "data": {"content": "there", "tool_call_id": "c1"}},
            {"type": "AIMessageChunk", "data": {"content": "", "tool_calls": None}},
        ],
        [Utterance("prompt", "find it"), Utterance("tool", "there", call="c1"), Utterance("model")],
    ),
    # none of them
    ("just words", [Utterance("model", "just words")]),
    ("[not json", [Utterance("model", "[not json")]),
    ("7", [Utterance("model", "7")]),
    (None, [Utterance("model")]),
    ([1], [Utterance("model", "1")]),
    ({"odd": 1}, [Utterance("model", '{"odd":1}')]),
]
