"""A server in this process, and clients of it."""

from typing import Any

import httpx

from remit import Runtime
from remit.core.bounds import TOP, Bounds
from remit.runtime.workspace import Workspace, opening_of
from remit.server.app import Server, ServerSettings, create_app
from remit.server.callers import ADMIN, Caller, no_key
from remit.server.tenants import Tenants

ADDRESS = "http://remit.test"


class Keys:
    """A doorkeeper with the keys of a test."""

    def __init__(self, *callers: Caller) -> None:
        self.callers = {f"key-{one.access}": one for one in callers}

    async def caller(self, key: str) -> Caller:
        if key not in self.callers:
            raise no_key()
        return self.callers[key]


def caller(
    access: str = "ann", scope: str = ADMIN, *, workspace: str = "default", agent: str = "", bounds: Bounds = TOP
) -> Caller:
    return Caller(access, workspace, frozenset((scope,)), agent, bounds, f"access:{access}")


def app_of(
    where: Runtime | Workspace, *callers: Caller, settings: ServerSettings | None = None, keys: Keys | None = None
) -> Server:
    """The server of a runtime or a workspace, for these callers."""
    workspace = where.workspace if isinstance(where, Runtime) else where
    tenants = Tenants(opening_of(workspace).database, (workspace,))
    return create_app(tenants, keys or Keys(*(callers or (caller(),))), settings)


def client(app: Server, access: str = "ann", **headers: str) -> httpx.AsyncClient:
    """A client with the key of this access; "" for none."""
    own: dict[str, Any] = {"authorization": f"Bearer key-{access}"} if access else {}
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=ADDRESS, headers=own | headers)
