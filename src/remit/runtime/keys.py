"""A workspace's own keys as its owner sees them: they go in, and are not given out again."""

from remit.core.checks import of_type
from remit.core.recovery import Resting
from remit.core.secret import Secret
from remit.engine.acts import act_of
from remit.errors import BadInput
from remit.ports import KeyInfo
from remit.runtime.opening import Opening


class KeyRing:
    """The keys of a workspace to providers, sealed with a master key that is not in its store.

    The master key is REMIT_MASTER_KEY of the environment, or in the file that REMIT_MASTER_KEY_FILE names, or
    `System(vault=...)` brings another vault.
    """

    __slots__ = ("_opening",)

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    async def set(self, name: str, secret: Secret, *, op: str = "", by: str = "") -> KeyInfo:
        """Keep a key under the name of its provider, in the place of the one that was there: `Secret(...)` holds it, so
        that nothing shows it on the way."""
        if not isinstance(secret, Secret):  # pyright: ignore[reportUnnecessaryIsInstance] - people write what they write
            kind = type(secret).__name__
            del secret  # a traceback that lists variables must not show it
            raise BadInput(f"a key is given as Secret(...), not as {kind}; nothing of it is shown here")
        return await self._opening.engine.keys.set(name, secret, act_of(op, by))

    async def remove(self, name: str, *, op: str = "", by: str = "") -> bool:
        """Keep the key of this name no more: it is deleted, not marked. Tells whether there was one."""
        return await self._opening.engine.keys.remove(name, act_of(op, by))

    async def names(self) -> list[KeyInfo]:
        """List the keys there are, by name: with which master key each is sealed, and since when. None is opened."""
        return await self._opening.engine.keys.names()

    async def rotate(self, *, op: str = "", by: str = "") -> int:
        """Seal anew whatever is not sealed with the newest master key; tells how many. All of them, or none."""
        return await self._opening.engine.keys.rotate(act_of(op, by))


class CoolingList:
    """The keys and models that rest after a failure: those that providers refused, limited, or could not serve."""

    __slots__ = ("_opening",)

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    async def list(self) -> list[Resting]:
        """List what rests now, the longest first."""
        return await self._opening.engine.coolings.list()

    async def clear(self, what: str = "", *, op: str = "", by: str = "") -> int:
        """Let keys and models be asked again at once: all of them, or those of this model, endpoint or mark of a key.
        Returns how many there were."""
        of_type(what, str, "what is the name of a model or of an endpoint, or the mark of a key")
        return await self._opening.engine.coolings.clear(what, act_of(op, by))


class HasKeys:
    """What has keys of its own."""

    _opening: Opening

    @property
    def keys(self) -> KeyRing:
        """Its own keys to providers: put in, listed, removed and sealed anew, and never given out."""
        return KeyRing(self._opening)

    @property
    def cooling(self) -> CoolingList:
        """Keys and models that rest after a failure: listed, and cleared."""
        return CoolingList(self._opening)
