"""The journal page by page as far as it goes, and on from there: events as they come, whichever process writes."""

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


async def followed(store: Store, clock: Clock, span: Span, *, from_now: bool) -> AsyncGenerator[list[Event]]:
    """Give the events that `span` selects as they are written, for ever."""
    if from_now:
        span = replace(span, after=await store.read(lambda view: view.head().seq))
    async with following(store, clock, span) as follow:
        while True:
            if events := await follow.next():
                yield events


async def pages(store: Store, span: Span) -> AsyncGenerator[list[Event]]:
    """Give the events that `span` selects and that are there now, `span.limit` at a time."""
    span = replace(span, before=await store.read(lambda view: view.head().seq) + 1)
    while events := await store.browse(lambda view, span=span: view.events(span)):
        yield events
        span = replace(span, after=events[-1].seq)
