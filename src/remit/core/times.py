"""Times: whole microseconds since 1970, so that they are exact in JSON, in SQL and in comparisons."""

import math
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TypeAlias

from remit.core.text import INT_LIMIT, shown
from remit.errors import BadInput

SpanGiven: TypeAlias = float | timedelta  # as people write them

SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 86_400 * SECOND
_LAST = 253_402_300_799 * SECOND  # of the year 9999: what a wrong clock says is still some hour
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST = 200 * 365 * 86_400  # two centuries in seconds: longer is a mistake, not a wish


def span(seconds: object, what: str) -> int:
    """Read a duration that a person gives, in seconds or as a timedelta: positive, finite, not absurd."""
    if isinstance(seconds, timedelta):
        seconds = seconds.total_seconds()
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise BadInput(f"{what} is a number of seconds, not {shown(seconds)}")
    if seconds > _LONGEST and seconds != math.inf:
        raise BadInput(f"{what} is at most two centuries, got {shown(seconds)} seconds")
    if not 0 < seconds <= _LONGEST:  # nor is NaN
        raise BadInput(f"{what} must be a positive number of seconds, got {shown(seconds)}")
    return max(1, round(seconds * SECOND))


def patience(seconds: object, what: str = "wait") -> int:
    """Read how long someone waits: a duration, or 0 for not at all."""
    nothing = isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds == 0
    return 0 if nothing or seconds == timedelta() else span(seconds, what)


def moment(when: object, what: str) -> int:
    """Read a moment that a person gives: an aware datetime, or microseconds since 1970."""
    if isinstance(when, datetime):
        if when.utcoffset() is None:
            raise BadInput(f"{what} needs a time zone; say datetime.now(UTC) + timedelta(...)")
        return (when - _EPOCH) // timedelta(microseconds=1)
    if isinstance(when, bool) or not isinstance(when, int) or abs(when) > INT_LIMIT:
        raise BadInput(f"{what} is an aware datetime, not {shown(when)}")
    return when


def iso(at: int) -> str:
    """2026-11-15T02:36:54.123456Z"""
    return f"{datetime.fromtimestamp(at // SECOND, UTC):%Y-%m-%dT%H:%M:%S}.{at % SECOND:06d}Z"


def hour_of(at: int) -> str:
    """2026-11-15T02: the hour in which something happened."""
    return _hour(min(max(0, at), _LAST) // HOUR)


@lru_cache(maxsize=64)
def _hour(number: int) -> str:
    return f"{datetime.fromtimestamp(number * 3_600, UTC):%Y-%m-%dT%H}"


def begin_of(hour: str) -> int:
    """Return when an hour such as 2026-11-15T02 began."""
    return moment(datetime.fromisoformat(f"{hour}:00+00:00"), "an hour")


def aware(at: int) -> datetime:
    """Give the same moment as a datetime in UTC, exact to the microsecond."""
    return _EPOCH + timedelta(microseconds=at)
