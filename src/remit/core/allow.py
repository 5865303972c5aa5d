"""Sets of what is allowed: ANY, or exactly the listed ones. Empty means nothing, never "all"."""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, Literal, TypeAlias, TypeVar, cast

from remit.core.text import canonical
from remit.core.values import Json
from remit.errors import BadInput


class Unbounded(Enum):
    ANY = "*"

    def __repr__(self) -> str:
        return "ANY"


ANY: Final = Unbounded.ANY

Names: TypeAlias = frozenset[str] | Literal[Unbounded.ANY]
NamesGiven: TypeAlias = "str | Iterable[str] | Unbounded"  # as people write them
NONE: Final[frozenset[str]] = frozenset()

T = TypeVar("T")


def listed(given: object, what: str, read: Callable[[object], T]) -> frozenset[T] | Literal[Unbounded.ANY]:
    """Read what a person wrote as a list: ANY or "*" for everything, one item, or several."""
    if given is ANY or given == "*":
        return ANY
    if given is None:
        raise BadInput(f"{what} is None; say () for nothing or '*' for everything")
    if isinstance(given, str | bytes | dict) or not isinstance(given, Iterable):
        return frozenset((read(cast("object", given)),))
    items = list(cast("Iterable[object]", given))
    if "*" in items:
        raise BadInput(f"{what}: '*' stands alone; say '*' for everything, or list names")
    return frozenset(read(item) for item in items)


def agents(given: object, what: str = "agents") -> Names:
    return listed(given, what, canonical)


def both(a: Names, b: Names) -> Names:
    """Allow what both allow."""
    if a is ANY:
        return b
    if b is ANY:
        return a
    return a & b


def either(a: Names, b: Names) -> Names:
    """Allow what at least one of them allows."""
    if a is ANY or b is ANY:
        return ANY
    return a | b


def without(names: Names, denied: Names) -> Names:
    """Allow what is allowed and not denied; of ANY nothing can be taken away but everything."""
    if denied is ANY:
        return NONE
    return names if names is ANY or not denied else names - denied


def within(a: Names, b: Names) -> bool:
    """Tell whether `a` allows nothing that `b` does not."""
    return b is ANY or (a is not ANY and a <= b)


def has(names: Names, name: str) -> bool:
    return names is ANY or name in names


def spelled(names: Names) -> str:
    """Spell the names for people: 'anyone', 'no one', or the names in order."""
    if names is ANY:
        return "anyone"
    return ", ".join(sorted(names)) if names else "no one"


def names_data(names: Names) -> Json:
    """Write names as JSON."""
    return "*" if names is ANY else [*sorted(names)]


def names_restored(data: Json) -> Names:
    """Read names as `names_data` wrote them."""
    return ANY if data == "*" else frozenset(cast("list[str]", data))
