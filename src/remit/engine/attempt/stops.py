"""Listening for what other processes want of the tasks that run here: that they stop."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from remit.core.kinds import Cancelling, read
from remit.engine.attempt.alive import LiveTasks
from remit.engine.attempt.live import LiveTask
from remit.engine.timing import While
from remit.errors import NewerStore, StoreError
from remit.ports import Span, Store, View

WHY: Final = "cancelled from another process"
_CANCELLING: Final = frozenset(("task.cancelling",))

_log = logging.getLogger("remit")


class StopListener:
    """Stops what another process cancelled. It listens while there is work here."""

    def __init__(self, store: Store, alive: LiveTasks, worker: str) -> None:
        self._store = store
        self._alive = alive
        self._worker = worker
        self._users = 0
        self._unsubscribe: Callable[[], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looking: asyncio.Task[None] | None = None
        self._working = While(self._enter, self._leave)

    def while_working(self) -> While:
        """Listen while the body runs: there is work here."""
        return self._working

    def _enter(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # what listened in an earlier loop ended with it
            self._loop, self._users, self._unsubscribe, self._looking = loop, 0, None, None
        self._users += 1
        if self._unsubscribe is None:
            self._unsubscribe = self._store.listen(self._changed)

    def _leave(self) -> None:
        self._users -= 1
        if not self._users and self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _changed(self) -> None:
        if len(self._alive) and self._loop is not None and (self._looking is None or self._looking.done()):
            self._looking = self._loop.create_task(self.look())

    async def look(self) -> None:
        """Stop what someone wants stopped."""
        try:
            wanted = await self._store.read(self._wanted)
        except NewerStore:  # told by whoever serves, or by the work itself
            return
        except StoreError as error:  # the store calls again
            _log.warning("could not look for what is to be stopped: %s", error)
            return
        for live, why in wanted:
            live.control.stop(why)

    def _wanted(self, view: View) -> list[tuple[LiveTask, str]]:
        alive = (self._alive.get(task) for task in view.cancelling(self._worker))
        return [(live, _why(view, live)) for live in alive if live is not None and live.life.stop != "cancelled"]


def _why(view: View, live: LiveTask) -> str:
    """Find the reason that whoever cancelled it gave."""
    events = view.events(Span(run=live.remit.root, task=live.remit.id, kinds=_CANCELLING))
    return read(events[0], Cancelling).get("why", WHY)
