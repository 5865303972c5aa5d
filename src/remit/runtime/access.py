"""`ws.access`: the keys with which programs outside call a workspace."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from remit.core import access as core
from remit.core.access import AccessInfo, MadeAccess, wrong_id
from remit.core.bounds import TOP, Bounds
from remit.core.checks import of_type
from remit.core.values import NAME_LIMIT, canonical, line
from remit.engine.acts import act_of
from remit.engine.upkeep.access import Accesses, WantedAccess
from remit.errors import BadInput
from remit.runtime.opening import Opening


class WorkspaceAccess:
    """The keys with which programs outside call a workspace through `remit serve`. Each opens this workspace only.

    A key is shown when it is made. The store keeps its SHA-256.
    """

    __slots__ = ("_opening",)

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    @property
    def _accesses(self) -> Accesses:
        return Accesses(self._opening.ground)

    async def make(
        self,
        name: str,
        *,
        scopes: str | Iterable[str] = "run",
        expires: timedelta | float | datetime | None = None,
        agent: str = "",
        bounds: Bounds = TOP,
        op: str = "",
        by: str = "",
    ) -> MadeAccess:
        """Create an access key: `made = await ws.access.make("ci", scopes="run", expires=timedelta(days=90))`. Its
        text is `made.key.reveal()`. It is shown only now.

        `scopes` are "read", "run" (includes read), "approve" (includes read) and "admin" (includes all). `expires` is a
        timedelta, a number of seconds, or an aware datetime; None makes an access key that does not expire. With
        `agent`, its requests are made in the name of that agent's card. `bounds` limit everything that is requested
        with it."""
        wanted = WantedAccess(
            line(name, "the name of an access key", NAME_LIMIT),
            core.scopes(scopes),
            canonical(agent) if agent != "" else "",
            of_type(bounds, Bounds, "bounds is a Bounds(...)"),
            expires,
        )
        return await self._accesses.make(wanted, act_of(op, by))

    async def list(self) -> list[AccessInfo]:
        """Return all access keys, also the revoked and expired ones, the earliest first."""
        return await self._accesses.list()

    async def revoke(self, id: str, *, op: str = "", by: str = "") -> bool:
        """Revoke an access key: every server refuses it within a second. Return whether this changed anything. Raise
        `NotFound` if there is none with this id."""
        if wrong := wrong_id(id):
            del id  # so that a traceback with local variables does not show it
            raise BadInput(wrong)
        return await self._accesses.revoke(id, act_of(op, by))
