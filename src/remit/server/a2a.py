"""The A2A agents of the server's workspaces, below `/a2a`, and the front card at its root."""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib import import_module
from typing import Final

from anyio.to_thread import run_sync
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from remit.core.values import Json
from remit.errors import BadInput, Malformed, RemitError, WrongType
from remit.server.problems import code_of, headers_of, plain_problem, sentence_of

PREFIX: Final = "/a2a"
FRONT: Final = "/.well-known/agent-card.json"
KEY: Final = "REMIT_A2A_KEY"
AGENT: Final = "REMIT_A2A_FRONT"
ADDRESS: Final = "REMIT_A2A_ADDRESS"
_PARSE_ERROR, _WRONG_TYPE = -32700, -32005  # JSON-RPC
_INFO: Final = "type.googleapis.com/google.rpc.ErrorInfo"
_STATUSES: Final[dict[int, str]] = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
_NOT_HERE: Final = "this server has no A2A agents: its operator must install remit[a2a]"


class LateApp:
    """An application that is imported with the first request, in a thread: its libraries take a second to load."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        self._make = make
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            self._app = await run_sync(self._make_app)
        await self._app(scope, receive, send)

    def _make_app(self) -> ASGIApp:
        try:
            return self._make()
        except ImportError:
            return _missing()


def _missing() -> Response:
    return plain_problem(HTTPStatus.NOT_IMPLEMENTED, "not-installed", _NOT_HERE)


def _new_app(name: str) -> ASGIApp:
    apps, given = import_module("remit.adapters.a2a.app"), os.environ.get
    settings = apps.A2ASettings(PREFIX, given(ADDRESS, "").rstrip("/"), given(AGENT, ""), given(KEY, ""))
    return getattr(apps, name)(settings)


def refused(scope: Scope, error: RemitError) -> Response | None:
    """Return the error response of JSON-RPC or HTTP+JSON for a request that is refused before it reaches an agent.
    Return None if the usual response is right: for agent cards, and for JSON-RPC unless the JSON or its type is
    wrong."""
    binding = scope["path"].split("/")[3:4]
    if binding == ["rest"]:
        return _as_rest(error)
    return _as_rpc(error) if binding == ["rpc"] and isinstance(error, Malformed | WrongType) else None


def _as_rpc(error: RemitError) -> Response:
    body: dict[str, Json] = {"code": _PARSE_ERROR, "message": f"Invalid JSON payload: {sentence_of(error)}"}
    if isinstance(error, WrongType):
        body = {"code": _WRONG_TYPE, "message": sentence_of(error), "data": [_info(error)]}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": body})


def _as_rest(error: RemitError) -> Response:
    status = HTTPStatus.BAD_REQUEST if isinstance(error, WrongType) else error.status
    body = {
        "code": int(status),
        "status": _STATUSES.get(
            status, "INVALID_ARGUMENT" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "INTERNAL"
        ),
        "message": sentence_of(error),
        "details": [_info(error)],
    }
    return JSONResponse({"error": body}, status, headers_of(error))


def _info(error: RemitError) -> dict[str, Json]:
    """Return the `google.rpc.ErrorInfo` of an error."""
    if isinstance(error, WrongType):
        reason = "CONTENT_TYPE_NOT_SUPPORTED"
    else:
        known = isinstance(error, BadInput)
        reason = "INVALID_REQUEST" if known else code_of(type(error)).replace("-", "_").upper()
    return {"@type": _INFO, "reason": reason, "domain": "a2a-protocol.org", "metadata": {}}


@asynccontextmanager
async def agents(*_server: object) -> AsyncGenerator[ASGIApp]:
    """Yield the application of the agents."""
    yield LateApp(lambda: _new_app("a2a_app"))


@asynccontextmanager
async def front(*_server: object) -> AsyncGenerator[ASGIApp]:
    """Yield the application of the front card."""
    yield LateApp(lambda: _new_app("front_app"))
