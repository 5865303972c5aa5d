"""Values to JSON text and back, fast: two encodings in every delegation. What is accepted is decided in the core."""

from typing import cast

import orjson

from remit.core.values import Json


def encode(value: object) -> str:
    """Canonical in the same sense as the core's: sorted keys, no white space."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def decode(text: str) -> Json:
    return cast("Json", orjson.loads(text))
