"""The worker of one process: there while it is needed, in whichever event loop."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio

from remit.engine.queue.worker import Worker
from remit.engine.services import Services
from remit.engine.settings import Serving
from remit.errors import NewerStore
from remit.ports import Dispatcher

_log = logging.getLogger("remit")


class ResidentWorker:
    """Starts the worker when it is first needed, and lets it go."""

    def __init__(self, services: Services, serving: Serving, dispatcher: Callable[[], Dispatcher | None]) -> None:
        self.worker: Worker | None = None
        self._draining = 0  # how many wait for this process to take nothing more
        self._serving: asyncio.Task[None] | None = None
        self._services = services
        self._settings = serving
        self._dispatcher = dispatcher

    def lend(self) -> Worker | None:
        """Lend a hand unless told not to: whoever submits something helps with it, but not while this process takes
        nothing more."""
        return self._start() if self._settings.hands and not self._draining else self._current()

    async def serve(self) -> None:
        """Serve until cancelled, together with whoever does so already."""
        async with self.serving():
            assert self._serving is not None
            await asyncio.shield(self._serving)

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        """Serve while the body runs. Asked for twice it is one worker, which may have been lent before; it stops with
        the last who serves."""
        worker = self._start()
        worker.served += 1
        try:
            yield
        finally:
            worker.served -= 1
            if not worker.served and worker is self._current():
                with anyio.CancelScope(shield=True):
                    await self._stop()

    async def drain(self, seconds: float) -> int:
        """Take nothing more, give what runs that long to end, and requeue the rest; tells how many that were."""
        worker = self._current()
        left = kept = 0
        self._draining += 1
        try:
            if worker is not None:
                left, kept = await worker.drain(seconds), worker.unreturned
            if self._serving is not None:
                await asyncio.wait([self._serving])
                self._serving = None
            if not kept and not len(self._services.conductor.alive):
                await self._services.heartbeat.leave()
        finally:
            self._draining -= 1
        return left

    def let_go(self) -> None:
        """Stop at once; what runs is requeued if its loop goes on for a moment."""
        if self._serving is not None and not self._serving.get_loop().is_closed():
            self._serving.cancel()

    @property
    def closing(self) -> bool:
        """Whether what is torn down now is to be run by someone else."""
        return self.worker is not None and self.worker.closing

    async def _stop(self) -> None:
        serving = self._serving
        if serving is not None:
            serving.cancel()
            await asyncio.wait([serving])

    def _current(self) -> Worker | None:
        """Give the worker of this loop; one that ended with an earlier loop is forgotten."""
        serving = self._serving
        if serving is not None and (serving.done() or serving.get_loop() is not asyncio.get_running_loop()):
            self.worker = self._serving = None
        return self.worker

    def _start(self) -> Worker:
        worker = self._current()
        if worker is None:
            worker = self.worker = Worker(self._services, self._settings, self._dispatcher())
            self._serving = asyncio.get_running_loop().create_task(self._serve(worker))
            self._serving.add_done_callback(_log_end)
        return worker

    async def _serve(self, worker: Worker) -> None:
        try:
            await worker.serve()
        except BaseExceptionGroup as group:
            newer = _newer(group)
            if newer is None:
                raise
            raise newer from None
        finally:
            self.worker = None


def _newer(group: BaseExceptionGroup) -> BaseException | None:
    """Find the one error that callers are to know by its type."""
    found = group.subgroup(NewerStore)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


def _log_end(serving: "asyncio.Task[None]") -> None:
    if serving.cancelled() or (error := serving.exception()) is None:
        return
    if isinstance(error, NewerStore):  # a sentence for an operator, not a fault in here
        _log.error("this process has stopped carrying out tasks: %s", error)
    else:
        _log.error("this process has stopped carrying out tasks: %r", error, exc_info=error)
