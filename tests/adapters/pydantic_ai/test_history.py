"""Conversations as values: what names a request, how large it is, how it is shortened, and how an answer is kept."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    BinaryContent,
    BinaryImage,
    FilePart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from remit.adapters.pydantic_ai.talking import (
    RESULT,
    SHORT_RESULT,
    as_json,
    cleaned,
    decoded,
    encoded,
    is_empty,
    said_in,
    shortened,
    size_of,
    trimmed,
)

LATER = datetime(2030, 1, 1, tzinfo=UTC)
NOTHING = ModelRequestParameters()


def tools(*names: str, **more: Any) -> ModelRequestParameters:
    return ModelRequestParameters(function_tools=[ToolDefinition(name=name, **more) for name in names])


def turns(count: int, size: int = 100) -> list[ModelMessage]:
    """A prompt, and so many calls of a tool with their results."""
    made: list[ModelMessage] = [ModelRequest([UserPromptPart("the task")], instructions="be brief")]
    for number in range(count):
        made.append(ModelResponse([ToolCallPart("look", {"at": number}, f"c{number}")]))
        made.append(ModelRequest([ToolReturnPart("look", "x" * size, f"c{number}")]))
    return made


# --- digest -------------------------------------------------------------------------------------

ASKED = turns(1)
SAME: dict[str, list[ModelMessage]] = {
    "later": [replace(ASKED[0], timestamp=LATER), replace(ASKED[1], timestamp=LATER), *ASKED[2:]],
    "in another run": [replace(ASKED[0], run_id="r2", conversation_id="c2"), *ASKED[1:]],
    "counted otherwise": [ASKED[0], replace(ASKED[1], usage=RequestUsage(input_tokens=5)), *ASKED[2:]],
    "from another provider": [
        ASKED[0],
        replace(ASKED[1], provider_name="p", provider_response_id="r", provider_url="u", model_name="m"),
        *ASKED[2:],
    ],
    "with notes": [replace(ASKED[0], metadata={"a": 1}), *ASKED[1:]],
}
OTHER: dict[str, list[ModelMessage]] = {
    "another task": [replace(ASKED[0], parts=[UserPromptPart("another")]), *ASKED[1:]],
    "another call id": [ASKED[0], ModelResponse([ToolCallPart("look", {"at": 0}, "d")]), *ASKED[2:]],
    "other arguments": [ASKED[0], ModelResponse([ToolCallPart("look", {"at": 1}, "c0")]), *ASKED[2:]],
    "another tool called": [ASKED[0], ModelResponse([ToolCallPart("see", {"at": 0}, "c0")]), *ASKED[2:]],
    "another result": [*ASKED[:2], ModelRequest([ToolReturnPart("look", "y", "c0")])],
    "another kind of part": [*ASKED[:2], ModelRequest([UserPromptPart("x" * 100)])],
    "less": ASKED[:1],
    "split otherwise": [replace(ASKED[0], parts=[UserPromptPart("the "), UserPromptPart("task")]), *ASKED[1:]],
}


def words(messages: Sequence[ModelMessage]) -> list[list[str]]:
    return [said_in(one) for one in messages]


@pytest.mark.rule("pydantic.same-request")
@pytest.mark.parametrize("way", SAME)
def test_the_same_conversation_has_the_same_words(way: str):
    assert words(SAME[way]) == words(ASKED)


@pytest.mark.rule("pydantic.same-request")
@pytest.mark.parametrize("way", OTHER)
def test_another_conversation_has_other_words(way: str):
    assert words(OTHER[way]) != words(ASKED)


def test_results_that_are_objects_count_in_any_order_of_their_keys():
    one, other = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    first, second = (words([ModelRequest([ToolReturnPart("x", value, "c")])]) for value in (one, other))
    assert first == second


def test_what_is_no_text_can_be_named_and_measured():
    odd: list[ModelMessage] = [
        ModelRequest([UserPromptPart(["see", BinaryContent(b"\0\xff", media_type="image/png"), "\ud800"])]),
        ModelRequest([ToolReturnPart("x", {"at": LATER, "rate": float("nan"), "o": object}, "c")]),
    ]
    assert words(odd)
    assert size_of(odd, NOTHING) > 0


# --- size ---------------------------------------------------------------------------------------


def test_the_size_is_four_characters_to_a_token_and_three_tokens_around_a_message():
    one: list[ModelMessage] = [ModelRequest([UserPromptPart("x" * 400)])]
    kind = len("user-prompt") // 4 + 1
    assert size_of(one, NOTHING) == 100 + 3 + kind
    assert size_of([*one, *one], NOTHING) == 2 * (100 + 3 + kind)


def test_instructions_tools_and_the_shape_of_the_answer_are_read_too():
    plain = size_of(ASKED, NOTHING)
    assert size_of(ASKED, tools("look", description="w" * 400)) >= plain + 100
    assert size_of([replace(ASKED[0], instructions="w" * 400), *ASKED[1:]], NOTHING) == plain  # the last one counts
    assert size_of([*ASKED[:2], replace(ASKED[2], instructions="w" * 400)], NOTHING) >= plain + 90


def test_a_shorter_conversation_is_smaller():
    long = turns(10, 20_000)
    sizes = [size_of(long, NOTHING, level) for level in range(4)]
    assert sizes[0] > sizes[1]
    assert sizes[0] > sizes[2] > sizes[3]
    assert sizes[1] > sizes[3]


# --- shorter ------------------------------------------------------------------------------------


def result(text: Any) -> list[ModelMessage]:
    asked: list[ModelMessage] = [*turns(0), ModelResponse([ToolCallPart("look", {}, "c")])]
    return [*asked, ModelRequest([ToolReturnPart("look", text, "c")])]


def told(messages: list[ModelMessage]) -> str:
    return messages[-1].parts[-1].content  # type: ignore[union-attr]


def test_level_0_changes_nothing_and_no_level_changes_what_it_was_given():
    long = turns(6, 20_000)
    before = [*long]
    assert trimmed(long, 0) == before
    for level in (1, 2, 3, 99):
        trimmed(long, level)
        assert long == before


def test_long_results_are_cut_at_the_end_of_a_line_that_is_near():
    text = "a" * (RESULT - 100) + "\n" + "b" * 500
    kept = told(trimmed(result(text), 1))
    assert kept.startswith("a" * (RESULT - 100) + "\n[501 more characters were cut off")
    assert "b" not in kept.partition("\n")[0]


def test_without_a_line_that_ends_near_they_are_cut_where_they_must_be():
    assert told(trimmed(result("a" * 9_000), 1)).startswith("a" * RESULT + "\n[1,000 more characters")
    early = "a\n" + "b" * 9_000
    assert told(trimmed(result(early), 1)).startswith(early[:RESULT])


def test_results_that_fit_and_results_that_are_files_stay():
    short = result("a" * RESULT)
    assert trimmed(short, 1) == short
    file = result([BinaryContent(b"x" * 20_000, media_type="image/png")])
    assert trimmed(file, 1) == file


def test_a_long_object_is_cut_as_text():
    assert told(trimmed(result({"rows": ["x" * 100] * 200}), 1)).startswith('{"rows":["xxx')


def test_level_2_leaves_the_older_half_out_and_says_so():
    long = turns(10)
    kept = trimmed(long, 2)
    assert len(kept) == 11
    assert kept[1:] == long[11:]
    assert kept[0].parts[0] == long[0].parts[0]
    assert "10 earlier messages were left out" in kept[0].parts[-1].content  # type: ignore[operator, union-attr]


def test_level_3_keeps_the_first_message_and_the_last_exchange():
    kept = trimmed(turns(10, 20_000), 3)
    assert [type(message) for message in kept] == [ModelRequest, ModelResponse, ModelRequest]
    assert len(told(kept)) < SHORT_RESULT + 100


def test_what_cannot_be_left_out_stays():
    for few in (turns(0), turns(1), result("short")):
        assert trimmed(few, 2) == few


def test_a_call_whose_result_comes_late_is_not_parted_from_it():
    late: list[ModelMessage] = [
        ModelRequest([UserPromptPart("task")]),
        ModelResponse([ToolCallPart("slow", {}, "s"), ToolCallPart("look", {}, "a")]),
        ModelRequest([ToolReturnPart("look", "x", "a")]),
        ModelResponse([ToolCallPart("look", {}, "b")]),
        ModelRequest([ToolReturnPart("look", "x", "b"), ToolReturnPart("slow", "x", "s")]),
        ModelResponse([TextPart("done")]),
        ModelRequest([UserPromptPart("and now?")]),
    ]
    assert trimmed(late, 2)[1:] == late[5:]
    assert trimmed(late[:5], 2) == late[:5]


@pytest.mark.rule("pydantic.shorter")
@given(st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=12), st.integers(0, 4))
def test_however_a_conversation_is_shortened_calls_and_results_stay_together(plan: list[list[int]], level: int):
    """Each step calls some tools, whose results come so many steps later."""
    due: dict[int, list[str]] = {}
    messages: list[ModelMessage] = [ModelRequest([UserPromptPart("task")])]
    for step, delays in enumerate(plan):
        calls = [ToolCallPart("t", {}, f"{step}.{at}") for at in range(len(delays))]
        for call, delay in zip(calls, delays, strict=True):
            due.setdefault(min(step + delay, len(plan) - 1), []).append(call.tool_call_id)
        messages.append(ModelResponse([TextPart("hm"), *calls]))
        messages.append(
            ModelRequest([ToolReturnPart("t", "r", one) for one in due.get(step, [])] or [UserPromptPart("?")])
        )
    kept = trimmed(messages, level)
    assert kept[0].parts[0] == messages[0].parts[0]
    assert kept[-1].parts[0] == messages[-1].parts[0]
    assert all(type(one) is not type(other) for one, other in pairwise(kept))
    called = {part.tool_call_id for one in kept for part in one.parts if isinstance(part, ToolCallPart)}
    answered = {part.tool_call_id for one in kept for part in one.parts if isinstance(part, ToolReturnPart)}
    assert called == answered


def test_text_that_fits_is_not_cut():
    assert shortened("abc", 3) == "abc"


# --- answers ------------------------------------------------------------------------------------

ANSWER = ModelResponse(
    parts=[
        ThinkingPart("hm", signature="s", provider_name="p"),
        TextPart("hello"),
        ToolCallPart("look", {"at": None, "in": [None, {"x": None}]}, "c1"),
        ToolCallPart("add", '{"a":1}', "c2", id="fc", provider_name="p"),
        FilePart(BinaryImage(b"\0\xff", media_type="image/png")),
        NativeToolReturnPart("search", {"hits": None}, "n1", timestamp=LATER),
    ],
    usage=RequestUsage(input_tokens=5, output_tokens=2, details={"x": 1}),
    model_name="m",
    timestamp=LATER,
    provider_details={"a": None},
    finish_reason="stop",
)


@pytest.mark.rule("pydantic.answers")
def test_an_answer_is_read_back_as_it_was():
    text = encoded(ANSWER)
    assert decoded(text) == ANSWER
    assert encoded(decoded(text)) == text
    assert words([decoded(text)]) == words([ANSWER])


PLAIN = {
    "text": ModelResponse([TextPart("hello")], model_name="m", timestamp=LATER),
    "no word": ModelResponse([], timestamp=LATER),
    "a thought, and calls": ModelResponse(
        [
            ThinkingPart("hm", signature="s"),
            ToolCallPart("add", '{"a":1}', "c2", id="fc"),
            ToolCallPart("now", None, "c3"),
        ],
        usage=RequestUsage(input_tokens=5, output_tokens=2, details={"x": 1}),
        timestamp=LATER,
        provider_details={"a": None, "b": [0.5, True]},
        finish_reason="stop",
        state="interrupted",
    ),
    "a number beyond 64 bits": ModelResponse([ToolCallPart("add", {"a": 2**70}, "c1")], timestamp=LATER),
}


@pytest.mark.rule("pydantic.answers")
@pytest.mark.parametrize("answer", PLAIN.values(), ids=PLAIN)
def test_a_plain_answer_is_read_back_as_it_was(answer: ModelResponse):
    text = encoded(answer)
    assert decoded(text) == answer
    assert encoded(decoded(text)) == text


@pytest.mark.rule("pydantic.answers")
def test_what_says_nothing_unusual_is_not_written():
    answer = ModelResponse([TextPart("hi")], timestamp=LATER)
    told = ModelRequest([UserPromptPart("hello", timestamp=LATER)], run_id="r", timestamp=LATER)
    assert encoded(answer) == (
        f'[{{"kind":"response","parts":[{{"content":"hi","part_kind":"text"}}],"timestamp":"{LATER.isoformat()}",'
        '"usage":{}}]'
    )
    assert as_json(told, frozenset(("timestamp", "run_id"))) == {
        "kind": "request",
        "parts": [{"content": "hello", "part_kind": "user-prompt"}],
    }
    file = ModelRequest([UserPromptPart(["see", BinaryImage(b"\xff", media_type="image/png")])], run_id="r")
    (read,) = ModelMessagesTypeAdapter.validate_python([as_json(file, frozenset(("run_id",)))])
    assert said_in(read) == said_in(file)


def test_what_is_no_answer_is_not_read():
    for text in ("", "{}", "[]", '[{"kind":"request","parts":[]}]'):
        with pytest.raises(ValueError, match=r".+"):
            decoded(text)


@pytest.mark.rule("pydantic.answers")
def test_nul_and_half_characters_are_taken_out_wherever_a_model_writes():
    bad = ModelResponse(
        [
            TextPart("a\0b\ud800c"),
            ThinkingPart("x\0"),
            ToolCallPart("to\0ol", '{"a": "\\u0000x\\ud83d", "b": "\\ud83d\\ude00"}', "i\0"),
            ToolCallPart("look", {"a\0": ["\udfff", {"b": "ok"}], "n": 1}, "j"),
            ToolCallPart("look", '{"a": "\\ud800', "k"),
        ]
    )
    parts: list[Any] = [*cleaned(bad).parts]
    text, thought, first, second, third = parts
    assert (text.content, thought.content) == ("ab\ufffdc", "x")
    assert (first.tool_name, first.tool_call_id) == ("tool", "i")
    assert first.args_as_dict() == {"a": "x\ufffd", "b": "😀"}
    assert second.args == {"a": ["\ufffd", {"b": "ok"}], "n": 1}
    assert third.args == '{"a": "\\ud800'
    assert decoded(encoded(cleaned(bad))) == cleaned(bad)


def test_an_answer_with_nothing_wrong_stays_as_it_is():
    assert cleaned(ANSWER) == ANSWER


@pytest.mark.rule("pydantic.answers")
def test_calls_under_the_same_id_are_told_apart():
    same = ModelResponse([ToolCallPart("x", {}, "a"), ToolCallPart("y", {}, "a"), ToolCallPart("z", {}, "a_2")])
    assert [call.tool_call_id for call in cleaned(same).tool_calls] == ["a", "a_2", "a_2_2"]


@pytest.mark.parametrize(
    ("parts", "reason", "empty"),
    [
        ([], "stop", True),
        ([TextPart("")], None, True),
        ([TextPart("")], "length", False),
        ([], "content_filter", False),
        ([TextPart("a")], "stop", False),
        ([ThinkingPart("a")], "stop", False),
        ([ToolCallPart("a")], "stop", False),
    ],
)
def test_an_answer_is_empty_if_it_says_nothing_for_no_reason(parts: list[Any], reason: Any, empty: bool):
    assert is_empty(ModelResponse(parts, finish_reason=reason)) is empty
