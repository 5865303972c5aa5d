"""Text and values that a store can hold, and shortened contexts."""

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, Final, cast

from remit.core.values import Json, encode

_UNKEPT: Final = re.compile("[\0\ud800-\udfff]")  # characters that no store can hold: NUL and half surrogate pairs
_SPELLED: Final = re.compile(r"\\u(0000|[dD][89a-fA-F])")
_RECENT: Final = 4  # latest tool results, which the model most likely still needs
MOST_CALLS: Final = 64  # tool calls of one answer that are used
_LIMITS: Final = ((16_000, 4_000), (4_000, 500), (1_000, 100))  # characters of a recent result, and of an older one


def clean(text: str) -> str:
    """Return the text with characters that no store can hold replaced by U+FFFD."""
    return text if text.isascii() and "\0" not in text else _UNKEPT.sub("\ufffd", text)


def clean_json(text: str) -> str:
    """Do the same in JSON text, where such characters appear as escapes: not every framework survives them."""
    if _SPELLED.search(text) is None:
        return clean(text)
    try:
        return encode(json_of(json.loads(text)))
    except (ValueError, RecursionError):
        return clean(text)


def json_of(value: object) -> Json:
    """Return the result of a tool or agent as JSON; a value that is not JSON and cannot be converted becomes text."""
    if value is None or isinstance(value, bool | int | str):
        return clean(value) if isinstance(value, str) else value
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {clean(str(key)): json_of(item) for key, item in pairs}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_of(item) for item in cast("Iterable[object]", value)]
    if isinstance(value, float) and math.isfinite(value):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return json_of(asdict(value))
    dump: Callable[..., object] | None = None if isinstance(value, type) else getattr(value, "model_dump", None)
    return clean(str(value)) if dump is None else json_of(dump(mode="json"))


def unlike(name: str, seen: set[str]) -> str:
    """Return a name that is not in `seen`: the name itself, or with a number. A model may give two calls of an answer
    the same id."""
    others = (f"{name}_{number}" for number in range(2, len(seen) + 3))
    found = name if name not in seen else next(other for other in others if other not in seen)
    seen.add(found)
    return found


def left_out(more: int) -> str:
    """Return the note that some tool calls of an answer are not used; the model reads it as part of its own answer."""
    calls = "1 more tool call" if more == 1 else f"{more:,} more tool calls"
    return f"[{calls} of this answer left out, not used: at most {MOST_CALLS} of one answer are used]"


def without(value: Any, names: Collection[str]) -> Any:
    """Return the value without these keys, at every depth."""
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return {key: without(item, names) for key, item in pairs if key not in names}
    if isinstance(value, list | tuple):
        return [without(item, names) for item in cast("Sequence[Any]", value)]
    return value


def shortened(results: Sequence[str], trim: int) -> list[str]:
    """Return tool results shortened, the newest last: the higher the level the shorter, and older ones more than recent
    ones. At level 0 they are unchanged."""
    if not trim:
        return list(results)
    recent, older = _LIMITS[min(trim, len(_LIMITS)) - 1]
    first = len(results) - _RECENT
    return [_cut(text, older if at < first else recent) for at, text in enumerate(results)]


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"
