"""Time and chance: one clock for what time it is and for every timer, and ids."""

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """Something that will happen, unless it is cancelled first."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Tells the time and wakes whoever waits for it. Whatever waits for time to pass asks the clock, never the loop,
    so that one clock under test moves all of it."""

    def now(self) -> int:
        """Tell the time in microseconds since 1970."""
        ...

    def ticks(self) -> int:
        """Tell the microseconds since some moment that this process could use; nobody can set this back. Time in which
        the machine sleeps or the process is stopped need not be in it."""
        ...

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call this on the running loop once that many seconds have passed."""
        ...


class Ids(Protocol):
    def new(self) -> str:
        """Make an id that no one has had before: sixteen of a-z and 2-7."""
        ...

    def chance(self) -> float:
        """Draw a number from 0 up to 1, to spread out what would otherwise happen all at once."""
        ...
