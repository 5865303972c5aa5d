"""Recorded conversations of pydantic-ai: their content, their rough size, a shorter version, an answer as text and
back, and the dialect.

All functions are pure. Nothing here depends on the time or the run.
"""

import copy
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, replace
from datetime import datetime
from functools import lru_cache
from itertools import compress
from math import isfinite
from operator import attrgetter, is_not
from typing import Any, Final, NamedTuple, TypeAlias, cast

from pydantic_ai.messages import (
    BaseToolCallPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.usage import RequestUsage
from pydantic_core import to_jsonable_python

from remit.adapters.guests import MOST_CALLS, left_out, unlike
from remit.codec import encode
from remit.core.prices import PER_MESSAGE
from remit.core.values import Json, tokens_in
from remit.ports.models import ModelAnswer

# -- conversations as values ---------------------------------------------------------------------------------


RESULT: Final = 8_000  # characters of a tool's result that are kept when the context is shortened
SHORT_RESULT: Final = 2_000  # the same when nothing else has helped
NEAR: Final = 200  # characters before the cut in which a line end is preferred

Messages: TypeAlias = Sequence[ModelMessage]

# Fields of a part that are not content: times, ids, provider names and types.
_ASIDE: Final = frozenset(
    ("timestamp", "id", "signature", "provider_name", "provider_details", "metadata", "citations", "tool_kind", "retry")
)
_write: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode
_BAD: Final = re.compile("[\0\ud800-\udfff]")
# Escapes that become invalid characters when the JSON is parsed.
_ESCAPED: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


# --- size ----------------------------------------------------------------------------


def size_of(messages: Messages, parameters: ModelRequestParameters, trim: int = 0) -> int:
    """Return a rough count of the input tokens, with the context shortened to level `trim`."""
    shorter = trimmed(messages, trim)
    told = sum(PER_MESSAGE + sum(map(tokens_in, _texts(message))) for message in shorter)
    schemas = [_canonical([tool.parameters_json_schema, tool.description]) for tool in parameters.tool_defs.values()]
    return told + tokens_in(_instructions(shorter)) + sum(map(tokens_in, schemas)) + tokens_in(_output(parameters))


def _output(parameters: ModelRequestParameters) -> str:
    """Return the required form of the answer as text."""
    whole = parameters.output_object
    if whole is None and not parameters.output_tools:
        return ""
    wanted = [(tool.name, tool.parameters_json_schema) for tool in parameters.output_tools]
    shape = None if whole is None else (whole.name, whole.json_schema)
    return _canonical([parameters.output_mode, parameters.allow_text_output, wanted, shape])


def _instructions(messages: Messages) -> str:
    """Return the instructions of the last request; only those are sent."""
    last = next((one for one in reversed(messages) if isinstance(one, ModelRequest)), None)
    return "" if last is None else last.instructions or ""


def _texts(message: ModelMessage) -> Iterator[str]:
    for part in message.parts:
        for name in _recorded_fields(type(part)):
            value = getattr(part, name)
            yield value if isinstance(value, str) else _canonical(value)


@lru_cache
def _recorded_fields(kind: type[Any]) -> tuple[str, ...]:
    return tuple(sorted(field.name for field in fields(kind) if field.name[0] != "_" and field.name not in _ASIDE))


def _canonical(value: object) -> str:
    """Return a text that is equal for equal values. It need not be JSON: it is never parsed."""
    return _write(to_jsonable_python(value, bytes_mode="base64", serialize_unknown=True))


# --- shorter ------------------------------------------------------------------------------------


def trimmed(messages: Messages, level: int) -> list[ModelMessage]:
    """Return a shorter conversation. Level 1 cuts long tool results; level 2 drops the older half; from level 3 on,
    results are cut shorter and as much as possible is dropped. The first and the last message always stay, and a tool
    call is never separated from its result."""
    if level <= 0:
        return list(messages)
    if level == 1:
        return _cut(messages, RESULT)
    if level == 2:
        return _halved(messages)
    return _halved(_cut(messages, SHORT_RESULT), most=True)


def _cut(messages: Messages, most: int) -> list[ModelMessage]:
    return [_with_short_results(one, most) if isinstance(one, ModelRequest) else one for one in messages]


def _with_short_results(message: ModelRequest, most: int) -> ModelRequest:
    parts = [_short_result(part, most) if type(part) is ToolReturnPart else part for part in message.parts]
    return message if parts == list(message.parts) else replace(message, parts=parts)


def _short_result(part: ToolReturnPart, most: int) -> ToolReturnPart:
    if part.files:  # files cannot be cut like text
        return part
    text = part.model_response_str(wrap_if_error=False)
    return part if len(text) <= most else replace(part, content=shortened(text, most))


def shortened(text: str, most: int) -> str:
    """Return text that is cut, at the end of a line if one is near, with a note of how much is missing."""
    if len(text) <= most:
        return text
    end = text.rfind("\n", most - NEAR, most)
    kept = text[: most if end < 0 else end]
    return f"{kept}\n[{len(text) - len(kept):,} more characters were cut off to save space; ask for less at once]"


def _halved(messages: Messages, *, most: bool = False) -> list[ModelMessage]:
    """Return the conversation without its oldest messages after the first, until half of it is gone, or as much as
    possible."""
    safe = _safe_cuts(messages)
    if not safe:
        return list(messages)
    sizes = [sum(map(len, _texts(message))) for message in messages]
    half = sum(sizes[1:]) / 2
    at = safe[-1] if most else next((cut for cut in safe if sum(sizes[1:cut]) >= half), safe[-1])
    return [_with_note(messages[0], at - 1), *messages[at:]]


def _safe_cuts(messages: Messages) -> list[int]:
    """Return the indexes where a conversation may continue after its first message: with an answer, so that both sides
    still alternate, and where every result has its call. Something must be dropped, and the last message must stay."""
    found: list[int] = []
    wanting: set[str] = set()  # results whose calls come earlier
    for at in range(len(messages) - 1, 1, -1):
        message = messages[at]
        if isinstance(message, ModelRequest):
            wanting.update(part.tool_call_id for part in message.parts if isinstance(part, ToolReturnPart))
        else:
            wanting.difference_update(call.tool_call_id for call in _calls(message))
            if not wanting:
                found.append(at)
    return found[::-1]


def _with_note(message: ModelMessage, left_out: int) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    note = UserPromptPart(f"[{left_out} earlier messages were left out here to save space]")
    return replace(message, parts=[*message.parts, note])


# --- answers ------------------------------------------------------------------------------------


def encoded(answer: ModelResponse) -> str:
    """Return an answer as text; `decoded` returns an equal answer."""
    plain = _plain(answer, frozenset())
    if plain is not None:
        try:
            return encode([plain])
        except TypeError:  # a whole number beyond 64 bits
            pass
    return ModelMessagesTypeAdapter.dump_json([answer], exclude_none=True).decode()


def as_json(message: ModelMessage, without: frozenset[str] = frozenset()) -> Json:
    """Return a message as JSON, without these fields."""
    plain = _plain(message, without)
    if plain is not None:
        return plain
    cut = replace(message, **{name: None for name in without if hasattr(message, name)})
    (written,) = ModelMessagesTypeAdapter.dump_python([cut], mode="json", exclude_none=True)
    return written


def _plain(thing: object, without: frozenset[str]) -> dict[str, Json] | None:
    """Return a message of plain parts as JSON, without default values, or None if a part is not plain. The framework's
    own serializer checks every part against all kinds and takes ten times as long."""
    kind = _KINDS.get(type(thing))
    if kind is None:
        return None
    values = kind.values(thing)
    found: dict[str, Json] = {}
    unusual = compress(zip(kind.names, values, kind.usual, strict=True), map(is_not, values, kind.usual))
    for name, value, usual in unusual:
        if value is None or name in without:
            continue
        if type(value) is str:
            found[name] = value
        elif (written := _plain_value(value, without)) is None:
            return None
        elif written != usual:
            found[name] = written
    return found


def _plain_value(value: object, without: frozenset[str]) -> Json:
    """Return the value of a field as JSON, or None if it is not plain."""
    kind = type(value)
    if kind is int:
        return cast("int", value)
    if isinstance(value, datetime):
        return value.isoformat() if value.tzinfo is not None else None
    if kind in _KINDS:
        return _plain(value, without)
    listed = cast("list[object]", value) if kind is list else []
    if _KINDS.keys().isdisjoint(map(type, listed)):
        return cast("Json", value) if _is_json(value) else None
    parts: list[Json] = []
    for part in listed:
        if (written := _plain(part, without)) is None:
            return None
        parts.append(written)
    return parts


def _is_json(value: object) -> bool:
    if type(value) is list:
        return all(map(_is_json, cast("list[object]", value)))
    if type(value) is dict:
        pairs = cast("dict[object, object]", value)
        return all(type(key) is str for key in pairs) and all(map(_is_json, pairs.values()))
    return value is None or type(value) in (str, int, bool) or (type(value) is float and isfinite(value))


def _usual_value(field: Field[Any]) -> Any:
    """Return the default of a field, which is left out of the record, or MISSING if the field is always written. The
    kind of a message is always written, because it tells the reader the class."""
    if field.name in ("kind", "part_kind"):
        return MISSING
    if field.default_factory is MISSING:
        return field.default
    made = field.default_factory()
    return made if made in ({}, []) else MISSING


class _Kind(NamedTuple):
    """A kind of message or part: its field names, their defaults, and a getter for all values at once."""

    names: tuple[str, ...]
    usual: tuple[Any, ...]
    values: Callable[[object], tuple[Any, ...]]


def _kind(kind: type[Any]) -> _Kind:
    usual = {field.name: _usual_value(field) for field in fields(kind) if field.name[0] != "_"}
    return _Kind(tuple(usual), tuple(usual.values()), attrgetter(*usual))


_KINDS: Final = {
    kind: _kind(kind)
    for kind in cast(
        "tuple[type[Any], ...]",
        (
            ModelRequest,
            ModelResponse,
            RequestUsage,
            SystemPromptPart,
            TextPart,
            ThinkingPart,
            ToolCallPart,
            ToolReturnPart,
            UserPromptPart,
        ),
    )
}


def decoded(text: str) -> ModelResponse:
    """Return the answer that `encoded` wrote. Raise `ValueError` for another text."""
    (answer,) = ModelMessagesTypeAdapter.validate_json(text)
    if not isinstance(answer, ModelResponse):
        raise ValueError("this is no answer of a model")  # noqa: TRY004 - the text is something else
    return answer


def said_in(message: ModelMessage) -> list[str]:
    """Return the content of a message, without the provider's ids and times."""
    return [message.kind, *_texts(message)]


def calls_of(answer: ModelResponse) -> tuple[str, ...]:
    """Return the names of the tools that an answer calls."""
    return tuple(call.tool_name for call in _calls(answer))


def is_empty(answer: ModelResponse) -> bool:
    """Whether an answer has no content without a reason. An answer that hit the token limit or a filter would be empty
    again."""
    nothing = all(isinstance(part, TextPart) and not part.content for part in answer.parts)
    return nothing and answer.finish_reason not in ("length", "content_filter")


def _calls(answer: ModelResponse) -> list[ToolCallPart]:
    return [part for part in answer.parts if isinstance(part, ToolCallPart)]


def cleaned(answer: ModelResponse, taken: Iterable[str] = ()) -> ModelResponse:
    """Return an answer without NUL and half surrogate pairs, which no store can hold and no client sends, and with a
    new id for each call whose id occurs twice, here or among those `taken` earlier in the conversation. Calls beyond
    the limit of one answer are left out, with a note."""
    answer, seen = _with_few_calls(answer), {*taken}
    parts = [_clean_part(part, seen) for part in answer.parts]
    same = all(part is before for part, before in zip(parts, answer.parts, strict=True))
    return answer if same else replace(answer, parts=parts)


def _with_few_calls(answer: ModelResponse) -> ModelResponse:
    more = _calls(answer)[MOST_CALLS:]
    if not more:
        return answer
    unused = frozenset(map(id, more))
    used = [part for part in answer.parts if id(part) not in unused]
    return replace(answer, parts=[*used, TextPart(left_out(len(more)))])


def _clean_part(part: Any, seen: set[str]) -> Any:
    if isinstance(part, TextPart | ThinkingPart):
        return part if not _BAD.search(part.content) else replace(part, content=clean_text(part.content))
    if not isinstance(part, BaseToolCallPart):
        return part
    call = cast("BaseToolCallPart[Any]", part)
    name, args, id_ = clean_text(call.tool_name), _clean_args(call.args), clean_text(call.tool_call_id)
    if isinstance(call, ToolCallPart):
        id_ = unlike(id_, seen)
    if (name, args, id_) == (call.tool_name, call.args, call.tool_call_id):
        return call
    return replace(call, tool_name=name, args=args, tool_call_id=id_)


def _clean_args(args: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
    if not isinstance(args, str):
        return cast("dict[str, Any] | None", _clean(args))
    args = clean_text(args)
    if not _ESCAPED.search(args):
        return args
    try:
        return json.dumps(_clean(json.loads(args)), ensure_ascii=False)
    except (ValueError, RecursionError):  # not JSON: the model gets the error
        return args


def _clean(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {_clean(key): _clean(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list):
        return [_clean(item) for item in cast("list[object]", value)]
    return value


def clean_text(text: str) -> str:
    """Return text without NUL, and with U+FFFD in place of half a surrogate pair."""
    return _BAD.sub(lambda found: "" if found[0] == "\0" else "\ufffd", text) if _BAD.search(text) else text


# -- the dialect ---------------------------------------------------------------------------------------------


_MADE_BY: Final = "remit_model"  # metadata key: the model that gave the answer
_NOT_WRITTEN: Final = frozenset(("instructions", "timestamp", "run_id", "conversation_id"))
_SAID: Final = ("tool_name", "content", "args")
_STRANGE: Final = re.compile(r"[^A-Za-z0-9_-]")  # characters that some providers reject in a call id
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
_LONGEST_ID: Final = 36  # of the 40 characters of an id; `unlike` may append a number
_PROVIDERS: Final = ("id", "signature", "provider_name", "provider_details")


class PydanticDialect:
    """How pydantic-ai writes a conversation: requests and responses of several parts each."""

    framework: str = "pydantic-ai"

    def is_said(self, message: ModelMessage) -> bool:
        return isinstance(message, ModelResponse)

    def words(self, message: ModelMessage) -> Any:
        return said_in(message)

    def calls(self, message: ModelMessage) -> list[str]:
        return [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]

    def gist(self, messages: Sequence[ModelMessage]) -> Any:
        return [
            [part.part_kind, *(getattr(part, name, None) for name in _SAID)] for one in messages for part in one.parts
        ]

    def results(self, messages: Sequence[ModelMessage]) -> dict[str, Any]:
        return {part.tool_call_id: part for one in messages for part in one.parts if type(part) is ToolReturnPart}

    def messages_json(self, messages: Sequence[ModelMessage], elsewhere: Collection[str]) -> Json:
        """Return messages as JSON, without times and run ids, and without the contents of the results of the calls in
        `elsewhere`. Instructions are left out too, because only those of the next request are sent."""
        return [as_json(_without(one, elsewhere) if elsewhere else one, _NOT_WRITTEN) for one in messages]

    def read(self, told: Any, results: Mapping[str, Any]) -> list[ModelMessage]:
        return [_with(one, results) for one in ModelMessagesTypeAdapter.validate_python(told)]

    def result(self, value: Any, call: str) -> Any:
        return value

    def with_results(self, messages: list[ModelMessage], results: Mapping[str, Any]) -> list[ModelMessage]:
        return [_with(one, results) for one in messages]

    def with_news(self, messages: list[ModelMessage], text: str) -> list[ModelMessage]:
        last = messages[-1] if messages else None
        if not isinstance(last, ModelRequest):
            return [*messages, ModelRequest([UserPromptPart(text)])]
        return [*messages[:-1], replace(last, parts=[*last.parts, UserPromptPart(text)])]

    def answer(self, reply: ModelAnswer) -> ModelResponse:
        return reply.response if isinstance(reply.response, ModelResponse) else decoded(reply.text)

    def answer_messages(self, answer: ModelResponse) -> list[ModelMessage]:
        return [answer]

    def question_message(self, text: str) -> ModelMessage:
        return ModelRequest([UserPromptPart(text)])

    def replied(self, text: str) -> ModelMessage:
        return ModelResponse([TextPart(text)])

    def after(self, past: list[ModelMessage], messages: list[ModelMessage]) -> list[ModelMessage]:
        first = messages[0] if messages else None
        if not past or not isinstance(first, ModelRequest):
            return [*past, *messages]
        system = [part for part in first.parts if isinstance(part, SystemPromptPart)]
        rest = replace(first, parts=[part for part in first.parts if not isinstance(part, SystemPromptPart)])
        return [*([ModelRequest(system)] if system else []), *past, rest, *messages[1:]]

    def retold(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        plain = [_without_system(one) if isinstance(one, ModelRequest) else one for one in messages]
        return [one for one in plain if one.parts]


DIALECT: Final = PydanticDialect()


def made_by(answer: ModelResponse, model: str) -> ModelResponse:
    """Return an answer with a note of the model that gave it."""
    return _changed(answer, metadata={**(answer.metadata or {}), _MADE_BY: model})


def portable(messages: Sequence[ModelMessage], model: str) -> list[ModelMessage]:
    """Return a conversation for a model: answers of another model lose their ids, signatures and thoughts, which a
    provider does not accept from another, and some APIs of one provider do not accept from each other. Their calls get
    ids that every provider accepts."""
    if not any(isinstance(one, ModelResponse) and _is_foreign(one, model) for one in messages):
        return [*messages]
    seen = {call for one in messages for call in DIALECT.calls(one)}
    renamed: dict[str, str] = {}
    told: list[ModelMessage] = []
    for one in messages:
        if isinstance(one, ModelResponse):
            strange = [call for call in DIALECT.calls(one) if not _PLAIN_ID.fullmatch(call)]
            if _is_foreign(one, model):
                renamed |= {call: unlike(_STRANGE.sub("_", call)[:_LONGEST_ID], seen) for call in strange}
                one = _stripped(one, renamed)  # noqa: PLW2901
        elif renamed:
            one = _with_ids(one, renamed)  # noqa: PLW2901
        told.append(one)
    return told


def _is_foreign(answer: ModelResponse, model: str) -> bool:
    return (answer.metadata or {}).get(_MADE_BY, model) != model


def _stripped(answer: ModelResponse, renamed: Mapping[str, str]) -> ModelResponse:
    parts: list[Any] = []
    for part in answer.parts:
        if not isinstance(part, ThinkingPart):
            foreign: dict[str, Any] = {name: None for name in _PROVIDERS if getattr(part, name, None) is not None}
            if isinstance(part, ToolCallPart) and part.tool_call_id in renamed:
                foreign["tool_call_id"] = renamed[part.tool_call_id]
            parts.append(replace(part, **foreign) if foreign else part)
    return replace(answer, parts=parts, provider_name=None, provider_details=None, provider_response_id=None)


def _with_ids(message: ModelRequest, renamed: Mapping[str, str]) -> ModelRequest:
    """Return the results of calls with the new ids of the calls."""
    parts: list[Any] = []
    for part in message.parts:
        call = part.tool_call_id if isinstance(part, ToolReturnPart) else ""
        parts.append(replace(part, tool_call_id=renamed[call]) if call in renamed else part)
    return replace(message, parts=parts)


def _without_system(message: ModelRequest) -> ModelRequest:
    parts = [part for part in message.parts if not isinstance(part, SystemPromptPart)]
    return replace(message, parts=parts, instructions=None)


def _without(message: ModelMessage, elsewhere: Collection[str]) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    parts = [
        _changed(part, content="") if type(part) is ToolReturnPart and part.tool_call_id in elsewhere else part
        for part in message.parts
    ]
    return _changed(message, parts=parts)


def _changed(thing: Any, **changes: Any) -> Any:
    """Return a copy with other values in some fields."""
    made = copy.copy(thing)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def _with(message: ModelMessage, results: Mapping[str, Any]) -> ModelMessage:
    """Return the message with these tool results in place of its own; each is a part of this run's messages, or a
    recorded value."""
    if not isinstance(message, ModelRequest):
        return message
    parts: list[Any] = []
    for part in message.parts:
        if type(part) is not ToolReturnPart or part.tool_call_id not in results:
            parts.append(part)
        elif isinstance(found := results[part.tool_call_id], ToolReturnPart):
            parts.append(found)
        elif part.outcome == "retried":  # the framework's message for a call that it could not make
            parts.append(ToolReturnPart(part.tool_name, found, part.tool_call_id))
        else:
            parts.append(replace(part, content=found))
    return replace(message, parts=parts)
