"""What a writer knows without asking: it wrote it itself, and nobody else has written since.

Three questions are asked in nearly every transaction, mostly about what was written a moment ago. Answering them from
memory is what makes a fence on every write cost next to nothing.
"""

from typing import Any, cast

from remit.core.breaker import Breaker
from remit.core.events import Event
from remit.core.projection import Change
from remit.ports import Standing
from remit.stores.view import Ask, SqlView

EVENTS = 1_024  # of the latest; whoever claims a task reads the event that began it


class KnownView(SqlView):
    """Reads as a view does, and remembers. `forget` when someone else may have written."""

    __slots__ = ("_breakers", "_events", "_standings")

    def __init__(self, workspace: str, ask: Ask) -> None:
        super().__init__(workspace, ask)
        self._standings: dict[str, Standing] = {}
        self._breakers: dict[str, Breaker] = {}
        self._events: dict[int, Event] = {}

    def forget(self) -> None:
        self._standings.clear()
        self._breakers.clear()
        self._events.clear()

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
        for change in changes:
            if change.table == "task":
                self._learn_task(event, change)
            elif change.table == "breaker":
                row = cast("dict[str, Any]", change.row)
                self._breakers[row["name"]] = Breaker(
                    row["state"], row["failures"], row["until"], row["probe"], row["why"]
                )
            elif change.table == "event":
                self._events.clear()

    def _learn_task(self, event: Event, change: Change) -> None:
        row = cast("dict[str, Any]", change.row)
        task = row["id"]
        match change.verb:
            case "add" | "claim" | "rest":
                self._standings[task] = Standing(row["status"], row["fence"])
                if change.verb == "add" and row["status"] == "pending":
                    self._keep(event)
            case "set":
                known = self._standings.pop(task, None)
                if known is not None:
                    self._standings[task] = Standing(row["status"], known.fence)
            case "hand":
                return
            case _:
                self._standings.pop(task, None)

    def _keep(self, event: Event) -> None:
        self._events[event.seq] = event
        if len(self._events) > EVENTS:
            del self._events[next(iter(self._events))]
