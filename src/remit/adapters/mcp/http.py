"""The server over streamable HTTP, as an ASGI application that another server mounts behind its own checks.

The outer server knows the caller of each request. A session of the older revisions belongs to the caller that opened
it; with 2026-07-28 there are none.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from remit.adapters.mcp.server import CallPeer, Context, server_for
from remit.runtime.outsiders import Outsider

SESSIONS: Final = 1_000
_CALL: Final = "remit.mcp"  # where a request keeps its call


@dataclass(slots=True)
class HttpCaller:
    """The caller of a request. `check` raises an error of remit if its key is no longer valid."""

    outsider: Outsider
    check: Callable[[], Awaitable[object]]
    left: bool = False  # whether the client has closed the connection


@asynccontextmanager
async def http_app(
    who: Callable[[Scope], HttpCaller], hosts: Iterable[str] = (), origins: Iterable[str] = ()
) -> AsyncGenerator[ASGIApp]:
    """Run the server, and yield its application. `who` returns the caller of a request. `hosts` and `origins` are those
    that the outer server answers; without `hosts`, neither is checked."""
    closing = False

    def peer(context: Context) -> CallPeer:
        assert context.request is not None  # every request comes by HTTP
        caller: HttpCaller = context.request.scope[_CALL]
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return CallPeer(caller.outsider, lambda: caller.left, caller.check)
        return CallPeer(caller.outsider, lambda: not closing, caller.check)

    allowed = [*hosts]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=bool(allowed), allowed_hosts=allowed, allowed_origins=[*origins]
    )
    manager = StreamableHTTPSessionManager(server_for(peer), security_settings=security, max_sessions=SESSIONS)
    async with manager.run():
        try:
            yield _HttpApp(manager.handle_request, who)
        finally:
            closing = True  # the tasks of open calls continue: their clients did not end them


class _HttpApp:
    def __init__(self, app: ASGIApp, who: Callable[[Scope], HttpCaller]) -> None:
        self._app = app
        self._who = who

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].rstrip("/") != scope.get("root_path", "").rstrip("/"):
            await Response(status_code=404)(scope, receive, send)
            return
        caller = self._who(scope)

        async def heard() -> Message:
            message = await receive()
            caller.left = caller.left or message["type"] == "http.disconnect"
            return message

        # The manager gives a session to the user that opened it.
        outsider = caller.outsider
        owner = f"{outsider.workspace.name}\n{outsider.session}\n{outsider.card}"
        user = AuthenticatedUser(AccessToken(token="", client_id=owner, scopes=[]))
        await self._app({**scope, "user": user, _CALL: caller}, heard, send)
