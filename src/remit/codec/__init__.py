"""Fast JSON encoding and decoding: every delegation encodes twice. The core decides which values are accepted."""

from typing import cast

from orjson import OPT_SORT_KEYS, dumps, loads

from remit.core.values import Json


def encode(value: object) -> str:
    """Return canonical JSON text, as the core defines it: sorted keys, no white space."""
    return dumps(value, option=OPT_SORT_KEYS).decode()


def decode(text: str) -> Json:
    return cast("Json", loads(text))
