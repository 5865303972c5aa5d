"""Appending: decisions become events, events become rows. The same for every SQL database."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import cache
from operator import add, itemgetter
from typing import Any, Final, Protocol, TypeAlias, cast

from remit.codec import decode, encode
from remit.core import lifecycle
from remit.core.change import Key, Row, Table
from remit.core.events import (
    INLINE,
    KEYED,
    NO_STAMP,
    Event,
    Head,
    SealKey,
    Stamp,
    Unsealed,
    blob_reference,
    chapter_of,
    marks,
    seal,
)
from remit.core.lifecycle import after
from remit.core.money import MOVES, MOVING, LeaseMove
from remit.core.projection import COUNTS, ONE_TASK, PROJECTION, Count
from remit.core.records import NamedTuple
from remit.core.values import Json
from remit.errors import RemitError, StoreBusy, StoreError
from remit.ports import NOTHING, AccessUse, Beat, Decide, Decided, DoneBefore, Fault, KeyChange, Sink, Tallied, Wants
from remit.stores.cached import CachedView
from remit.stores.queries import query, tables_read

BATCH: Final = 128  # operations per transaction, so that no caller waits long for the others

Feed: TypeAlias = Callable[[list[Event]], None]
Applied: TypeAlias = tuple[Any, list[Event], Any]  # answer, appended events and aside
Apply: TypeAlias = Callable[[str, str, Decide[Any]], Applied]


class Operation:
    """A pending write: the decision function, and the result or error of its last execution."""

    __slots__ = ("answer", "aside", "decide", "error", "events", "future", "op", "wants", "workspace")

    def __init__(
        self, workspace: str, op: str, decide: Decide[Any], future: "asyncio.Future[Any]", wants: Wants = NOTHING
    ) -> None:
        self.workspace = workspace
        self.op = op
        self.decide = decide
        self.future = future
        self.wants = wants
        self.answer: Any = None
        self.aside: Any = None
        self.events: list[Event] = []
        self.error: Exception | None = None

    def perform(self, apply: Apply, failures: tuple[type[Exception], ...] = (StoreError,)) -> None:
        """Run the decision. Re-raise database errors (`failures`); store any other error for the caller's future."""
        self.answer, self.aside, self.events, self.error = None, None, [], None
        try:
            self.answer, self.events, self.aside = apply(self.workspace, self.op, self.decide)
        except failures:
            raise
        except StopIteration as error:  # the only exception that a future rejects
            self.error = RuntimeError("a decision raised StopIteration")
            self.error.__cause__ = error
        except Exception as error:  # noqa: BLE001 - whatever it is
            self.error = error

    def fail(self, error: RemitError) -> None:
        """Drop the result: the database failed, and nothing was written."""
        self.error, self.events = error, []

    def settle(self) -> None:
        """Resolve the caller's future, on the thread of its event loop."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(Decided(self.answer, self.aside))


def answer_all(batch: Sequence[Operation], feed: Feed, fault: Fault) -> None:
    """Notify the sinks, then resolve the futures, in this order: a caller that continues can rely on the sinks having
    seen its events."""
    for operation in batch:
        if operation.error is None and operation.events:
            feed(operation.events)
        fault("store.before-answer")
        operation.settle()


def try_one_by_one(batch: Sequence[Operation], error: StoreError) -> bool:
    """Whether a failed batch is retried one by one.

    One bad operation must not take the others with it. If the database is busy, it is busy for each of them.
    """
    return len(batch) > 1 and not isinstance(error, StoreBusy)


# -- delayed writes ----------------------------------------------------------------------------------
# If an account pays for a hundred calls in one transaction, its row is written once; likewise the figures of runs
# and meters. A hold that starts and ends in the same transaction is never written.

Write: TypeAlias = Callable[[str, tuple[Any, ...]], None]

_FIGURES: Final = LeaseMove._fields[2:]
_METERED: Final = ("workspace", "unit", "hour", "agent", "session", "person")
_METERED_BY: Final = itemgetter(*_METERED)
_DATA_OF: Final = itemgetter(Unsealed._fields.index("data"))
_COUNT, _MOVE, _METER, _METER_PERSON, _HOLD = (
    query(name).fill for name in ("run_count", "lease_move", "meter_count", "meter_count_person", "hold_add")
)
TABLES: Final = frozenset(("run", "lease", "hold", "meter"))  # tables whose rows may be outdated until the flush


@cache
def reads_delayed(name: str) -> bool:
    """Whether a query reads one of these tables."""
    return not TABLES.isdisjoint(tables_read(name))


class Unwritten:
    """Changes that are written at the end of a transaction: before it is committed, and before a query that reads their
    tables runs in it."""

    __slots__ = ("_holds", "_leases", "_meters", "_runs")

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str], list[Any]] = {}
        self._leases: dict[tuple[str, ...], list[int]] = {}
        self._meters: dict[tuple[Any, ...], int] = {}
        self._holds: dict[tuple[str, ...], Row] = {}

    def __bool__(self) -> bool:
        return bool(self._runs or self._leases or self._meters or self._holds)

    def clear(self) -> None:
        """Drop all changes: they are written, or the transaction was rolled back."""
        self._runs.clear()
        self._leases.clear()
        self._meters.clear()
        self._holds.clear()

    def count(self, workspace: str, run: str, count: Count) -> None:
        """Add to the figures of a run."""
        key = (workspace, run)
        waiting = self._runs.get(key)
        if waiting is None:
            self._runs[key] = [*count]
        elif count is ONE_TASK:  # nearly always
            waiting[1] += 1
        else:
            self._runs[key] = [*map(add, waiting, count)]

    def move(self, workspace: str, move: LeaseMove) -> None:
        """Add to the figures of a lease."""
        key = (workspace, move.lease, move.unit)
        waiting = self._leases.get(key)
        if waiting is None:
            self._leases[key] = [*move[2:]]
        else:
            self._leases[key] = [have + more for have, more in zip(waiting, move[2:], strict=True)]

    def takes(self, table: Table, verb: str, key: Key, row: Row) -> bool:
        """Keep a change that can be written later: an addition to a meter, a new hold, and the end of a hold that was
        never written. If a lease is dropped, drop its collected figures too. Return whether the change was kept."""
        if verb == "count":
            metered = _METERED_BY(row)
            self._meters[metered] = self._meters.get(metered, 0) + cast("int", row["spent"])
            return True
        place = (cast("str", row["workspace"]), *key)
        if table == "hold" and verb == "add":
            self._holds[place] = row
            return True
        if table == "lease" and verb == "drop":
            self._leases.pop(place, None)
        return table == "hold" and verb == "drop" and self._holds.pop(place, None) is not None

    def write(self, write: Write) -> None:
        """Write the collected changes."""
        for (workspace, run), figures in self._runs.items():
            row = {"workspace": workspace, "id": run, **dict(zip(Count._fields, figures, strict=True))}
            write("run_count", _COUNT(row))
        for (workspace, lease, unit), figures in self._leases.items():
            row = {"workspace": workspace, "id": lease, "unit": unit, **dict(zip(_FIGURES, figures, strict=True))}
            write("lease_move", _MOVE(row))
        for metered, spent in self._meters.items():
            row = {**dict(zip(_METERED, metered, strict=True)), "spent": spent}
            write("meter_count", _METER(row))
            if row["person"]:
                write("meter_count_person", _METER_PERSON(row))
        for row in self._holds.values():
            write("hold_add", _HOLD(row))
        self.clear()


Rows: TypeAlias = Sequence[Sequence[Any]]

CHAPTER: Final = 1_024  # events, after which a chapter is written

_BEGINNINGS: Final = lifecycle.BEGINNINGS
_CHECKED: Final = lifecycle.MOVES - _BEGINNINGS


class Recorded(NamedTuple):
    """An operation in the journal: its answer in its first event, and the hash of that event."""

    answer: str | None
    hash: str


class Sql(Protocol):
    """One connection, in a transaction that its owner began and will commit.

    `query` and `write` run a named statement; values are in the order of its places.
    """

    def head(self, workspace: str) -> Head:
        """Return the end of a workspace's journal."""
        ...

    def done(self, workspace: str, op: str) -> Recorded | None:
        """Return an operation, or None if it has not been done."""
        ...

    def append(self, event: Event) -> bool:
        """Write an event into the journal. Return False if its operation id or its number is taken."""
        ...

    def query(self, name: str, row: Sequence[Any]) -> Rows: ...
    def write(self, name: str, row: tuple[Any, ...]) -> None: ...
    def erase(self, name: str, row: tuple[Any, ...]) -> None:
        """Write so that the old data is really gone, as far as the database can guarantee that."""
        ...


