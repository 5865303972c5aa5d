"""The entries of a workspace, without asking who reads: for the engine, the command line and the owner."""

from collections.abc import Callable
from typing import NamedTuple

from remit.core import entry as entries
from remit.core.entry import Draft, Entry, Writer
from remit.core.kinds import Place, entries_removed, entry_set, entry_touched
from remit.core.scope import Scope
from remit.ports import Clock, Decision, Ids, Store, View

CLEANUP_BATCH = 500


def anyone(_view: View) -> None:
    """Nothing has to hold for what its owner does."""


class Authority(NamedTuple):
    """In whose name something is written, as part of what, under which operation, and what has to hold for it."""

    by: Writer
    at: Place
    op: str
    check: Callable[[View], None] = anyone


class Entries:
    """Every write is one event; every read sees only what is alive."""

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self.store = store
        self.clock = clock
        self.ids = ids

    def owner(self) -> Authority:
        """What the owner of the workspace does, outside any run."""
        return Authority(Writer(""), Place(), self.ids.new())

    async def put(self, draft: Draft, act: Authority) -> int:
        now = self.clock.now()

        def decide(view: View) -> Decision[int]:
            act.check(view)
            made = entries.written(view.entry(draft.namespace, draft.key), draft, act.by, now)
            return Decision(made.version, (entry_set(made, act.at),))

        return await self.store.tx(act.op, decide)

    async def get(self, namespace: str, key: str) -> Entry | None:
        entries.address(namespace, key)
        now = self.clock.now()
        found = await self.store.read(lambda view: view.entry(namespace, key))
        return found if found is not None and found.alive(now) else None

    async def touch(self, where: tuple[str, str], by: int, act: Authority) -> bool:
        now = self.clock.now()

        def decide(view: View) -> Decision[bool]:
            act.check(view)
            old = view.entry(*where)
            new = entries.touched(old, by, now)
            if new is None or new is old:
                return Decision(new is not None)
            return Decision(True, (entry_touched(new, act.by, act.at, now),))

        return await self.store.tx(act.op, decide)

    async def remove(self, namespace: str, key: str, act: Authority) -> bool:
        entries.address(namespace, key)
        now = self.clock.now()

        def decide(view: View) -> Decision[bool]:
            act.check(view)
            old = view.entry(namespace, key)
            if old is None or not old.alive(now):
                return Decision(False)
            return Decision(True, (entries_removed([(namespace, key)], "removed", act.by, act.at, now),))

        return await self.store.tx(act.op, decide)

    async def recent(self, wanted: list[Scope], limit: int) -> list[Entry]:
        """The most recently updated of all these scopes together, newest first."""
        now = self.clock.now()
        found = await self.store.read(lambda view: [e for s in wanted for e in view.recent(s, now, limit)])
        if len(wanted) > 1:
            found.sort(key=lambda e: (-e.updated_at, e.namespace, e.key))
        return found[:limit]

    async def by_key(self, wanted: list[Scope], limit: int) -> list[Entry]:
        now = self.clock.now()
        found = await self.store.read(lambda view: [e for s in wanted for e in view.by_key(s, now, limit)])
        if len(wanted) > 1:
            found.sort(key=lambda e: e.key)
        return found[:limit]

    async def cleanup(self) -> int:
        """Removes what has expired; in batches, so that it never holds the store for long."""
        removed = 0
        while True:
            gone = await self._cleanup_once()
            removed += gone
            if gone < CLEANUP_BATCH:
                return removed

    async def _cleanup_once(self) -> int:
        now = self.clock.now()

        def decide(view: View) -> Decision[int]:
            keys = view.expired(now, CLEANUP_BATCH)
            facts = (entries_removed(keys, "expired", Writer(""), Place(), now),) if keys else ()
            return Decision(len(keys), facts)

        return await self.store.tx(self.ids.new(), decide)
