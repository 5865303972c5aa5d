"""The HTTP protocol of the server: uvicorn's, with limits on heads of requests that it does not have itself.

A head has at most 32 KiB and 100 headers, and arrives within 10 seconds. White space at the end of a header's value is
removed. A body that nobody reads any more is dropped, up to a limit, so that its sender gets to read the answer.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD: Final = 32 * 1024  # bytes
HEADERS: Final = 100
SECONDS: Final = 10.0
DROPPED: Final = 64 * 1024 * 1024  # bytes of a body after its answer

_LARGE: Final = ("header-too-large", f"the head of a request has at most {HEAD:,} bytes and {HEADERS} headers")
_SLOW: Final = ("too-slow", f"the head of the request did not arrive within {SECONDS:g} seconds")


class GuardedProtocol(HttpToolsProtocol):
    """One connection. `seconds` is how long the head of a request may take."""

    def __init__(self, *given: Any, seconds: float = SECONDS, **named: Any) -> None:
        super().__init__(*given, **named)
        self._seconds = seconds
        self._head = 0  # bytes of the head so far; -1 once it is complete
        self._fields = 0
        self._dropped = 0
        self._timer: asyncio.TimerHandle | None = None
        self._is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        super().data_received(data)
        if self._head >= 0 and not self._is_refused:  # the head is not complete yet
            self._head += len(data)
            if self._head > HEAD:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, *_LARGE)

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is no HTTP, unless it was answered already."""
        if not self._is_refused:
            self._refuse(HTTPStatus.BAD_REQUEST, "malformed", "this is no HTTP request")

    # -- callbacks of the parser -------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head, self._fields, self._dropped = 0, 0, 0
        self._start_timer()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value.strip(b" \t"))
        self._count(len(name) + len(value))
        if len(self.headers) > HEADERS:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, *_LARGE)

    def on_headers_complete(self) -> None:
        self._head = -1
        self._stop_timer()
        if not self._is_refused:
            self.scope["remit.abort"] = self.transport.abort  # pyright: ignore[reportGeneralTypeIssues] - a key of ours
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self._is_refused:
            return
        super().on_body(body)
        if self.cycle.response_complete:
            self._dropped += len(body)
            if self._dropped > DROPPED:
                self.transport.close()

    def on_message_complete(self) -> None:
        if self._is_refused:
            return
        answered = self.cycle.response_complete
        super().on_message_complete()
        if answered:
            self._stop_timer()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.more_body:  # it was answered before all of it came
            self._start_timer()

    # -- refusing ----------------------------------------------------------------------------------------------------

    def _count(self, size: int) -> None:
        self._fields += size
        if self._fields > HEAD:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, *_LARGE)

    def _start_timer(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(self._seconds, self._too_late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_late(self) -> None:
        if self._head > 0:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, *_SLOW)
        elif not self.transport.is_closing():
            self.transport.close()

    def _refuse(self, status: HTTPStatus, code: str, detail: str) -> None:
        """Answer without the application, and close the connection."""
        if self._is_refused:
            return
        self._is_refused = True
        self._stop_timer()
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:  # pyright: ignore[reportUnnecessaryComparison]
            self.transport.write(_answer(status, code, detail))
        self.transport.close()


def _answer(status: HTTPStatus, code: str, detail: str) -> bytes:
    told = {"type": f"/errors/{code}", "title": status.phrase, "status": int(status), "detail": detail, "code": code}
    body = orjson.dumps({**told, "retryable": status == HTTPStatus.REQUEST_TIMEOUT, "request": ""})
    head = (
        f"HTTP/1.1 {int(status)} {status.phrase}\r\ncontent-type: application/problem+json\r\n"
        f"content-length: {len(body)}\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
