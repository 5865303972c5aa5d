"""Following a store: events as they come, whichever process writes them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from remit.core.events import Event
from remit.core.lifecycle import TERMINAL
from remit.ports import Span, Store

LOOK_SECONDS = 0.5  # between two looks, should the store not have said that something has changed


class Follow:
    """`async with following(store, run=...) as follow`, then `await follow.next()` for what is new; all runs without
    one."""

    def __init__(self, store: Store, run: str | None, after: int) -> None:
        self._store = store
        self._run = run
        self._after = after
        self.rung = asyncio.Event()

    async def next(self, seconds: float = LOOK_SECONDS) -> list[Event]:
        """What has happened since the last time; empty if nothing did for so long."""
        found = await self._look()
        if found:
            return found
        try:
            async with asyncio.timeout(seconds):
                await self.rung.wait()
        except TimeoutError:
            pass
        return await self._look()

    async def _look(self) -> list[Event]:
        self.rung.clear()
        span = Span(run=self._run, after=self._after)
        found = await self._store.read(lambda view: view.events(span))
        if found:
            self._after = found[-1].seq
        return found


@asynccontextmanager
async def following(store: Store, *, run: str | None = None, after: int = 0) -> AsyncGenerator[Follow]:
    follow = Follow(store, run, after)
    deaf = (store.listen(follow.rung.set), store.subscribe(lambda _: follow.rung.set()))
    try:
        yield follow
    finally:
        for stop in deaf:
            stop()


async def over(store: Store, run: str) -> bool:
    """Whether everything in a run has ended; what it submitted may outlive it."""
    tasks = await store.read(lambda view: view.of_run(run))
    return all(state in TERMINAL for _, state, _ in tasks)
