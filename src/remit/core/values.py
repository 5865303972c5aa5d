"""JSON values: which ones are accepted, their one canonical text, and their digest."""

import hashlib
import json
import math
from typing import TypeAlias, cast

from remit.core.text import INT_LIMIT, plain, shown
from remit.errors import BadInput

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

VALUE_LIMIT = 1_048_576
DEPTH_LIMIT = 32

# Sorted keys and no white space: equal values have equal text, so text can be hashed and compared.
_canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False
).encode


def encode(value: object) -> str:
    """Write the canonical text of a value that is known to be JSON."""
    return _canonical(value)


def decode(text: str) -> Json:
    return cast("Json", json.loads(text))


def checked(value: object, what: str, limit: int = VALUE_LIMIT) -> Json:
    """Give the value as plain JSON, or raise an error that says which part of it is not."""
    if isinstance(value, str):
        return plain(value, what, limit, empty=True)
    plain_json = _json(value, what, DEPTH_LIMIT)
    size = len(encode(plain_json))
    if size > limit:
        raise BadInput(f"{what} has at most {limit:,} characters as JSON, got {size:,}")
    return plain_json


def copied(value: Json) -> Json:
    """Give a copy that can be changed without changing the value; of what cannot be changed, the value itself."""
    if isinstance(value, list):
        return [copied(item) for item in value]
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value


def _json(value: object, where: str, depth: int) -> Json:
    if depth < 0:
        raise BadInput(f"{where} is nested more than {DEPTH_LIMIT} deep")
    match value:
        case None | bool():
            return value
        case str():
            return plain(value, where, VALUE_LIMIT, empty=True)
        case int():
            return _whole(value, where)
        case float():
            return _finite(value, where)
        case list() | tuple():
            items = cast("list[object]", value)
            return [_json(item, f"{where}[{index}]", depth - 1) for index, item in enumerate(items)]
        case dict():
            return _object(cast("dict[object, object]", value), where, depth - 1)
        case _:
            raise BadInput(
                f"{where} is not JSON: {type(value).__name__} {shown(value)}; "
                "use text, numbers, true, false, null, lists and objects with text keys"
            )


def _whole(value: int, where: str) -> int:
    if not -INT_LIMIT - 1 <= value <= INT_LIMIT:
        raise BadInput(f"{where} is a whole number beyond 64 bits; keep it as text")
    return int(value)


def _finite(value: float, where: str) -> float:
    if not math.isfinite(value):
        raise BadInput(f"{where} is {value}, which JSON has no word for")
    return float(value)


def _object(value: dict[object, object], where: str, depth: int) -> dict[str, Json]:
    made: dict[str, Json] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise BadInput(f"{where} has a key that is not text: {shown(key)}")
        plain(key, f"a key of {where}", VALUE_LIMIT, empty=True)
        made[key] = _json(item, f"{where}.{shown(key)[1:-1]}", depth)
    return made


def digest(text: str) -> str:
    """Name a content by sixteen hex digits: enough to compare, short enough to read."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
