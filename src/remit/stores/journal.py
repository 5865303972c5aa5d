"""Appending: facts become events, events become rows. The same for every SQL database."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from remit.codec import decode, encode
from remit.core.events import NO_STAMP, Event, Fact, Head, Stamp, seal
from remit.core.projection import changes
from remit.errors import StoreError
from remit.ports import Decide, Fault
from remit.stores.known import KnownView
from remit.stores.queries import queries

Rows: TypeAlias = Sequence[Sequence[Any]]
Done: TypeAlias = tuple[Any, list[Event]]

_FILL = {name: query.fill for name, query in queries().items()}


class Sql(Protocol):
    """One connection, in a transaction that someone else began and will commit. Values are in the order of places."""

    def ask(self, name: str, row: Sequence[Any]) -> Rows: ...
    def place(self, name: str, row: Sequence[Any]) -> int:
        """How many rows the named statement changed."""
        ...


class Journal:
    """Carries out operations: each runs once, however often it is asked for."""

    __slots__ = ("_fault", "_heads", "_sql", "_views")

    def __init__(self, sql: Sql, fault: Fault) -> None:
        self._sql = sql
        self._fault = fault
        self._heads: dict[str, Head] = {}
        self._views: dict[str, KnownView] = {}

    def forget(self) -> None:
        """Someone else may have written since: read the head again."""
        self._heads.clear()
        for view in self._views.values():
            view.forget()

    def prime(self, workspace: str, standings: Rows, twins: Sequence[str], records: Rows) -> None:
        """What was fetched because decisions will ask for it."""
        (self._views.get(workspace) or self._view(workspace)).prime(standings, twins, records)

    def carry_out(self, workspace: str, op: str, decide: Decide[Any]) -> Done:
        """The operation's answer and the events it appended; an operation done before answers as it did then.

        Looking first would cost every operation a query. So it is tried, and looked up when the attempt
        shows that it may have been done: it fails, it changes nothing, or its id is taken.
        """
        try:
            answer, facts, beat = decide(self._views.get(workspace) or self._view(workspace))
        except Exception:
            if (done := self._done(workspace, op)) is not None:
                return done
            raise
        self._fault("store.decided")
        if beat is not None:
            name = "worker_beat" if beat.count else "worker_leave"
            self._sql.place(name, _FILL[name]({**beat._asdict(), "workspace": workspace}))
        if not facts:
            return self._done(workspace, op) or (answer, [])
        # All of it is text before any of it is written: what cannot be written leaves nothing behind.
        texts = [encode(fact.data) for fact in facts]
        # The first event carries the operation: finding it again is finding that all of it was done.
        stamp = Stamp(op, None if answer is None else encode(answer))
        try:
            events = self._append_all(workspace, facts, texts, stamp)
        except (KeyError, TypeError, ValueError) as error:  # half of it is written: the transaction has to go
            raise StoreError(f"a fact that no table can take: {type(error).__name__}: {error}") from error
        return (answer, events) if events else (self._done(workspace, op) or (answer, []))

    def _append_all(self, workspace: str, facts: Sequence[Fact], texts: list[str], stamp: Stamp) -> list[Event]:
        """The events that were appended; none if the operation's id is taken."""
        head = self._heads.get(workspace) or self._head(workspace)
        events: list[Event] = []
        for fact, text in zip(facts, texts, strict=True):
            event = seal(fact, text, workspace, head, stamp)
            if not self._append(event):
                if event.op is not None and self._done(workspace, event.op) is not None:
                    return []
                raise StoreError(f"the journal of '{workspace}' already has an event {event.seq}; run `remit doctor`")
            head = Head(event.seq, event.hash)
            stamp = NO_STAMP
            events.append(event)
        self._heads[workspace] = head
        return events

    def restore(self, events: Sequence[Event]) -> None:
        """Writes events again that a rollback took away."""
        for event in events:
            self._append(event)

    def _done(self, workspace: str, op: str) -> Done | None:
        rows = self._sql.ask("answer_of", (workspace, op))
        if not rows:
            return None
        text = rows[0][0]
        return (None if text is None else decode(text)), []

    def _head(self, workspace: str) -> Head:
        rows = self._sql.ask("head", (workspace,))
        return Head(*rows[0]) if rows else Head()

    def _view(self, workspace: str) -> KnownView:
        return self._views.setdefault(workspace, KnownView(workspace, self._sql.ask))

    def _append(self, event: Event) -> bool:
        """Writes the event and what it means for the tables; False if its operation or its place is taken."""
        if not self._sql.place("append", event[:-1]):  # the columns are the event's fields, without decoded data
            return False
        self._fault("store.appended")
        made = changes(event)
        for table, verb, _, row in made:
            row["workspace"] = event.workspace
            name = f"{table}_{verb}"
            self._sql.place(name, _FILL[name](row))
        if made:
            (self._views.get(event.workspace) or self._view(event.workspace)).learn(event, made)
        self._fault("store.projected")
        return True
