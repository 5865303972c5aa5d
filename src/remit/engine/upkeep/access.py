"""Access for callers from outside: making and revoking keys of which the store has only digests."""

from __future__ import annotations

import secrets
from typing import Final, NamedTuple

from remit.core.access import ID_BYTES, SECRET_BYTES, AccessInfo, MadeAccess, expiry, info, key_of
from remit.core.bounds import Bounds
from remit.core.identity import AccessRow
from remit.core.kinds.workspace import access_made, access_revoked
from remit.core.values import Json, encode
from remit.engine.acts import ONCE, Act, ActContent
from remit.engine.ground import Ground
from remit.errors import BadInput, Conflict, NotFound
from remit.ports import Decision, View

MOST: Final = 1_000  # active ones of one workspace


class WantedAccess(NamedTuple):
    """An access key as its owner wants it; `expires` as it was given."""

    name: str
    scopes: tuple[str, ...]
    agent: str
    bounds: Bounds
    expires: object


class Accesses(NamedTuple):
    """The keys with which programs outside call a workspace."""

    ground: Ground

    async def make(self, wanted: WantedAccess, act: Act = ONCE) -> MadeAccess:
        """Create an access key and return it with its text, which is in no event and no row.

        The key is random, so it cannot be returned again under the same operation: `Conflict` says so.
        """
        given, key = key_of(secrets.token_bytes(ID_BYTES), secrets.token_bytes(SECRET_BYTES))

        def decide(view: View) -> Decision[str]:
            now = self.ground.clock.now()
            if sum(row.lives(now) for row, _ in view.accesses()) >= MOST:
                raise BadInput(f"a workspace has at most {MOST:,} active access keys; revoke those that are not needed")
            row = AccessRow(
                *(given.id, given.digest, wanted.name, " ".join(wanted.scopes), wanted.agent),
                *(encode(wanted.bounds.data), expiry(wanted.expires, now), now, act.by, None, ""),
            )
            return Decision(given.id, (access_made(row),), aside=info(row, None, now))

        expires = None if wanted.expires is None else str(wanted.expires)
        body: list[Json] = [[*wanted.scopes], wanted.agent, wanted.bounds.data, expires]
        id_, made = await act.perform(self.ground, ActContent("access.make", wanted.name, body), decide)
        if made is None:
            raise Conflict(
                f"this operation created the access key {id_} before, and it was shown then; if it is lost, revoke it "
                "and create another one under a new operation id"
            )
        return MadeAccess(made, key)

    async def revoke(self, id_: str, act: Act = ONCE) -> bool:
        """Revoke an access key. Return whether this changed anything."""

        def decide(view: View) -> Decision[bool]:
            found = view.access(id_)
            if found is None:
                raise NotFound(f"there is no access '{id_}'; `remit access ls` lists those of the workspace")
            row, _ = found
            if row.revoked_at is not None:
                return Decision(False)
            return Decision(True, (access_revoked(id_, row.name, act.by, self.ground.clock.now()),))

        return (await act.perform(self.ground, ActContent("access.revoke", id_), decide)).answer

    async def list(self) -> list[AccessInfo]:
        """Return all access keys, also the revoked and expired ones, the earliest first."""
        rows, now = await self.ground.store.read(lambda view: view.accesses()), self.ground.clock.now()
        return sorted((info(row, used_at, now) for row, used_at in rows), key=lambda one: (one.made_at, one.id))
