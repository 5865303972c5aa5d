"""The entries of a workspace, without asking who reads: for the engine and for the owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import methodcaller
from typing import Final, NamedTuple, TypeVar

from anyio.lowlevel import checkpoint

from remit.core import entry as entries
from remit.core.entry import Draft, Entry, Writer
from remit.core.events import Unsealed
from remit.core.kinds import Place, entries_removed, entry_set, entry_touched
from remit.core.scope import Scope
from remit.core.values import Json
from remit.engine.acts import ONCE, Act, ActContent
from remit.engine.ground import Ground
from remit.errors import Refused
from remit.ports import Decision, View

CLEANUP_BATCH: Final = 100  # entries removed in one step
_WRITES: Final = 50  # of one process, before one of them removes what has expired too


def anyone(_view: View) -> None:
    """Check nothing: nothing has to hold for what the owner does."""


_OWNER: Final = Writer("")
T = TypeVar("T")
_NOWHERE: Final = Place()


class Sight(NamedTuple):
    """Whether whoever writes sees what stands at the address, or that nothing does; and what says that it does not."""

    covers: Callable[[Entry | None], bool]
    unseen: Callable[[], Refused]

    def must_cover(self, entry: Entry | None) -> None:
        """Refuse what needs sight, with the same answer whether or not anything is there."""
        if not self.covers(entry):
            raise self.unseen()


class Authority(NamedTuple):
    """In whose name something is written, as part of what, under which operation, what has to hold for it, and what
    whoever writes can see; None for everything. `act` is an owner's, who may have an operation of its own."""

    by: Writer
    at: Place
    op: str
    check: Callable[[View], None] = anyone
    sight: Sight | None = None
    act: Act = ONCE


