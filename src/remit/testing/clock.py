"""A clock that moves only when it is told to."""

from remit.core.times import SECOND

_NOON = 1_800_000_000 * SECOND


class FakeClock:
    def __init__(self, now: int = _NOON) -> None:
        self._now = now
        self._ticks = 0

    def now(self) -> int:
        return self._now

    def ticks(self) -> int:
        return self._ticks

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self._now += round(seconds * SECOND)
        self._ticks += max(0, round(seconds * SECOND))

    def jump(self, seconds: float) -> None:
        """Sets the clock forwards or backwards, as people and programs do; no time passes by it."""
        self._now += round(seconds * SECOND)