class Journal:
    """Applies operations: each happens once, however often it is requested."""

    __slots__ = ("_fault", "_heads", "_sql", "_views", "key", "unrepeatable", "unwritten")

    def __init__(self, sql: Sql, fault: Fault) -> None:
        self._sql = sql
        self._fault = fault
        self.key: SealKey | None = None  # the key that signs events, or None
        self._heads: dict[str, tuple[int, str]] = {}  # the fields of a `Head`, which costs more to create
        self._views: dict[str, CachedView] = {}
        self.unwritten = Unwritten()
        self.unrepeatable = False  # something was written that cannot be restored from events

    def forget(self) -> None:
        """Drop the cached heads and views: another process may have written since."""
        self._heads.clear()
        self.unwritten.clear()
        for view in self._views.values():
            view.forget()

    def view(self, workspace: str) -> CachedView:
        """Return the view that decisions of a workspace read from."""
        view = self._views.get(workspace)
        if view is None:
            view = self._views[workspace] = _JournalView(workspace, self, self._sql)
        return view

    def flush(self) -> None:
        """Write the delayed changes. Call it before a commit."""
        if self.unwritten:
            self.unwritten.write(self._sql.write)

    def query(self, name: str, row: Sequence[Any]) -> Rows:
        """Run a query; delayed changes that it may read are written first."""
        if reads_delayed(name):
            self.flush()
        return self._sql.query(name, row)

    def head(self, workspace: str) -> Head:
        """Return the end of a workspace's journal, including what this transaction has appended."""
        known = self._heads.get(workspace)
        if known is not None:
            return Head(*known)
        head = self._sql.head(workspace)
        if head.hash.startswith(KEYED):
            self._check_key(workspace, head)
        self._heads[workspace] = head
        return head

    def _check_key(self, workspace: str, head: Head) -> None:
        """Raise `StoreError` if a journal is signed with another key: to its owner our events would look forged."""
        if self.key is None or not head.hash.startswith(self.key.mark):
            which = "none was given" if self.key is None else "another one was given"
            raise StoreError(
                f"the journal of '{workspace}' is signed with a key and {which}; it can be read; to write, "
                "pass the key as REMIT_JOURNAL_KEY or System(journal_key=...)"
            )

    def apply(self, workspace: str, op: str, decide: Decide[Any]) -> Applied:
        """Return the operation's answer, its events and its aside (`Decision.aside`); an operation that was done before
        returns its recorded answer, without events and aside.

        A lookup first would cost every operation a query. So the decision runs first, and the operation is looked up
        only if it may have been done: the decision raises, it changes nothing, or its id is taken.
        """
        view = self._views.get(workspace) or self.view(workspace)
        try:
            answer, unsealed, beat, aside, tally, besides = decide(view)
            for event in unsealed:
                if event.kind in _CHECKED:
                    _check_moves(view, unsealed)
                    break
        except Exception:
            if (done := self._answer_of(workspace, op)) is not None:
                return done
            raise
        self._fault("store.decided")
        if beat is not None:
            self._beat(workspace, beat)
        if tally is not None:
            self._roll_up(workspace, tally)
        if not unsealed:
            return self._answer_of(workspace, op) or (answer, [], aside)
        # Encode everything before the first write, so that a value that cannot be encoded leaves nothing behind.
        texts = [*map(encode, map(_DATA_OF, unsealed))]
        # The first event has the operation id: if it exists, the whole operation was done.
        stamp = (op, None if answer is None else encode(answer))
        try:
            events = self._append_all(view, unsealed, texts, stamp)
        except (KeyError, TypeError, ValueError) as error:  # half of it is written: the transaction must be rolled back
            raise StoreError(_unapplied(error)) from error
        if besides is not None and events:  # a repeated operation has no events and changes nothing
            events += self._record(view, besides)
        return (answer, events, aside) if events else (self._answer_of(workspace, op) or (answer, [], aside))

    def _beat(self, workspace: str, beat: Beat | AccessUse) -> None:
        if isinstance(beat, AccessUse):
            self._sql.write("access_used", (beat.used_at, workspace, beat.id))
            return
        name = "worker_beat" if beat.count else "worker_leave"
        self._sql.write(name, query(name).fill({**beat._asdict(), "workspace": workspace}))

    def _roll_up(self, workspace: str, tally: Tallied) -> None:
        """Write a slice of the statistics, next to the journal and derived from it."""
        for row in tally.rows:
            values = {**row._asdict(), "workspace": workspace, "data": encode(row.figures.data())}
            self._sql.write("tally_put", query("tally_put").fill(values))
        for task, known in tally.under_way.items():
            if known is None:
                self._sql.write("tally_task_drop", (workspace, task))
            else:
                state, at, agent = known.root or ("", 0, "")
                self._sql.write("tally_task_put", (workspace, task, state, at, agent, encode(known.data())))
        self._sql.write("tally_mark_put", (workspace, tally.upto))

    def _record(self, view: CachedView, besides: KeyChange | Sequence[DoneBefore]) -> list[Event]:
        """Write changed keys, or the events of operations that count as done with this one (`DoneBefore`). Return these
        events."""
        if isinstance(besides, KeyChange):
            self._change_keys(view.workspace, besides)
            return []
        events: list[Event] = []
        for op, answer, event in besides:
            stamp = (op, None if answer is None else encode(answer))
            events += self._append_all(view, (event,), [encode(event.data)], stamp)
        return events

    def _change_keys(self, workspace: str, change: KeyChange) -> None:
        for name, sealed, set_at in change.puts:
            self._sql.erase("secret_put", (workspace, name, sealed.key_id, sealed.text, set_at))
        for name in change.drops:
            self._sql.erase("secret_drop", (workspace, name))
        self.view(workspace).forget_secrets()
        self.unrepeatable = True

    def _append_all(
        self, view: CachedView, unsealed: Sequence[Unsealed], texts: list[str], stamp: Stamp
    ) -> list[Event]:
        """Append the events and return them; none if the operation id is taken."""
        if stamp[1] is not None and len(stamp[1]) > INLINE:
            return self._append_beside(view, unsealed, texts, stamp)
        workspace = view.workspace
        head: tuple[int, str] = self._heads.get(workspace) or self.head(workspace)
        events: list[Event] = []
        for fresh, text in zip(unsealed, texts, strict=True):
            event = seal(fresh, text, workspace, head, stamp, self.key)
            if not self._append(event, view):
                if event.op is not None and self._sql.done(workspace, event.op) is not None:
                    return []
                raise StoreError(f"the journal of '{workspace}' already has an event {event.seq}; run `remit doctor`")
            head = (event.seq, event.hash)
            stamp = NO_STAMP
            events.append(event)
        self._heads[workspace] = head
        return events

    def _append_beside(
        self, view: CachedView, unsealed: Sequence[Unsealed], texts: list[str], stamp: Stamp
    ) -> list[Event]:
        """Append the events, and store the answer next to the first of them."""
        op, answer = stamp
        events = self._append_all(view, unsealed, texts, (op, blob_reference(cast("str", answer))))
        if events:
            self._sql.write("blob_put", (view.workspace, events[0].seq, answer))
            self.unrepeatable = True
        return events

    def restore(self, events: Sequence[Event]) -> None:
        """Write events again that a rollback removed."""
        for event in events:
            self._append(event, self.view(event.workspace))

    def _answer_of(self, workspace: str, op: str) -> Applied | None:
        """Return the recorded answer of an operation, without events and aside, or None."""
        done = self.view(workspace).done(op)
        return None if done is None else (done[0], [], None)

    def _append(self, event: Event, view: CachedView) -> bool:
        """Write the event and its changes to the tables. Return False if its operation id or its number is taken."""
        if not self._sql.append(event):
            return False
        self._fault("store.appended")
        kind, data = event.kind, event.data
        moves = MOVES.get(kind)
        if moves is not None and not MOVING.isdisjoint(data):
            for move in moves(data):
                self._move(view, move)
        changed = PROJECTION[kind](event)
        if changed:
            for table, verb, key, row in changed:
                row["workspace"] = event.workspace
                if table in TABLES and self._waits(table, verb, key, row):
                    continue
                name = f"{table}_{verb}"
                self._sql.write(name, query(name).fill(row))
            view.learn(event, changed)
        counts = COUNTS.get(kind)
        if counts is not None and (count := counts(event)) is not None:
            view.learn_count(event.run, count)
            self.unwritten.count(event.workspace, event.run, count)
        self._fault("store.projected")
        if not event.seq % CHAPTER:
            self._add_chapters(event.workspace, event.seq)
        return True

    def _add_chapters(self, workspace: str, upto: int) -> None:
        """Write the missing chapters up to event `upto`. A chapter summarizes about a thousand events for searches. The
        ranges of events follow each other without a gap. A range whose events are all cut gets no chapter."""
        rows = self._sql.query("chapter_end", (workspace,))
        end = rows[0][0] if rows else 0
        while end < upto:
            last = upto if upto - end < 2 * CHAPTER else end + CHAPTER
            facts = self._sql.query("chapter_facts", (workspace, end, last))
            if facts:
                firsts = self._sql.query("chapter_firsts", (workspace, end, last))
                self._sql.write("chapter_add", (workspace, *chapter_of(end + 1, last, facts, _marks_in(firsts))))
            end = last

    def _waits(self, table: Table, verb: str, key: Key, row: Row) -> bool:
        """Whether a change is delayed to the end of the transaction."""
        if self.unwritten.takes(table, verb, key, row):
            return True
        if verb in ("set", "put", "settle", "cut") or table == "run":
            self.flush()  # otherwise the delayed change would overwrite this one
        return False

    def _move(self, view: CachedView, move: LeaseMove) -> None:
        """Add a movement of money to the delayed changes. If its lease does not balance then, or is not cached, flush,
        so that the database checks it at once."""
        self.unwritten.move(view.workspace, move)
        if not view.move(move):
            self.flush()


