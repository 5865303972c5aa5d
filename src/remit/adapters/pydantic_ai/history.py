"""A conversation as values: what it says, its rough size, a shorter one, and an answer as text that can be read again.

All of it is pure. Nothing here depends on when something was said, in which run, or by which provider.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from remit.core.text import tokens_in
from remit.core.values import Json

RESULT: Final = 8_000  # characters of a tool's result that are kept when the context is shortened
SHORT_RESULT: Final = 2_000  # the same when nothing else has helped
NEAR: Final = 200  # characters before the cut in which a line may end

Messages: TypeAlias = Sequence[ModelMessage]

# What a part has besides what is said: when, by whom, under which name of the provider's, and for whom it is typed.
_ASIDE: Final = frozenset(
    ("timestamp", "id", "signature", "provider_name", "provider_details", "metadata", "citations", "tool_kind", "retry")
)
_write: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode
_BAD: Final = re.compile("[\0\ud800-\udfff]")
_ESCAPED: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")  # what is bad once the JSON is read


# --- size ----------------------------------------------------------------------------


def size_of(messages: Messages, parameters: ModelRequestParameters, trim: int = 0) -> int:
    """Count roughly how many tokens are read, with the context shortened so far."""
    shorter = trimmed(messages, trim)
    told = sum(PER_MESSAGE + sum(map(tokens_in, _texts(message))) for message in shorter)
    schemas = [_canonical([tool.parameters_json_schema, tool.description]) for tool in parameters.tool_defs.values()]
    return told + tokens_in(_instructions(shorter)) + sum(map(tokens_in, schemas)) + tokens_in(_output(parameters))


def _output(parameters: ModelRequestParameters) -> str:
    """What the answer must look like."""
    whole = parameters.output_object
    if whole is None and not parameters.output_tools:
        return ""
    wanted = [(tool.name, tool.parameters_json_schema) for tool in parameters.output_tools]
    shape = None if whole is None else (whole.name, whole.json_schema)
    return _canonical([parameters.output_mode, parameters.allow_text_output, wanted, shape])


def _instructions(messages: Messages) -> str:
    """Only those of the last request are sent."""
    last = next((one for one in reversed(messages) if isinstance(one, ModelRequest)), None)
    return "" if last is None else last.instructions or ""


def _texts(message: ModelMessage) -> Iterator[str]:
    for part in message.parts:
        for name in _told(type(part)):
            value = getattr(part, name)
            yield value if isinstance(value, str) else _canonical(value)


@lru_cache
def _told(kind: type[Any]) -> tuple[str, ...]:
    return tuple(sorted(field.name for field in fields(kind) if field.name[0] != "_" and field.name not in _ASIDE))


def _canonical(value: object) -> str:
    """Write a value in the one way in which equal values are equal. It may be no JSON: it is never read."""
    return _write(to_jsonable_python(value, bytes_mode="base64", serialize_unknown=True))


# --- shorter ------------------------------------------------------------------------------------


def trimmed(messages: Messages, level: int) -> list[ModelMessage]:
    """Shorten a conversation: 1 cuts long results of tools; 2 leaves out the older half; from 3 on results are cut
    shorter and as much is left out as can be. What is first and what is last always stays, and a tool's call is never
    parted from its result."""
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
    if part.files:  # they are not text, and a half of one is none
        return part
    text = part.model_response_str(wrap_if_error=False)
    return part if len(text) <= most else replace(part, content=shortened(text, most))


def shortened(text: str, most: int) -> str:
    """Cut text at the end of a line if one is near, and say how much is missing."""
    if len(text) <= most:
        return text
    end = text.rfind("\n", most - NEAR, most)
    kept = text[: most if end < 0 else end]
    return f"{kept}\n[{len(text) - len(kept):,} more characters were cut off to save space; ask for less at once]"


def _halved(messages: Messages, *, most: bool = False) -> list[ModelMessage]:
    """Leave out what is oldest after the first message, until half of it is gone, or as much as can be."""
    safe = _safe_cuts(messages)
    if not safe:
        return list(messages)
    sizes = [sum(map(len, _texts(message))) for message in messages]
    half = sum(sizes[1:]) / 2
    at = safe[-1] if most else next((cut for cut in safe if sum(sizes[1:cut]) >= half), safe[-1])
    return [_with_note(messages[0], at - 1), *messages[at:]]


def _safe_cuts(messages: Messages) -> list[int]:
    """List where a conversation may go on after its first message: with an answer, so that the two sides still take
    turns, and where no result is left without its call. Something must be left out, and the last message must stay."""
    found: list[int] = []
    wanting: set[str] = set()  # results whose calls stand before
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
    """Give an answer as text, whole: what is read back is equal to it."""
    plain = _plain(answer, frozenset())
    if plain is not None:
        try:
            return encode([plain])
        except TypeError:  # a whole number beyond 64 bits
            pass
    return ModelMessagesTypeAdapter.dump_json([answer], exclude_none=True).decode()


def as_json(message: ModelMessage, without: frozenset[str] = frozenset()) -> Json:
    """Give a message as JSON, without the fields of these names."""
    plain = _plain(message, without)
    if plain is not None:
        return plain
    cut = replace(message, **{name: None for name in without if hasattr(message, name)})
    (written,) = ModelMessagesTypeAdapter.dump_python([cut], mode="json", exclude_none=True)
    return written


def _plain(thing: object, without: frozenset[str]) -> dict[str, Json] | None:
    """Write a message of plain parts, without the fields that say nothing unusual. The framework's own way asks every
    part which of all kinds it is, and takes ten times as long. None if something in here is not plain."""
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
    """Write what a field says; None if that is not plain."""
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
    """Return what a field says unless it is told otherwise. The kind of a message is always written."""
    if field.name in ("kind", "part_kind"):
        return MISSING
    if field.default_factory is MISSING:
        return field.default
    made = field.default_factory()
    return made if made in ({}, []) else MISSING


class _Kind(NamedTuple):
    """A kind of message or part: the names of its fields, what each says usually, and what reads them all at once."""

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
    """Read an answer that `encoded` gave."""
    (answer,) = ModelMessagesTypeAdapter.validate_json(text)
    if not isinstance(answer, ModelResponse):
        raise ValueError("this is no answer of a model")  # noqa: TRY004 - it is text that says something else
    return answer


def said_in(message: ModelMessage) -> list[str]:
    """Give what a message says, without ids of the provider's and times."""
    return [message.kind, *_texts(message)]


