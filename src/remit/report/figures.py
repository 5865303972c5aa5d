"""Numbers as people read them."""

from typing import Final

from remit.core.credits import dollars
from remit.core.times import DAY, SECOND

_MINUTE: Final = 60 * SECOND
_HOUR: Final = 60 * _MINUTE


def duration(microseconds: int) -> str:
    """12 ms, 1.3 s, 2 min 14 s: rounded down, so that it never claims more time than has passed."""
    left = max(0, microseconds)  # clocks go backwards now and then
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
    """now, 40 s, 12 min, 5 h, 3 d"""
    for size, word in ((DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (SECOND, "s")):
        if microseconds >= size:
            return f"{microseconds // size} {word}"
    return "now"


def count(number: int, word: str) -> str:
    """1 task, 2,400 tasks"""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def short(number: int) -> str:
    """2412 as 2.4k: a figure for a small label, rounded down."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            whole, tenth = number // size, number % size * 10 // size
            return f"{whole}.{tenth}{unit}" if whole < 100 else f"{whole}{unit}"
    return str(number)


def money(amount: int) -> str:
    """$0.02; a correction may take something back: -$0.02"""
    return f"-{dollars(-amount)}" if amount < 0 else dollars(amount)


def decimal(amount: int) -> str:
    """0.02: the same for a program, in US dollars"""
    return money(amount).replace("$", "")
