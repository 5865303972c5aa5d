"""Checks of what callers give, each with a sentence that says what is wrong and what to write instead."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, TypeVar, cast

from remit.core.text import INT_LIMIT, plain, shown
from remit.errors import BadInput

T = TypeVar("T")

_TYPED: Final = 100  # characters: longer is no slip of the fingers


def of_type(value: object, kind: type[T], what: str) -> T:
    """Give the value back if it is of that kind; `what` says what is taken, such as "bounds takes Bounds(...)"."""
    if isinstance(value, kind):
        return value
    raise BadInput(f"{what}, not {shown(value)}")


def whole(given: object, what: str, *, least: int = 0) -> int | None:
    """Give back a whole number, or None for no limit."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= INT_LIMIT:
        raise BadInput(f"{what} is a whole number of at least {least} or None, not {shown(given)}")
    return given


def counted(given: object, what: str, *, least: int = 0) -> int:
    """Give back a whole number; there is no such thing as no limit."""
    if given is None:
        raise BadInput(f"{what} is a whole number of at least {least}, not None")
    return cast("int", whole(given, what, least=least))


def patience(seconds: object, what: str) -> None:
    """Refuse what is not a time to wait: a number of seconds, 0 for not at all, or None for as long as it takes."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (number and 0 <= cast("float", seconds) <= INT_LIMIT):
        raise BadInput(f"{what} is a number of seconds from 0, or None for as long as it takes, not {shown(seconds)}")


def yes_or_no(given: object, what: str) -> bool:
    """Give back True or False; "off", 0 and None are neither."""
    if not isinstance(given, bool):
        raise BadInput(f"{what} is True or False, not {shown(given)}")
    return given


def text_or_none(given: object, what: str, most: int) -> str | None:
    """Give back text, or None for any."""
    return None if given is None else plain(given, what, most, empty=True)


def one_of(given: object, known: Sequence[str], what: str) -> str:
    """Give back a word that is one of these."""
    if not isinstance(given, str) or given not in known:
        others = ", ".join(known[1:])
        raise BadInput(f"{what} is {known[0]} or one of {others}, not {shown(given)}{meant(given, known)}")
    return given


def items(given: object, what: str) -> list[object]:
    """Give back what a list, a tuple or a set has; `what` says what is taken, such as "query_many takes a list of
    namespaces". Text and objects are not lists of their parts."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise BadInput(f"{what}, not {shown(cast('object', given))}")
    return list(cast("Iterable[object]", given))


def callable_(given: object, what: str) -> None:
    """Refuse what cannot be called; `what` says what is taken."""
    if not callable(given):
        raise BadInput(f"{what}, not {shown(given)}")


def meant(given: object, known: Iterable[str]) -> str:
    """Ask whether a known word was meant that is nearly the one given; nothing if none is."""
    near = get_close_matches(given, list(known), 1) if isinstance(given, str) and len(given) <= _TYPED else []
    return f"; did you mean {near[0]}?" if near else ""


def limit(given: object, *, most: int = 10_000) -> int:
    """Give back how many rows to list."""
    return between(given, "limit", 1, most)


def between(given: object, what: str, least: int, most: int) -> int:
    """Give back a whole number that is in the range."""
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise BadInput(f"{what} is a whole number from {least} to {most:,}, not {shown(given)}")
    return given


# What the same thing is called elsewhere.
_ELSEWHERE: Final = {
    "timeout": "seconds",
    "time": "seconds",
    "ttl": "seconds",
    "deadline": "within",
    "bounds": "within",
    "limits": "within",
    "budget": "credits",
    "cost": "credits",
    "idempotency_key": "key",
    "retries": "attempts",
    "max_attempts": "attempts",
    "session_id": "session",
    "user": "by",
    "context": "sees",
    "reads": "sees",
    "parallel": "concurrency",
}


def refuse_strange(verb: str, how: Mapping[str, object], takes: Collection[str]) -> None:
    """Refuse the first keyword that is none of these, and name the one that may have been meant."""
    if strange := sorted(how.keys() - set(takes)):
        word = _ELSEWHERE.get(strange[0], "")
        hint = f"; did you mean {word}?" if word in takes else meant(strange[0], takes) or "."
        raise BadInput(f"{verb} takes no {shown(strange[0])}{hint} It takes {', '.join(sorted(takes))}")
