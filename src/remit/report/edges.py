"""Who asks whom: for each pair of asker and agent, how often, how it ended, and what it cost."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from remit.core.events import FIRST_KINDS, Event
from remit.core.kinds.money import SPENDS, spent_in
from remit.core.lifecycle import ENDS, lands

EDGE_KINDS: Final = frozenset((*FIRST_KINDS, *ENDS, *SPENDS, "hop.refused"))
_FIGURES: Final = ("asked", "completed", "failed", "cancelled", "dead", "refused", "credits", "tokens")


class Asking(NamedTuple):
    """An asker, empty for a person, and the agent that it asks."""

    asker: str
    agent: str


@dataclass(frozen=True, slots=True)
class AskEdge:
    """How often an asker asked an agent, how its tasks ended, how many requests were refused, and what its tasks spent
    themselves, without their subtasks. `asker` is empty for a person."""

    asker: str
    agent: str
    asked: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    dead: int = 0
    refused: int = 0
    credits: int = 0
    tokens: int = 0


class EdgeSums:
    """Adds up edges; feed it the events of `EDGE_KINDS`, in any order. `asking` returns who asked whom for a task, or
    None if its record is gone."""

    def __init__(self, asking: Callable[[str], Asking | None]) -> None:
        self._asking = asking
        self._sums: dict[Asking, dict[str, int]] = {}

    def add(self, event: Event) -> None:
        if event.kind == "hop.refused":
            # A handoff passes a task on and asks for none. A refused first request has no run.
            if not event.data.get("handoff"):
                self._count(Asking(event.agent if event.run else "", cast("str", event.data["to"])), refused=1)
            return
        asking = asking_in(event) if event.kind in FIRST_KINDS else self._asking(event.task)
        if asking is None:
            return
        if event.kind in SPENDS:
            self._count(asking, **spent_in(event)._asdict())
        else:
            self._count(asking, **{lands(event.kind) if event.kind in ENDS else "asked": 1})

    def result(self) -> list[AskEdge]:
        """Return the edges: the most often asked first."""
        edges = [AskEdge(*asking, **sums) for asking, sums in self._sums.items()]
        return sorted(edges, key=lambda edge: (-edge.asked, edge.asker, edge.agent))

    def _count(self, asking: Asking, **more: int) -> None:
        sums = self._sums.setdefault(asking, dict.fromkeys(_FIGURES, 0))
        for name, number in more.items():
            sums[name] += number


def asking_in(first: Event) -> Asking:
    """Return who asked whom, from the first event of a task."""
    return Asking(cast("str", first.data["asker"]), first.agent)
