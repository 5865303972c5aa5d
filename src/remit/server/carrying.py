"""Sending events to the hooks of all workspaces that a server serves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio

from remit.core.values import RESERVED
from remit.errors import StoreError
from remit.ports import Database, View
from remit.runtime.delivering import carry_hooks
from remit.runtime.runtime import Runtime
from remit.runtime.workspace import opening_of
from remit.server.tenants import Tenants, workspaces_of

_LEAST: Final = 1.0  # seconds between two looks for new hooks
_EACH: Final = 0.01  # more seconds for each workspace, so that many of them do not keep the server busy

_log = logging.getLogger("remit")


@asynccontextmanager
async def carrying(tenants: Tenants, but: str = "") -> AsyncGenerator[None]:
    """Send the events of every workspace of the database to its hooks while the body runs; `but` is a workspace whose
    hooks a worker of this process carries already."""
    task = asyncio.create_task(_carry(tenants, but))
    try:
        yield
    finally:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task])


async def _carry(tenants: Tenants, but: str) -> None:
    """Deliver the hooks of all workspaces. A workspace gets a follower with its first hook; one without hooks costs a
    short poll."""
    carried = {but}
    async with anyio.create_task_group() as group:
        while True:
            names: list[str] = []
            try:
                names = await _workspaces(tenants.database)
                for name in names:
                    if name not in carried and await tenants.database.store(name).read(_has_hooks):
                        carried.add(name)
                        group.start_soon(carry_hooks, opening_of(tenants.workspace(name)), Runtime)
            except StoreError as error:
                _log.warning("the hooks of workspaces cannot be read, trying again: %s", error)
            await anyio.sleep(_LEAST + _EACH * len(names))


async def _workspaces(database: Database) -> list[str]:
    """Return the names of the workspaces of the database, without reserved names."""
    return [name for name in await workspaces_of(database) if not name.startswith(RESERVED)]


def _has_hooks(view: View) -> bool:
    return bool(view.hooks())
