"""Reading the journal page by page to its end, and following it: events as they come, from any process. And streaming a
run that is carried out here."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import replace
from typing import Any, Final, TypeAlias

from remit.core.events import Event, apart
from remit.core.lifecycle import Outcome
from remit.ports import Clock, Span, Store
from remit.ports.models import LISTENER, RunListener, TextChunk

Streamed: TypeAlias = Event | TextChunk | Outcome

LOOK_SECONDS: Final = 0.5  # poll interval, in case a notification is missed


class Follow:
    """`async with following(...) as follow`, then `await follow.next()` for new events."""

    def __init__(self, store: Store, clock: Clock, span: Span) -> None:
        self._store = store
        self._clock = clock
        self._span = span
        self._is_up_to_date = False
        self.changed = asyncio.Event()

    async def next(self, seconds: float = LOOK_SECONDS) -> list[Event]:
        """Return the events since the last call; wait up to `seconds`, and return an empty list if there are none."""
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
        """Read on from the last position, even if nothing was found there, so that a read costs only what is new. The
        first reads may have a long way to go."""
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
    """Yield the events that `span` selects as they are written, forever."""
    if from_now:
        span = replace(span, after=await store.read(lambda view: view.head().seq))
    async with following(store, clock, span) as follow:
        while True:
            if events := await follow.next():
                yield events


async def pages(store: Store, span: Span) -> AsyncGenerator[list[Event]]:
    """Yield the events that `span` selects and that exist now, `span.limit` at a time."""
    span = replace(span, before=await store.read(lambda view: view.head().seq) + 1)
    while events := await store.browse(lambda view, span=span: view.events(span)):
        yield events
        span = replace(span, after=events[-1].seq)


async def streamed(store: Store, run: Callable[[], Coroutine[Any, Any, Outcome]]) -> AsyncGenerator[Streamed]:
    """Run the coroutine, and yield what happens in the run as it happens; the outcome is last. Leaving the loop earlier
    cancels the run."""
    queue: asyncio.Queue[Event | TextChunk | None] = asyncio.Queue()
    listener = RunListener(queue.put_nowait)

    def committed(events: Sequence[Event]) -> None:
        for event in events:
            if event.run and event.run == listener.run:
                queue.put_nowait(apart(event))

    context = copy_context()
    context.run(LISTENER.set, listener)
    stop = store.subscribe(committed)
    task = asyncio.get_running_loop().create_task(run(), context=context)
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (found := await queue.get()) is not None:
            yield found
        yield await task
    finally:
        stop()
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):  # the caller has left: ignore the outcome
            await task
