"""Text and JSON values: validation, normalization, canonical encoding and digest."""

import json
import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import date, time
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from hashlib import sha256
from inspect import isasyncgen, isawaitable, isgenerator
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Never, TypeAlias, cast
from unicodedata import category, normalize

from remit.core.patterns import pattern
from remit.errors import BadInput

NAME_LIMIT = 64
RESERVED: Final = "remit."  # the beginning of the names of remit's own workspaces
INT_LIMIT = 2**63 - 1  # the largest integer that every store can hold
TASK_LIMIT = 1_048_576
SESSION_LIMIT = 56  # leaves room for "board:" in a namespace of 64
SUMMARY_LIMIT = 200
EXCERPT_NOTE = 40  # characters of the note about the omitted part

_WRITTEN_LIMIT = 1_000  # of a name before it is spelled out
# Invisible characters, which must not distinguish two agents.
_INVISIBLE = frozenset(
    map(chr, (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10)))
)
_MORE_INVISIBLE = range(0xE0000, 0xE1000)
_HOST = pattern(r"[a-z0-9\-._:\[\]]{1,200}")


def shown(value: object, limit: int = 60) -> str:
    """Return a value for an error message: quoted, escaped and shortened."""
    try:
        quoted = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, or a self-referencing list
        quoted = f"<{type(value).__name__} too long to show>"
    return quoted if len(quoted) <= limit else f"{quoted[: limit - 1]}…"


def canonical(name: object) -> str:
    """Return the canonical spelling of an agent's name. Case, spaces and punctuation do not distinguish agents; letters
    and digits of any script do."""
    if not isinstance(name, str):
        raise BadInput(f"an agent is named by text, not {type(name).__name__}: {shown(name)}")
    return _canonical(name)


def endpoint(name: object) -> str:
    """Return the canonical spelling of an endpoint's name: a provider, such as `openai`, or
    `openai@llm.example.com:8000`. In a host every character counts, because keys are chosen by it."""
    provider, mark, host = name.partition("@") if isinstance(name, str) else (name, "", "")
    if not mark:
        return canonical(provider)
    host = host.strip().lower()
    if not _HOST.fullmatch(host):
        raise BadInput("an endpoint is named as provider@host, such as openai@llm.example.com or openai@127.0.0.1:8000")
    return f"{canonical(provider)}@{host}"


@lru_cache(maxsize=4096)  # every hop normalizes the same few names
def _canonical(name: str) -> str:
    if len(name) > _WRITTEN_LIMIT:
        raise BadInput(f"an agent's name has at most {NAME_LIMIT} characters, got {len(name):,}: {shown(name)}")
    spelled = _canonical_letters(normalize("NFKC", normalize("NFKC", name).casefold()))
    if not spelled:
        raise BadInput(f"an agent's name needs at least one letter or digit, got {shown(name)}")
    if len(spelled) > NAME_LIMIT:
        raise BadInput(f"an agent's name has at most {NAME_LIMIT} characters, got {len(spelled)}: {shown(name)}")
    return spelled


def _canonical_letters(folded: str) -> str:
    """Return the letters, digits and their combining marks; everything between them becomes one -."""
    made: list[str] = []
    for letter in folded:
        kind = category(letter)[0]
        seen = letter not in _INVISIBLE and ord(letter) not in _MORE_INVISIBLE
        if seen and (kind in "LN" or (kind == "M" and made and made[-1] != "-")):
            made.append(letter)
        elif made and made[-1] != "-":
            made.append("-")
    return "".join(made).removesuffix("-")


_HINTS: Final = MappingProxyType({"a task": "; pass a value as data=..."})


