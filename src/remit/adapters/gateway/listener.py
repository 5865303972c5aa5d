"""The listener of the gateway: one for each event loop, on loopback, open while a member works.

A request is known by its token alone, and the token by its digest. The listener answers to its own address only, so
that a page in a browser cannot reach it under another name.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import anyio
import uvicorn
from uvicorn.server import ServerState

from remit.adapters.gateway.gemini import MODELS, Gemini, gemini_at
from remit.adapters.gateway.members import GatewayMember, digest_of
from remit.adapters.gateway.passing import AnswerHead, AnswerPipe, ProgramRequest
from remit.adapters.gateway.reading import fields
from remit.adapters.gateway.upstream import Upstreams
from remit.adapters.gateway.wires import WIRES, RefusalSent, WireFormat
from remit.adapters.guard import GuardedProtocol
from remit.core.values import Json, decode, encode
from remit.errors import BadInput, Refused

BODY: Final = 32 * 2**20  # bytes of a request
SECONDS: Final = 30.0  # for the whole body of a request
_BACKLOG: Final = 256
# The paths at which clients of Anthropic and Google ask for a count of tokens. Only Google's path fills the group.
_COUNTED: Final = re.compile(r"/v1/messages/count_tokens|/(?:v1|v1beta)/models/([^/:]{1,200}):countTokens")
_JSON: Final = (("content-type", "application/json"),)
_OVER: Final = "the task that this program works on is over"
_UNKNOWN: Final = "this token is not valid here: its task has ended, or another attempt has taken it over"

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Verbs(Protocol):
    """The verbs of turns at a path of the listener. It is an interface because its package may not be installed."""

    async def __call__(self, member: GatewayMember, scope: Scope, receive: Receive, send: Send) -> None: ...
    async def aclose(self) -> None: ...


class GatewayListener:
    """The application, and the members that it knows by the digests of their tokens."""

    def __init__(self) -> None:
        self.url = ""
        self.verbs: Verbs | None = None  # answers under `/mcp`, once a member has verbs
        self._host = ""
        self._members: dict[str, GatewayMember] = {}

    def serve_at(self, port: int) -> None:
        self._host = f"127.0.0.1:{port}"
        self.url = f"http://{self._host}"

    def enter(self, member: GatewayMember) -> None:
        self._members[member.digest] = member

    def leave(self, member: GatewayMember) -> bool:
        """Remove a member. Return whether it was the last one."""
        self._members.pop(member.digest, None)
        return not self._members

    async def close(self) -> None:
        if self.verbs is not None:
            await self.verbs.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, headers = scope["path"], _headers(scope)
        if dict(headers).get("host") != self._host:
            await _answer(send, _plain(HTTPStatus.MISDIRECTED_REQUEST, "this address has another name"))
            return
        member = self._member(headers)
        if member is None:
            await _answer(send, _plain(HTTPStatus.UNAUTHORIZED, _UNKNOWN))
            return
        if self.verbs is not None and member.has_verbs and path in ("/mcp", "/mcp/"):
            await self.verbs(member, scope, receive, send)
        elif member.upstreams is None:
            await _answer(send, _NOTHING)
        else:
            await self._model(member, member.upstreams, scope, receive, send)

    async def _model(
        self, member: GatewayMember, upstreams: Upstreams, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a request about models, or to one."""
        path = scope["path"]
        try:
            wire = WIRES.get(path) or gemini_at(path, scope["query_string"])
        except BadInput as error:
            await _answer(send, _plain(HTTPStatus.BAD_REQUEST, str(error), "invalid_request_error"))
            return
        if wire is not None:
            await self._serve_request(member, wire, _headers(scope), receive, send)
        elif (counted := _COUNTED.fullmatch(path)) is not None:
            await _answer(send, await _estimated(member, receive, "totalTokens" if counted[1] else "input_tokens"))
        elif path.startswith("/v1/models"):
            await _answer(send, _models(upstreams.names()))
        elif path == MODELS:
            await _answer(send, _google_models(upstreams.names("google")))
        else:
            await _answer(send, _NOTHING)

    def _member(self, headers: list[tuple[str, str]]) -> GatewayMember | None:
        """Return the member whose token a request carries."""
        given = dict(headers)
        bearer = given.get("authorization", "").removeprefix("Bearer ").strip()
        token = given.get("x-api-key") or given.get("x-goog-api-key") or bearer
        found = self._members.get(digest_of(token)) if token else None
        return found if found is not None and found.knows(token) else None

    async def _serve_request(
        self, member: GatewayMember, wire: WireFormat, headers: list[tuple[str, str]], receive: Receive, send: Send
    ) -> None:
        try:
            with member.room():
                request = await _read(wire, headers, receive)
                await self._passed(member, request, receive, send)
        except (BadInput, Refused) as error:
            await _answer(send, wire.refusal(str(error), streams=False))

    async def _passed(self, member: GatewayMember, request: ProgramRequest, receive: Receive, send: Send) -> None:
        pieces = AnswerPipe()
        work = member.start(member.ask(request, pieces))
        work.add_done_callback(lambda _: pieces.close())  # also if it is cancelled before it begins
        leaving = asyncio.ensure_future(_cancel_when_closed(receive, work))
        try:
            if not await _pass(pieces, send):
                await _answer(send, request.wire.refusal(_OVER, streams=request.asked.streams))
        finally:
            leaving.cancel()
            work.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work])


