"""Hearing what other processes want of the tasks that are carried out here: that they stop."""

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager

from remit.engine.attempt.live import LiveTask, LiveTasks
from remit.errors import StoreError
from remit.ports import Span, Store, View

WHY = "cancelled from another process"

_log = logging.getLogger("remit")


class StopListener:
    """Open while there is work here."""

    def __init__(self, store: Store, runs: LiveTasks, worker: str) -> None:
        self._store = store
        self._runs = runs
        self._worker = worker
        self._users = 0
        self._unsubscribe: Callable[[], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def while_working(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # what was open in an earlier loop ended with it
            self._loop, self._users, self._unsubscribe, self._looking = loop, 0, None, None
        self._users += 1
        if self._unsubscribe is None:
            self._unsubscribe = self._store.listen(self._ring)
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._unsubscribe()
                self._unsubscribe = None

    def _ring(self) -> None:
        if len(self._runs) and self._loop is not None and (self._looking is None or self._looking.done()):
            self._looking = self._loop.create_task(self.look())

    async def look(self) -> None:
        """Stops what someone wants stopped."""
        try:
            wanted = await self._store.read(self._wanted)
        except StoreError as error:  # it rings again
            _log.warning("could not look for what is to be stopped: %s", error)
            return
        for live, why in wanted:
            live.stop(why)

    def _wanted(self, view: View) -> list[tuple[LiveTask, str]]:
        found = [live for task in view.cancelling(self._worker) if (live := self._runs.get(task)) and not live.stopped]
        return [(live, _why(view, live)) for live in found]


def _why(view: View, live: LiveTask) -> str:
    """The reason that whoever cancelled it gave."""
    events = view.events(Span(run=live.remit.root))
    told = (event for event in events if event.kind == "task.cancelling" and event.task == live.remit.id)
    return str(next(told).data.get("why", WHY))
