"""`/mcp`: the agents of a workspace for MCP clients. The mcp package is imported at the first request."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib import import_module
from typing import Any, Final, cast

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus
from starlette.types import ASGIApp, Receive, Scope, Send

from remit.runtime.outsiders import Outsider
from remit.runtime.workspace import Workspace
from remit.server.callers import APPROVE, Caller
from remit.server.problems import plain_problem

_ADAPTER: Final = "remit.adapters.mcp.http"
_MISSING: Final = "this server has no MCP: `pip install 'remit[mcp]'` installs it"


@asynccontextmanager
async def mcp_app(hosts: Iterable[str], origins: Iterable[str]) -> AsyncGenerator[ASGIApp]:
    """Yield the application for these hosts and origins, and end its sessions afterwards."""
    async with anyio.create_task_group() as group:
        yield FirstUse(group, hosts, origins)
        group.cancel_scope.cancel()


class FirstUse:
    """Starts the application of the adapter at the first request."""

    def __init__(self, group: TaskGroup, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._group = group
        self._allowed = (hosts, origins)
        self._starting = anyio.Lock()
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            app = await self._started()
        except ImportError:
            response = plain_problem(HTTPStatus.NOT_IMPLEMENTED, "no-mcp", _MISSING)
            await response(scope, receive, send)
            return
        await app(scope, receive, send)

    async def _started(self) -> ASGIApp:
        async with self._starting:
            if self._app is None:
                adapter = await to_thread.run_sync(import_module, _ADAPTER)  # it takes a second
                self._app = cast("ASGIApp", await self._group.start(self._run, adapter))
            return self._app

    async def _run(self, adapter: Any, *, task_status: TaskStatus[ASGIApp]) -> None:
        def who(scope: Scope) -> Any:
            outsider = outsider_of(scope["remit.caller"], scope["remit.workspace"])
            return adapter.HttpCaller(outsider, scope["remit.check"])

        async with adapter.http_app(who, *self._allowed) as app:
            task_status.started(app)
            await anyio.sleep_forever()


def outsider_of(caller: Caller, workspace: Workspace) -> Outsider:
    """Return the caller of a request as an `Outsider`, with the card and the bounds of its key. It may answer questions
    if the key has the scope approve."""
    session = f"mcp-{caller.access or 'token'}"
    return Outsider(workspace, session, caller.agent, caller.bounds, caller.by, answers=caller.may(APPROVE))
