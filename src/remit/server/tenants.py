"""The workspaces that a server serves: all of one database."""

import asyncio
from collections.abc import Iterable

import anyio

from remit.ports import Database
from remit.runtime.workspace import Workspace


class Tenants:
    """The workspaces of one database, made on first use. `own` are those that this process runs itself, with their
    agents."""

    def __init__(self, database: Database, own: Iterable[Workspace] = ()) -> None:
        self.database = database
        self._workspaces = {workspace.name: workspace for workspace in own}

    def workspace(self, name: str) -> Workspace:
        """Return the workspace of this name. The name comes from a key, never from a request."""
        found = self._workspaces.get(name)
        if found is None:
            found = self._workspaces[name] = Workspace(self.database, name)
        return found

    def workspaces(self) -> list[Workspace]:
        """Return the workspaces that are in use."""
        return [*self._workspaces.values()]


async def workspaces_of(database: Database) -> list[str]:
    """Return the names of the workspaces. The database is read in a thread: if it is unreachable, the event loop must
    not wait for it. If the caller is cancelled, wait for the thread to end, because the database is closed right after
    that."""
    if not database.lasting:
        return database.workspaces()
    reading = asyncio.get_running_loop().run_in_executor(None, database.workspaces)
    try:
        return await asyncio.shield(reading)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):
            await asyncio.wait([reading])
        if not reading.cancelled():
            reading.exception()  # retrieve the exception: otherwise asyncio logs it as never retrieved
        raise
