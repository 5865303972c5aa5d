"""A stream of events over HTTP (server-sent events), which a reader resumes by the id of the last event it has."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from remit.errors import Unauthorised
from remit.ports import Clock
from remit.server.feed import StreamReader

BEAT: Final = 15.0  # seconds between two signs of life
STALLED: Final = 30.0  # seconds until a reader that takes nothing is let go; it comes back by its id
HELLO: Final = b"retry: 1000\n\n"
_HEADERS: Final = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventStream(Response):
    """A response that sends events to a reader until it leaves, its access key is revoked, or the server stops.

    `opened` is closed at the end. `is_valid` is called every 15 seconds, because a key can expire without an event; if
    it raises `Unauthorised`, the stream ends.
    """

    def __init__(
        self, reader: StreamReader, opened: AsyncExitStack, clock: Clock, is_valid: Callable[[], Awaitable[object]]
    ) -> None:
        super().__init__(None, 200, _HEADERS)
        del self.headers["content-length"]
        self._reader = reader
        self._opened = opened
        self._clock = clock
        self._is_valid = is_valid

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._opened:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async with anyio.create_task_group() as both:
                both.start_soon(_until_gone, receive, both.cancel_scope)
                if await self._send_all(send) or "remit.abort" not in scope:
                    both.cancel_scope.cancel()
                else:  # a plain close would wait until the reader takes what is in the buffers, perhaps forever
                    scope["remit.abort"]()

    async def _send_all(self, send: Send) -> bool:
        """Send until the stream ends. Return whether the reader took everything in time."""
        async for page in self._pages(self._reader):
            if not await self._send_page(send, page):
                return False
            await asyncio.sleep(0)  # a send to a reader that is gone does not wait, and neither does a backlog
        return await self._send_page(send, b"", more=False)

    async def _send_page(self, send: Send, page: bytes, *, more: bool = True) -> bool:
        """Send a page. Return whether the reader took it in time."""
        with anyio.CancelScope() as patience:
            timer = self._clock.call_later(STALLED, patience.cancel)
            try:
                await send({"type": "http.response.body", "body": page, "more_body": more})
            finally:
                timer.cancel()
        return not patience.cancelled_caught

    async def _pages(self, reader: StreamReader) -> AsyncGenerator[bytes]:
        is_due = False

        def due() -> None:
            nonlocal is_due
            is_due = True
            reader.changed.set()

        timer = self._clock.call_later(BEAT, due)
        try:
            yield HELLO
            while not reader.is_over:
                page = await reader.page()
                if reader.is_revoked or (is_due and not await self._still_valid()):
                    yield reader.form.revoked
                    return
                if page:
                    yield page
                if is_due:
                    is_due, timer = False, self._clock.call_later(BEAT, due)
                    yield b": \nid: %d\n\n" % reader.seq
                if not page:
                    await reader.changed.wait()
        finally:
            timer.cancel()

    async def _still_valid(self) -> bool:
        try:
            await self._is_valid()
        except Unauthorised:
            return False
        return True


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    """End the stream when its reader has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
