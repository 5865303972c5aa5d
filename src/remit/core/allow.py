"""Sets of allowed names: ANY, or exactly the listed names. An empty set allows nothing; it never means "all"."""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, Literal, TypeAlias, TypeVar, cast

from remit.core.values import Json, canonical
from remit.errors import BadInput


class Unbounded(Enum):
    ANY = "*"

    def __repr__(self) -> str:
        return "ANY"


ANY: Final = Unbounded.ANY

Names: TypeAlias = frozenset[str] | Literal[Unbounded.ANY]
NamesGiven: TypeAlias = "str | Iterable[str] | Unbounded"  # as callers write them
NONE: Final[frozenset[str]] = frozenset()

T = TypeVar("T")


def as_set(given: object, what: str, read: Callable[[object], T]) -> frozenset[T] | Literal[Unbounded.ANY]:
    """Return what a caller passed as a set: ANY for ANY or "*", otherwise one item or several, each converted with
    `read`. `what` names the argument in errors. Raise `BadInput` for None, and for "*" next to other items."""
    if given is ANY or given == "*":
        return ANY
    if given is None:
        raise BadInput(f"{what} is None; pass () for nothing or '*' for everything")
    if isinstance(given, str | bytes | dict) or not isinstance(given, Iterable):
        return frozenset((read(cast("object", given)),))
    items = list(cast("Iterable[object]", given))
    if "*" in items:
        raise BadInput(f"{what}: '*' stands alone; pass '*' for everything, or list names")
    return frozenset(read(item) for item in items)


def agents(given: object, what: str = "agents") -> Names:
    return as_set(given, what, canonical)


def both(a: Names, b: Names) -> Names:
    """Return the names that `a` and `b` both allow."""
    if a is ANY:
        return b
    if b is ANY:
        return a
    return a & b


def either(a: Names, b: Names) -> Names:
    """Return the names that `a` or `b` allows."""
    if a is ANY or b is ANY:
        return ANY
    return a | b


def without(names: Names, denied: Names) -> Names:
    """Return `names` without `denied`. From ANY only ANY can be removed: ANY minus some names stays ANY."""
    if denied is ANY:
        return NONE
    return names if names is ANY or not denied else names - denied


def within(a: Names, b: Names) -> bool:
    """Whether every name that `a` allows is allowed by `b`."""
    return b is ANY or (a is not ANY and a <= b)


def has(names: Names, name: str) -> bool:
    return names is ANY or name in names


def names_text(names: Names) -> str:
    """Return the names for people: "anyone", "no one", or the names in order."""
    if names is ANY:
        return "anyone"
    return ", ".join(sorted(names)) if names else "no one"


def names_data(names: Names) -> Json:
    """Return the names as JSON."""
    return "*" if names is ANY else [*sorted(names)]


def names_restored(data: Json) -> Names:
    """Return the names that `names_data` wrote."""
    return ANY if data == "*" else frozenset(cast("list[str]", data))
