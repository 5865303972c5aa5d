"""What a writer knows without asking: it wrote it itself, and nobody else has written since.

Three questions are asked in nearly every transaction, mostly about what was written a moment ago. Answering them from
memory is what makes a fence on every write cost next to nothing.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from remit.core.breaker import Breaker
from remit.core.events import Event
from remit.core.projection import Change
from remit.errors import StoreError
from remit.ports import Record, Standing
from remit.stores.view import Ask, SqlView, Values, event_of

EVENTS = 1_024  # of the latest; whoever claims a task reads the event that began it


class KnownView(SqlView):
    """Reads as a view does, and remembers. `forget` when someone else may have written."""

    __slots__ = ("_breakers", "_events", "_standings", "_twins")

    def __init__(self, workspace: str, ask: Ask) -> None:
        super().__init__(workspace, ask)
        self._standings: dict[str, Standing] = {}
        self._breakers: dict[str, Breaker] = {}
        self._events: dict[int, Event] = {}
        self._twins: dict[str, list[Record]] = {}

    def prime(self, standings: Sequence[Values], twins: Sequence[str], records: Sequence[Values]) -> None:
        """Knows this much more, until the next time."""
        self._standings.update({row[0]: Standing(row[1], row[2]) for row in standings})
        self._twins = {twin: [] for twin in twins}
        for record in sorted((Record(*row) for row in records), key=lambda one: -one.began):
            self._twins[record.twin].append(record)

    def forget(self) -> None:
        self._standings.clear()
        self._breakers.clear()
        self._events.clear()
        self._twins.clear()

    def twins(self, twin: str, since: int) -> list[Record]:
        found = self._twins.get(twin)
        return [one for one in found if one.asked_at > since] if found is not None else super().twins(twin, since)

    def _met(self, rows: Sequence[Values]) -> None:
        for row in rows:
            with suppress(StoreError):  # one that is damaged is told of when it is needed
                self._keep(event_of(row))

    def standing(self, task: str) -> Standing | None:
        return self._standings.get(task) or super().standing(task)

    def breaker(self, name: str) -> Breaker:
        found = self._breakers.get(name)
        if found is None:
            found = self._breakers[name] = super().breaker(name)
        return found

    def event(self, seq: int) -> Event | None:
        return self._events.get(seq) or super().event(seq)

    def learn(self, event: Event, changes: list[Change]) -> None:
        """What an event that was just written did to the tables."""
        for table, verb, key, given in changes:
            if table == "task":
                self._learn_task(event, verb, key[0], cast("dict[str, Any]", given))
            elif table == "breaker":
                row = cast("dict[str, Any]", given)
                self._breakers[key[0]] = Breaker(row["state"], row["failures"], row["until"], row["probe"], row["why"])
            elif table == "event":
                self._events.clear()

    def _learn_task(self, event: Event, verb: str, task: str, row: dict[str, Any]) -> None:
        if self._twins:
            self._twins = {twin: found for twin, found in self._twins.items() if not found and twin != row.get("twin")}
        if verb == "end":
            self._standings.pop(task, None)
        elif "fence" in row:
            status = row["status"]
            self._standings[task] = Standing(status, row["fence"])
            if verb == "add" and status == "pending":
                self._keep(event)
        elif verb == "set":
            known = self._standings.pop(task, None)
            if known is not None:
                self._standings[task] = Standing(row["status"], known.fence)
        elif verb == "drop":
            self._standings.pop(task, None)

    def _keep(self, event: Event) -> None:
        self._events[event.seq] = event
        if len(self._events) > EVENTS:
            del self._events[next(iter(self._events))]
