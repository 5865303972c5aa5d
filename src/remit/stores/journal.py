"""Appending: facts become events, events become rows. The same for every SQL database."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from remit.core.events import Event, Head, seal
from remit.core.projection import changes
from remit.core.values import decode, encode
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
        answer = None if decision.answer is None else encode(decision.answer)
        head = self._heads.get(workspace) or self._head(workspace)
        first = seal(decision.facts[0], workspace, head, op, answer)
        if not self._append(first):
            return self._done(workspace, op) or self._broken(workspace, first)
        events = [first]
        for fact in decision.facts[1:]:
            events.append(seal(fact, workspace, Head(events[-1].seq, events[-1].hash)))
            self._append(events[-1])
        self._heads[workspace] = Head(events[-1].seq, events[-1].hash)
        return decision.answer, events

    def _done(self, workspace: str, op: str) -> tuple[Any, list[Event]] | None:
        rows = self._sql.ask("answer_of", {"workspace": workspace, "op": op})
        if not rows:
            return None
        text = rows[0][0]
        return (None if text is None else decode(text)), []

    def _broken(self, workspace: str, event: Event) -> tuple[Any, list[Event]]:
        raise StoreError(f"the journal of '{workspace}' already has an event {event.seq}; run `remit doctor`")

    def _head(self, workspace: str) -> Head:
        rows = self._sql.ask("head", {"workspace": workspace})
        return Head(*rows[0]) if rows else Head()

    def _append(self, event: Event) -> bool:
        """Writes the event and what it means for the tables; False if it was there already."""
        if not self._sql.run("append", _row(event)):
            return False
        self._fault("store.appended")
        for change in changes(event):
            change.row["workspace"] = event.workspace
            self._sql.run(f"{change.table}_{change.verb}", change.row)
        self._fault("store.projected")
        return True


def _row(event: Event) -> dict[str, object]:
    return {
        "workspace": event.workspace,
        "seq": event.seq,
        "kind": event.kind,
        "at": event.at,
        "run": event.run,
        "session": event.session,
        "task": event.task,
        "agent": event.agent,
        "data": event.text,
        "op": event.op,
        "answer": event.answer,
        "hash": event.hash,
    }
