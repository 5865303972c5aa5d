"""Times and durations as people type them in options."""

from datetime import UTC, datetime
from typing import Final

from remit.core.patterns import pattern
from remit.core.times import SECOND, aware, moment, span
from remit.core.values import shown
from remit.errors import BadInput

_SPAN: Final = pattern(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(s|min|m|h|d|w)")
_UNITS: Final = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def typed_span(typed: str) -> float | None:
    """Return the seconds of a duration such as 30s, 10m, 1.5h, 2d or 1w, or None if it is not one."""
    found = _SPAN.fullmatch(typed.strip())
    return None if found is None else float(found[1]) * _UNITS[found[2]]


def typed_moment(typed: str) -> int | None:
    """Return a date such as 2026-11-15 or 2026-11-15T02:36Z in microseconds since 1970, or None if it is not a date.
    Without a time zone it is UTC."""
    try:
        when = datetime.fromisoformat(typed.strip())
    except ValueError:
        return None
    return moment(when if when.tzinfo else when.replace(tzinfo=UTC), "a time")


def typed_delay(after: str, at: str) -> dict[str, float | datetime]:
    """Return the keywords of `submit` for a task that starts later, from `--after` and `--at`; none if both are empty.
    Raise `BadInput` if both are set or one is not valid."""
    if after and at:
        raise BadInput("--after and --at both say when the task may start; pass one of them")
    if after:
        bare = after.strip()[-1:].isdecimal()
        if (seconds := typed_span(f"{after.strip()}s" if bare else after)) is None:
            raise BadInput(f"--after is a duration such as 90s, 10m, 2h or 1d, not {shown(after)}")
        span(seconds, "--after")
        return {"after": seconds}
    if at:
        if (when := typed_moment(at)) is None:
            raise BadInput(
                f"--at is a date and time such as 2026-12-01T08:00 (UTC) or 2026-12-01T08:00+01:00, not {shown(at)}"
            )
        return {"at": aware(when)}
    return {}


def typed_times(since: str, until: str, now: int) -> tuple[int | None, int | None]:
    """Return the start and the end of a period in microseconds since 1970, from `--since` and `--until`; None for an
    empty one. Raise `BadInput` if one is not valid or the start is not before the end."""
    start, end = _when(since, "--since", now), _when(until, "--until", now)
    if start is not None and start >= (now if end is None else end):
        raise BadInput("--since must be before --until [default: now]")
    return start, end


def _when(typed: str, option: str, now: int) -> int | None:
    """Return an age such as 2h, or a date, in microseconds since 1970; None if it is empty. Without a time zone a date
    is UTC. Raise `BadInput` for other text."""
    if not typed:
        return None
    if (ago := typed_span(typed)) is not None:
        return max(0, now - round(ago * SECOND))
    if (when := typed_moment(typed)) is None:
        raise BadInput(f"{option} is a time ago such as 30m, 1h or 2d, or a date as 2026-11-15, not {shown(typed)}")
    return when
