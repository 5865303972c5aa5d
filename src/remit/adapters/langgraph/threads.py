"""The way back from a thread to the turn: graphs run nodes that are plain functions in threads."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

import anyio

from remit.errors import BadInput

T = TypeVar("T")


class _Bridge:
    """Runs coroutines of threads on the loop of the turn. None outlives the turn."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.tasks: set[asyncio.Task[Any]] = set()
        self._over = False

    def start(self, work: Coroutine[Any, Any, T], told: "Future[T]") -> None:
        """Begin, on the loop; the thread waits for what it is told."""
        if self._over:
            work.close()
            told.cancel()
            return
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(lambda done: self._done(done, told))

    def _done(self, task: "asyncio.Task[T]", told: "Future[T]") -> None:
        self.tasks.discard(task)
        if task.cancelled():
            told.cancel()
        elif (error := task.exception()) is not None:
            told.set_exception(error)
        else:
            told.set_result(task.result())

    async def close(self) -> None:
        """End what is under way, and wait for it."""
        self._over = True
        left = list(self.tasks)
        for task in left:
            task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(*left, return_exceptions=True)


_BRIDGE: Final[ContextVar[_Bridge | None]] = ContextVar("remit.langgraph.bridge", default=None)


@asynccontextmanager
async def bridged() -> AsyncGenerator[None]:
    """Let threads that are started in here come back."""
    bridge = _Bridge()
    token = _BRIDGE.set(bridge)
    try:
        yield
    finally:
        _BRIDGE.reset(token)
        await bridge.close()


def from_thread(work: Coroutine[Any, Any, T]) -> T:
    """Do this on the loop of the turn, and wait for it in this thread."""
    bridge = _BRIDGE.get()
    if bridge is None or _is_here(bridge.loop):
        work.close()
        raise BadInput("a governed model or tool is asked with await (ainvoke), or in a node that runs in a thread")
    told: Future[T] = Future()
    bridge.loop.call_soon_threadsafe(bridge.start, work, told)
    return told.result()


def _is_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
