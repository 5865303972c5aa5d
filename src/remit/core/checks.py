"""Checks of what callers give, each with a sentence that says what is wrong and what to write instead."""

from typing import TypeVar

from remit.core.text import INT_LIMIT, plain, shown
from remit.errors import BadInput

T = TypeVar("T")


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


def yes_or_no(given: object, what: str) -> bool:
    """Give back True or False; "off", 0 and None are neither."""
    if not isinstance(given, bool):
        raise BadInput(f"{what} is True or False, not {shown(given)}")
    return given


def one_or_none(given: object, what: str, most: int) -> str | None:
    """Give back text, or None for any."""
    return None if given is None else plain(given, what, most, empty=True)


def limit(given: object, *, most: int = 10_000) -> int:
    """Give back how many rows to list."""
    return between(given, "limit", 1, most)


def between(given: object, what: str, least: int, most: int) -> int:
    """Give back a whole number that is in the range."""
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise BadInput(f"{what} is a whole number from {least} to {most:,}, not {shown(given)}")
    return given
