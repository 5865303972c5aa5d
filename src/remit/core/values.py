"""JSON values: validation, canonical encoding and digest."""

import hashlib
import json
import math
from typing import TypeAlias, cast

from remit.core.text import INT_LIMIT, plain, shown
from remit.errors import BadInput

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

VALUE_LIMIT = 1_048_576
DEPTH_LIMIT = 32

# Sorted keys and no white space, so that equal values have equal text, which can be hashed and compared.
_canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False
).encode


def encode(value: object) -> str:
    """Return the canonical text of a value that is known to be JSON."""
    return _canonical(value)


def decode(text: str) -> Json:
    return cast("Json", json.loads(text))


def checked(value: object, what: str, limit: int = VALUE_LIMIT) -> Json:
    """Return the value as plain JSON. Raise `BadInput` that names the part that is not JSON."""
    if value is None:
        return None
    if isinstance(value, str):
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
        raise BadInput(f"{what} has at most {limit:,} characters as JSON, got {len(text):,}")


def copied(value: Json) -> Json:
    """Return a copy that can be changed freely. An immutable value is returned as it is."""
    if isinstance(value, list):
        return [copied(item) for item in value]
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value


class NotJson(Exception):
    """What is wrong with a part of a value. The place is added on the way out, so that valid values pay nothing for
    it."""

    def __init__(self, wrong: str, about: str = "") -> None:
        super().__init__()
        self._wrong = wrong
        self._about = about
        self._place: list[str] = []

    def inside(self, part: str) -> None:
        """Add the name of the enclosing part to the place."""
        self._place.append(part)

    def sentence(self, what: str) -> str:
        return f"{self._about}{what}{''.join(reversed(self._place))} {self._wrong}"


def _json(value: object, depth: int) -> Json:
    if depth < 0:
        raise NotJson(f"is nested more than {DEPTH_LIMIT} deep")
    if isinstance(value, str):
        return _text(value)
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
    raise NotJson(
        f"is not JSON: {type(value).__name__} {shown(value)}; "
        "use text, numbers, true, false, null, lists and objects with text keys"
    )


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
        if not isinstance(key, str):
            raise NotJson(f"has a key that is not text: {shown(key)}")
        _text(key, "a key of ")
        try:
            made[key] = _json(item, depth)
        except NotJson as no:
            no.inside(f".{shown(key)[1:-1]}")
            raise
    return made


def digest(text: str) -> str:
    """Return a digest of 16 hex digits: enough to compare, short enough to read."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def whole_digest(text: str) -> str:
    """Return the full SHA-256 digest, for which no second text can be found."""
    return hashlib.sha256(text.encode()).hexdigest()