def calls_of(answer: ModelResponse) -> tuple[str, ...]:
    """Name the tools that an answer calls."""
    return tuple(call.tool_name for call in _calls(answer))


def is_empty(answer: ModelResponse) -> bool:
    """Tell whether an answer says nothing, although nothing held it back. One that ran out of tokens or into a filter
    would do so again."""
    nothing = all(isinstance(part, TextPart) and not part.content for part in answer.parts)
    return nothing and answer.finish_reason not in ("length", "content_filter")


def _calls(answer: ModelResponse) -> list[ToolCallPart]:
    return [part for part in answer.parts if isinstance(part, ToolCallPart)]


def cleaned(answer: ModelResponse, taken: Iterable[str] = ()) -> ModelResponse:
    """Take out of an answer what no store keeps and no client sends, NUL and halves of surrogate pairs, and tell calls
    apart that came under the same id, in this answer or among those `taken` earlier in the conversation. Calls beyond
    those that one answer may have are left out, which is said in their place."""
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
    except (ValueError, RecursionError):  # no JSON: the model will be told
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
    """Take NUL out of text, and put the mark for a lost character in place of half a surrogate pair."""
    return _BAD.sub(lambda found: "" if found[0] == "\0" else "\ufffd", text) if _BAD.search(text) else text
