"""Cron expressions, based on the cronsim package (`remit[schedule]`), in the time zones of zoneinfo.

Times are microseconds since 1970. When clocks change, cronsim does as Debian's cron: a schedule of one or a few times a
day runs once, right after a time that is skipped, and only the first time that a time happens twice. A schedule with
`*` in the minutes or hours follows the real time.
"""

from collections import deque
from datetime import UTC, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from remit.core.times import HOUR, SECOND, aware, moment
from remit.core.values import shown
from remit.errors import BadInput

_CHANGE: Final = 3 * HOUR  # the largest change of a clock that cronsim handles


def next_after(cron: str, zone: str, after: int) -> int | None:
    """Return the first planned time after a moment, or None if there is none within 50 years. Raise `BadInput` for an
    invalid expression and for an unknown time zone."""
    for planned in _times(cron, zone, after):
        # In the second of two equal hours, cronsim starts with times of the first.
        if (at := moment(planned, "a planned time")) > after:
            return at
    return None


def latest(cron: str, zone: str, first: int, now: int, most: int) -> list[int]:
    """Return the planned times from `first` to `now`, both included, in order; the latest `most` of them."""
    found: deque[int] = deque(maxlen=most)
    for planned in _times(cron, zone, _start(cron, zone, first, now, most)):
        at = moment(planned, "a planned time")
        if at > now:
            break
        if at >= first:
            found.append(at)
    return [*found]


def _start(cron: str, zone: str, first: int, now: int, most: int) -> int:
    """Return a time from which `latest` can count forwards: shortly before the last `most` planned times, so that it
    need not go through a year of minutes. Backwards, cronsim omits some times where clocks change, so the result is
    three hours earlier."""
    for number, planned in enumerate(_times(cron, zone, now, reverse=True)):
        at = moment(planned, "a planned time")
        if at < first:
            break
        if number == most:
            return max(first - SECOND, at - _CHANGE)
    return first - SECOND


def _times(cron: str, zone: str, start: int, *, reverse: bool = False) -> CronSim:
    try:
        return CronSim(cron, aware(start).astimezone(_zone(zone)), reverse=reverse)
    except CronSimError as error:
        raise BadInput(
            f"{shown(cron)} is not a cron expression ({error}); write minute, hour, day of month, month and day of "
            "week, such as '30 8 * * MON-FRI'"
        ) from None


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise BadInput(
            f"there is no time zone {shown(name)} on this machine; use a name such as 'Europe/Berlin' or 'UTC', or "
            "install the tzdata package if none is found"
        ) from None
