"""Scripted models for a team behind `remit serve`: they answer on a thread of their own, and speak on when a test says
so."""

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from programs import PATIENCE
from remit.engine.system import SystemClock
from remit.ports import Timer
from remit.testing.models import ModelServer, model_server
from remit.testing.models.server import Script


class SteppedClock(SystemClock):
    """A clock whose timers fire when a test calls `step`, one by one, and after `free` at once."""

    def __init__(self) -> None:
        super().__init__()
        self._due = queue.Queue[Callable[[], object]]()
        self._free = threading.Event()

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        if self._free.is_set():
            return super().call_later(0, call)
        loop = asyncio.get_running_loop()
        self._due.put(lambda: loop.call_soon_threadsafe(call))
        return super().call_later(PATIENCE, call)

    def step(self, times: int = 1) -> None:
        """Wait for so many timers, and let each fire."""
        for _ in range(times):
            self._due.get(timeout=PATIENCE)()

    def free(self) -> None:
        self._free.set()
        while not self._due.empty():
            self._due.get()()


@contextmanager
def models(script: Script, clock: SystemClock | None = None) -> Iterator[ModelServer]:
    """Serve a script of models until the test is over."""
    ready = queue.Queue[tuple[ModelServer, Callable[[], object]]]()

    async def serve() -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        async with model_server(script, clock=clock) as server:
            ready.put((server, lambda: loop.call_soon_threadsafe(over.set)))
            await over.wait()

    with ThreadPoolExecutor(1, "models") as thread:
        served = thread.submit(asyncio.run, serve())
        server, stop = ready.get(timeout=PATIENCE)
        try:
            yield server
        finally:
            stop()
            served.result(PATIENCE)
