"""The two ways to reach a server: over the pipes of a child process, or over HTTP.

Everything that a server sends is limited before it is read: a line, an event and a body have at most `MESSAGE` bytes.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Protocol, cast

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from remit.adapters.process import Child, last_words
from remit.core.trust import quoted

MESSAGE: Final = 16 * 1_048_576  # bytes

_ERR: Final = 16_384  # bytes of stderr that are kept
_UNSENT: Final = 64  # unsent messages before the sender has to wait
_LEAVE: Final = 2.0  # seconds for a server to exit after its stdin is closed
_DRAIN: Final = 0.2  # seconds to read a server's last output
_CONNECT: Final = 30.0
_PLAIN: Final = ("", "identity")
_TOO_LONG: Final = f"it sent more than {MESSAGE:,} bytes at once"

Streams = tuple[Any, Any]  # the read and write streams of a session


class Wire(Protocol):
    """A connection to be opened: `transport` opens it, `status` describes the error of its last response, and `why` the
    reason of its end, as far as known."""

    status: str

    def transport(self) -> AbstractAsyncContextManager[Streams]: ...
    def why(self) -> str: ...


class Pipes(Child):
    """A server as a child process. `gone` is set when it can send nothing more."""

    def __init__(self, command: list[str], env: Mapping[str, str], cwd: Any, grace: float, gone: asyncio.Event) -> None:
        super().__init__(command, _ERR, grace)
        self.status = ""
        self._patience = min(grace, _LEAVE)
        self._env = env
        self._cwd = cwd
        self._gone = gone
        self._out = asyncio.StreamReader(MESSAGE)
        self._writable = asyncio.Event()
        self._writable.set()
        self._too_long = False
        self._silent = False

    def why(self) -> str:
        if self._too_long:
            return _TOO_LONG
        said = last_words(self.err)
        return f"its last words: {quoted(said)}" if said else ""

    @asynccontextmanager
    async def transport(self) -> AsyncGenerator[Streams]:
        """Start the server and pass messages on, in the caller's task."""
        async with self.living(self._env, self._cwd) as process:
            heard, hear = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            tell, told = anyio.create_memory_object_stream[SessionMessage](_UNSENT)
            async with heard, hear, tell, told, anyio.create_task_group() as passing:
                passing.start_soon(self._read, heard)
                passing.start_soon(self._write, process.get_pipe_transport(0), told)
                try:
                    yield hear, tell
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._leave(process.get_pipe_transport(0))
                    passing.cancel_scope.cancel()

    async def _read(self, heard: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        try:
            async with heard:
                while True:
                    if (message := _message(await self._out.readuntil(b"\n"))) is not None:
                        await heard.send(message)
        except asyncio.LimitOverrunError:
            self._too_long = True
        except (EOFError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        finally:
            self._gone.set()

    async def _write(self, stdin: asyncio.WriteTransport, told: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async for each in told:
            await self._writable.wait()
            stdin.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async def _leave(self, stdin: asyncio.WriteTransport) -> None:
        """Close the server's stdin and give it time to exit. Processes that stay are ended."""
        if not stdin.get_write_buffer_size():
            stdin.close()
            with anyio.move_on_after(self._patience):
                await self.exited.wait()

    # -- callbacks of asyncio ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._out.set_transport(cast("Any", transport).get_pipe_transport(1))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd != 1:
            super().pipe_data_received(fd, data)
        elif not self._silent:
            self._out.feed_data(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self._fall_silent()

    def process_exited(self) -> None:
        super().process_exited()
        # Its output is in the pipe. Do not wait for the end of the pipe: processes it left behind may keep it open.
        asyncio.get_running_loop().call_later(_DRAIN, self._fall_silent)

    def _fall_silent(self) -> None:
        self._silent = True
        self._out.feed_eof()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()


class Web:
    """A server at an address."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = headers
        self.status = ""

    def why(self) -> str:
        return self.status

    @asynccontextmanager
    async def transport(self) -> AsyncGenerator[Streams]:
        # A call has its own timeout; limit only the connect time here.
        patience = httpx2.Timeout(_CONNECT, read=None)
        headers = {"accept-encoding": "identity", **self._headers}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=patience, event_hooks={"response": [self._look]}) as client,
            streamable_http_client(self._url, http_client=client, max_sse_event_size=MESSAGE) as streams,
        ):
            yield streams

    async def _look(self, response: httpx2.Response) -> None:
        if response.status_code >= 400:
            self.status = f"it answered with status {response.status_code}"
        if response.headers.get("content-encoding", "") not in _PLAIN:
            self.status = "it compressed what it said, which it was asked not to"
            raise httpx2.DecodingError(self.status)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _Bounded(cast("httpx2.AsyncByteStream", response.stream), self._too_long)

    def _too_long(self) -> None:
        self.status = _TOO_LONG


class _Bounded(httpx2.AsyncByteStream):
    """A body up to the limit."""

    def __init__(self, stream: httpx2.AsyncByteStream, too_long: Callable[[], None]) -> None:
        self._stream = stream
        self._too_long = too_long

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MESSAGE:
                self._too_long()
                raise httpx2.ReadError(_TOO_LONG)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _message(line: bytes) -> SessionMessage | None:
    """Return the message of a line, or None if it is not a message. Broken characters are replaced: a message that
    cannot be read would be a response that never comes."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        pass
    try:
        mended = json.dumps(json.loads(line.decode(errors="replace")), ensure_ascii=False).encode(errors="replace")
        return SessionMessage(jsonrpc_message_adapter.validate_json(mended, by_name=False))
    except (ValueError, RecursionError):
        return None
