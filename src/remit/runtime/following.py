"""Following a store: events as they come, whichever process writes them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from remit.core.events import Event
from remit.ports import Clock, Span, Store

LOOK_SECONDS: Final = 0.5  # between two looks, should the store not have said that something has changed


class Follow:
    """`async with following(...) as follow`, then `await follow.next()` for what is new."""

    def __init__(self, store: Store, clock: Clock, span: Span) -> None:
        self._store = store
        self._clock = clock
        self._span = span
        self._is_up_to_date = False
        self.changed = asyncio.Event()

    async def next(self, seconds: float = LOOK_SECONDS) -> list[Event]:
        """Wait for what has happened since the last time; empty if nothing did for so long."""
        events = await self._look()
        if events:
            return events
        timer = self._clock.call_later(seconds, self.changed.set)
        try:
            await self.changed.wait()
        finally:
            timer.cancel()
        return await self._look()

    async def _look(self) -> list[Event]:
        """Read on from where the last look ended, though nothing may have been found there: so a look costs what is
        new. The first ones may have a long way to go."""
        self.changed.clear()
        span, read = self._span, self._store.read if self._is_up_to_date else self._store.browse
        events, head = await read(lambda view: (view.events(span), view.head().seq))
        self._is_up_to_date = span.limit is None or len(events) < span.limit
        seen = head if self._is_up_to_date else events[-1].seq
        self._span = replace(span, after=max(span.after, seen))
        return events


@asynccontextmanager
async def following(store: Store, clock: Clock, span: Span) -> AsyncGenerator[Follow]:
    """Follow the events that `span` selects, from `span.after` on."""
    follow = Follow(store, clock, span)
    unsubscribe = (store.listen(follow.changed.set), store.subscribe(lambda _: follow.changed.set()))
    try:
        yield follow
    finally:
        for stop in unsubscribe:
            stop()
