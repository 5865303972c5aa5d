"""`ws.keys`: the provider keys of a workspace. They can be stored, and are never returned."""

from __future__ import annotations

from remit.core.checks import of_type
from remit.core.recovery import Resting
from remit.core.secret import Secret
from remit.engine.acts import act_of
from remit.engine.upkeep.keys import Coolings, Keys
from remit.errors import BadInput
from remit.ports import KeyInfo
from remit.runtime.opening import Opening


class KeyRing:
    """The provider keys of a workspace, encrypted with a master key that is not in its store.

    The master key is REMIT_MASTER_KEY in the environment, or in the file that REMIT_MASTER_KEY_FILE names.
    `System(vault=...)` sets another vault.
    """

    __slots__ = ("_opening",)

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    @property
    def _keys(self) -> Keys:
        settings = self._opening.settings
        return Keys(self._opening.ground, settings.vault, settings.redaction)

    async def set(self, name: str, secret: Secret, *, op: str = "", by: str = "") -> KeyInfo:
        """Store a key under the name of its provider, and replace an existing one. Return the facts about it. Pass the
        key as `Secret(...)`, so that nothing shows it on the way."""
        if not isinstance(secret, Secret):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may pass anything
            kind = type(secret).__name__
            del secret  # so that a traceback with local variables does not show it
            raise BadInput(f"a key is given as Secret(...), not as {kind}; nothing of it is shown here")
        return await self._keys.set(name, secret, act_of(op, by))

    async def remove(self, name: str, *, op: str = "", by: str = "") -> bool:
        """Delete the key of this name; the row is really removed. Return whether there was one."""
        return await self._keys.remove(name, act_of(op, by))

    async def names(self) -> list[KeyInfo]:
        """Return the facts about the stored keys, by name: the master key that encrypts each, and since when. No key is
        decrypted."""
        return await self._keys.names()

    async def rotate(self, *, op: str = "", by: str = "") -> int:
        """Encrypt all keys again that do not use the newest master key, in one transaction. Return their number."""
        return await self._keys.rotate(act_of(op, by))

    @property
    def cooling(self) -> CoolingList:
        """The keys and models on cooldown after a failure."""
        return CoolingList(self._opening)


class CoolingList:
    """The keys and models on cooldown: those that providers refused, limited, or could not serve."""

    __slots__ = ("_opening",)

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    async def list(self) -> list[Resting]:
        """Return the current cooldowns, the longest first."""
        return await Coolings(self._opening.ground).list()

    async def clear(self, what: str = "", *, op: str = "", by: str = "") -> int:
        """Clear cooldowns, so that keys and models can be used at once: all, or those of this model, endpoint or key
        digest. Return their number."""
        of_type(what, str, "what is the name of a model or of an endpoint, or the mark of a key")
        return await Coolings(self._opening.ground).clear(what, act_of(op, by))
