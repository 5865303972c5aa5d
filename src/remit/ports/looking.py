"""Query parameters and result rows of store reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from remit.core.lifecycle import Record, RunFacts
from remit.core.tally import Figures, UnderWay


class Beat(NamedTuple):
    """A heartbeat. `home` is the address of the process. `count` grows with each beat; 0 says that the process left.
    `hands` is the number of queued tasks that it runs at once; 0 for a process that runs only its own calls.

    A heartbeat is not history, so it is written without an event.
    """

    worker: str
    home: str
    count: int  # pyright: ignore[reportIncompatibleMethodOverride] - hides tuple.count
    hands: int = 0


class RunAge(NamedTuple):
    """The first task of a run, with the fields that show the run's age."""

    id: str
    began: int
    asked_at: int
    ended_at: int | None


class TallyRow(NamedTuple):
    """The statistics of an agent for the hour or day that began at `start`, computed from events `first` to `last`."""

    width: int
    start: int
    agent: str
    first: int
    last: int
    figures: Figures


class Tallied(NamedTuple):
    """Statistics of a slice of the journal: the rows as they are now, the last event that they count, and the facts
    about running tasks. None stands for tasks that have ended since.

    It contains nothing that the journal does not, so it is written without an event.
    """

    upto: int
    rows: Sequence[TallyRow]
    under_way: Mapping[str, UnderWay | None]


@dataclass(frozen=True, slots=True)
class Which:
    """Which tasks to list: all conditions must hold; newest first. `state` may be `open`, for all tasks that have not
    ended. `before` is the `began` of the last task on the previous page. `asker` is the agent that delegated them,
    empty for a person."""

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
    """One task in a list; `asker` is the agent that delegated it, empty for a person."""

    record: Record
    task: str
    asker: str = ""


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run in a list; `by` is the person who started it."""

    record: Record
    task: str
    facts: RunFacts
    by: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """Which events to read: all conditions must hold. Events come in order of `seq`: the first `limit` of them, or with
    `latest` the last. Without a limit, all."""

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
