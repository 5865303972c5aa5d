"""The workspaces that a server serves: all of one database."""

from collections.abc import Iterable

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

    def opened(self) -> list[Workspace]:
        """Return the workspaces that are in use."""
        return [*self._workspaces.values()]
