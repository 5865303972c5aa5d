"""Time and random numbers: one clock for the time and for every timer, and a source of ids."""

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A pending call that can be cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The time, and timers. Code that waits for time to pass uses the clock and never the event loop, so that a test's
    clock controls all of it."""

    def now(self) -> int:
        """Return the time in microseconds since 1970."""
        ...

    def ticks(self) -> int:
        """Return a monotonic time in microseconds that counts while this process can run. Time in which the machine
        sleeps or the process is stopped need not count."""
        ...

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call this function on the running loop after that many seconds."""
        ...


class Ids(Protocol):
    def new(self) -> str:
        """Return a new unique id: sixteen characters of a-z and 2-7."""
        ...

    def chance(self) -> float:
        """Return a random number from 0 up to 1, for jitter."""
        ...
