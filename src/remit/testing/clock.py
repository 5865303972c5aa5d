"""A clock that moves only when it is told to."""

from remit.core.times import SECOND

_NOON = 1_800_000_000 * SECOND


class FakeClock:
    def __init__(self, now: int = _NOON) -> None:
        self._now = now

    def now(self) -> int:
        return self._now

    def advance(self, seconds: float) -> None:
        """Forwards, or backwards: clocks do that."""
        self._now += round(seconds * SECOND)
