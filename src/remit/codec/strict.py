"""JSON from outside, read in one way only: what two parsers would read differently is refused.

Duplicate keys, numbers beyond 64 bits, NaN, NUL characters, halves of surrogate pairs and deep nesting raise
`Malformed`. No error repeats the input.
"""

import json
import math
from typing import Any, Final, Never, cast

from remit.core.values import DEPTH_LIMIT, Json
from remit.errors import Malformed

KEYS: Final = 10_000  # of one object
VALUES: Final = 100_000  # in the whole document
_DIGITS: Final = 20  # of a 64-bit integer, with its sign
_LEAST, _MOST = -(2**63), 2**63 - 1
_BOM: Final = b"\xef\xbb\xbf"


def parse(text: bytes) -> Json:
    """Return the JSON value of a document in UTF-8. Raise `Malformed` if it is not exactly one."""
    if text.startswith(_BOM):
        raise Malformed("the body begins with a byte order mark; send JSON in UTF-8 without one")
    try:
        value = cast("Json", _DECODER.decode(text.decode()))
    except UnicodeDecodeError as error:
        raise Malformed(f"the body is not UTF-8, at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise Malformed(f"the body is not JSON, at character {error.pos}") from None
    except RecursionError:
        raise _too_deep() from None
    _must_be_plain(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > KEYS:
        raise Malformed(f"an object in the body has more than {KEYS:,} keys")
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Malformed("an object in the body has the same key twice")
    return made


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS or not _LEAST <= (number := int(digits)) <= _MOST:
        raise Malformed("an integer in the body has more than 64 bits; send it as text")
    return number


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise Malformed("a number in the body is too large for a float")
    return number


def _constant(_word: str) -> Never:
    raise Malformed("NaN and Infinity are not JSON; send null or text")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
)


def _must_be_plain(value: Json) -> None:
    """Raise `Malformed` if the value is too deep, has too many parts, or contains text that no store can keep. Do not
    recurse, because the input decides how deep the value is."""
    level: list[Json] = [value]
    depth, seen = 0, 0
    while level:
        seen += len(level)
        if seen > VALUES:
            raise Malformed(f"the body has more than {VALUES:,} values")
        below: list[Json] = []
        for item in level:
            if isinstance(item, str):
                _must_be_text(item)
            elif isinstance(item, dict):
                for key in item:
                    _must_be_text(key)
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        depth += bool(below)
        if depth > DEPTH_LIMIT:
            raise _too_deep()
        level = below


def _must_be_text(text: str) -> None:
    if "\0" in text:
        raise Malformed("a text in the body contains a NUL character")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Malformed("a text in the body contains half of a surrogate pair, which is not a character") from None


def _too_deep() -> Malformed:
    return Malformed(f"the body is nested more than {DEPTH_LIMIT} levels deep")
