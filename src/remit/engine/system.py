"""The real clock and real ids."""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Final

from remit.ports import Timer

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_SORTED: Final = sorted(_LETTERS)  # digits before letters, so that ids sort as text in the order they were made
_PAIRS: Final = [a + b for a in _SORTED for b in _SORTED]


# The one that goes on while a laptop sleeps, where there is one.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """Reads the time once and counts from there: setting the machine's clock while we run moves no deadline."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.clock_gettime_ns(_CLOCK)

    def now(self) -> int:
        return (time.clock_gettime_ns(_CLOCK) + self._offset) // 1_000

    def ticks(self) -> int:
        return time.clock_gettime_ns(_CLOCK) // 1_000

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, call)


class TimedIds:
    """Sixteen characters: 45 bits of time, so that new rows go to the end of an index, and 35 bits of chance."""

    def chance(self) -> float:
        return int.from_bytes(os.urandom(4)) / 2**32

    def new(self) -> str:
        number = (time.time_ns() // 1_000_000 << 35) | (int.from_bytes(os.urandom(5)) >> 5)
        pairs = _PAIRS
        return (
            pairs[number >> 70 & 1023]
            + pairs[number >> 60 & 1023]
            + pairs[number >> 50 & 1023]
            + pairs[number >> 40 & 1023]
            + pairs[number >> 30 & 1023]
            + pairs[number >> 20 & 1023]
            + pairs[number >> 10 & 1023]
            + pairs[number & 1023]
        )