def plain(text: object, what: str, limit: int, *, empty: bool = False) -> str:
    """Return the text if SQLite and PostgreSQL can store it byte for byte. Raise `BadInput` otherwise; nothing is
    repaired."""
    if not isinstance(text, str):
        raise BadInput(f"{what} must be text, not {type(text).__name__}: {shown(text)}{_HINTS.get(what, '')}")
    if not text and not empty:
        raise BadInput(f"{what} must not be empty")
    if len(text) > limit:
        raise BadInput(f"{what} has at most {limit:,} characters, got {len(text):,}{_instead(limit)}")
    if "\0" in text:
        raise BadInput(f"{what} must not contain a NUL character: {shown(text)}")
    if not text.isascii() and not _encodable(text):
        raise BadInput(f"{what} contains half of a surrogate pair, which is not a character: {shown(text)}")
    return text


def line(text: object, what: str, limit: int) -> str:
    """Return the text if it is plain and on one line, as names of sessions, workspaces and operations must be. Raise
    `BadInput` otherwise."""
    checked = plain(text, what, limit)
    if not checked.isprintable():
        raise BadInput(f"{what} must be one line of printable characters: {shown(checked)}")
    return checked


def workspace_name(name: object) -> str:
    """Return the name if a user's workspace may have it. Raise `BadInput` otherwise: some names belong to remit."""
    checked = line(name, "a workspace", NAME_LIMIT)
    if checked.startswith(RESERVED):
        raise BadInput(f"names of workspaces that begin with '{RESERVED}' belong to remit itself; choose another name")
    return checked


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def summary(text: str) -> str:
    """Return the text on one line, cut to 197 characters and an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= SUMMARY_LIMIT else f"{line[: SUMMARY_LIMIT - 3]}…"


def excerpt(text: str, most: int) -> str:
    """Return `most` characters from the beginning and the end of a long text, with a note of how many are left out
    between them. Return a text that is at most `EXCERPT_NOTE` characters longer than `most` as it is."""
    if len(text) <= most + EXCERPT_NOTE:
        return text
    tail = most // 3
    return f"{text[: most - tail]} … [{len(text) - most:,} characters left out] … {text[len(text) - tail :]}"


def tokens_in(text: str) -> int:
    """Return a rough token count where no tokenizer is available: four characters a token, rounded up."""
    return -(-len(text) // 4)


Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

# A JSON value whose type the caller knows. It is Any, in a form that the strict mode of mypy accepts where a function
# with a declared result returns it: `return await turn.delegate(...)`.
if TYPE_CHECKING:
    Known: TypeAlias = Any | Never  # noqa: RUF020 - mypy takes Any alone for something else
else:
    Known = Any

VALUE_LIMIT = 1_048_576
DEPTH_LIMIT = 32

# Sorted keys and no white space, so that equal values have equal text, which can be hashed and compared.
_to_canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False
).encode


def encode(value: object) -> str:
    """Return the canonical text of a value that is known to be JSON."""
    return _to_canonical(value)


def decode(text: str) -> Json:
    return cast("Json", json.loads(text))


def decoded(text: str) -> Json:
    """Return the value of a JSON text, or the text itself if it is not JSON."""
    try:
        return decode(text)
    except (ValueError, RecursionError):
        return text


def checked(value: object, what: str, limit: int = VALUE_LIMIT) -> Json:
    """Return the value as plain JSON; `json_form` says what becomes of Python objects. Raise `BadInput` that names the
    part that is not JSON."""
    if value is None:
        return None
    if value.__class__ is str:  # not isinstance: a text of a class of its own becomes plain text below
        return plain(value, what, limit, empty=True)
    return checked_with_text(value, what, limit)[0]


def checked_with_text(value: object, what: str, limit: int = VALUE_LIMIT) -> tuple[Json, str]:
    """Return the value as plain JSON, and its canonical text. Raise `BadInput` like `checked`."""
    try:
        plain_json = _json(value, DEPTH_LIMIT)
    except NotJson as no:
        raise BadInput(no.sentence(what)) from None
    text = encode(plain_json)
    must_fit(text, what, limit)
    return plain_json, text


def must_fit(text: str, what: str, limit: int) -> None:
    """Raise `BadInput` if the JSON text of a value is too long."""
    if len(text) > limit:
        raise BadInput(f"{what} has at most {limit:,} characters as JSON, got {len(text):,}{_instead(limit)}")


def _instead(limit: int) -> str:
    """Return advice for a value that is too long, if the limit is that of the largest values; otherwise ""."""
    return "; save it as an artifact and pass that" if limit == VALUE_LIMIT else ""


def with_data(task: object, data: object) -> tuple[str, str]:
    """Return the whole text of a task, and the JSON text of its data ("" without data). The whole text is the text and
    the JSON, with an empty line between them, or the only one that there is. Raise `BadInput` if the data is not JSON,
    naming the part, or if the whole text is too long."""
    plain(task, "a task", TASK_LIMIT, empty=data is not None)
    if data is None:
        return cast("str", task), ""
    said = checked_with_text(data, "data", TASK_LIMIT)[1]
    whole = f"{task}\n\n{said}" if task else said
    if len(whole) > TASK_LIMIT:
        raise BadInput(f"a task has at most {TASK_LIMIT:,} characters, its data as JSON included, got {len(whole):,}")
    return plain(whole, "a task", TASK_LIMIT), said


def without_data(whole: str, data: str) -> str:
    """Return the text of a task without the JSON at its end. If `data` is "", or the task is only the JSON, return the
    whole text."""
    return whole[: -len(data) - 2] if data and len(data) < len(whole) else whole


def text_alone(whole: str, data: str | None) -> str:
    """Return the text of a task without the JSON at its end; "" if the task is only the JSON."""
    return "" if whole == data else without_data(whole, data or "")


def copied(value: Json) -> Json:
    """Return a copy that can be changed freely. An immutable value is returned as it is."""
    if isinstance(value, list):
        return [copied(item) for item in value]
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value


class NotJson(Exception):
    """A value that is not JSON: what is wrong with a part of it or, with a `noun`, what the part is and what to use
    instead. The callers add the place of the part while the exception passes, so that valid values pay nothing for
    it."""

    def __init__(self, wrong: str, about: str = "", *, noun: str = "") -> None:
        super().__init__()
        self._wrong = wrong
        self._about = about
        self._noun = noun
        self._place: list[str] = []

    def inside(self, part: str) -> None:
        """Add the name of the enclosing part to the place."""
        self._place.append(part)

    def sentence(self, what: str) -> str:
        place = "".join(reversed(self._place))
        if not self._noun:
            return f"{self._about}{what}{place} {self._wrong}"
        there = f"has {self._noun} at {place.removeprefix('.')}" if place else f"is {self._noun}"
        return f"{what} {there}; {self._wrong}"


def _json(value: object, depth: int) -> Json:  # noqa: PLR0911 - one for each kind of value
    if depth < 0:
        raise NotJson(f"is nested more than {DEPTH_LIMIT} deep")
    if value.__class__ is str:
        return _text(cast("str", value))
    if value is None or value is True or value is False:
        return value
    if isinstance(value, int):
        return _whole(value)
    if isinstance(value, float):
        return _finite(value)
    if isinstance(value, dict):
        return _object(cast("dict[object, object]", value), depth - 1)
    if isinstance(value, list | tuple):
        return _list(cast("list[object]", value), depth - 1)
    return _json(json_form(value), depth)


# What to use instead of values that have no form in JSON.
_INSTEAD: Final = MappingProxyType(
    {
        "set": "use a list, which has an order: sorted(...)",
        "frozenset": "use a list, which has an order: sorted(...)",
        "bytes": "use text, such as base64",
        "bytearray": "use text, such as base64",
        "timedelta": "use a number: its total_seconds()",
        "complex": "use a list of two numbers",
    }
)
_USE: Final = "use text, numbers, true, false, null, lists, objects with text keys, or a dataclass or pydantic model"


def json_form(value: object) -> object:
    """Return what a Python object is in JSON: an object of the fields of a dataclass, what a pydantic model dumps, the
    value of an enum's member, the ISO form of a date or time, the text of a decimal number, a UUID or a path. Raise
    `NotJson` for any other object."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return str.__str__(value)  # a text of a class of its own
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, Decimal) or _is_uuid_or_path(value):
        return str(value)
    if not isinstance(value, type):
        if is_dataclass(value):
            return _fields(value, [field.name for field in fields(value)])
        dump: object = getattr(value, "model_dump", None)
        if callable(dump):
            return _dumped(value, dump)
    raise _no_form(value)