class _JournalView(CachedView):
    """The view of a decision: it also sees what the transaction has written so far."""

    __slots__ = ("_journal", "_sql")

    def __init__(self, workspace: str, journal: Journal, sql: Sql) -> None:
        super().__init__(workspace, journal.query)
        self._journal = journal
        self._sql = sql

    def head(self) -> Head:
        return self._journal.head(self.workspace)

    def done(self, op: str) -> tuple[Json] | None:
        done = self._sql.done(self.workspace, op)
        return None if done is None else (self._answer(op, done.answer),)


def _unapplied(error: Exception) -> str:
    what = f"internal error: an event could not be applied ({type(error).__name__}: {error}); nothing was written"
    return f"{what}. Please report it with the output of `remit doctor --json`"


def _check_moves(view: CachedView, unsealed: Sequence[Unsealed]) -> None:
    """Check every move of a task against the state machine, before anything is written.

    A new task is not looked up: its primary key ensures that it starts once.
    """
    states: dict[str, str] = {}
    for event in unsealed:
        kind, task = event.kind, event.task
        if kind in _BEGINNINGS:
            states[task] = lifecycle.lands(kind)
            continue
        if kind not in _CHECKED:
            continue
        state = states.get(task)
        if state is None:
            standing = view.standing(task)
            state = lifecycle.START if standing is None else standing.state
        states[task] = after(state, kind)


