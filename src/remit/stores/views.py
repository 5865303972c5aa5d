"""Reading: rows of any SQL database as values of the core, always within one workspace.

The classes here are the roles of `ports.views`, one for one; `SqlView` is all of them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from remit.codec import decode, encode
from remit.core.breaker import CLOSED, Breaker
from remit.core.card import Card
from remit.core.card import restored as card_restored
from remit.core.change import COLUMNS
from remit.core.entry import Entry, Message, Retired
from remit.core.events import NO_LABELS, Event, Hook, Labels, labels_restored, mark
from remit.core.identity import AccessRow, UsedKey
from remit.core.lifecycle import GONE, NO_RUN, OPEN, Record, RunFacts, Standing, first_members
from remit.core.limits import MeterUnit
from remit.core.loops import AskCount
from remit.core.money import Hold, Lease, Unit
from remit.core.question import Question
from remit.core.records import NamedTuple
from remit.core.recovery import Cooling
from remit.core.remit import task_of
from remit.core.scope import Scope
from remit.core.times import Schedule
from remit.core.values import INT_LIMIT, Json
from remit.errors import StoreError
from remit.ports import ArtifactRow, Beat, KeyInfo, KeyRow, RunAge, RunLine, Sealed, Span, TallyRow, TaskLine, Which
from remit.stores.history import FOREVER, JournalQueries, Queries, Values, event_of
from remit.stores.queries import after
from remit.stores.vitals import VitalQueries

if TYPE_CHECKING:
    from remit.core.tally import Period, UnderWay, Window

T = TypeVar("T")

TASK_WIDTH: Final = len(COLUMNS["task"])
_TASK_PAGE: Final = 500  # tasks read per page in a search
_IN_FIRST_EVENT: Final = ("asker", "by", "tag", "since", "until", "text")  # conditions that no index of tasks has
_PLACES: Final = 65_536  # events within which the tasks of an agent are searched
_BEGAN: Final = itemgetter(COLUMNS["task"].index("began"))
_LATE: Final = 2_000  # latest events in which a session is searched first


class TaskQueries(JournalQueries):
    __slots__ = ()

    def standing(self, task: str) -> Standing | None:
        # On the hot path of every write: placeholders are filled directly.
        rows = self._ask("standing", (self.workspace, task))
        return Standing(*rows[0]) if rows else None

    def record(self, task: str) -> Record | None:
        row = self._one("record", task=task)
        return Record(*row) if row else None

    def run(self, run: str) -> RunFacts:
        rows = self._ask("run", (self.workspace, run))  # on the hot path of every hop: placeholders are filled directly
        return run_facts(rows[0]) if rows else NO_RUN

    def asks(self, run: str, keys: tuple[str, str, str]) -> dict[str, AskCount]:
        first, second, third = keys
        rows = self._rows("asks", run=run, first=first, second=second, third=third)
        return {row[0]: AskCount(*row[1:]) for row in rows}

    def below(self, task: str) -> list[Record]:
        return self._records("below", task=task)

    def spawned(self, parent: str) -> int:
        return self._count("spawned", parent=parent)

    def same_requests(self, dedup_key: str, since: int) -> list[Record]:
        # On the hot path of every submission: placeholders are filled directly.
        rows = self._ask("same_requests", (self.workspace, dedup_key, since))
        return [Record(*row) for row in rows]

    def lineage(self, origin: str) -> list[Record]:
        return sorted(self._records("lineage", origin=origin), key=lambda record: record.began)

    def used_key(self, key: str) -> UsedKey | None:
        row = self._one("used_key", key=key)
        return UsedKey(*row) if row else None

    def keys_of_run(self, run: str) -> list[UsedKey]:
        return [UsedKey(*row) for row in self._rows("keys_of_run", run=run)]

    def key_of_task(self, task: str) -> UsedKey | None:
        row = self._one("key_of_task", task=task)
        return UsedKey(*row) if row else None

    def tasks(self, which: Which) -> list[tuple[Record, str]]:
        return [(line.record, line.task) for line in self.task_lines(which)]

    def task_lines(self, which: Which) -> list[TaskLine]:
        """Return tasks by the narrowest index, and check the other conditions on its rows."""
        return [*islice((line for rows in self._task_pages(which) for line in _lines(rows, which)), which.limit)]

    def run_lines(self, which: Which) -> list[RunLine]:
        lines = self.task_lines(which._replace(parent=""))
        facts: dict[str, RunFacts] = {}
        for start in range(0, len(lines), _TASK_PAGE):
            ids: list[Json] = [line.record.id for line in lines[start : start + _TASK_PAGE]]
            facts |= {row[0]: run_facts(row) for row in self._rows("runs_of", ids=encode(ids))}
        return [RunLine(line.record, line.task, facts[line.record.id], line.labels) for line in lines]

    def _task_pages(self, which: Which) -> Iterator[Sequence[Values]]:
        """Yield pages of tasks, newest first. Some conditions are only in the first event of a task: then the pages are
        read one by one, until there are enough."""
        if which.run is not None or which.parent or all(getattr(which, name) is None for name in _IN_FIRST_EVENT):
            yield self._task_rows(which)  # a run or a parent fits on one page
            return
        for start, before in self._stretches(which):
            page = which._replace(before=before)  # the first page is often enough; later ones are longer
            while rows := self._task_rows(page, start):
                yield rows
                if len(rows) < page.limit:
                    break
                page = page._replace(before=_BEGAN(rows[-1]), limit=max(page.limit, _TASK_PAGE))

    def _stretches(self, which: Which) -> Iterator[tuple[int, int | None]]:
        """Yield where matching tasks may have begun, latest first: after one event, and before another or None."""
        narrow = which.session is not None or which.state == "open" or which.state in OPEN or which.state in GONE
        span = Span(since=which.since, until=which.until, before=which.before, latest=True, label=_label_in(which))
        if narrow or (span.since, span.until, span.label) == (None, None, None):
            yield 0, which.before  # another index is narrower
            return
        for part in self._parts(span):
            yield part.after, part.before

    def _task_rows(self, which: Which, start: int = 0) -> Sequence[Values]:
        """Return the rows of tasks by the best index: a run and a parent have few tasks; few tasks are open or gone.
        `start` is an event before which none of them began."""
        before = FOREVER if which.before is None else which.before
        if which.run is not None:
            return self._rows("tasks_of_run", run=which.run, before=before)
        if which.parent:
            return self._rows("tasks_of_parent", parent=which.parent, before=before)
        names = ("session", "agent", "state", "parent")
        values = {name: "*" if (value := getattr(which, name)) is None else value for name in names}
        values |= {"before": before, "limit": which.limit}
        if which.state == "open" or which.state in OPEN:
            return self._rows("tasks_open", **values)
        if which.session is not None:
            return self._of_session(values)
        if which.state in GONE:
            return self._rows("tasks_gone", **values)
        return self._of_anyone(which, values, start)

    def _of_anyone(self, which: Which, values: Mapping[str, Any], start: int) -> Sequence[Values]:
        if which.agent is None or start or _label_in(which) is not None:
            name = "tasks_first" if which.parent == "" and which.agent is None else "tasks_labelled"
            return self._rows(name, after=start, part=_part_in(which), **values)
        if len(rows := self._latest(values)) == values["limit"]:
            return rows
        if (places := self._places_of(which.agent)) is None:
            return self._rows("tasks", after=0, **values)
        # An ended task has its last holder in the index; an open one may have been handed over just now.
        found = {row[0]: row for row in self._rows("tasks_open", **{**values, "state": "open"}) if which.state is None}
        for place, behind in places:
            found |= {row[0]: row for row in self._rows("tasks_of_agent", **values, after=place, behind=behind)}
        return sorted(found.values(), key=_BEGAN, reverse=True)[: values["limit"]]

    def _places_of(self, agent: str) -> list[tuple[int, int]] | None:
        """Return the ranges of events in which an agent did something. Return None if they cover many events: a search
        among all tasks finds them sooner then."""
        newest = self._one("head")
        places: list[tuple[int, int]] = []
        left = _PLACES
        for part in self._parts(Span(agent=agent, latest=True)):
            behind = (newest[0] if newest else 0) + 1 if part.before is None else part.before
            places.append((part.after, behind))
            left -= behind - part.after
            if left < 0:
                return None
        return places

    def _of_session(self, values: Mapping[str, Any]) -> Sequence[Values]:
        """Search the latest tasks first: a session may be most of them. Otherwise search through its runs."""
        rows = self._latest(values)
        return rows if len(rows) == values["limit"] else self._rows("tasks_of_session", **values)

    def _latest(self, values: Mapping[str, Any]) -> Sequence[Values]:
        newest = self._one("head")
        after = min(newest[0] if newest else 0, values["before"]) - _LATE
        return self._rows("tasks", after=after, **values)

    def runs_of_session(self, session: str, agent: str, limit: int) -> list[Record]:
        return self._records("runs_of_session", session=session, agent=agent, limit=limit)

    def runs(self, limit: int, before: int | None = None) -> list[RunLine]:
        rows = self._rows("runs", limit=limit, before=FOREVER if before is None else before)
        return [_run_line(row) for row in rows]

    def roots(self, after: int, limit: int) -> list[RunAge]:
        return [RunAge(*row) for row in self._rows("roots", after=after, limit=limit)]

    def prunable(self, run: str, before: int) -> list[tuple[str, str, int]] | None:
        rows = self._rows("prunable", run=run, before=before)
        if any(again is not None or ended is None or ended >= before for _, _, ended, again in rows):
            return None
        return [(row[0], row[1], row[2]) for row in rows]

    def of_run(self, run: str) -> list[tuple[str, str, int | None]]:
        return [(row[0], row[1], row[2]) for row in self._rows("of_run", run=run)]

    def ids_like(self, start: str, limit: int, *, runs: bool = False) -> list[str]:
        only = "runs" if runs else ""
        return [row[0] for row in self._rows("ids_like", start=start, stop=after(start), runs=only, limit=limit)]

    def ids_ending(self, ending: str, limit: int, *, runs: bool = False) -> list[str]:
        only = "runs" if runs else ""
        return [row[0] for row in self._rows("ids_ending", ending=ending, runs=only, limit=limit)]


def _lines(rows: Iterable[Values], which: Which) -> Iterator[TaskLine]:
    for *values, text in rows:
        record = Record(*values)
        if _matches(record, which):
            began = _began_with(text)
            line = TaskLine(record, began.task, began.asker, began.labels)
            if _is_labelled(line, which):
                yield line


def _is_labelled(line: TaskLine, which: Which) -> bool:
    return (
        which.asker in (None, line.asker)
        and which.by in (None, line.by)
        and (which.tag is None or which.tag in line.labels.tags)
        and (which.text is None or which.text.casefold() in line.task.casefold())
    )


def _label_in(which: Which) -> str | None:
    """Return the mark by which chapters are searched, or None. Of several conditions one is enough: the others are
    checked on each task."""
    for kind in ("tag", "by", "asker"):
        if getattr(which, kind):
            return mark(kind, getattr(which, kind))
    return None


def _part_in(which: Which) -> str:
    """Return a text that the first event of every matching task contains, or "*" if there is none."""
    if which.tag:
        return encode(which.tag)
    if which.by:
        return f'"by":{encode(which.by)}'
    return f'"asker":{encode(which.asker)}' if which.asker else "*"


def _matches(record: Record, which: Which) -> bool:
    return (
        (which.session is None or record.session == which.session)
        and (which.agent is None or record.holder == which.agent)
        and (which.parent is None or record.parent == which.parent)
        and (which.since is None or record.asked_at >= which.since)
        and (which.until is None or record.asked_at < which.until)
        and (which.state is None or record.state == which.state or (which.state == "open" and record.ended is None))
    )


def run_facts(row: Values) -> RunFacts:
    """Return the totals of a run from its first holder and its counters. The first event's data is not read: guards
    need this at every hop, and a task may be long."""
    id_, agent, led_as, members, *figures = row
    first = first_members(agent, led_as)
    if members is None:
        return RunFacts(id_, first, 1, 0, 0, 0)
    tasks, *others = figures
    return RunFacts(id_, first.union(members.split()), 1 + tasks, *others)


def _run_line(row: Values) -> RunLine:
    *facts, text = row[TASK_WIDTH:]
    began = _began_with(text)
    return RunLine(Record(*row[:TASK_WIDTH]), began.task, run_facts(facts), began.labels)


class _Began(NamedTuple):
    task: str
    asker: str = ""
    labels: Labels = NO_LABELS


def _began_with(text: str) -> _Began:
    """Return the task, the asker and the labels of a first event. One damaged event must not hide the others."""
    try:
        data: Any = decode(text)
        return _Began(str(task_of(data)), str(data.get("asker", "")), labels_restored(data))
    except (ValueError, KeyError, TypeError, AttributeError):
        return _Began("(its record cannot be read)")


class QueueQueries(Queries):
    __slots__ = ()

    def running(self, holder: str, now: int) -> int:
        return self._count("running", holder=holder, now=now)

    def working(self) -> int:
        return self._count("working")

    def resuming(self, holder: str) -> int:
        return self._count("resuming", holder=holder)

    def queues(self) -> list[str]:
        return [row[0] for row in self._rows("queues")]

    def open_tasks(self, limit: int) -> dict[str, int]:
        return dict(cast("list[tuple[str, int]]", self._rows("open_tasks", limit=limit)))

    def has_due(self, holder: str, now: int) -> bool:
        return bool(
            self._ask("has_due", (self.workspace, holder, self.workspace, holder, now))[0][0]
        )  # on the hot path of every submission: placeholders are filled directly

    def due(self, holder: str, worker: str, now: int, limit: int, losses: int = INT_LIMIT) -> list[Record]:
        return self._with_events(self._rows("due", holder=holder, worker=worker, now=now, limit=limit, losses=losses))

    def front(self, now: int, limit: int) -> list[Record]:
        return self._with_events(self._rows("front", now=now, limit=limit))

    def _with_events(self, rows: Sequence[Values]) -> list[Record]:
        self._came_along([row[TASK_WIDTH:] for row in rows if row[TASK_WIDTH] is not None])
        return [Record(*row[:TASK_WIDTH]) for row in rows]

    def _came_along(self, rows: Sequence[Values]) -> None:
        """Receive the rows of events that `due` or `front` read with their tasks. A caching view keeps them."""

    def next_due(self, now: int) -> int | None:
        row = self._one("next_due", now=now)
        return row[0] if row else None

    def late(self, now: int, limit: int) -> list[Record]:
        return self._records("late", now=now, limit=limit)

    def tasks_of_worker(self, worker: str) -> list[Record]:
        return self._records("tasks_of_worker", worker=worker)

    def cancelling(self, worker: str) -> list[str]:
        return [row[0] for row in self._rows("cancelling", worker=worker)]

    def workers(self) -> list[Beat]:
        return [Beat(*row) for row in self._rows("workers")]

    def unseen(self) -> list[str]:
        return [row[0] for row in self._rows("unseen")]


class AgentQueries(Queries):
    __slots__ = ()

    def breaker(self, name: str) -> Breaker:
        # On the hot path of every hop: placeholders are filled directly.
        rows = self._ask("breaker", (self.workspace, name))
        return Breaker(*rows[0]) if rows else CLOSED

    def breaker_set_at(self, name: str) -> int | None:
        row = self._one("breaker_set_at", agent=name)
        return row[0] if row else None

    def breakers(self) -> list[tuple[str, Breaker, int]]:
        return [(row[0], Breaker(*row[1:6]), row[6]) for row in self._rows("breakers")]

    def coolings(self) -> dict[str, Cooling]:
        return {row[0]: Cooling(*row[1:]) for row in self._rows("coolings")}

    def cooling_set_at(self, name: str) -> int | None:
        row = self._one("cooling_set_at", cooling=name)
        return row[0] if row else None

    def card(self, name: str) -> Card | None:
        row = self._one("card", agent=name)
        return None if row is None else _card(row[0])

    def cards(self) -> list[tuple[Card, int]]:
        return [(_card(data), at) for _, data, at in self._rows("cards")]


class EntryQueries(Queries):
    __slots__ = ()

    def entry(self, namespace: str, key: str) -> Entry | None:
        # The most frequent read: placeholders are filled directly.
        rows = self._ask("entry", (self.workspace, namespace, key))
        return _entry(rows[0]) if rows else None

    def recent(self, scope: Scope, now: int, limit: int) -> list[Entry]:
        if scope.key is not None:
            return self._exactly(scope.namespace, scope.key, now)
        if not scope.prefix:
            rows = self._rows("entries_recent", namespace=scope.namespace, now=now, limit=limit)
        else:
            rows = self._range("entries_recent_from", scope, now, limit)
        return [_entry(row) for row in rows]

    def by_key(self, scope: Scope, now: int, limit: int) -> list[Entry]:
        if scope.key is not None:
            return self._exactly(scope.namespace, scope.key, now)
        return [_entry(row) for row in self._range("entries_by_key", scope, now, limit)]

    def _exactly(self, namespace: str, key: str, now: int) -> list[Entry]:
        entry = self.entry(namespace, key)
        return [entry] if entry is not None and entry.alive(now) else []

    def _range(self, name: str, scope: Scope, now: int, limit: int) -> Sequence[Values]:
        start, stop = scope.prefix, after(scope.prefix)
        return self._rows(name, namespace=scope.namespace, start=start, stop=stop, now=now, limit=limit)

    def retired(self, namespace: str, key: str) -> Retired:
        versions = {row[0]: row[1] for row in self._rows("retired", namespace=namespace, key=key)}
        return Retired(versions.get(namespace, 0), versions.get("", 0))

    def expired(self, now: int, limit: int) -> list[tuple[str, str, int]]:
        return [(row[0], row[1], row[2]) for row in self._rows("expired", now=now, limit=limit)]

    def namespaces(self, now: int) -> list[tuple[str, int]]:
        return [(row[0], row[1]) for row in self._rows("namespaces", now=now)]


class MessageQueries(Queries):
    __slots__ = ()

    def waiting(self, run: str, agent: str, task: str, limit: int) -> list[Message]:
        rows = self._rows("waiting", run=run, agent=agent, task=task, limit=limit)
        return [Message(*row) for row in rows]

    def has_message(self, message: str) -> bool:
        return self._count("has_message", id=message) > 0

    def still_waiting(self, run: str, agent: str, limit: int) -> list[str]:
        return [row[0] for row in self._rows("still_waiting", run=run, agent=agent, limit=limit)]

    def unread(self, run: str, agent: str, sender: str) -> int:
        return self._count("unread", run=run, agent=agent, sender=sender)

    def orphans(self, limit: int) -> list[Message]:
        return [Message(*row) for row in self._rows("orphans", limit=limit)]


class KeyQueries(Queries):
    __slots__ = ()

    def secret(self, name: str) -> KeyRow | None:
        row = self._one("secret", key=name)
        return None if row is None else KeyRow(row[0], Sealed(row[1], row[2]), row[3])

    def secrets(self) -> list[KeyInfo]:
        return [KeyInfo(*row) for row in self._rows("secrets")]


def _entry(row: Values) -> Entry:
    namespace, key, form, value, *others, chain = row
    return Entry._make((namespace, key, value if form == "text" else decode(value), *others, _chain(chain)))


@lru_cache(maxsize=1024)  # the entries of one run have few writers
def _chain(text: str) -> tuple[str, ...]:
    return tuple(cast("list[str]", decode(text)))


@lru_cache(maxsize=512)  # every submit from a process without workers reads the card of its agent
def _card(text: str) -> Card:
    return card_restored(cast("dict[str, Json]", decode(text)))


_ANY = "*"  # no agent has this name


class ScheduleQueries(Queries):
    __slots__ = ()

    def schedule(self, name: str) -> Schedule | None:
        row = self._one("schedule", schedule=name)
        return None if row is None else Schedule(*row)

    def schedules(self) -> list[Schedule]:
        return [Schedule(*row) for row in self._rows("schedules")]

    def schedules_due(self, now: int, limit: int) -> list[Schedule]:
        return [Schedule(*row) for row in self._rows("schedules_due", now=now, limit=limit)]

    def next_planned(self) -> int | None:
        row = self._one("next_planned")
        return row[0] if row else None


class HookQueries(Queries):
    __slots__ = ()

    def hook(self, hook: str) -> Hook | None:
        row = self._one("hook", hook=hook)
        return None if row is None else Hook(*row)

    def hooks(self) -> list[Hook]:
        return [Hook(*row) for row in self._rows("hooks")]


class AccessQueries(Queries):
    __slots__ = ()

    def access(self, id_: str) -> tuple[AccessRow, int | None] | None:
        row = self._one("access", access=id_)
        return None if row is None else (AccessRow(*row[:-1]), row[-1])

    def accesses(self) -> list[tuple[AccessRow, int | None]]:
        return [(AccessRow(*row[:-1]), row[-1]) for row in self._rows("accesses")]


class TallyQueries(Queries):
    __slots__ = ()

    def tallied(self) -> int:
        return self._count("tally_mark")

    def tally(self, period: "Period", agent: str | None = None) -> list[TallyRow]:
        rows = self._rows("tally_rows", **period._asdict(), agent=_ANY if agent is None else agent)
        return [self._row(row) for row in rows]

    def tally_row(self, width: int, start: int, agent: str) -> TallyRow | None:
        row = self._one("tally_row", width=width, start=start, agent=agent)
        return None if row is None else self._row(row)

    def under_way(self, task: str) -> "UnderWay | None":
        from remit.core.tally import Root, under_way_from

        row = self._one("tally_task", task=task)
        if row is None:
            return None
        state, at, agent, data = row
        return self._read(data, lambda found: under_way_from(found, Root(state, at, agent) if state else None))

    def open_runs(self, window: "Window", agent: str | None = None) -> Counter[str]:
        rows = self._rows("tally_runs", start=window.start, stop=window.stop, agent=_ANY if agent is None else agent)
        return Counter({row[0]: row[1] for row in rows})

    def events_between(self, after: int, upto: int, limit: int) -> list[Event]:
        return [event_of(row) for row in self._rows("events_between", after=after, upto=upto, limit=limit)]

    def events_of_run_before(self, run: str, seq: int) -> list[Event]:
        return [event_of(row) for row in self._rows("events_of_run_before", run=run, before=seq)]

    def _row(self, row: Values) -> TallyRow:
        from remit.core.tally import figures_from

        return TallyRow(*row[:-1], figures=self._read(row[-1], figures_from))

    def _read(self, text: str, make: Callable[[Json], T]) -> T:
        """Return stored statistics. Raise `StoreError` if they cannot be read; the doctor does not check them, because
        they can be computed again."""
        try:
            return make(decode(text))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"the tally of '{self.workspace}' cannot be read ({type(error).__name__}: {error}); delete the rows of "
                "tally, tally_task and tally_mark; then it is computed again"
            ) from error


class LedgerQueries(Queries):
    __slots__ = ()

    def lease(self, lease: str, unit: Unit) -> Lease | None:
        # On the hot path of every hold: placeholders are filled directly.
        rows = self._ask("lease", (self.workspace, lease, unit))
        return lease_of(rows[0]) if rows else None

    def leases(self, after: tuple[str, str], limit: int) -> list[Lease]:
        return [lease_of(row) for row in self._rows("lease_page", id=after[0], unit=after[1], limit=limit)]

    def hold(self, hold: str) -> Hold | None:
        row = self._one("hold", id=hold)
        return Hold(*row) if row else None

    def holds(self, task: str) -> list[Hold]:
        return self._holds("holds_of", task=task)

    def holds_expired(self, now: int, limit: int) -> list[Hold]:
        return self._holds("holds_expired", now=now, limit=limit)

    def holds_uncertain(self, after: str, limit: int) -> list[Hold]:
        return self._holds("holds_uncertain", run=after, limit=limit)

    def holds_of_run(self, run: str) -> list[Hold]:
        return self._holds("holds_of_run", run=run)

    def disputed(self, agent: str) -> Hold | None:
        row = self._one("hold_disputed", agent=agent)
        return Hold(*row) if row else None

    def on_hold(self, unit: Unit, agent: str = "*", session: str = "*", person: str = "*") -> int:
        row = self._one("on_hold", agent=agent, session=session, person=person)
        assert row is not None  # a sum always returns a row
        return int(row[0 if unit == "credits" else 1])

    def metered(self, scope: str, name: str, unit: MeterUnit, since: str) -> int:
        return int(self._count("metered", scope=scope, of=name, unit=unit, since=since))

    def meter(self, scope: str, name: str, unit: MeterUnit, hour: str) -> int | None:
        row = self._one("meter_row", scope=scope, of=name, unit=unit, hour=hour)
        return None if row is None else row[-1]

    def meter_hours(self, scope: str, name: str, unit: MeterUnit, since: str) -> list[tuple[str, str, int]]:
        rows = self._rows("meter_hours", scope=scope, of=name, unit=unit, since=since)
        return sorted((row[0], row[1], int(row[2])) for row in rows)

    def _holds(self, name: str, **values: object) -> list[Hold]:
        return [Hold(*row) for row in self._rows(name, **values)]


class QuestionQueries(Queries):
    __slots__ = ()

    def question(self, question: str) -> Question | None:
        row = self._one("question", id=question)
        return Question(*row) if row else None

    def questions_of(self, task: str) -> list[Question]:
        return sorted(self._questions("questions_of", task=task), key=_asked_at)

    def questions_open_in(self, run: str) -> list[Question]:
        return sorted(self._questions("questions_open_in", run=run), key=_asked_at)

    def questions_of_run(self, run: str) -> list[str]:
        return [row[0] for row in self._rows("questions_of_run", run=run)]

    def questions_expired(self, now: int, limit: int) -> list[Question]:
        return self._questions("questions_expired", now=now, limit=limit)

    def questions_open(self, limit: int) -> list[Question]:
        return self._questions("questions_open", until=-FOREVER, limit=limit)

    def questions(self, limit: int, before: int | None = None) -> list[Question]:
        return self._questions("questions", before=FOREVER if before is None else before, limit=limit)

    def _questions(self, name: str, **values: object) -> list[Question]:
        return [Question(*row) for row in self._rows(name, **values)]


class ArtifactQueries(Queries):
    __slots__ = ()

    def artifact_rows(self, digest: str) -> list[ArtifactRow]:
        return sorted(self._artifacts("artifact_rows", digest=digest))

    def artifacts(self, limit: int, before: int = INT_LIMIT) -> list[ArtifactRow]:
        return self._artifacts("artifacts", before=before, limit=limit)

    def artifacts_of_run(self, run: str) -> list[ArtifactRow]:
        return sorted(self._artifacts("artifacts_of_run", run=run))

    def artifacts_at(self, seq: int) -> list[ArtifactRow]:
        return sorted(self._artifacts("artifacts_at", seq=seq))

    def artifact_count(self) -> int:
        return self._count("artifact_count")

    def artifact_bytes(self, run: str = "") -> int:
        return int(self._count("artifact_bytes_of_run", run=run) if run else self._count("artifact_bytes"))

    def _artifacts(self, name: str, **values: object) -> list[ArtifactRow]:
        return [ArtifactRow(*row) for row in self._rows(name, **values)]


def _asked_at(question: Question) -> int:
    return question.asked


def lease_of(row: Values) -> Lease:
    """Return the lease of a row."""
    id_, unit, kind, above, *figures = row
    return Lease._make((id_, unit, kind, tuple(cast("list[str]", decode(above))), *figures))


class SqlView(
    TaskQueries,
    VitalQueries,
    QueueQueries,
    AgentQueries,
    EntryQueries,
    MessageQueries,
    TallyQueries,
    LedgerQueries,
    QuestionQueries,
    ArtifactQueries,
    KeyQueries,
    ScheduleQueries,
    HookQueries,
    AccessQueries,
):
    """All reads: `ports.View` for a SQL database."""

    __slots__ = ()