def _is_uuid_or_path(value: object) -> bool:
    """Whether the value is a UUID or a path, by its class: the core imports nothing that makes ids or reads files."""
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(value).__mro__}
    return not kinds.isdisjoint((("uuid", "UUID"), ("pathlib", "PurePath")))


def _fields(value: object, names: list[str]) -> dict[str, object]:
    try:
        return {name: getattr(value, name) for name in names}
    except AttributeError as error:  # a field without a default that __init__ does not set
        raise NotJson(f"it is not complete: {error}", noun=f"a {type(value).__name__}") from None


def _dumped(value: object, dump: Callable[..., object]) -> object:
    """Return the JSON that a pydantic model, or an object that looks like one, dumps itself as."""
    name = type(value).__name__
    try:
        dumped = dump(mode="json")
    except Exception as error:  # noqa: BLE001 - whatever code of the model's own raises
        raise NotJson(f"its model_dump raised {type(error).__name__}: {error}", noun=f"a {name}") from None
    if hasattr(dumped, "model_dump"):
        raise NotJson("its model_dump(mode='json') must return JSON", noun=f"a {name}")
    return dumped


def _no_form(value: object) -> NotJson:
    name = type(value).__name__
    if instead := _INSTEAD.get(name):
        return NotJson(instead, noun=f"a {name}")
    if isawaitable(value):
        return NotJson("await it first", noun=f"a {name}")
    if isgenerator(value):
        return NotJson("use list(...)", noun="a generator")
    if isasyncgen(value):
        return NotJson("use [item async for item in ...]", noun="an async generator")
    return NotJson(f"is not JSON: {name} {shown(value)}; {_USE}")


