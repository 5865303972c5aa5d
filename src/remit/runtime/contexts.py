"""`ws.context`: the shared context of a workspace, as its owner sees it."""

from functools import partial

from remit.core.bounds import TOP, Bounds
from remit.core.checks import of_type
from remit.core.values import SESSION_LIMIT, canonical, line
from remit.engine.acts import act_of
from remit.engine.context import Context, OwnerAccess
from remit.runtime.opening import Opening


class WorkspaceContext:
    """The entries of a workspace: `ws.context()` for all of them, `ws.context("a session")` for its board too."""

    __slots__ = ("_ceiling", "_opening")

    def __init__(self, opening: Opening, ceiling: Bounds) -> None:
        self._opening = opening
        self._ceiling = ceiling

    def __call__(
        self, session: str = "", *, asker: str = "", ceiling: Bounds = TOP, op: str = "", by: str = ""
    ) -> Context:
        """Return the entries of the workspace; with a session, its board too. With `op`, one change made through the
        returned context is one action, even if it is repeated; another change needs another `op`.

        With `asker`, these are the entries that the card of that agent may read and write; others raise `Refused`, and
        everything that it writes is untrusted. `ceiling` limits `sees` and `writes` further.
        """
        if session != "":
            line(session, "a session", SESSION_LIMIT)
        of_type(ceiling, Bounds, "ceiling takes Bounds(...)")
        engine, act = self._opening.engine, act_of(op, by)
        if asker == "" and ceiling is TOP:
            return Context(OwnerAccess(engine.entries, session, act))
        from remit.engine.taskless import TasklessAccess  # noqa: PLC0415 - for callers from outside only

        card = None if asker == "" else partial(engine.queue.card, canonical(asker))
        return Context(TasklessAccess(engine.entries, card, self._ceiling & ceiling, session, act))

    async def namespaces(self) -> dict[str, int]:
        """Return the namespaces, and the number of live entries in each."""
        now = self._opening.clock.now()
        return dict(await self._opening.records.browse(lambda view: view.namespaces(now)))

    async def cleanup(self, *, op: str = "", by: str = "") -> int:
        """Remove expired entries. Return their number."""
        return await self._opening.engine.entries.cleanup(act_of(op, by))
