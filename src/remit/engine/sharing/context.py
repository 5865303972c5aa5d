"""`turn.context`: shared entries as a holder sees them. And its session's board."""

from collections.abc import Iterable
from typing import Any, cast

from remit.core import entry as entries
from remit.core.checks import items
from remit.core.entry import MEMORY, Draft, Entry
from remit.core.scope import BOARD_PREFIX, Scope, board_of
from remit.core.text import shown
from remit.core.times import SECOND, span
from remit.core.trust import Trust
from remit.core.values import Json
from remit.engine.sharing.access import Access
from remit.errors import BadInput

_QUARTER = MEMORY / SECOND


class Context:
    """What the holder may see, and nothing else. Reading what it may not see is refused with a sentence."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def set(
        self,
        namespace: str,
        key: str,
        value: Json,
        ttl: float | None = None,
        *,
        trust: Trust = "trusted",
        expect: int | None = None,
    ) -> int:
        """Write an entry for `ttl` seconds, or for good, and give back its version.

        With `expect=N` only if it is still at version N, and with `expect=0` only if it is not there yet.
        `trust="untrusted"` marks what came from strangers: models see it quoted, and reading never prolongs it.
        """
        lifetime = entries.lifetime(ttl)
        return await self._access.put(Draft(_own(namespace), key, value, lifetime, trust=trust, expect=expect))

    async def set_with_extension(self, namespace: str, key: str, value: Json, ttl: float = _QUARTER) -> int:
        """Write a memory: it lives for `ttl` seconds, 90 days unless told otherwise, and as long again when read."""
        return await self._access.put(Draft(_own(namespace), key, value, span(ttl, "ttl"), extend=True))

    async def get(self, namespace: str, key: str, default: Any = None) -> Any:
        """Give the value, or `default` if there is none."""
        found = await self._access.get(_own(namespace), key)
        return default if found is None else found.value

    async def entry(self, namespace: str, key: str) -> Entry | None:
        """Give the value with its author, version and times."""
        return await self._access.get(_own(namespace), key)

    async def get_structured(self, namespace: str, key: str, default: Any = None) -> Any:
        """Give the value as JSON, also when it was stored as text; a clear error if it is not JSON."""
        found = await self._access.get(_own(namespace), key)
        return default if found is None else entries.structured(found)

    async def query(self, namespace: str, limit: int = 100) -> list[Entry]:
        """List the entries of a namespace, most recently updated first."""
        return await self._access.recent([Scope(_own(namespace))], limit)

    async def query_many(self, namespaces: Iterable[str], limit: int = 100) -> list[Entry]:
        """List the entries of several namespaces together, most recently updated first."""
        if isinstance(namespaces, str):
            raise BadInput("query_many takes a list of namespaces; for one, say query(namespace)")
        given = items(namespaces, "query_many takes a list of namespaces")
        wanted = dict.fromkeys(Scope(_own(cast("str", one))) for one in given)
        return await self._access.recent([*wanted], limit)

    async def query_by_prefix(self, namespace: str, prefix: str, limit: int = 100) -> list[Entry]:
        """List the entries whose key begins with exactly this text, in order of their keys."""
        return await self._access.by_key(Scope(_own(namespace), prefix=prefix), limit)

    async def touch(self, namespace: str, key: str, ttl: float = _QUARTER) -> bool:
        """Let an entry live for at least `ttl` seconds more, without rewriting it; False if it is gone."""
        return await self._access.touch(_own(namespace), key, span(ttl, "ttl"))

    async def remove(self, namespace: str, key: str) -> bool:
        """Remove an entry; False if there was none."""
        return await self._access.remove(_own(namespace), key)

    @property
    def board(self) -> "Board":
        """The entries of this session, for those who were given `remit.BOARD`."""
        return Board(self._access)


class Board:
    """Entries that belong to one session. The boards of two sessions never mix."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._namespace = board_of(access.session).namespace

    async def write(self, key: str, value: Json, ttl: float | None = None) -> int:
        """Put something on the board under the holder's name."""
        return await self._access.put(Draft(self._namespace, key, value, entries.lifetime(ttl)))

    async def read(self, key: str, default: Any = None) -> Any:
        """Give the value, or `default`: a missing key is an answer, not an error."""
        found = await self._access.get(self._namespace, key)
        return default if found is None else found.value

    async def entry(self, key: str) -> Entry | None:
        """Give what stands on the board under that key, with its author, version and trust."""
        return await self._access.get(self._namespace, key)

    async def list(self, limit: int = 1_000) -> list[Entry]:
        """List everything on the board, in order of the keys."""
        return await self._access.by_key(Scope(self._namespace), limit)

    async def delete(self, key: str) -> bool:
        """Take something off the board; False if it was not there."""
        return await self._access.remove(self._namespace, key)

    async def snapshot(self) -> str:
        """Give the board as text, a line an entry, with authors."""
        return entries.snapshot(await self.list())


def _own(namespace: str) -> str:
    """Refuse a board's namespace: boards are reached through `context.board`, each session its own."""
    if isinstance(namespace, str) and namespace.startswith(BOARD_PREFIX):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"namespace {shown(namespace)} is a session's board; use turn.context.board")
    return namespace
