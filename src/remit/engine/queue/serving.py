"""The hands of one process: a worker that is there while it is needed, in whichever event loop."""

import asyncio
import logging
from collections.abc import Callable

from remit.engine.delegation import Services
from remit.engine.queue.worker import HANDS, Worker
from remit.errors import BadInput
from remit.ports import Dispatcher

_log = logging.getLogger("remit")


class ResidentWorker:
    """`number` is how many tasks it carries out at a time, 0 for none unless it is told to serve."""

    def __init__(
        self, services: Services, number: int, dispatcher: Callable[[], Dispatcher | None], keep: int | None
    ) -> None:
        self.number = number
        self.worker: Worker | None = None
        self.serving: asyncio.Task[None] | None = None  # what nobody but us waits for
        self._services = services
        self._dispatcher = dispatcher
        self._keep = keep

    async def serve(self) -> None:
        """Until it is cancelled."""
        if self.worker is not None:
            raise BadInput("this runtime serves already; one worker is enough, give it more hands")
        await self._serve(self._new())

    def lend(self) -> Worker | None:
        """Whoever submits something helps with it, unless it was told not to."""
        loop = asyncio.get_running_loop()
        if self.serving is not None and (self.serving.done() or self.serving.get_loop() is not loop):
            self.worker = self.serving = None  # it ended with its loop
        if self.number and self.worker is None and self.serving is None:
            self.serving = loop.create_task(self._serve(self._new()))
            self.serving.add_done_callback(_served)
        return self.worker

    async def drain(self, seconds: float) -> int:
        """Takes no more, gives what runs so long to end, and puts the rest back; says how many that were."""
        if self.worker is None:
            return 0
        left = await self.worker.drain(seconds)
        if self.serving is not None:
            await self.serving
            self.serving = None
        if not len(self._services.conductor.alive):
            await self._services.presence.leave()
        return left

    def let_go(self) -> None:
        """At once; what runs is put back if its loop goes on for a moment."""
        if self.serving is not None and not self.serving.get_loop().is_closed():
            self.serving.cancel()

    def _new(self) -> Worker:
        self.worker = Worker(self._services, self.number or HANDS, self._dispatcher(), self._keep)
        return self.worker

    async def _serve(self, worker: Worker) -> None:
        try:
            await worker.serve()
        finally:
            self.worker = None


def _served(serving: "asyncio.Task[None]") -> None:
    if not serving.cancelled() and (error := serving.exception()) is not None:
        _log.error("this process has stopped carrying out tasks: %r", error, exc_info=error)
