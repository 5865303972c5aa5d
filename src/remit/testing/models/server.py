"""A scripted model: a real HTTP server on loopback, which real clients talk to."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import Final, TypeAlias

import anyio

from remit.core.times import SECOND
from remit.engine.system import SystemClock
from remit.engine.traces import shortened
from remit.errors import RemitError
from remit.ports import Clock
from remit.testing.doubles import PATIENCE
from remit.testing.models.answers import asked_tokens
from remit.testing.models.dialects import Spelled, error, in_dialect, plain
from remit.testing.models.http import HEAD_LIMIT, BadHttp, Incoming, read_incoming, reset
from remit.testing.models.replies import KINDS, ModelReply
from remit.testing.models.requests import (
    ALL_PATHS,
    COUNT_PATH,
    ModelRequest,
    dialect_at,
    read,
    read_messages,
    strict_refusal,
)

CONNECTIONS: Final = 64  # at a time
BODY_LIMIT: Final = 16 * 2**20  # bytes

Talk: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Script: TypeAlias = Iterable[ModelReply] | Callable[[ModelRequest], ModelReply | Awaitable[ModelReply]]


class ScriptFailed(AssertionError):
    """The script had no valid reply to a request: it ran out, it raised, or a strict provider refuses the request."""


class ModelServer:
    """The server. `url` is its address, `requests` lists the requests in order, and `faults` the requests without a
    reply and those that a strict provider refuses. `bug` is the first exception of the script."""

    def __init__(self, script: Script, clock: Clock, body_limit: int, *, strict: bool = True) -> None:
        self.url = ""
        self.requests: list[ModelRequest] = []
        self.faults: list[str] = []
        self.bug: Exception | None = None
        self._script = script if callable(script) else _next_of(deque(script))
        self._clock = clock
        self._body_limit = body_limit
        self._strict = strict
        self._news = asyncio.Event()

    def __repr__(self) -> str:
        return f"<ModelServer at {self.url}, asked {len(self.requests)} times>"

    async def asked(self, times: int) -> None:
        """Wait until the server has received this many requests. Raise `TimeoutError` after 30 seconds."""
        with anyio.fail_after(PATIENCE):
            while len(self.requests) < times:
                self._news.clear()
                await self._news.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        goes_on = True
        while goes_on:
            try:
                incoming = await read_incoming(reader, self._body_limit)
            except BadHttp as bad:
                await turn_away(reader, writer, bad)
                return
            reply = await self._replied(incoming)
            goes_on = await self._send(reply, writer) and incoming.goes_on

    async def _replied(self, incoming: Incoming) -> Spelled:
        dialect = dialect_at(incoming.path)
        if dialect is None or incoming.method != "POST":
            return _beside(incoming)
        try:
            request = read(incoming)
        except BadHttp as bad:
            return plain(bad.status, error(dialect, bad.status, message=str(bad)))
        self.requests.append(request)
        number = len(self.requests)
        self._news.set()
        if self._strict and (wrong := strict_refusal(request)):
            self.faults.append(f"request {number}, to {request.model}: a strict provider refuses it: {wrong}")
            return plain(400, error(dialect, 400, message=wrong))
        try:
            given = self._script(request)
            reply = await given if isawaitable(given) else given
            return in_dialect(_checked(reply), request, number, self._clock.now() // SECOND)
        except Exception as fault:  # noqa: BLE001 - a test's own function
            sentence = str(fault) if isinstance(fault, ScriptFailed) else f"{type(fault).__name__}: {fault}"
            self.faults.append(f"request {number}, to {request.model}: {sentence}")
            self.bug = self.bug or shortened(fault)
            # A status that no client retries, so that the test fails at once.
            return plain(400, error(dialect, 400, message=f"the script cannot answer this: {sentence}"))

    async def _send(self, reply: Spelled, writer: asyncio.StreamWriter) -> bool:
        """Send a reply. Return whether the connection can be used again."""
        begin, sent = reply.head, reply.sent or (b"",)
        if not begin:
            await self._pass(reply.seconds)
            reset(writer)
            return False
        for part in sent:
            await self._pass(reply.seconds / len(sent))
            writer.write(begin + part)
            await writer.drain()
            begin = b""
        return reply.whole

    async def _pass(self, seconds: float) -> None:
        if seconds > 0:
            passed = asyncio.Event()
            timer = self._clock.call_later(seconds, passed.set)
            try:
                await passed.wait()
            finally:
                timer.cancel()


def _beside(incoming: Incoming) -> Spelled:
    """Return the reply to a request that is not for the script: a count of tokens, or an error."""
    path, method = incoming.path, incoming.method
    if dialect_at(path) is None and path != COUNT_PATH:
        return refusal(404, f"there is no {path} here; ask at {ALL_PATHS}")
    return _counted(incoming) if method == "POST" else refusal(405, f"{path} takes POST, not {method}")


def _counted(incoming: Incoming) -> Spelled:
    """Return the reply with the token count of a request, without the script."""
    try:
        return plain(200, {"input_tokens": asked_tokens(read_messages(incoming))})
    except BadHttp as bad:
        return plain(bad.status, error("messages", bad.status, message=str(bad)))


def _next_of(replies: deque[ModelReply]) -> Callable[[ModelRequest], ModelReply]:
    most = len(replies)

    def script(_: ModelRequest) -> ModelReply:
        if not replies:
            raise ScriptFailed(f"the script ran out after {most} replies; give it more, or a function")
        return replies.popleft()

    return script


def _checked(reply: object) -> ModelReply:
    if isinstance(reply, KINDS):
        return reply
    raise ScriptFailed(f"a script replies with Says(...), Calls(...) or a failure, not {type(reply).__name__}")


async def turn_away(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, bad: BadHttp) -> None:
    """Refuse a request without reading it, and read on until the client has hung up: otherwise the system would reset
    the connection, and the client might never see the response."""
    full = refusal(bad.status, str(bad))
    writer.write(full.head + b"".join(full.parts))
    writer.write_eof()
    while await reader.read(HEAD_LIMIT):
        pass


def refusal(status: int, sentence: str) -> Spelled:
    """Return the response to a request that is not for a model."""
    return plain(status, error("chat", status, message=sentence))


@asynccontextmanager
async def model_server(
    script: Script = (),
    *,
    clock: Clock | None = None,
    connections: int = CONNECTIONS,
    body_limit: int = BODY_LIMIT,
    strict: bool = True,
) -> AsyncGenerator[ModelServer]:
    """Serve a script: replies, one for each request in order, or a function of the request. It serves
    `/v1/chat/completions`, `/v1/responses`, `/v1/messages` and Google's `/v1beta/models/MODEL:generateContent`, plain
    and streamed, and counts tokens at `/v1/messages/count_tokens` without the script. Unless `strict` is False, it
    refuses what strict providers refuse: a call without a result, a result without a call, and unknown fields or ids.

    At the end, raise `ScriptFailed` if the script ran out or raised, or a request was refused. An error of the body is
    raised instead, with one exception: after a bug in the script, a `RemitError` or an `AssertionError` of the body
    probably follows from that bug, so `ScriptFailed` is raised in its place, with the bug as its cause."""
    model = ModelServer(script, clock or SystemClock(), body_limit, strict=strict)
    try:
        async with listening(model.serve, connections) as model.url:
            yield model
    except (RemitError, AssertionError):
        if model.bug is None:
            raise
    if model.faults:
        raise ScriptFailed("; ".join(model.faults)) from None if isinstance(model.bug, ScriptFailed) else model.bug


@asynccontextmanager
async def listening(talk: Talk, connections: int = CONNECTIONS, port: int = 0) -> AsyncGenerator[str]:
    """Listen on loopback and yield the address. `talk` serves each connection separately, until the body ends.
    Connections beyond `connections` are refused with status 503, and those beyond twice as many are reset."""
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, full: bool) -> None:
        try:
            if full:
                await turn_away(reader, writer, BadHttp(503, f"this server takes {connections} connections at a time"))
            else:
                await talk(reader, writer)
        except (EOFError, OSError):  # the client has gone
            pass
        finally:
            writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(serving) >= 2 * connections:  # too many connections are being refused already
            reset(writer)
            return
        task = asyncio.create_task(serve(reader, writer, len(serving) >= connections))
        serving.add(task)
        task.add_done_callback(serving.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", port, limit=HEAD_LIMIT)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        left = list(serving)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