async def _cancel_when_closed(receive: Receive, work: asyncio.Task[None]) -> None:
    """Cancel the work if the program closes its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    work.cancel()


async def _pass(pieces: AnswerPipe, send: Send) -> bool:
    """Pass an answer on to the program. Return whether there was one."""
    began = False
    async for piece in pieces:
        if isinstance(piece, AnswerHead):
            began = True
            await send(_start(piece.status, piece.headers))
        else:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    if began:
        await send({"type": "http.response.body", "body": b""})
    return began


async def _read(wire: WireFormat, headers: list[tuple[str, str]], receive: Receive) -> ProgramRequest:
    try:
        with anyio.fail_after(SECONDS):
            body = await _body(receive)
    except TimeoutError:
        raise BadInput(f"the request did not arrive within {SECONDS:g} seconds") from None
    try:
        found = decode(body.decode())
    except (ValueError, RecursionError):
        raise BadInput("the request is no JSON") from None
    given = fields(found)
    return ProgramRequest(wire, wire.read_request(given), given, len(body), headers)


async def _estimated(member: GatewayMember, receive: Receive, field: str) -> RefusalSent:
    """Return the answer to a program that has the tokens of a request counted: an estimate, under the name `field`, as
    the gateway makes it before it holds money. No provider is asked."""
    try:
        with anyio.fail_after(SECONDS):
            size = len(await _body(receive))
    except (TimeoutError, BadInput) as error:
        return _plain(HTTPStatus.BAD_REQUEST, str(error) or "the request did not arrive", "invalid_request_error")
    return RefusalSent(HTTPStatus.OK, _JSON, encode({field: member.estimate(size)}).encode())


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > BODY:
            raise BadInput(f"a request has at most {BODY:,} bytes")
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return bytes(body)


def _headers(scope: Scope) -> list[tuple[str, str]]:
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]


def _start(status: int, headers: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    spelled = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return {"type": "http.response.start", "status": int(status), "headers": spelled}


async def _answer(send: Send, answer: RefusalSent) -> None:
    length = ("content-length", str(len(answer.body)))
    await send(_start(answer.status, (*answer.headers, length)))
    await send({"type": "http.response.body", "body": answer.body})


def _plain(status: HTTPStatus, sentence: str, kind: str = "authentication_error") -> RefusalSent:
    body: dict[str, Json] = {"error": {"type": kind, "message": sentence}}
    return RefusalSent(status, (*_JSON, ("x-should-retry", "false")), encode(body).encode())


def _models(names: list[str]) -> RefusalSent:
    listed: list[Json] = [{"id": name, "type": "model", "object": "model", "display_name": name} for name in names]
    return RefusalSent(HTTPStatus.OK, _JSON, encode({"object": "list", "data": listed, "has_more": False}).encode())


def _google_models(names: list[str]) -> RefusalSent:
    listed: list[Json] = [{"name": f"models/{name}", "displayName": name} for name in names]
    return RefusalSent(HTTPStatus.OK, _JSON, encode({"models": listed}).encode())


_THERE: Final = ", ".join((*WIRES, "/v1/models", Gemini.path))
_NOTHING: Final = _plain(HTTPStatus.NOT_FOUND, f"there is nothing at this path; ask at {_THERE}", "not_found_error")


class _Port:
    """The listener's port. It is served by uvicorn's protocol without uvicorn's server, whose loop would poll."""

    def __init__(self, app: GatewayListener) -> None:
        # asyncio turns off Nagle's algorithm only if the socket names its protocol. Otherwise every answer waits 40 ms.
        self._bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._bound.bind(("127.0.0.1", 0))
        self._bound.listen(_BACKLOG)
        self._bound.setblocking(False)
        app.serve_at(self._bound.getsockname()[1])
        self._config = uvicorn.Config(
            app,
            http=GuardedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
        )
        self._config.load()
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._protocol, sock=self._bound)

    def _protocol(self) -> GuardedProtocol:
        return GuardedProtocol(config=self._config, server_state=self._state, app_state={})

    async def close(self) -> None:
        """Stop listening and close open connections. The tasks of all members have ended."""
        if self._server is None:
            self._bound.close()
            return
        self._server.close()
        for task in list(self._state.tasks):
            task.cancel()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks)
        for connection in list(self._state.connections):
            connection.transport.abort()


class _Open(NamedTuple):
    """A listener that is open."""

    app: GatewayListener
    port: _Port
    opening: asyncio.Task[None]


_OPEN: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Open]] = WeakKeyDictionary()


@asynccontextmanager
async def entered(member: GatewayMember) -> AsyncGenerator[GatewayListener]:
    """Let a member use the gateway of this event loop while the body runs. The first member opens the gateway, and the
    last one closes it."""
    found = _open_listener()
    found.app.enter(member)
    try:
        await asyncio.shield(found.opening)
        yield found.app
    finally:
        with anyio.CancelScope(shield=True):
            is_last = found.app.leave(member)
            await member.leave()
            if is_last:
                await _close(found)


def _open_listener() -> _Open:
    loop = asyncio.get_running_loop()
    found = _OPEN.get(loop)
    if found is None:
        app = GatewayListener()
        port = _Port(app)
        # In an empty context: a request knows its task by its token only.
        opening = loop.create_task(port.open(), context=Context())
        found = _OPEN[loop] = _Open(app, port, opening)
    return found


async def _close(found: _Open) -> None:
    loop = asyncio.get_running_loop()
    if _OPEN.get(loop) is found:
        del _OPEN[loop]
    await asyncio.wait([found.opening])
    await found.app.close()
    await found.port.close()
