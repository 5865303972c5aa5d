"""`ws.context`: the shared context of a workspace, as its owner sees it."""

from remit.core.values import SESSION_LIMIT, line
from remit.engine.acts import act_of
from remit.engine.context import Context, OwnerAccess
from remit.runtime.opening import Opening


class WorkspaceContext:
    """The entries of a workspace: `ws.context()` for all of them, `ws.context("a session")` for its board too."""

    __slots__ = ("_opening",)

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def __call__(self, session: str = "", *, op: str = "", by: str = "") -> Context:
        """Return the entries of the workspace; with a session, its board too. With `op`, one change made through the
        returned context is one action, even if it is repeated; another change needs another `op`."""
        if session != "":
            line(session, "a session", SESSION_LIMIT)
        return Context(OwnerAccess(self._opening.engine.entries, session, act_of(op, by)))

    async def namespaces(self) -> dict[str, int]:
        """Return the namespaces, and the number of live entries in each."""
        now = self._opening.clock.now()
        return dict(await self._opening.records.browse(lambda view: view.namespaces(now)))

    async def cleanup(self, *, op: str = "", by: str = "") -> int:
        """Remove expired entries. Return their number."""
        return await self._opening.engine.entries.cleanup(act_of(op, by))
