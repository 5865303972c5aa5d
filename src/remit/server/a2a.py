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

from remit.server.problems import plain_problem

PREFIX: Final = "/a2a"
FRONT: Final = "/.well-known/agent-card.json"
KEY: Final = "REMIT_A2A_KEY"
AGENT: Final = "REMIT_A2A_FRONT"
ADDRESS: Final = "REMIT_A2A_ADDRESS"
_PARSE_ERROR: Final = -32700  # JSON-RPC
_NOT_HERE: Final = "this server has no A2A agents: its operator must install remit[a2a]"


class LateApp:
    """An application that is imported with the first request, in a thread: its libraries take a second to load."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        self._make = make
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            self._app = await run_sync(self._made)
        await self._app(scope, receive, send)

    def _made(self) -> ASGIApp:
        try:
            return self._make()
        except ImportError:
            return _missing()


def _missing() -> Response:
    return plain_problem(HTTPStatus.NOT_IMPLEMENTED, "not-installed", _NOT_HERE)


def _made(name: str) -> ASGIApp:
    apps, given = import_module("remit.adapters.a2a.app"), os.environ.get
    settings = apps.A2ASettings(PREFIX, given(ADDRESS, "").rstrip("/"), given(AGENT, ""), given(KEY, ""))
    return getattr(apps, name)(settings)


def parse_error(scope: Scope, why: str) -> Response | None:
    """Return the JSON-RPC error for a body that is not JSON, or None if the path uses HTTP+JSON."""
    if not scope["path"].rstrip("/").endswith("/rpc"):
        return None
    error = {"code": _PARSE_ERROR, "message": f"Invalid JSON payload: {why}"}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error})


@asynccontextmanager
async def agents(*_server: object) -> AsyncGenerator[ASGIApp]:
    """Yield the application of the agents."""
    yield LateApp(lambda: _made("a2a_app"))


@asynccontextmanager
async def front(*_server: object) -> AsyncGenerator[ASGIApp]:
    """Yield the application of the front card."""
    yield LateApp(lambda: _made("front_app"))
