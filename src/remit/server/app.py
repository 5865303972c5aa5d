"""The server as an ASGI application: host, key, scope, limits and strict input before every handler."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import cache, partial
from http import HTTPStatus
from itertools import count
from secrets import randbits
from time import monotonic
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, unquote_to_bytes

from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from remit.core.values import Json
from remit.errors import BadInput, Forbidden, Malformed, NotFound, RemitError
from remit.server import a2a
from remit.server.callers import RUN, Caller, Doorkeeper, no_key
from remit.server.calls import HttpAnswer, HttpCall, Row, texts_in
from remit.server.feed import Feeds
from remit.server.handlers.remote import REMOTE_ROWS
from remit.server.handlers.session import DOOR, SESSION_ROWS
from remit.server.limits import USUAL_RATES, FairTurns, RateLimits, RequestRates
from remit.server.links import PATH as LINKS
from remit.server.links import AnswerPage, answer_link
from remit.server.mcp import mcp_app
from remit.server.metrics import metrics_app
from remit.server.openapi import RouteRows
from remit.server.problems import plain_problem, problem
from remit.server.routes import ROWS
from remit.server.sessions import Sessions
from remit.server.static import StaticPage
from remit.server.strict import USUAL, BodyLimits, StrictBody, header, parsed, read_bytes
from remit.server.tenants import Tenants

_log = logging.getLogger("remit")

KEY_LIMIT: Final = 200  # characters of an Idempotency-Key
_PARAMETERS: Final = 50
_LOOKS: Final = frozenset(("GET", "HEAD"))
_UNSAFE: Final = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
_REQUESTS: Final = count(randbits(64))  # ids of requests, for logs; no secret
_UNLESS_SET: Final = (
    (b"cache-control", b"private, no-cache"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


class ServerSettings(NamedTuple):
    """The settings of a server. `hosts` are the Host headers that it answers, with their ports; it answers every host
    if there are none. `origins` are the origins of the pages that may call it from a browser."""

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    body: BodyLimits = USUAL
    rates: RateLimits = USUAL_RATES
    workspace: str = "default"  # of requests without a key: whether its store can be read


class Mounted(NamedTuple):
    """An application of another library below a path, for keys with this scope. `make` is entered when the server
    starts; the application finds the caller in `scope["remit.caller"]`, and `scope["remit.check"]` raises an error once
    its key is not valid any more. `refused` makes the answer to a request that does not reach it, if its protocol has
    its own."""

    prefix: str
    scope: str
    make: Callable[[Tenants, ServerSettings], AbstractAsyncContextManager[ASGIApp]]
    refused: Callable[[Scope, RemitError], Response | None] = lambda _scope, _error: None


def _mcp(_tenants: Tenants, settings: ServerSettings) -> AbstractAsyncContextManager[ASGIApp]:
    return mcp_app(settings.hosts, settings.origins)


MOUNTS: Final[tuple[Mounted, ...]] = (
    Mounted("/metrics", "admin", metrics_app),
    Mounted("/mcp", RUN, _mcp),
    Mounted(a2a.PREFIX, RUN, a2a.agents, a2a.refused),
    Mounted(a2a.FRONT, RUN, a2a.front),
)

Branch: TypeAlias = "dict[str, Any]"


class RouteTree:
    """The rows by the segments of their paths. A segment is decoded after the path is split, so a key may contain a
    slash."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._root: Branch = {}
        for row in rows:
            branch = self._root
            for segment in row.path.split("/")[1:]:
                branch = branch.setdefault("{}" if segment.startswith("{") else segment, {})
            branch.setdefault("", {})[row.method] = row

    def find(self, path: str) -> tuple[Mapping[str, Row], list[str]] | None:
        """Return the rows of a path by method, and the values of its variable segments, which are not decoded. Return
        None if there is no such path."""
        branch, values = self._root, list[str]()
        for segment in path.split("/")[1:]:
            following = branch.get(segment) if segment else None
            if following is None:
                following = branch.get("{}")
                values.append(segment)
            if following is None:
                return None
            branch = following
        rows = branch.get("")
        return None if rows is None else (rows, values)


