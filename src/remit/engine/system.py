"""The real clock and real ids."""

import asyncio
import heapq
import math
import os
import time
from collections.abc import Callable
from typing import Final

from remit.ports import Timer

_SWEEP: Final = 1_000  # cancelled timers that are kept at most, or as many as there are others
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_SORTED: Final = sorted(_LETTERS)  # digits before letters, so that ids sort as text in the order they were made
_PAIRS: Final = [a + b for a in _SORTED for b in _SORTED]


# The one that goes on while a laptop sleeps, where there is one.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Waiting:
    """A timer that has not fired; cancelling it is forgetting what it would have called."""

    __slots__ = ("_timers", "call")

    def __init__(self, timers: "Timers", call: Callable[[], None]) -> None:
        self._timers = timers
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        if self.call is not None:
            self.call = None
            self._timers.cancelled += 1


class Timers:
    """The timers of one event loop. Nearly all of them are cancelled long before they are due, so they cost a place in
    a heap, and the loop itself is asked to wake us only for the earliest."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.cancelled = 0
        self._heap: list[tuple[float, int, Waiting]] = []
        self._count = 0
        self._wake: asyncio.TimerHandle | None = None
        self._wakes_at = math.inf

    def call_later(self, seconds: float, call: Callable[[], None]) -> Waiting:
        due = self.loop.time() + seconds
        timer = Waiting(self, call)
        self._count += 1
        heapq.heappush(self._heap, (due, self._count, timer))
        if due < self._wakes_at:
            self._arm(due)
        if self.cancelled > _SWEEP and self.cancelled * 2 > len(self._heap):
            self._sweep()
        return timer

    def _arm(self, due: float) -> None:
        if self._wake is not None:
            self._wake.cancel()
        self._wakes_at = due
        self._wake = self.loop.call_at(due, self._fire)

    def _fire(self) -> None:
        self._wake, self._wakes_at = None, math.inf
        now = self.loop.time()
        heap = self._heap
        while heap and (heap[0][0] <= now or heap[0][2].call is None):
            timer = heapq.heappop(heap)[2]
            call, timer.call = timer.call, None
            if call is None:
                self.cancelled -= 1
            else:
                call()
        if heap and heap[0][0] < self._wakes_at:
            self._arm(heap[0][0])

    def _sweep(self) -> None:
        """Forget the cancelled ones: they would only be noticed when they are due."""
        self._heap = [entry for entry in self._heap if entry[2].call is not None]
        heapq.heapify(self._heap)
        self.cancelled = 0


class SystemClock:
    """Reads the time once and counts from there: setting the machine's clock while we run moves no deadline."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.clock_gettime_ns(_CLOCK)
        self._timers: Timers | None = None

    def now(self) -> int:
        return (time.clock_gettime_ns(_CLOCK) + self._offset) // 1_000

    def ticks(self) -> int:
        return time.clock_gettime_ns(_CLOCK) // 1_000

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        loop = asyncio.get_running_loop()
        timers = self._timers
        if timers is None or timers.loop is not loop:  # of an earlier loop, or of one in another thread
            timers = self._timers = Timers(loop)
        return timers.call_later(seconds, call)


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
