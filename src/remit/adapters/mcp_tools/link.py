"""One connection to a server, over the pipes of a child process or over HTTP, and the server's results as text.

A connection has a task of its own: callers come and go, and are cancelled separately. The sessions of mcp use cancel
scopes, which must be left in the task that entered them. That must not be the task of the first caller. Everything that
a server sends is limited before it is read: a line, an event and a body have at most `MESSAGE` bytes.
"""

import asyncio
import json
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import Context
from importlib.metadata import version
from typing import Any, Final, Protocol, cast

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    Implementation,
    ResourceLink,
    TextContent,
    TextResourceContents,
    jsonrpc_message_adapter,
)
from mcp_types import Tool as OfferedTool

from remit.adapters.mcp_tools.offers import Offer
from remit.adapters.process import Child, last_words
from remit.core.trust import quoted
from remit.core.values import shown
from remit.errors import BadInput
from remit.ports.tools import Tool, ToolFailed

# -- two ways to reach a server ------------------------------------------------------------------------------


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


# -- the connection ------------------------------------------------------------------------------------------


CLOSING: Final = 10.0  # seconds for a clean shutdown

_PAGES: Final = 100
_alive: set[asyncio.Task[None]] = set()  # strong references, because a loop has only weak ones


class Link:
    """A connection to an MCP server. The constructor starts to connect, in an asyncio task.

    `server` is its name in errors. `dial` makes the wire, and gets the event `over`. `admit` turns the tools that the
    server offers into `tools`. The server must list them within `opening` seconds. `gone` is
    called with the link when the connection has ended.

    Setting the event `over` ends the connection. If `ended` is true, the next call needs a new `Link`."""

    CLOSED: Final = "Connection closed"  # mcp's message for a lost connection

    def __init__(
        self,
        server: str,
        dial: Callable[[asyncio.Event], Wire],
        admit: Callable[[list[Offer]], list[Tool]],
        opening: float,
        gone: Callable[["Link"], None],
    ) -> None:
        self.tools: list[Tool] = []
        self.over = asyncio.Event()
        self._server = server
        self._wire = dial(self.over)
        self._admit = admit
        self._slow = f"did not answer within {opening:g} s"
        self._gone = gone
        self._client: Client | None = None
        self._failed: Exception | None = None
        self._settled = asyncio.Event()
        self._time = anyio.CancelScope(deadline=anyio.current_time() + opening)
        # In an empty context: the connection outlives the turn that first needs it.
        self._task = asyncio.get_running_loop().create_task(self._live(), context=Context())
        _alive.add(self._task)
        self._task.add_done_callback(_alive.discard)

    @property
    def ended(self) -> bool:
        return self.over.is_set() or self._task.done()

    async def client(self) -> Client:
        """Return the client as soon as the server has listed its tools. Raise `ToolFailed` if the server did not."""
        await self._settled.wait()
        if self._failed is not None:
            raise type(self._failed)(str(self._failed))  # a new exception for each waiting caller
        if self._client is None:
            raise ToolFailed(self.lost_sentence())
        return self._client

    def lost_sentence(self) -> str:
        """Return the sentence for a lost connection, with the reason as far as it is known."""
        return self._because(f"the connection to {self._server} was lost")

    async def close(self) -> None:
        """End the connection and wait until everything is gone, including the process."""
        self.over.set()
        if not self._settled.is_set():
            self._slow = "was closed before it answered"
            self._time.cancel()
        await asyncio.wait([self._task])

    async def _live(self) -> None:
        try:
            with self._time:
                await self._talk(self._time)
            if not self._settled.is_set():
                self._failed = ToolFailed(self._because(f"{self._server} {self._slow}"))
        except Exception as error:  # noqa: BLE001 - any error is raised to the waiting callers
            self._failed = self._as_failure(_innermost(error))
        finally:
            self._client = None
            self.over.set()
            self._settled.set()
            self._gone(self)

    async def _talk(self, time: anyio.CancelScope) -> None:
        about = Implementation(name="remit", version=version("remit"))
        async with Client(self._wire.transport(), client_info=about, cache=None) as client:
            self.tools = self._admit(await self._offers(client))
            time.deadline = math.inf
            self._client = client
            self._settled.set()
            try:
                await self.over.wait()
            finally:
                time.deadline = anyio.current_time() + CLOSING

    def _as_failure(self, error: BaseException) -> Exception:
        if isinstance(error, BadInput | ToolFailed):
            return error
        unusable = f"{self._server} cannot be used"
        if isinstance(error, MCPError) and error.message != self.CLOSED:
            status = f"; {self._wire.status}" if self._wire.status else ""
            return ToolFailed(f"{unusable}{status}: {quoted(error.message)}")
        kind = "it has ended" if isinstance(error, MCPError) else type(error).__name__
        return ToolFailed(self._because(f"{unusable}: {kind}"))

    def _because(self, sentence: str) -> str:
        return "; ".join(filter(None, [sentence, self._wire.why()]))

    async def _offers(self, client: Client) -> list[Offer]:
        found: list[Offer] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await client.list_tools(cursor=cursor)
            found += map(_offer, page.tools)
            cursor = page.next_cursor
            if cursor is None:
                return found
        raise ToolFailed(f"{self._server} offers more than {_PAGES} pages of tools, perhaps without end")


def _innermost(error: BaseException) -> BaseException:
    """Return the first error in a group of errors."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    return _innermost(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])


def _offer(tool: OfferedTool) -> Offer:
    """Return a tool as the server offers it. Its hints say whether repeating a call is harmless."""
    hints = tool.annotations
    harmless = hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)
    return Offer(tool.name, tool.description or "", tool.input_schema, harmless)


# -- results as text for a model -----------------------------------------------------------------------------


_WRAPPED: Final = {"result"}  # how servers wrap a value that is not an object


def result_text(result: CallToolResult, limit: int) -> str:
    """Return the parts of a result one after the other, and its structured content if the parts do not contain it."""
    parts = [_part(block) for block in result.content]
    structured = result.structured_content
    if structured is not None and not _is_repeated(structured, parts):
        parts.append(json.dumps(structured, ensure_ascii=False))
    return cut("\n".join(parts), limit)


def cut(text: str, limit: int) -> str:
    """Return storable text of at most this many bytes, with a note if it was cut."""
    whole = text.replace("\0", "\ufffd").encode(errors="replace")
    kept = whole[:limit].decode(errors="ignore")
    return f"{kept}\n[cut after {limit:,} bytes]" if len(whole) > limit else kept


def _part(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case EmbeddedResource():
            return _resource(block.resource)
        case ImageContent() | AudioContent():
            return f"[{block.type} that is not shown: {shown(block.mime_type)}, {_size(block.data)}]"
        case ResourceLink():
            return f"[a resource that can be had from the server: {shown(block.uri, 300)}]"


def _resource(resource: TextResourceContents | BlobResourceContents) -> str:
    if isinstance(resource, TextResourceContents):
        return resource.text
    size = _size(resource.blob)
    return f"[a resource that is not text: {shown(resource.uri, 300)}, {shown(resource.mime_type)}, {size}]"


def _size(base64: str) -> str:
    return f"{len(base64) * 3 // 4:,} bytes"


def _is_repeated(structured: Any, parts: list[str]) -> bool:
    """Whether the parts already contain the structured content, as servers send it for text-only clients."""
    value = structured
    if isinstance(structured, dict) and structured.keys() == _WRAPPED:
        value = cast("dict[str, Any]", structured)["result"]
    read = [_read(part) for part in parts]
    return any(said in (value, [value], structured, [structured]) for said in (parts, read)) if parts else False


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
