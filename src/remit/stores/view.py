"""Reading: rows of any SQL database as values of the core, always within one workspace.

The classes here are the roles of `ports.views`, one for one; `SqlView` is all of them.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final, TypeAlias, cast

from remit.codec import decode
from remit.core.breaker import CLOSED, Breaker
from remit.core.card import Card
from remit.core.card import restored as card_restored
from remit.core.entry import Entry
from remit.core.events import Event, Head
from remit.core.identity import UsedKey
from remit.core.lifecycle import OPEN
from remit.core.message import Message
from remit.core.projection import COLUMNS, KEYS, Key, Row, Table, Tables
from remit.core.record import NO_RUN, Record, RunFacts, Standing, first_members
from remit.core.scope import Scope
from remit.core.text import INT_LIMIT
from remit.core.values import Json
from remit.errors import StoreError
from remit.ports import Beat, RunLine, Span, Which
from remit.stores.queries import after, queries

Values: TypeAlias = Sequence[Any]
Ask: TypeAlias = Callable[[str, Values], Sequence[Values]]

_QUERIES: Final = queries()
_FOREVER: Final = 2**62
_TASK_WIDTH: Final = len(COLUMNS["task"])
_PAGES: Final[dict[Table, str]] = {
    "task": "task_page",
    "run": "run_page",
    "used_key": "used_key_page",
    "entry": "entry_page",
    "retired": "retired_page",
    "message": "message_page",
    "breaker": "breaker_page",
    "card": "card_page",
}
_PAGE: Final = 10_000


class Queries:
    """Runs named queries. `ask(name, values)` reaches the database; the workspace is put in here and nowhere else."""

    __slots__ = ("_ask", "workspace")

    def __init__(self, workspace: str, ask: Ask) -> None:
        self.workspace = workspace
        self._ask = ask

    def _rows(self, name: str, /, **values: object) -> Sequence[Values]:
        values["workspace"] = self.workspace
        return self._ask(name, _QUERIES[name].fill(values))

    def _one(self, name: str, **values: object) -> Values | None:
        rows = self._rows(name, **values)
        return rows[0] if rows else None

    def _count(self, name: str, **values: object) -> int:
        row = self._one(name, **values)
        return row[0] if row else 0

    def _records(self, name: str, **values: object) -> list[Record]:
        return [Record(*row) for row in self._rows(name, **values)]


class JournalQueries(Queries):
    __slots__ = ()

    def head(self) -> Head:
        row = self._one("head")
        return Head(*row) if row else Head()

    def event(self, seq: int) -> Event | None:
        row = self._one("event", seq=seq)
        return event_of(row) if row else None

    def done(self, op: str) -> tuple[Json] | None:
        row = self._one("done", op=op)
        return None if row is None else (answer_of(row[0]),)

    def done_under(self, prefix: str) -> list[Event]:
        after = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        events = (event_of(row) for row in self._rows("done_under", prefix=prefix, after=after))
        return sorted(events, key=lambda event: event.seq)

    def events(self, span: Span) -> list[Event]:
        """Find events by the narrowest index, then check the other conditions on what it gives."""
        window = {
            "after": span.after,
            "since": span.since if span.since is not None else -_FOREVER,
            "until": span.until if span.until is not None else _FOREVER,
            "limit": span.limit if span.session is span.agent is span.task is span.kinds is None else _FOREVER,
        }
        if span.run is not None:
            rows = self._rows("events_of_run", run=span.run, **window)
        elif span.session is not None:
            rows = self._rows("events_of_session", session=span.session, **window)
        else:
            rows = self._rows("events", **window)
        events = (event_of(row) for row in rows)
        return list(islice((event for event in events if _is_within(event, span)), span.limit))

    def tables(self) -> Tables:
        return {table: dict(self._whole(table)) for table in _PAGES}

    def page(self, table: Table, after: Key | None, limit: int) -> list[tuple[Key, Row]]:
        names, columns = KEYS[table], COLUMNS[table]
        values = dict(zip(names, after or ("",) * len(names), strict=True))
        width = len(names)
        rows = self._rows(_PAGES[table], **values, limit=limit)
        return [(tuple(row[:width]), dict(zip(columns, row, strict=True))) for row in rows]

    def _whole(self, table: Table) -> Iterator[tuple[Key, Row]]:
        page = self.page(table, None, _PAGE)
        while page:
            yield from page
            page = self.page(table, page[-1][0], _PAGE)


class TaskQueries(Queries):
    __slots__ = ()

    def standing(self, task: str) -> Standing | None:
        rows = self._ask("standing", (self.workspace, task))  # read at every write of a turn: filled by hand
        return Standing(*rows[0]) if rows else None

    def record(self, task: str) -> Record | None:
        row = self._one("record", task=task)
        return Record(*row) if row else None

    def run(self, run: str) -> RunFacts:
        rows = self._ask("run", (self.workspace, run))  # read at every hop: filled by hand
        return run_facts(rows[0]) if rows else NO_RUN

    def below(self, task: str) -> list[Record]:
        return self._records("below", task=task)

    def spawned(self, parent: str) -> int:
        return self._count("spawned", parent=parent)

    def same_requests(self, dedup_key: str, since: int) -> list[Record]:
        rows = self._ask("same_requests", (self.workspace, dedup_key, since))  # read at every submit: filled by hand
        return [Record(*row) for row in rows]

    def lineage(self, origin: str) -> list[Record]:
        return sorted(self._records("lineage", origin=origin), key=lambda record: record.began)

    def lineage_runs(self, since: int) -> set[str]:
        return {row[0] for row in self._rows("lineage_runs", since=since)}

    def used_key(self, key: str) -> UsedKey | None:
        row = self._one("used_key", key=key)
        return UsedKey(*row) if row else None

    def keys_of_run(self, run: str) -> list[UsedKey]:
        return [UsedKey(*row) for row in self._rows("keys_of_run", run=run)]

    def key_of_task(self, task: str) -> UsedKey | None:
        row = self._one("key_of_task", task=task)
        return UsedKey(*row) if row else None

    def tasks(self, which: Which) -> list[tuple[Record, str]]:
        """Find tasks by the narrowest index. A run and a parent have few tasks: their other conditions are checked
        here, on what the index gives."""
        before = _FOREVER if which.before is None else which.before
        if which.run is not None:
            rows = self._rows("tasks_of_run", run=which.run, before=before)
        elif which.parent:
            rows = self._rows("tasks_of_parent", parent=which.parent, before=before)
        else:
            names = ("session", "agent", "state", "parent")
            values = {name: "*" if (value := getattr(which, name)) is None else value for name in names}
            query = "tasks_open" if which.state == "open" or which.state in OPEN else "tasks"
            rows = self._rows(query, **values, before=before, limit=which.limit)
        lines = ((Record(*row[:-1]), row[-1]) for row in rows)
        matching = islice((line for line in lines if _matches(line[0], which)), which.limit)
        return [(record, _task_of(text)) for record, text in matching]

    def runs(self, limit: int, before: int | None = None) -> list[RunLine]:
        rows = self._rows("runs", limit=limit, before=_FOREVER if before is None else before)
        return [_run_line(row) for row in rows]

    def old(self, before: int, limit: int) -> list[str]:
        return [row[0] for row in self._rows("old", before=before, limit=limit)]

    def of_run(self, run: str) -> list[tuple[str, str, int | None]]:
        return [(row[0], row[1], row[2]) for row in self._rows("of_run", run=run)]

    def ids_like(self, start: str, limit: int) -> list[str]:
        return [row[0] for row in self._rows("ids_like", start=start, stop=after(start), limit=limit)]


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

    def due(self, holder: str, worker: str, now: int, limit: int, losses: int = INT_LIMIT) -> list[Record]:
        rows = self._rows("due", holder=holder, worker=worker, now=now, limit=limit, losses=losses)
        self._came_along([row[_TASK_WIDTH:] for row in rows])
        return [Record(*row[:_TASK_WIDTH]) for row in rows]

    def _came_along(self, rows: Sequence[Values]) -> None:
        """Take the events that came along with an answer; a view that remembers keeps them."""

    def next_due(self, now: int) -> int | None:
        row = self._one("next_due", now=now)
        return row[0] if row else None

    def late(self, now: int, limit: int) -> list[Record]:
        return self._records("late", now=now, limit=limit)

    def held(self, worker: str) -> list[Record]:
        return self._records("held", worker=worker)

    def cancelling(self, worker: str) -> list[str]:
        return [row[0] for row in self._rows("cancelling", worker=worker)]

    def workers(self) -> list[Beat]:
        return [Beat(*row) for row in self._rows("workers")]

    def unseen(self) -> list[str]:
        return [row[0] for row in self._rows("unseen")]


class AgentQueries(Queries):
    __slots__ = ()

    def breaker(self, name: str) -> Breaker:
        rows = self._ask("breaker", (self.workspace, name))  # read at every hop: filled by hand
        return Breaker(*rows[0]) if rows else CLOSED

    def breakers(self) -> list[tuple[str, Breaker, int]]:
        return [(row[0], Breaker(*row[1:6]), row[6]) for row in self._rows("breakers")]

    def card(self, name: str) -> Card | None:
        row = self._one("card", agent=name)
        return None if row is None else _card(row[0])

    def cards(self) -> list[tuple[Card, int]]:
        return [(_card(data), at) for _, data, at in self._rows("cards")]


class EntryQueries(Queries):
    __slots__ = ()

    def entry(self, namespace: str, key: str) -> Entry | None:
        rows = self._ask("entry", (self.workspace, namespace, key))  # the read of all reads: filled by hand
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

    def retired(self, namespace: str, key: str) -> int:
        rows = self._rows("retired", namespace=namespace, key=key)
        return rows[0][0] if rows else 0

    def expired(self, now: int, limit: int) -> list[tuple[str, str, int]]:
        return [(row[0], row[1], row[2]) for row in self._rows("expired", now=now, limit=limit)]

    def namespaces(self, now: int) -> list[tuple[str, int]]:
        return [(row[0], row[1]) for row in self._rows("namespaces", now=now)]


class MessageQueries(Queries):
    __slots__ = ()

    def waiting(self, run: str, agent: str, task: str, limit: int) -> list[Message]:
        rows = self._rows("waiting", run=run, agent=agent, task=task, limit=limit)
        return [Message(*row) for row in rows]

    def still_waiting(self, run: str, agent: str, limit: int) -> list[str]:
        return [row[0] for row in self._rows("still_waiting", run=run, agent=agent, limit=limit)]

    def unread(self, run: str, agent: str, sender: str) -> int:
        return self._count("unread", run=run, agent=agent, sender=sender)

    def orphans(self, limit: int) -> list[Message]:
        return [Message(*row) for row in self._rows("orphans", limit=limit)]


class SqlView(JournalQueries, TaskQueries, QueueQueries, AgentQueries, EntryQueries, MessageQueries):
    """All of it: what `ports.View` is for a SQL database."""

    __slots__ = ()


def _is_within(event: Event, span: Span) -> bool:
    return (
        (span.session is None or event.session == span.session)
        and (span.agent is None or event.agent == span.agent)
        and (span.task is None or event.task == span.task)
        and (span.kinds is None or event.kind in span.kinds)
    )


def _matches(record: Record, which: Which) -> bool:
    return (
        (which.session is None or record.session == which.session)
        and (which.agent is None or record.holder == which.agent)
        and (which.parent is None or record.parent == which.parent)
        and (which.state is None or record.state == which.state or (which.state == "open" and record.ended is None))
    )


def _entry(row: Values) -> Entry:
    namespace, key, form, value, *others, chain = row
    return Entry._make((namespace, key, value if form == "text" else decode(value), *others, _chain(chain)))


@lru_cache(maxsize=1024)  # the entries of one run have few writers
def _chain(text: str) -> tuple[str, ...]:
    return tuple(cast("list[str]", decode(text)))


def _card(text: str) -> Card:
    return card_restored(cast("dict[str, Json]", decode(text)))


def run_facts(row: Values) -> RunFacts:
    """Put together who began a run and what has been counted since. What was said when it began is not read: guards
    ask for this at every hop, and a task may be long."""
    id_, agent, led_as, members, *figures = row
    first = first_members(agent, led_as)
    if members is None:
        return RunFacts(id_, first, 1, 0, 0, 0)
    tasks, handoffs, tokens, refusals = figures
    return RunFacts(id_, first.union(members.split()), 1 + tasks, handoffs, tokens, refusals)


def _run_line(row: Values) -> RunLine:
    *facts, text = row[_TASK_WIDTH:]
    task, by = _began_with(text)
    return RunLine(Record(*row[:_TASK_WIDTH]), task, run_facts(facts), by)


def _task_of(text: str) -> str:
    return _began_with(text)[0]


def _began_with(text: str) -> tuple[str, str]:
    """Read the task, and who asked for it, from the data of the event that began it. One damaged event must not hide
    the others."""
    try:
        data: Any = decode(text)
        return str(data["task"]), str(data.get("by", ""))
    except (ValueError, KeyError, TypeError):
        return "(its record cannot be read)", ""


def answer_of(text: str | None) -> Json:
    """Read the answer of an operation from its JSON text; None is kept as no text at all."""
    return None if text is None else decode(text)


def event_of(row: Values) -> Event:
    """Make the event that a row of the journal tells of."""
    try:
        data: Any = decode(row[8]) if row[8] else {}  # a pruned run's events are empty
    except ValueError as error:
        raise StoreError(f"event {row[1]} of '{row[0]}' cannot be read ({error}); run `remit doctor`") from error
    return Event._make((*row, data))
