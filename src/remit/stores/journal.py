"""Appending: facts become events, events become rows. The same for every SQL database."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from remit.codec import decode, encode
from remit.core.events import NO_STAMP, Event, Head, Stamp, seal
from remit.core.projection import changes
from remit.errors import RemitError, StoreError
from remit.ports import Decide, Fault
from remit.stores.view import SqlView

Rows: TypeAlias = Sequence[Sequence[Any]]
Given: TypeAlias = Mapping[str, object]


class Sql(Protocol):
    """One connection, in a transaction that someone else began and will commit."""

    def ask(self, name: str, given: Given) -> Rows: ...
    def run(self, name: str, given: Given) -> int:
        """How many rows the named statement changed."""
        ...

    def place(self, name: str, row: Sequence[object]) -> int:
        """The same, with the values already in the order of their places."""
        ...


class Journal:
    """Carries out operations: each runs once, however often it is asked for."""

    __slots__ = ("_fault", "_heads", "_sql")

    def __init__(self, sql: Sql, fault: Fault) -> None:
        self._sql = sql
        self._fault = fault
        self._heads: dict[str, Head] = {}

    def forget(self) -> None:
        """Someone else may have written since: read the head again."""
        self._heads.clear()

    def carry_out(self, workspace: str, op: str, decide: Decide[Any]) -> tuple[Any, list[Event]]:
        """The operation's answer and the events it appended; an operation done before answers as it did then.

        Looking first would cost every operation a query. So it is tried, and looked up when the attempt shows that
        it may have been done: it fails, it changes nothing, or its id is taken.
        """
        try:
            decision = decide(SqlView(workspace, self._sql.ask))
        except RemitError:
            if (done := self._done(workspace, op)) is not None:
                return done
            raise
        self._fault("store.decided")
        if not decision.facts:
            return self._done(workspace, op) or (decision.answer, [])
        events: list[Event] = []
        head = self._heads.get(workspace) or self._head(workspace)
        # The first event carries the operation: finding it again is finding that all of it was done.
        stamp = Stamp(op, None if decision.answer is None else encode(decision.answer))
        for fact in decision.facts:
            event = seal(fact, encode(fact.data), workspace, head, stamp)
            if not self._append(event):
                return self._done(workspace, op) or self._broken(event)
            head = Head(event.seq, event.hash)
            stamp = NO_STAMP
            events.append(event)
        self._heads[workspace] = head
        return decision.answer, events

    def _done(self, workspace: str, op: str) -> tuple[Any, list[Event]] | None:
        rows = self._sql.ask("answer_of", {"workspace": workspace, "op": op})
        if not rows:
            return None
        text = rows[0][0]
        return (None if text is None else decode(text)), []

    def _broken(self, event: Event) -> tuple[Any, list[Event]]:
        raise StoreError(f"the journal of '{event.workspace}' already has an event {event.seq}; run `remit doctor`")

    def _head(self, workspace: str) -> Head:
        rows = self._sql.ask("head", {"workspace": workspace})
        return Head(*rows[0]) if rows else Head()

    def _append(self, event: Event) -> bool:
        """Writes the event and what it means for the tables; False if it was there already."""
        if not self._sql.place("append", event[:-1]):  # the columns are the event's fields, but for the decoded data
            return False
        self._fault("store.appended")
        for change in changes(event):
            change.row["workspace"] = event.workspace
            self._sql.run(f"{change.table}_{change.verb}", change.row)
        self._fault("store.projected")
        return True
