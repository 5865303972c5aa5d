"""Appending: what is decided becomes events, events become rows. The same for every SQL database."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from remit.codec import decode, encode
from remit.core import lifecycle
from remit.core.events import NO_STAMP, Event, Head, Stamp, Unsealed, seal
from remit.core.projection import changes
from remit.errors import StoreError
from remit.ports import Decide, Fault
from remit.stores.cached import CachedView
from remit.stores.queries import queries

Rows: TypeAlias = Sequence[Sequence[Any]]
Answered: TypeAlias = tuple[Any, list[Event], Any]  # the answer, the events appended, and what was said aside

_FILL = {name: query.fill for name, query in queries().items()}


class Sql(Protocol):
    """One connection, in a transaction that someone else began and will commit. Values are in the order of places."""

    def query(self, name: str, row: Sequence[Any]) -> Rows: ...
    def write(self, name: str, row: Sequence[Any]) -> int:
        """Run a named statement and tell how many rows it changed."""
        ...


class Journal:
    """Applies operations: each happens once, however often it is asked for."""

    __slots__ = ("_fault", "_heads", "_sql", "_views")

    def __init__(self, sql: Sql, fault: Fault) -> None:
        self._sql = sql
        self._fault = fault
        self._heads: dict[str, Head] = {}
        self._views: dict[str, CachedView] = {}

    def forget(self) -> None:
        """Read the head again, and all that is remembered: someone else may have written since."""
        self._heads.clear()
        for view in self._views.values():
            view.forget()

    def view(self, workspace: str) -> CachedView:
        """Give the view that decisions of a workspace read from."""
        return self._views.get(workspace) or self._views.setdefault(workspace, CachedView(workspace, self._sql.query))

    def apply(self, workspace: str, op: str, decide: Decide[Any]) -> Answered:
        """Tell the operation's answer and the events it appended; one that was done before answers as it did then.

        Looking first would cost every operation a query. So it is tried, and looked up when the attempt
        shows that it may have been done: it fails, it changes nothing, or its id is taken.
        """
        view = self._views.get(workspace) or self.view(workspace)
        try:
            answer, unsealed, beat, aside = decide(view)
            if unsealed:
                _check_moves(view, unsealed)
        except Exception:
            if (done := self._done(workspace, op)) is not None:
                return done
            raise
        self._fault("store.decided")
        if beat is not None:
            name = "worker_beat" if beat.count else "worker_leave"
            self._sql.write(name, _FILL[name]({**beat._asdict(), "workspace": workspace}))
        if not unsealed:
            return self._done(workspace, op) or (answer, [], aside)
        # All of it is text before any of it is written: what cannot be written leaves nothing behind.
        texts = [encode(event.data) for event in unsealed]
        # The first event carries the operation: finding it again is finding that all of it was done.
        stamp = Stamp(op, None if answer is None else encode(answer))
        try:
            events = self._append_all(workspace, unsealed, texts, stamp)
        except (KeyError, TypeError, ValueError) as error:  # half of it is written: the transaction has to go
            raise StoreError(f"an event that no table can take: {type(error).__name__}: {error}") from error
        return (answer, events, aside) if events else (self._done(workspace, op) or (answer, [], aside))

    def _append_all(self, workspace: str, unsealed: Sequence[Unsealed], texts: list[str], stamp: Stamp) -> list[Event]:
        """Append the events and give them back; none if the operation's id is taken."""
        head = self._heads.get(workspace) or self._head(workspace)
        events: list[Event] = []
        for fresh, text in zip(unsealed, texts, strict=True):
            event = seal(fresh, text, workspace, head, stamp)
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
        """Write events again that a rollback took away."""
        for event in events:
            self._append(event)

    def _done(self, workspace: str, op: str) -> Answered | None:
        rows = self._sql.query("answer_of", (workspace, op))
        if not rows:
            return None
        text = rows[0][0]
        return (None if text is None else decode(text)), [], None

    def _head(self, workspace: str) -> Head:
        rows = self._sql.query("head", (workspace,))
        return Head(*rows[0]) if rows else Head()

    def _append(self, event: Event) -> bool:
        """Write the event and what it means for the tables; False if its operation or its place is taken."""
        if not self._sql.write("append", event[:-1]):  # the columns are the event's fields, without decoded data
            return False
        self._fault("store.appended")
        changed = changes(event)
        for table, verb, _, row in changed:
            row["workspace"] = event.workspace
            name = f"{table}_{verb}"
            self._sql.write(name, _FILL[name](row))
        if changed:
            (self._views.get(event.workspace) or self.view(event.workspace)).learn(event, changed)
        self._fault("store.projected")
        return True


def _check_moves(view: CachedView, unsealed: Sequence[Unsealed]) -> None:
    """Ask the lifecycle table about every move of a task, before anything is written.

    A task that begins is not looked up: its primary key sees to it that it begins once.
    """
    moved: dict[str, str] = {}
    for event in unsealed:
        kind, task = event.kind, event.task
        if kind not in lifecycle.MOVES:
            continue
        if kind in lifecycle.BEGINNINGS:
            moved[task] = lifecycle.lands(kind)
            continue
        state = moved.get(task)
        if state is None:
            standing = view.standing(task)
            state = lifecycle.START if standing is None else standing.state
        moved[task] = lifecycle.after(state, kind)