def _text(value: str, about: str = "") -> str:
    if value.isascii() and "\0" not in value and len(value) <= VALUE_LIMIT:
        return value
    try:
        return plain(value, "", VALUE_LIMIT, empty=True)
    except BadInput as no:
        raise NotJson(str(no).strip(), about) from None


def _whole(value: int) -> int:
    if not -INT_LIMIT - 1 <= value <= INT_LIMIT:
        raise NotJson("is a whole number beyond 64 bits; keep it as text")
    return int(value)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise NotJson(f"is {value}, which JSON has no word for")
    return float(value)


def _list(value: list[object], depth: int) -> list[Json]:
    made: list[Json] = []
    for item in value:
        try:
            made.append(_json(item, depth))
        except NotJson as no:
            no.inside(f"[{len(made)}]")
            raise
    return made


def _object(value: dict[object, object], depth: int) -> dict[str, Json]:
    made: dict[str, Json] = {}
    for key, item in value.items():
        name = cast("str", key) if key.__class__ is str else _key(key)
        _text(name, "a key of ")
        try:
            made[name] = _json(item, depth)
        except NotJson as no:
            no.inside(f".{shown(name)[1:-1]}")
            raise
    return made


def _key(key: object) -> str:
    """Return a key that is a text of a class of its own, such as a member of an enum, as plain text."""
    found = key.value if isinstance(key, Enum) else key
    if not isinstance(found, str):
        raise NotJson(f"has a key that is not text: {shown(key)}")
    return str.__str__(found)


def digest(text: str) -> str:
    """Return a digest of 16 hex digits: enough to compare, short enough to read."""
    return sha256(text.encode()).hexdigest()[:16]


def whole_digest(text: str) -> str:
    """Return the full SHA-256 digest, for which no second text can be found."""
    return sha256(text.encode()).hexdigest()