@cache
def names_in(path: str) -> tuple[str, ...]:
    """Return the names of the variable segments of a path."""
    return tuple(segment[1:-1] for segment in path.split("/") if segment.startswith("{"))


class Server:
    """The ASGI application. Enter `running()`, or send it the events of a lifespan, before the first request to a
    mounted application."""

    def __init__(
        self,
        tenants: Tenants,
        doorkeeper: Doorkeeper,
        settings: ServerSettings,
        rows: Iterable[Row] = ROWS,
        sessions: Sessions | None = None,
        answers: Sequence[AnswerPage] = (),
    ) -> None:
        self._answers = answers
        self._tenants = tenants
        self._doorkeeper = doorkeeper
        self._sessions = sessions
        self._settings = settings
        self._rates = RequestRates(settings.rates, monotonic)
        self._turns = FairTurns(settings.rates)
        self._rows = RouteRows(rows)
        self._routes = RouteTree((*self._rows, *REMOTE_ROWS, *SESSION_ROWS))
        self._page = StaticPage()
        self._mounts: dict[str, tuple[Mounted, ASGIApp]] = {}
        self._feeds = Feeds()

    @asynccontextmanager
    async def running(self, mounts: Iterable[Mounted] = MOUNTS) -> AsyncGenerator[Server]:
        """Start the mounted applications, and end them afterwards."""
        async with AsyncExitStack() as stack:
            for one in mounts:
                app = await stack.enter_async_context(one.make(self._tenants, self._settings))
                self._mounts[one.prefix] = (one, StrictBody(app, self._settings.body))
            try:
                yield self
            finally:
                self._mounts.clear()

    def end_streams(self) -> None:
        """Close the streams of live events. Readers reconnect with the id of their last event."""
        self._feeds.end()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._request(scope, receive, Sending(send))
        else:  # a websocket: there are none
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _request(self, scope: Scope, receive: Receive, send: Sending) -> None:
        name = ""
        given: list[object] = []
        try:
            if self._answers and scope["path"] == LINKS:
                await (await self._link(scope, receive))(scope, receive, send)
                return
            self._must_be_for_us(scope)
            mount = self._mounted(scope["path"])
            if mount is not None:
                await self._pass_on(mount, scope, receive, send)
                return
            found = self._row(scope)
            if isinstance(found, Response):
                response = found
            else:
                name = found[0].name
                response = await self._answer(*found, scope, receive, given)
        except RemitError as error:
            response = problem(error, name, texts_in(given))
        except ClientDisconnect:
            return
        except Exception:  # noqa: BLE001 - a bug must not show its text to the caller
            _log.exception("a request failed: %s", name or "no route")
            response = plain_problem(HTTPStatus.INTERNAL_SERVER_ERROR, "bug", _BUG, name)
        if not send.has_begun:  # a mounted application may have failed in the middle of its answer
            await response(scope, receive, send)

    async def _link(self, scope: Scope, receive: Receive) -> Response:
        """Answer the link of a question. It needs its token only, and may come from any page."""
        self._must_be_our_host(scope)
        self._rates.admit("links", self._settings.workspace)
        return await answer_link(self._answers, scope, receive)

    def _must_be_our_host(self, scope: Scope) -> None:
        hosts = self._settings.hosts
        if hosts and header(scope, b"host").lower() not in hosts:
            raise Forbidden("this server does not serve that host; `remit serve --allow-host` adds one")

    def _must_be_for_us(self, scope: Scope) -> None:
        """Raise `Forbidden` for another host, and for a page of another origin: a browser may have been led here."""
        self._must_be_our_host(scope)
        origin = header(scope, b"origin")
        if origin and origin.lower() not in self._settings.origins:
            raise Forbidden("pages of that origin may not call this server; `remit serve --allow-origin` adds one")

    def _row(self, scope: Scope) -> tuple[Row, list[str]] | Response:
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        path = raw.partition(b"?")[0].decode("latin-1")
        found = self._routes.find(path)
        if found is None and scope["method"] in _LOOKS:
            shown = self._page.answer(path, header(scope, b"accept-encoding"))
            if shown is not None:
                return shown
        if found is None:
            return plain_problem(HTTPStatus.NOT_FOUND, "no-such-path", _NO_PATH)
        rows, values = found
        method = "GET" if scope["method"] == "HEAD" and "GET" in rows else scope["method"]
        row = rows.get(method)
        if row is None:
            allow = ", ".join(sorted(rows))
            return plain_problem(HTTPStatus.METHOD_NOT_ALLOWED, "no-such-method", _NO_METHOD, allow=allow)
        return row, values

    async def _answer(
        self, row: Row, values: list[str], scope: Scope, receive: Receive, given: list[object]
    ) -> Response:
        caller = await self._caller(row.scope, scope)
        self._rates.admit(caller.access, caller.workspace)
        if caller.agent and not row.agents:
            raise Forbidden("this key acts as an agent; this takes a key of the owner")
        path = dict(zip(names_in(row.path), map(_decoded, values), strict=True))
        query = _query(scope["query_string"])
        given += [path, query]
        op, text = "", b""
        if row.method in _UNSAFE:
            op = caller.op(_idempotency_key(scope))
            given.append(op)
            if not row.raw:
                text = await read_bytes(scope, receive, self._settings.body)  # a slow sender keeps no turn from others
        if row.waits or not row.scope:
            return await self._handled(row, caller, path, query, op, text, scope, receive, given)
        async with self._turns.turn(caller.workspace):
            return await self._handled(row, caller, path, query, op, text, scope, receive, given)

    async def _handled(
        self,
        row: Row,
        caller: Caller,
        path: Mapping[str, str],
        query: dict[str, Json],
        op: str,
        text: bytes,
        scope: Scope,
        receive: Receive,
        given: list[object],
    ) -> Response:
        """Check what was sent, and call the handler."""
        body: BaseModel | None = None
        if row.method in _UNSAFE and not row.raw:
            sent = parsed(scope, text)
            given.append(sent)
            body = checked(row.body, sent, "the body")
        workspace = self._tenants.workspace(caller.workspace)
        scope["remit.rows"], scope[DOOR] = self._rows, (self._doorkeeper, self._sessions)
        checked_query = checked(row.query, query, "the query") if query else _no_query(row.query)
        live = (self._feeds, partial(self._caller, row.scope, scope))
        call = HttpCall(caller, workspace, path, checked_query, body, op, Headers(scope=scope), scope, receive, *live)
        answer = await row.handler(call)
        return answer.response() if isinstance(answer, HttpAnswer) else answer

    async def _caller(self, needed: str, scope: Scope) -> Caller:
        """Return the caller of the request, by its key or its cookie; if no scope is `needed`, a caller without rights.
        Raise `Unauthorised` without a valid key, and `Forbidden` if the key does not have the scope."""
        if not needed:
            return Caller("", self._settings.workspace, frozenset())
        kind, _, key = header(scope, b"authorization").partition(" ")
        if not kind and self._sessions is not None:
            caller = await self._sessions.caller(scope)
        elif kind.lower() != "bearer" or not key.strip():
            raise no_key()
        else:
            caller = await self._doorkeeper.caller(key.strip())
        caller.must(needed)
        return caller

    def _mounted(self, path: str) -> tuple[Mounted, ASGIApp] | None:
        if path.startswith("/v1/"):  # most requests, and nothing is mounted there
            return None
        for prefix, mount in self._mounts.items():
            if path == prefix or path.startswith(f"{prefix}/"):
                return mount
        return None

    async def _pass_on(self, mount: tuple[Mounted, ASGIApp], scope: Scope, receive: Receive, send: Sending) -> None:
        one, app = mount
        try:
            caller = await self._caller(one.scope, scope)
            self._rates.admit(caller.access, caller.workspace)
            workspace = self._tenants.workspace(caller.workspace)
            own = {"root_path": one.prefix, "remit.caller": caller, "remit.workspace": workspace}
            check = partial(self._caller, one.scope, scope)
            await app({**scope, **own, "remit.check": check}, receive, send)
        except RemitError as error:
            response = one.refused(scope, error)
            if response is None or send.has_begun:
                raise
            await response(scope, receive, send)


