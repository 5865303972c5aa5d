"""What readers of a store ask with and are answered with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from remit.core.record import Record, RunFacts
from remit.core.tally import Figures, UnderWay


class Beat(NamedTuple):
    """A heartbeat. `home` is the address of the process, `count` grows with each beat; 0 says that it left.
    `hands` is how many tasks from the queue it runs at a time; a process that only runs something of its own has none.

    It is not history, so it is written without an event.
    """

    worker: str
    home: str
    count: int  # pyright: ignore[reportIncompatibleMethodOverride] - nobody counts in a beat
    hands: int = 0


class RunAge(NamedTuple):
    """The first task of a run, as far as it tells how old the run is."""

    id: str
    began: int
    asked_at: int
    ended_at: int | None


class TallyRow(NamedTuple):
    """What an agent did in the hour or the day that began at `start`; events from `first` to `last` told it."""

    width: int
    start: int
    agent: str
    first: int
    last: int
    figures: Figures


class Tallied(NamedTuple):
    """A slice of the journal, rolled up: the rows as they are now, up to which event they count, and what is to be
    remembered of tasks. None are those that were remembered and have ended.

    It says nothing that the journal does not say, so it is written without an event.
    """

    upto: int
    rows: Sequence[TallyRow]
    under_way: Mapping[str, UnderWay | None]


@dataclass(frozen=True, slots=True)
class Which:
    """Which tasks to list: all conditions hold together, newest first. `state` may be `open`, for all that have not
    ended; `before` is the `began` of the last task of the page before. `asker` is the agent that asked for them, empty
    for a person."""

    session: str | None = None
    agent: str | None = None
    state: str | None = None
    parent: str | None = None
    run: str | None = None
    limit: int = 100
    before: int | None = None
    asker: str | None = None


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task as a list shows it; `asker` is the agent that asked for it, empty for a person."""

    record: Record
    task: str
    asker: str = ""


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run as a list shows it; `by` is who started it."""

    record: Record
    task: str
    facts: RunFacts
    by: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """Which events to read: all conditions hold together. They come in order of `seq`, the first `limit` of them; with
    `latest`, the last. Without a limit, all."""

    run: str | None = None
    session: str | None = None
    agent: str | None = None
    since: int | None = None
    until: int | None = None
    after: int = 0
    limit: int | None = None
    task: str | None = None
    kinds: frozenset[str] | None = None
    before: int | None = None
    latest: bool = False
