"""A run in this process, with the text of its models as it is streamed."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeAlias

from remit.core.events import Event, apart
from remit.core.lifecycle import Outcome, Progress
from remit.ports import Store
from remit.ports.models import LISTENER, RunListener, TextChunk

Streamed: TypeAlias = Event | TextChunk | Progress | Outcome


async def stream_of(store: Store, run: Callable[[], Coroutine[Any, Any, Outcome]]) -> AsyncGenerator[Streamed]:
    """Run the coroutine, and yield what happens in the run as it happens; the outcome is last. Leaving the loop earlier
    cancels the run."""
    queue: asyncio.Queue[Event | TextChunk | Progress | None] = asyncio.Queue()
    loop, home = asyncio.get_running_loop(), threading.get_ident()

    def hear(one: TextChunk | Progress) -> None:
        if threading.get_ident() == home:
            queue.put_nowait(one)
        else:  # an agent that runs in a thread
            loop.call_soon_threadsafe(queue.put_nowait, one)

    listener = RunListener(hear)

    def committed(events: Sequence[Event]) -> None:
        for event in events:
            if event.run and event.run == listener.run:
                queue.put_nowait(apart(event))

    context = copy_context()
    context.run(LISTENER.set, listener)
    stop = store.subscribe(committed)
    task = loop.create_task(run(), context=context)
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