class Entries:
    """Every write is one event; every read sees only what is alive."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._store = ground.store
        self._clock = ground.clock
        self._writes = 0

    def now(self) -> int:
        return self._clock.now()

    def owner(self, act: Act) -> Authority:
        """Give the authority of the workspace's owner, who writes outside any run."""
        by = Writer("", person=act.by) if act.by else _OWNER
        return Authority(by, _NOWHERE, self._ground.ids.new(), act=act)

    async def _transact(
        self, authority: Authority, content: Callable[[], ActContent], decide: Callable[[View], Decision[T]]
    ) -> T:
        if not authority.act.op:  # nearly always
            return await self._store.tx(authority.op, decide)
        return (await authority.act.perform(self._ground, content(), decide)).answer

    async def done(self, ops: list[str], check: Callable[[View], None] = anyone) -> tuple[Json] | None:
        """Tell what the first of these operations that has happened answered."""

        def look(view: View) -> tuple[Json] | None:
            check(view)
            return next((done for op in ops if (done := view.done(op)) is not None), None)

        return await self._store.read(look)

    async def put(self, draft: Draft, authority: Authority) -> int:
        now = self._clock.now()
        self._writes += 1
        tidies = self._writes % _WRITES == 0

        def decide(view: View) -> Decision[int]:
            authority.check(view)
            entry = self._written(view, draft, authority, now)
            events = (entry_set(entry, authority.at, authority.by.person),)
            return Decision(entry.version, (*events, *self._expired(view, entry, now)) if tidies else events)

        return await self._transact(authority, lambda: _content_of(draft), decide)

    @staticmethod
    def _expired(view: View, written: Entry, now: int) -> tuple[Unsealed, ...]:
        """Remove some of what has expired along with a write: there may be no worker that does so. Each time more than
        was written since the last time, so that it does not add up."""
        where = (written.namespace, written.key)
        return _removed([gone for gone in view.expired(now, CLEANUP_BATCH) if gone[:2] != where], now)

    @staticmethod
    def _written(view: View, draft: Draft, authority: Authority, now: int) -> Entry:
        where = (draft.namespace, draft.key)
        old = view.entry(*where)
        if authority.sight is not None and not authority.sight.covers(_alive(old, now)):
            if draft.expect is not None:
                raise authority.sight.unseen()
            return entries.written_blind(draft, authority.by, now, authority.op)
        return entries.written(old, draft, authority.by, now, view.retired(*where) if old is None else entries.NEVER)

    async def get(self, namespace: str, key: str, check: Callable[[View], None] = anyone) -> Entry | None:
        entries.address(namespace, key)
        now = self._clock.now()

        def look(view: View) -> Entry | None:
            check(view)
            return view.entry(namespace, key)

        return _alive(await self._store.read(look), now)

    async def touch(self, where: tuple[str, str], by: int, authority: Authority) -> bool:
        now = self._clock.now()

        def decide(view: View) -> Decision[bool]:
            authority.check(view)
            old = view.entry(*where)
            if authority.sight is not None:
                authority.sight.must_cover(_alive(old, now))
            new = entries.touched(old, by, now)
            if new is None or new is old:
                return Decision(new is not None)
            return Decision(True, (entry_touched(new, authority.by, authority.at, now),))

        return await self._transact(
            authority, lambda: ActContent("context.touch", "/".join(where), [*where, by]), decide
        )

    async def remove(self, namespace: str, key: str, authority: Authority) -> bool:
        entries.address(namespace, key)
        now = self._clock.now()

        def decide(view: View) -> Decision[bool]:
            authority.check(view)
            old = _alive(view.entry(namespace, key), now)
            if authority.sight is not None:
                authority.sight.must_cover(old)
            if old is None:
                return Decision(False)
            gone = [(namespace, key, old.version)]
            return Decision(True, (entries_removed(gone, "removed", authority.by, authority.at, now),))

        where = (namespace, key)
        return await self._transact(authority, lambda: ActContent("context.remove", "/".join(where), [*where]), decide)

    async def recent(self, wanted: list[Scope], limit: int, check: Callable[[View], None] = anyone) -> list[Entry]:
        """List the most recently updated of all these scopes together, newest first."""
        now = self._clock.now()

        def look(view: View) -> list[Entry]:
            check(view)
            return [entry for one in wanted for entry in view.recent(one, now, limit)]

        rows = await self._store.read(look)
        if len(wanted) > 1:
            rows.sort(key=lambda e: (-e.updated_at, e.namespace, e.key))
        return rows[:limit]

    async def newest(
        self, wanted: Mapping[Scope, list[Scope]], limit: int, check: Callable[[View], None] = anyone
    ) -> dict[Scope, list[Entry]]:
        """Find the most recently updated entries of each scope, by the parts of it that are seen, in one read."""
        now = self._clock.now()

        def look(view: View) -> dict[Scope, list[Entry]]:
            check(view)
            return {
                one: [e for place in {part.address for part in parts} for e in view.recent(place, now, limit)]
                for one, parts in wanted.items()
            }

        found = await self._store.read(look)
        return {one: sorted(rows, key=lambda e: (-e.updated_at, e.key))[:limit] for one, rows in found.items()}

    async def by_key(self, wanted: list[Scope], limit: int, check: Callable[[View], None] = anyone) -> list[Entry]:
        now = self._clock.now()

        def look(view: View) -> list[Entry]:
            check(view)
            return [entry for one in wanted for entry in view.by_key(one, now, limit)]

        rows = await self._store.read(look)
        if len(wanted) > 1:
            rows.sort(key=lambda e: e.key)
        return rows[:limit]

    async def cleanup(self, act: Act = ONCE) -> int:
        """Remove what has expired; in small steps, between which others get to do something."""
        by, removed, step = Writer("", person=act.by), 0, 0
        until = (await act.perform(self._ground, ActContent("cleanup", ""), self._moment)).answer if act.op else None
        while True:
            now = self._clock.now() if until is None else until
            id_ = f"cleanup/{act.op}/{step}" if act.op else ""
            if id_ and (done := await self._store.read(methodcaller("done", id_))) is not None:
                removed += done[0]
            elif await self._store.read(methodcaller("expired", now, 1)):
                removed += await self._store.tx(id_ or self._ground.ids.new(), partial(_cleaned_up, now=now, by=by))
            else:
                return removed
            step += 1
            await checkpoint()

    def _moment(self, _view: View) -> Decision[int]:
        """Remember when it was asked for: repeated, it is about what had expired by then."""
        return Decision(self._clock.now())


def _content_of(draft: Draft) -> ActContent:
    where = (draft.namespace, draft.key)
    return ActContent(
        "context.set", "/".join(where), [*where, draft.value, draft.lifetime, draft.extend, draft.trust, draft.expect]
    )


def _cleaned_up(view: View, now: int, by: Writer) -> Decision[int]:
    keys = view.expired(now, CLEANUP_BATCH)
    return Decision(len(keys), _removed(keys, now, by))


def _removed(keys: list[tuple[str, str, int]], now: int, by: Writer = _OWNER) -> tuple[Unsealed, ...]:
    return (entries_removed(keys, "expired", by, _NOWHERE, now),) if keys else ()


def _alive(entry: Entry | None, now: int) -> Entry | None:
    return entry if entry is not None and entry.alive(now) else None
