"""Filters for tasks and events, checked before a store sees them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, get_args

from remit.core import checks
from remit.core.events import tag_given
from remit.core.kinds import SHAPES
from remit.core.lifecycle import TRANSITIONS
from remit.core.records import TypedDict
from remit.core.tally import DAY_WIDE, HOUR_WIDE, Window
from remit.core.times import DAY, moment
from remit.core.values import INT_LIMIT, NAME_LIMIT, TASK_LIMIT, canonical, plain
from remit.errors import BadInput
from remit.ports import Span, Which

SeriesBy: TypeAlias = Literal["hour", "day"]
SERIES_BY: Final[tuple[str, ...]] = get_args(SeriesBy)
WIDE: Final[dict[SeriesBy, int]] = {"hour": HOUR_WIDE, "day": DAY_WIDE}
_HOURS: Final = 31 * DAY
MOST: Final = 100_000  # tasks or runs on one page
_STATES: Final = ("open", *filter(None, TRANSITIONS))
_TEXTS: Final = {
    "run": "a run's id",
    "session": "a session",
    "task": "a task's id",
    "parent": "a task's id",
    "by": "by",
}


class TaskFilter(TypedDict, total=False):
    """Which tasks to list. `state` may be "open", for all that have not ended; `before` is the `began` of the last task
    on the previous page. `asker` is the agent that requested them; "" lists the requests of people. `by` is the person
    who started their runs, `tag` a tag of their runs. They were requested at `since` or later, and before `until`.
    `text` is a part of the task text, in upper or lower case."""

    session: str | None
    agent: str | None
    state: str | None
    parent: str | None
    run: str | None
    limit: int
    before: int | None
    asker: str | None
    by: str | None
    tag: str | None
    since: datetime | None
    until: datetime | None
    text: str | None


class RunFilter(TypedDict, total=False):
    """Which runs to list: the conditions of `TaskFilter`, applied to the first task of each run."""

    session: str | None
    agent: str | None
    state: str | None
    before: int | None
    asker: str | None
    by: str | None
    tag: str | None
    since: datetime | None
    until: datetime | None
    text: str | None


class EventFilter(TypedDict, total=False):
    """Which events to read: all conditions must hold. `after` is the `seq` of the last event already seen."""

    run: str | None
    session: str | None
    agent: str | None
    task: str | None
    kinds: Iterable[str] | None
    since: datetime | None
    until: datetime | None
    after: int
    limit: int


class HistoryFilter(EventFilter, total=False):
    """Which existing events to read: with `latest` the last `limit` of them, otherwise the first; with `before` only
    events with a smaller `seq`."""

    latest: bool
    before: int | None


class StatsFilter(TypedDict, total=False):
    """What the statistics cover: a period, an agent, or both."""

    since: datetime | None
    until: datetime | None
    agent: str | None


def which_tasks(given: TaskFilter) -> Which:
    """Check the keywords of a task filter, and return the filter for the store. Raise `BadInput` if one is invalid."""
    return _which(_checked_filter("tasks", given, TaskFilter))


def which_runs(limit: int, given: RunFilter) -> Which:
    """Return the caller's filter for runs. Raise `BadInput` if it is invalid."""
    return _which({**_checked_filter("runs", given, RunFilter), "limit": limit})


def _which(wanted: dict[str, Any]) -> Which:
    if wanted.get("state") is not None:
        checks.one_of(wanted["state"], _STATES, "state")
    wanted["limit"] = checks.limit(wanted.get("limit", 100), most=MOST)
    wanted["before"] = page(wanted.get("before"))
    _moments(wanted)
    if wanted.get("tag") is not None:
        tag_given(wanted["tag"])
    if wanted.get("text") is not None:
        plain(wanted["text"], "text", TASK_LIMIT)
    return Which(**wanted)


def _moments(wanted: dict[str, Any]) -> None:
    """Replace the times of the filter by microseconds since 1970."""
    for name in ("since", "until"):
        if wanted.get(name) is not None:
            wanted[name] = moment(wanted[name], name)


def which_events(verb: str, given: EventFilter, takes: type = EventFilter) -> Span:
    """Return the caller's filter for events. Raise `BadInput` if it is invalid."""
    wanted = _checked_filter(verb, given, takes)
    _moments(wanted)
    if wanted.get("kinds") is not None:
        kinds = checks.items(wanted["kinds"], "kinds is a list of kinds of events, such as ['task.started']")
        wanted["kinds"] = frozenset(checks.one_of(kind, tuple(SHAPES), "a kind of event") for kind in kinds)
    for name, least in (("after", 0), ("limit", 1)):
        if name in wanted:
            checks.between(wanted[name], name, least, INT_LIMIT)
    if "latest" in wanted:
        checks.yes_or_no(wanted["latest"], "latest")
    wanted["before"] = page(wanted.get("before"))
    return Span(**wanted)


def which_figures(given: StatsFilter) -> tuple[Window, str | None]:
    """Return the period and the agent of a statistics query. Raise `BadInput` if they are invalid."""
    wanted = _checked_filter("stats", given, StatsFilter)
    since, until = (None if wanted.get(name) is None else moment(wanted[name], name) for name in ("since", "until"))
    if since is not None and until is not None and since >= until:
        raise BadInput("since must be before until")
    return Window(since, until), wanted.get("agent") or None


def which_series(by: str, given: StatsFilter, now: int) -> tuple[Window, str | None]:
    """Return the period and the agent of a series. Raise `BadInput` if it would have too many hours."""
    window, agent = which_figures(given)
    if by == "hour":
        stop = now if window.until is None else window.until
        since = stop - DAY if window.since is None else window.since
        if stop - since > _HOURS:
            raise BadInput("a series by hour covers at most 31 days; give a later since, or pass by='day'")
        window = Window(since, window.until)
    return window, agent


def page(before: object) -> int | None:
    """Return the number of the event before which a page ends, or None. Raise `BadInput` if it is not a whole
    number."""
    return checks.whole(before, "before")


def _checked_filter(
    verb: str, given: TaskFilter | RunFilter | EventFilter | StatsFilter, takes: type
) -> dict[str, Any]:
    checks.refuse_strange(verb, given, takes.__annotations__.keys())
    wanted = dict[str, Any](given)
    for name, what in _TEXTS.items():
        if name in wanted:
            checks.text_or_none(wanted[name], what, NAME_LIMIT)
    for name in ("agent", "asker"):
        if wanted.get(name):
            wanted[name] = canonical(wanted[name])
        elif name in wanted:
            checks.text_or_none(wanted[name], "an agent", NAME_LIMIT)
    return wanted
