"""Times: timestamps as integer microseconds since 1970, exact in JSON, in SQL and in comparisons; and when tasks start,
later or on a schedule."""

import math
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, TypeAlias, cast

from remit.core.records import NamedTuple
from remit.core.values import INT_LIMIT, Json, decode, shown
from remit.errors import BadInput

SpanGiven: TypeAlias = float | timedelta  # as callers write them

SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 86_400 * SECOND
PAUSES: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # seconds between attempts to reach a store; the last one repeats
EARLIEST: Final = 100_000_000 * SECOND  # in 1973; a lower number of microseconds is no deadline
LATEST: Final = 253_402_300_800 * SECOND - 1  # in the year 9999
_LAST = 253_402_300_799 * SECOND  # the end of the year 9999; times of a wrong clock are clamped to it
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SCHEDULE: Final = "schedule "  # before the name, where a person is named
_LONGEST = 200 * 365 * DAY  # two centuries; a longer duration is a mistake


def span(seconds: object, what: str) -> int:
    """Return a duration in microseconds, from seconds or a timedelta. Raise `BadInput` unless it is positive, finite
    and below the limit."""
    if isinstance(seconds, timedelta):
        seconds = seconds.total_seconds()
    return _micros(seconds, what, SECOND, "seconds")


def span_of_days(days: object, what: str = "days") -> int:
    """Return a duration in microseconds, from a number of days. Raise `BadInput` like `span`."""
    return _micros(days, what, DAY, "days")


def _micros(number: object, what: str, unit: int, units: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise BadInput(f"{what} is a number of {units}, not {shown(number)}")
    longest = _LONGEST // unit
    if number > longest and number != math.inf:
        raise BadInput(f"{what} is at most two centuries, got {shown(number)} {units}")
    if not 0 < number <= longest:  # also rejects NaN
        raise BadInput(f"{what} must be a positive number of {units}, got {shown(number)}")
    return max(1, round(number * unit))


def patience(seconds: object, what: str = "busy_timeout") -> int:
    """Return a time to wait in microseconds: a duration, or 0 for no wait."""
    nothing = isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds == 0
    return 0 if nothing or seconds == timedelta() else span(seconds, what)


def moment(when: object, what: str) -> int:
    """Return a moment in microseconds since 1970, from an aware datetime or from microseconds."""
    if isinstance(when, datetime):
        if when.utcoffset() is None:
            raise BadInput(f"{what} needs a time zone; pass datetime.now(UTC) + timedelta(...)")
        return (when - _EPOCH) // timedelta(microseconds=1)
    if isinstance(when, bool) or not isinstance(when, int) or abs(when) > INT_LIMIT:
        raise BadInput(f"{what} is an aware datetime, not {shown(when)}")
    return when


def deadline_of(when: object) -> int:
    """Return a deadline in microseconds since 1970. Raise `BadInput` for a number that must be meant as seconds,
    milliseconds or nanoseconds."""
    found = moment(when, "deadline")
    if not isinstance(when, datetime) and not EARLIEST <= found <= LATEST:
        raise BadInput(
            "deadline is a datetime with a time zone, such as datetime.now(UTC) + timedelta(seconds=60), or a number "
            f"of microseconds since 1970, not {found}"
        )
    return found


class Delay(NamedTuple):
    """When a queued task may start: a number of microseconds after its request, or a point in time. The other one is
    0."""

    after: int = 0
    at: int = 0

    def due(self, now: int) -> int:
        """Return the moment from which a task that is requested now may start, or 0 for at once."""
        due = self.at or now + self.after
        return due if due > now else 0


def delay(after: object, at: object) -> Delay | None:
    """Return the delay of a queued task, or None if it may start at once. Raise `BadInput` if both `after` and `at` are
    given, or if `at` has no time zone."""
    if after is not None and at is not None:
        raise BadInput("after= and at= both say when the task may start; pass one of them")
    if at is None:
        later = 0 if after is None else patience(after, "after")
        return Delay(after=later) if later else None
    if not isinstance(at, datetime):  # a number could be meant as seconds, milliseconds or microseconds
        raise BadInput(f"at is a datetime with a time zone, not {shown(at)}; pass after= for a number of seconds")
    return Delay(at=max(1, moment(at, "at")))


def iso(at: int) -> str:
    """Return the time as 2026-11-15T02:36:54.123456Z."""
    return f"{datetime.fromtimestamp(at // SECOND, UTC):%Y-%m-%dT%H:%M:%S}.{at % SECOND:06d}Z"


def hour_of(at: int) -> str:
    """Return the hour of a time, such as 2026-11-15T02."""
    return _hour(min(max(0, at), _LAST) // HOUR)


@lru_cache(maxsize=64)
def _hour(number: int) -> str:
    return f"{datetime.fromtimestamp(number * 3_600, UTC):%Y-%m-%dT%H}"


def begin_of(hour: str) -> int:
    """Return the start of an hour such as 2026-11-15T02."""
    return moment(datetime.fromisoformat(f"{hour}:00+00:00"), "an hour")


def aware(at: int) -> datetime:
    """Return the time as a datetime in UTC, exact to the microsecond."""
    return _EPOCH + timedelta(microseconds=at)


class Schedule(NamedTuple):
    """A schedule: the task that it submits to `agent`, and when. Times are microseconds since 1970.

    `state` is "active" or "paused". `next` is the next planned time; None while it is paused, or if no time is left.
    `last` is the planned time of the run that it started last, `last_task` the id of that run, and `runs` the number of
    runs so far. `request` has the keywords of the submission as JSON. `set_by` is the person who set it, at `set_at`;
    `began` and `moved` are the numbers of the events that set it and that changed it last.
    """

    name: str
    state: str
    cron: str
    zone: str
    catch_up: str
    agent: str
    task: str
    request: str
    next: int | None
    last: int | None
    last_task: str
    runs: int
    set_by: str
    set_at: int
    began: int
    moved: int

    @property
    def next_time(self) -> datetime | None:
        """The next planned time, in UTC."""
        return None if self.next is None else aware(self.next)

    @property
    def last_time(self) -> datetime | None:
        """The planned time of the last run, in UTC."""
        return None if self.last is None else aware(self.last)

    @property
    def keywords(self) -> dict[str, Json]:
        """The keywords of the submission, as JSON."""
        return cast("dict[str, Json]", self._requested["keywords"])

    @property
    def led_as(self) -> str:
        """The kind of its task: "plan", "team", or "" for a task of its agent."""
        lead = cast("dict[str, Json] | None", self._requested.get("lead"))
        if lead is None:
            return ""
        return "team" if "plan" not in lead or "coordinated" in lead else "plan"

    @property
    def source(self) -> str:
        """The team file that set it, or ""."""
        return cast("str", self._requested.get("source", ""))

    @property
    def left(self) -> bool:
        """Whether the team file that set it no longer has it. Its runs are started all the same."""
        return "left" in self._requested

    @property
    def _requested(self) -> dict[str, Json]:
        return cast("dict[str, Json]", decode(self.request))

    @property
    def asks_for(self) -> tuple[str, ...]:
        """Everything that says what it does and when: two schedules are the same exactly if this is equal."""
        return self.cron, self.zone, self.catch_up, self.agent, self.task, self.request


def starter(name: str) -> str:
    """Return the name that the runs of a schedule give as the person who started them."""
    return f"{_SCHEDULE}{name}"


def is_schedule(by: str) -> bool:
    """Whether this name is that of a schedule, and not of a person."""
    return by.startswith(_SCHEDULE)
