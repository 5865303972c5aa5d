"""A stretch of time in whole days and hours, which are rolled up, and the edges, which are not."""

from typing import Final, NamedTuple

from remit.core.times import DAY, SECOND

HOUR_WIDE: Final = 3_600 * SECOND
DAY_WIDE: Final = DAY
WIDTHS: Final = (HOUR_WIDE, DAY_WIDE)  # what figures are rolled up to
_EVER: Final = DAY_WIDE * 1_000_000  # later than any time that is accepted, and a whole number of days


class Period(NamedTuple):
    """From `start` to before `stop`, in parts that are `width` wide."""

    width: int
    start: int
    stop: int


class Window(NamedTuple):
    """From `since` to before `until`; None is without end."""

    since: int | None = None
    until: int | None = None

    @property
    def start(self) -> int:
        return -_EVER if self.since is None else self.since

    @property
    def stop(self) -> int:
        return _EVER if self.until is None else self.until

    def holds(self, at: int) -> bool:
        return self.start <= at < self.stop

    def whole(self) -> list[Period]:
        """List the whole days in it, and the whole hours beside those."""
        first, last = _up(self.start, HOUR_WIDE), start_of(self.stop, HOUR_WIDE)
        first_day, last_day = _up(first, DAY_WIDE), start_of(last, DAY_WIDE)
        if first_day >= last_day:
            periods = [Period(HOUR_WIDE, first, last)]
        else:
            before, after = Period(HOUR_WIDE, first, first_day), Period(HOUR_WIDE, last_day, last)
            periods = [before, Period(DAY_WIDE, first_day, last_day), after]
        return [period for period in periods if period.start < period.stop]

    def edges(self) -> list["Window"]:
        """List the parts of hours that are left: at most one at its beginning and one at its end."""
        first, last = _up(self.start, HOUR_WIDE), start_of(self.stop, HOUR_WIDE)
        parts = [(self.start, min(first, self.stop))]
        if first <= last:
            parts.append((last, self.stop))
        return [Window(since, until) for since, until in parts if since < until]


def start_of(at: int, width: int) -> int:
    """Tell when the hour or the day began that a moment is in."""
    return at - at % width


def _up(at: int, width: int) -> int:
    return -start_of(-at, width)
