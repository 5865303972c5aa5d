"""Numbers as text for people."""

from typing import Final

from remit.core.prices import dollars
from remit.core.times import DAY, SECOND

_MINUTE: Final = 60 * SECOND
_HOUR: Final = 60 * _MINUTE


def duration(microseconds: int) -> str:
    """Return a duration such as 12 ms, 1.3 s or 2 min 14 s: rounded down, so that it never claims more time than has
    passed."""
    left = max(0, microseconds)  # clocks sometimes go backwards
    if left < SECOND:
        return f"{left} µs" if 0 < left < 1_000 else f"{left // 1_000} ms"
    if left < _MINUTE:
        return f"{left // SECOND}.{left % SECOND // 100_000} s"
    if left < _HOUR:
        return _two(left // _MINUTE, "min", left % _MINUTE // SECOND, "s")
    if left < DAY:
        return _two(left // _HOUR, "h", left % _HOUR // _MINUTE, "min")
    return _two(left // DAY, "d", left % DAY // _HOUR, "h")


def _two(large: int, unit: str, small: int, smaller: str) -> str:
    return f"{large} {unit} {small} {smaller}" if small else f"{large} {unit}"


def age(microseconds: int) -> str:
    """Return an age such as now, 40 s, 12 min, 5 h or 3 d."""
    for size, word in ((DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (SECOND, "s")):
        if microseconds >= size:
            return f"{microseconds // size} {word}"
    return "now"


def count(number: int, word: str) -> str:
    """Return a number with its noun: 1 task, 2,400 tasks."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def short(number: int) -> str:
    """Return a number for a small label: 2412 as 2.4k, rounded down."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            whole, tenth = number // size, number % size * 10 // size
            return f"{whole}.{tenth}{unit}" if whole < 100 else f"{whole}{unit}"
    return str(number)


def money(amount: int) -> str:
    """Return an amount in millionths of a US dollar as $0.02, or -$0.02 for a refund."""
    return f"-{dollars(-amount)}" if amount < 0 else dollars(amount)


def decimal(amount: int) -> str:
    """Return an amount in millionths of a US dollar as dollars for a program: 0.02."""
    return money(amount).replace("$", "")
