"""`ws.looks`: what people look at, each look read from one snapshot and returned as values.

The commands and the server both show what these methods return; neither of them reads a view.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, Unpack

from remit.core import checks
from remit.core import entry as entries
from remit.core.card import Card
from remit.core.checks import keywords
from remit.core.entry import Entry, Message
from remit.core.events import Event, is_blob
from remit.core.lifecycle import TERMINAL, Record
from remit.core.question import Inquiry
from remit.core.records import NamedTuple
from remit.core.scope import Scope
from remit.core.tally import DAY_WIDE, SpendOver
from remit.core.times import span_of_days
from remit.core.values import INT_LIMIT, TASK_LIMIT, Json, plain
from remit.errors import NotFound
from remit.ports import RunLine, RunVitals, Span, TaskLine, View, Which
from remit.runtime.filters import (
    SERIES_BY,
    WIDE,
    RunFilter,
    SeriesBy,
    StatsFilter,
    TaskFilter,
    page,
    which_figures,
    which_runs,
    which_series,
    which_tasks,
)
from remit.runtime.finding import MANY, hold_of, question_of, run_of, task_of
from remit.runtime.opening import Opening

if TYPE_CHECKING:
    from remit.report.detail import Detail
    from remit.report.entries import EntryReader, EntryVersion
    from remit.report.spend import LedgerAudit, SpendPoint
    from remit.report.stats import StatsPoint
    from remit.report.talk import TaskTalk
    from remit.runtime.workers import Crew

T = TypeVar("T")

_PAGE, _PAGES = 1_000, 20  # events per page, and pages, that one look at an entry's history reads
UNDELIVERED: Final = 100  # result messages that no agent read, in a list of tasks


class TaskLook(NamedTuple):
    """Tasks of a list, the processes with a heartbeat at the time of the read, and the results that were not delivered
    because their asker had ended."""

    tasks: list[TaskLine]
    crew: "Crew"
    undelivered: list[Message]


class RunLook(NamedTuple):
    """Runs of a list, the processes with a heartbeat at the time of the read, and the present state of each run, by
    id."""

    runs: list[RunLine]
    crew: "Crew"
    vitals: dict[str, RunVitals]


class RecordLook(NamedTuple):
    """The records of some tasks, and the processes with a heartbeat at the time of the read."""

    records: list[Record]
    crew: "Crew"


class DetailLook(NamedTuple):
    """A task in detail, and the processes with a heartbeat at the time of the read."""

    detail: "Detail"
    crew: "Crew"

    @property
    def record(self) -> Record:
        return self.detail.record


class PartLook(NamedTuple):
    """The task that was looked for, and all events of its run."""

    record: Record
    events: list[Event]


class TalkLook(NamedTuple):
    """The task that was looked for, and the conversations of its models; of a run, those of all its tasks."""

    task: str
    talks: "list[TaskTalk]"


class VersionLook(NamedTuple):
    """Versions of an entry, and where the next page begins; None if there is no more."""

    versions: "list[EntryVersion]"
    next: int | None


class ReaderLook(NamedTuple):
    """Turns that read an entry, and where the next page begins; None if there is no more."""

    readers: "list[EntryReader]"
    next: int | None


class PublishedCard(NamedTuple):
    """The card of an agent that a worker has published, the time in microseconds since 1970, and how many workers have
    the agent now."""

    card: Card
    published_at: int
    workers: int = 0


class WorkspaceLooks:
    """Lists and details of a workspace, as commands and dashboards show them. Where a method takes a `part`, it is an
    id, a unique prefix or suffix of it, or `last`; if no id or more than one fits, the method raises `NotFound`."""

    __slots__ = ("_opening",)

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    # -- tasks and runs ----------------------------------------------------------------------------------------------

    async def task(self, part: str) -> Record:
        """Return the record of a run or a task."""
        return await self._read(partial(task_of, given=_part(part)))

    async def run(self, part: str) -> Record:
        """Return the record of a run or a task. If the part fits a run and other tasks, return the first task of the
        run."""
        return await self._read(partial(run_of, given=_part(part)))

    @keywords(TaskFilter)
    async def tasks(self, **which: Unpack[TaskFilter]) -> TaskLook:
        """Return the tasks that match all conditions, newest first."""
        wanted, now = which_tasks(which), self._now()
        return await self._browse(
            lambda view: TaskLook(view.task_lines(wanted), _crew(view, now), view.orphans(UNDELIVERED))
        )

    @keywords(RunFilter)
    async def runs(self, limit: int = 100, **which: Unpack[RunFilter]) -> RunLook:
        """Return the runs that match all conditions, newest first, with the present state of each."""
        wanted, now, narrowed = which_runs(limit, which), self._now(), bool(which.keys() - {"before"})
        lasting = self._opening.database.lasting

        def look(view: View) -> RunLook:
            lines = view.run_lines(wanted) if narrowed else view.runs(wanted.limit, wanted.before)
            vitals = view.vitals([line.record.id for line in lines])
            return RunLook(lines, _crew(view, now) if lasting else _here(vitals, now), vitals)

        return await self._browse(look)

    async def detail(self, part: str) -> DetailLook:
        """Return everything known about a task."""
        return await self._browse(partial(_detail, part=_part(part), now=self._now()))

    async def records(self, tasks: Iterable[str]) -> RecordLook:
        """Return the records of the tasks with these ids, as far as they exist."""
        ids, now = [_part(task) for task in checks.items(tasks, "tasks is a list of ids of tasks")], self._now()

        def look(view: View) -> RecordLook:
            found = (view.record(task) for task in ids)
            return RecordLook([record for record in found if record is not None], _crew(view, now))

        return await self._read(look)

    async def below(self, part: str) -> list[Record]:
        """Return a task and all its open subtasks, from the top down."""

        def look(view: View) -> list[Record]:
            record = task_of(view, part)
            return [record, *(below for below in view.below(record.id) if below.id != record.id)]

        _part(part)
        return await self._read(look)

    async def has_ended(self, task: str, *, run: bool = False) -> bool:
        """Whether a task has ended; with `run`, whether all tasks of the run with this id have."""
        checks.yes_or_no(run, "run")
        return await self._read(partial(_run_ended if run else _ended, task=_part(task)))

    # -- journal -----------------------------------------------------------------------------------------------------

    async def part(self, part: str) -> PartLook:
        """Return a run or a task, and all events of the run."""

        def look(view: View) -> PartLook:
            record = run_of(view, part)
            return PartLook(record, view.events(Span(run=record.run)))

        _part(part)
        return await self._browse(look)

    async def tree(self, part: str) -> dict[str, Json]:
        """Return a run, or the part of it below a task, as a tree in JSON."""
        return await self._browse(partial(_tree, part=_part(part)))

    async def talk(self, part: str) -> TalkLook:
        """Return the conversations of the models of a run or a task."""
        return await self._browse(partial(_talk, part=_part(part)))

    async def answers(self, events: Iterable[int]) -> dict[int, str]:
        """Return the long answers that are stored next to these events, as JSON texts by number of the event."""
        given = checks.items(events, "events is a list of numbers of events")
        seqs = [checks.between(seq, "a number of an event", 1, INT_LIMIT) for seq in given]
        return await self._browse(partial(_answers, seqs=seqs))

    async def open_events(self) -> list[Event]:
        """Return the events of all runs with open tasks, in order. If the newest run has none, add the event that ended
        it."""
        return await self._browse(_open_events)

    async def head(self) -> int:
        """Return the number of the latest event."""
        return await self._read(lambda view: view.head().seq)

    # -- people, agents, money, entries ------------------------------------------------------------------------------

    async def question(self, part: str) -> Inquiry:
        """Return a question. If the part fits an open question, the decided ones are ignored."""
        return await self._read(partial(_question, part=_part(part)))

    async def cards(self) -> list[PublishedCard]:
        """Return the cards of the agents that workers have published, by name."""
        now = self._opening.clock.now()

        def look(view: View) -> list[PublishedCard]:
            crew = _crew(view, now)
            return [PublishedCard(card, at, len(crew.workers_of(card.name))) for card, at in view.cards()]

        return await self._read(look)

    async def uncertain(self, part: str) -> str:
        """Return the id of an uncertain call."""
        return await self._read(partial(hold_of, given=_part(part)))

    async def ledger(self) -> "LedgerAudit":
        """Check that all budgets balance, and that no call outlived its task. Return the findings."""
        from remit.runtime.spending import audit_of

        return await self._browse(audit_of)

    async def entries(self, namespace: str, *, prefix: str = "", limit: int = 100) -> list[Entry]:
        """Return the live entries of a namespace whose keys begin with `prefix`, by key."""
        scope, most, now = Scope(namespace, prefix=prefix), checks.limit(limit), self._now()
        return await self._read(lambda view: view.by_key(scope, now, most))

    async def entry(self, namespace: str, key: str) -> Entry | None:
        """Return an entry, or None if there is none or it has expired."""
        entries.address(namespace, key)
        now = self._now()
        found = await self._read(lambda view: view.entry(namespace, key))
        return found if found is not None and found.alive(now) else None

    @keywords(StatsFilter)
    async def stats(self, by: SeriesBy = "hour", **which: Unpack[StatsFilter]) -> "list[StatsPoint]":
        """Return the statistics of each hour or day in which something happened, the earliest first. By hour, the
        period is at most 31 days; without `since`, it is one day. The cost of the query hardly depends on the length of
        the journal. Pruning keeps the statistics."""
        from remit.engine.upkeep.tallying import figures_by
        from remit.report.stats import StatsPoint, sum_of_agents

        window, agent = which_series(checks.one_of(by, SERIES_BY, "by"), which, self._now())
        found = await figures_by(self._opening.records, WIDE[by], window, agent)
        return [StatsPoint(start, sum_of_agents(some, {}, agent or "")) for start, some in found.items()]

    @keywords(StatsFilter)
    async def spend(self, by: SpendOver = "day,agent,model", **which: Unpack[StatsFilter]) -> "list[SpendPoint]":
        """Return the spending by day, agent and model, or by some of them, in order. It is read from the statistics:
        the cost hardly depends on the length of the journal, and pruned runs are included."""
        from remit.engine.upkeep.tallying import figures_by
        from remit.report.spend import SPEND_OVER, spend_points

        checks.one_of(by, SPEND_OVER, "by")
        window, agent = which_figures(which)
        return spend_points(await figures_by(self._opening.records, DAY_WIDE, window, agent), by)

    async def versions(self, namespace: str, key: str, *, limit: int = 100, before: int | None = None) -> VersionLook:
        """Return the versions of an entry, the latest first: value, writer, time, and removals. One look reads a
        limited number of events; `next` is the `before` of the next one."""
        from remit.report.entries import VERSION_KINDS, versions_in

        entries.address(namespace, key)
        about = partial(versions_in, namespace=namespace, key=key)
        return VersionLook(*await self._search(VERSION_KINDS, about, checks.limit(limit), page(before)))

    async def readers(
        self, namespace: str, key: str, *, version: int | None = None, limit: int = 100, before: int | None = None
    ) -> ReaderLook:
        """Return the turns that read an entry, or one version of it, the latest first. A turn is listed after it has
        ended. `next` is the `before` of the next page, as for `versions`."""
        from remit.report.entries import READER_KINDS, readers_in

        entries.address(namespace, key)
        wanted = checks.whole(version, "version")

        def about(event: Event) -> "Iterator[EntryReader]":
            found = readers_in(event, namespace, key)
            return (one for one in found if wanted in (None, one.version))

        return ReaderLook(*await self._search(READER_KINDS, about, checks.limit(limit), page(before)))

    async def _search(
        self, kinds: frozenset[str], about: Callable[[Event], Iterator[T]], limit: int, before: int | None
    ) -> tuple[list[T], int | None]:
        return await self._browse(lambda view: _searched(view, kinds, about, limit, before))

    async def prunable(self, days: float) -> int:
        """Return the number of runs that ended more than `days` ago, and that `prune` would delete."""
        from remit.engine.upkeep.prune import old_runs

        before, number = self._now() - span_of_days(days), 0
        async for runs in old_runs(self._opening.records, before):
            number += await self._read(lambda view, runs=runs: sum(bool(view.prunable(run, before)) for run in runs))
        return number

    # -- reading -----------------------------------------------------------------------------------------------------

    def _now(self) -> int:
        return self._opening.clock.now()

    async def _read(self, look: Callable[[View], T]) -> T:
        return await self._opening.records.read(look)

    async def _browse(self, look: Callable[[View], T]) -> T:
        """Read much: other work of this process continues meanwhile."""
        return await self._opening.records.browse(look)


def _part(part: object) -> str:
    return plain(part, "an id", TASK_LIMIT, empty=True)


def _crew(view: View, now: int) -> "Crew":
    from remit.runtime.workers import crew_of

    return crew_of(view.workers(), now)


def _searched(
    view: View, kinds: frozenset[str], about: Callable[[Event], Iterator[T]], limit: int, before: int | None
) -> tuple[list[T], int | None]:
    """Read events backwards, page by page, until `limit` items are found. Return them, and the number of the event to
    continue before; None if all events are read."""
    found: list[T] = []
    for _ in range(_PAGES):
        events = view.events(Span(kinds=kinds, latest=True, limit=_PAGE, before=before))
        for event in reversed(events):
            found += about(event)
            before = event.seq
            if len(found) >= limit:
                return found, before
        if len(events) < _PAGE:
            return found, None
    return found, before


def _here(vitals: dict[str, RunVitals], now: int) -> "Crew":
    """Return the processes of a store in memory: this one, which writes no heartbeats."""
    from remit.runtime.workers import Crew, Peer

    here = {worker for one in vitals.values() for worker in one.workers}
    return Crew(now, [Peer(worker, str(os.getpid()), 0, now) for worker in sorted(here)], {})


def _detail(view: View, part: str, now: int) -> DetailLook:
    from remit.report.detail import detail

    record = task_of(view, part)
    events = view.events(Span(run=record.run, task=record.id))
    run = [other for other, _ in view.tasks(Which(run=record.run, limit=MANY))]
    return DetailLook(detail(record, events, run), _crew(view, now))


def _ended(view: View, task: str) -> bool:
    standing = view.standing(task)
    if standing is None:
        raise NotFound(f"task {task} was pruned meanwhile; `remit history` has a line of it for a while")
    return standing.state in TERMINAL


def _run_ended(view: View, task: str) -> bool:
    """Whether every task of a run has ended; submitted tasks may outlive it."""
    return all(state in TERMINAL for _, state, _ in view.of_run(task))


def _tree(view: View, part: str) -> dict[str, Json]:
    from remit.report import wire
    from remit.report.tree import part_of

    record = run_of(view, part)
    return wire.tree(part_of(view.events(Span(run=record.run)), record.id))


def _talk(view: View, part: str) -> TalkLook:
    from remit.report.talk import conversations

    record = run_of(view, part)
    events = view.events(Span(run=record.run))
    found = conversations(events, _answers(view, [event.seq for event in events if is_blob(event.answer)]))
    return TalkLook(record.id, [one for one in found if not record.parent or one.task == record.id])


def _answers(view: View, seqs: Iterable[int]) -> dict[int, str]:
    found = {seq: view.blob(seq) for seq in seqs}
    return {seq: text for seq, text in found.items() if text is not None}


def _open_events(view: View) -> list[Event]:
    runs = {record.run for record, _ in view.tasks(Which(state="open", limit=MANY))}
    events = [event for run in runs for event in view.events(Span(run=run))]
    for line in view.runs(1):
        newest = view.event(line.record.ended or line.record.began)
        if newest is not None and newest.run not in runs:
            events.append(newest)
    return sorted(events, key=lambda event: event.seq)


def _question(view: View, part: str) -> Inquiry:
    from remit.engine.people import inquiry

    found = view.question(question_of(view, part))
    assert found is not None  # its id has just been read
    return inquiry(view, found)
