"""A scripted model that stays while event loops come and go."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from threading import Thread

from remit.testing.doubles import PATIENCE
from remit.testing.models import model_server
from remit.testing.models.server import Script


@contextmanager
def served_elsewhere(script: Script) -> Iterator[str]:
    """Serve from a thread of its own; gives where."""
    there, done = Queue[str](), Queue[asyncio.Event]()

    async def serve() -> None:
        over = asyncio.Event()
        async with model_server(script) as server:
            done.put(over)
            there.put(server.url)
            await over.wait()

    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_until_complete, args=[serve()])
    thread.start()
    try:
        yield there.get(timeout=PATIENCE)
    finally:
        loop.call_soon_threadsafe(done.get().set)
        thread.join()
        loop.close()