_log = logging.getLogger("remit")


class Sinks:
    """The sinks of all workspaces of a database."""

    def __init__(self) -> None:
        self._by_workspace: dict[str, list[Sink]] = {}

    def add(self, workspace: str, sink: Sink) -> Callable[[], None]:
        """Pass events to this sink from now on. Return a function that stops it."""
        sinks = self._by_workspace.setdefault(workspace, [])
        sinks.append(sink)

        def stop() -> None:
            if sink in sinks:
                sinks.remove(sink)

        return stop

    def feed(self, events: list[Event]) -> None:
        """Pass on the events of one operation, which belong to one workspace."""
        if not self._by_workspace:
            return
        fixed = tuple(events)  # a tuple: a sink must not change the list for the others
        for sink in tuple(self._by_workspace.get(fixed[0].workspace, ())):
            try:
                sink(fixed)
            except Exception:  # noqa: BLE001 - an error of a sink must not affect the committed work
                _log.exception("a sink failed on %s; the work goes on", fixed[0].kind)


def _marks_in(firsts: Rows) -> set[str] | None:
    """Return the marks of tasks from the data of their first events, or None if one of them cannot be read."""
    try:
        return {mark for row in firsts for mark in marks(cast("dict[str, Any]", decode(row[0])))}
    except (ValueError, TypeError, AttributeError):
        return None
