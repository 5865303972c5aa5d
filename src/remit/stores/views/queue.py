"""What is queued, who works on what, and which processes there are."""

from collections.abc import Sequence

from remit.core.record import Record
from remit.core.text import INT_LIMIT
from remit.ports import Beat
from remit.stores.views.base import Queries, Values
from remit.stores.views.tasks import TASK_WIDTH


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

    def has_due(self, holder: str, now: int) -> bool:
        return bool(
            self._ask("has_due", (self.workspace, holder, self.workspace, holder, now))[0][0]
        )  # at every submission: filled by hand

    def due(self, holder: str, worker: str, now: int, limit: int, losses: int = INT_LIMIT) -> list[Record]:
        return self._with_events(self._rows("due", holder=holder, worker=worker, now=now, limit=limit, losses=losses))

    def front(self, now: int, limit: int) -> list[Record]:
        return self._with_events(self._rows("front", now=now, limit=limit))

    def _with_events(self, rows: Sequence[Values]) -> list[Record]:
        self._came_along([row[TASK_WIDTH:] for row in rows if row[TASK_WIDTH] is not None])
        return [Record(*row[:TASK_WIDTH]) for row in rows]

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