def create_app(
    tenants: Tenants,
    doorkeeper: Doorkeeper,
    settings: ServerSettings | None = None,
    sessions: Sessions | None = None,
    answers: Sequence[AnswerPage] = (),
) -> Server:
    """Return the server of these workspaces. Its settings say which hosts it answers. With `sessions`, a browser may
    also call it with a cookie; `answers` answer the links of questions."""
    given = ServerSettings() if settings is None else settings
    return Server(tenants, doorkeeper, given, sessions=sessions, answers=answers)


_BUG: Final = "the server failed; its log says why"
_NO_PATH: Final = "there is nothing at this path; /v1/openapi.json lists what there is"
_NO_METHOD: Final = "this path does not take this method; the header Allow lists those that it takes"


def checked(model: type[BaseModel], given: Json, what: str) -> BaseModel:
    """Return the input of a request as a validated value. Raise `BadInput` that names up to five wrong fields,
    without their content; its text begins with `what`, such as "the body"."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
    said = [_complaint(one["type"], one["loc"], one["msg"], model) for one in found[:5]]
    raise BadInput(f"{what}: {'; '.join(dict.fromkeys(said))}")


def _complaint(kind: str, place: tuple[int | str, ...], message: str, model: type[BaseModel]) -> str:
    known = _fields(model)
    where = ".".join(str(part) for part in place if isinstance(part, int) or part in known)
    if kind == "extra_forbidden" and where:
        return f"{where} has a field that is not known"
    if kind == "extra_forbidden":
        return f"it has a field that is not known; known are {', '.join(sorted(model.model_fields)) or 'none'}"
    words = message.removeprefix("Value error, ")
    return f"{where}: {words}" if where else words


@cache
def _fields(model: type[BaseModel]) -> frozenset[str]:
    """Return the names of all fields of a model, and of the models in it."""
    schema = model.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return frozenset(name for part in parts for name in part.get("properties", {}))


@cache
def _no_query(model: type[BaseModel]) -> BaseModel:
    """Return the value of an empty query: it cannot be changed, so all such requests share it."""
    return checked(model, {}, "the query")


def _query(text: bytes) -> dict[str, Json]:
    if not text:
        return {}
    try:
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_PARAMETERS)
    except ValueError:  # also of characters that are not ASCII or UTF-8
        raise Malformed("the query is not a list of parameters in UTF-8, such as ?limit=10&state=open") from None
    found: dict[str, Json] = dict(pairs)
    if len(found) != len(pairs):
        raise BadInput("the query has the same parameter twice")
    if any("\0" in part for pair in pairs for part in pair):
        raise Malformed("the query contains a NUL character")
    return found


def _decoded(segment: str) -> str:
    """Return a segment of a path as decoded text. Raise `NotFound` if it is empty, not UTF-8, or contains a NUL: no
    object has such an id."""
    try:
        text = unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise NotFound("there is no such object") from None
    if not text or "\0" in text:
        raise NotFound("there is no such object")
    return text


def _idempotency_key(scope: Scope) -> str:
    key = header(scope, b"idempotency-key")
    if len(key) > KEY_LIMIT or not (key.isascii() and key.isprintable()):
        raise BadInput(f"the header Idempotency-Key has at most {KEY_LIMIT} printable ASCII characters")
    return key


class Sending:
    """Sends an answer: it adds the headers that every answer has, and knows whether the answer has started."""

    __slots__ = ("_send", "has_begun")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            own = [*message.get("headers", ())]
            there = {name for name, _ in own}
            own += [(b"x-request-id", b"%016x" % (next(_REQUESTS) % 2**64)), *_HEADERS]
            own += [pair for pair in _UNLESS_SET if pair[0] not in there]
            message = {**message, "headers": own}
        await self._send(message)
