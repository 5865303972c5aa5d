"""The digest of an effect's arguments. It distinguishes two effects of the same name."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from typing import Final, cast

from remit.core.values import digest

_DEEPEST: Final = 32
_ADDRESS: Final = " at 0x"


def arguments(given: tuple[object, ...]) -> str:
    """Return the digest of the arguments: equal arguments have the same digest in every process. A value without a text
    form of its own, such as an open connection, counts by its type only."""
    return digest(_told(given, _DEEPEST))


def _told(value: object, depth: int) -> str:
    if depth < 0:
        return "…"
    if isinstance(value, list | tuple):
        return f"[{','.join(_told(item, depth - 1) for item in cast('list[object]', value))}]"
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return f"{{{','.join(sorted(f'{_told(key, depth - 1)}:{_told(item, depth - 1)}' for key, item in items))}}}"
    if isinstance(value, AbstractSet):
        return f"<{','.join(sorted(_told(item, depth - 1) for item in cast('AbstractSet[object]', value)))}>"
    if is_dataclass(value) and not isinstance(value, type):
        return f"{_kind(value)}{_told([getattr(value, field.name) for field in fields(value)], depth - 1)}"
    text = repr(value)
    return _kind(value) if _ADDRESS in text else text


def _kind(value: object) -> str:
    """Return the qualified name of a function or class, or of the value's type."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{cast('type', named).__qualname__}"
