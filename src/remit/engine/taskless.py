"""Access to entries without a task: for callers from outside, in the name of a card and within their bounds."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from remit.core import checks, scope
from remit.core import entry as entries
from remit.core import remit as remits
from remit.core.bounds import Bounds
from remit.core.card import Card
from remit.core.entry import Draft, Entry, Writer
from remit.core.remit import Origin, Pass
from remit.core.scope import Scope, Sees
from remit.core.trust import UNTRUSTED
from remit.core.values import Json
from remit.engine.acts import Act
from remit.engine.context import (
    Authority,
    Carries,
    Entries,
    Fetch,
    Sight,
    anyone,
    not_visible,
    not_writable,
    only_seen,
)
from remit.errors import Refused


class TasklessRights(NamedTuple):
    """The rights of a caller that holds no task. They are those of `card`, or of the owner if `card` is None, narrowed
    by the ceiling."""

    card: Card | None
    sees: Sees
    writes: Sees

    def sees_entry(self, namespace: str, key: str, entry: Entry | None) -> bool:
        """Whether the caller may see this entry. If `entry` is None, whether it may see that there is no entry."""
        return scope.covers(self.sees, namespace, key, None if entry is None else entry.version)

    def unseen(self, what: str) -> Refused:
        name = "" if self.card is None else self.card.name
        return not_visible(name, what)

    def must_write(self, namespace: str, key: str) -> None:
        if not scope.covers(self.writes, namespace, key):
            raise not_writable("" if self.card is None else self.card.name, f"{namespace}/{key}")


class TasklessAccess:
    """The access of a caller that holds no task, such as one from outside: what its card permits, within the ceiling.
    What a card writes is untrusted. The card is looked up each time, because its owner may change it."""

    def __init__(
        self, entries: Entries, card: Callable[[], Awaitable[Card]] | None, ceiling: Bounds, session: str, act: Act
    ) -> None:
        self._entries = entries
        self._card = card
        self._ceiling = ceiling
        self._act = act
        self.session = session

    async def put(self, draft: Draft) -> int:
        caller, where = await self._caller(), (draft.namespace, draft.key)
        caller.must_write(*where)
        if caller.card is not None:
            draft = replace(draft, trust=UNTRUSTED)
        return await self._entries.put(draft, self._authority(caller, where), self._carries(draft.value, caller))

    async def get(self, namespace: str, key: str) -> Entry | None:
        entries.address(namespace, key)
        caller = await self._caller()
        entry = await self._entries.get(namespace, key)
        if not caller.sees_entry(namespace, key, entry):
            raise caller.unseen(f"{namespace}/{key}")
        return entry

    async def recent(self, wanted: list[Scope], limit: int) -> list[Entry]:
        return await self._look(wanted, limit, self._entries.recent)

    async def by_key(self, wanted: Scope, limit: int) -> list[Entry]:
        return await self._look([wanted], limit, self._entries.by_key)

    async def touch(self, namespace: str, key: str, by: int) -> bool:
        authority = await self._writing(namespace, key)
        return await self._entries.touch((namespace, key), by, authority)

    async def remove(self, namespace: str, key: str) -> bool:
        return await self._entries.remove(namespace, key, await self._writing(namespace, key))

    async def _caller(self) -> TasklessRights:
        bounds = self._ceiling.on_board(self.session)
        if self._card is None:
            return TasklessRights(None, bounds.sees, bounds.writes)
        card = await self._card()
        outside = remits.begin(Origin("", "", self.session), Pass(card.name, "read and write"), bounds)
        return TasklessRights(card, remits.sight(outside, card), remits.reach(outside, card))

    async def _writing(self, namespace: str, key: str) -> Authority:
        entries.address(namespace, key)
        caller = await self._caller()
        caller.must_write(namespace, key)
        return self._authority(caller, (namespace, key))

    def _authority(self, caller: TasklessRights, where: tuple[str, str]) -> Authority:
        owner = self._entries.owner(self._act)
        sight = Sight(partial(caller.sees_entry, *where), partial(caller.unseen, "/".join(where)))
        if caller.card is None:
            return owner._replace(sight=sight)
        name = caller.card.name
        return owner._replace(by=Writer(name, chain=(name,), person=self._act.by), sight=sight)

    def _carries(self, value: Json, caller: TasklessRights) -> Carries | None:
        if caller.card is None:
            return self._entries.carries(value, None)
        return self._entries.carries_in_entries(value, caller.card.name, caller.sees_entry)

    async def _look(self, wanted: list[Scope], limit: int, fetch: Fetch) -> list[Entry]:
        caller, parts = await self._caller(), list[Scope]()
        for one in wanted:
            seen = scope.parts(caller.sees, one)
            if not seen:
                raise caller.unseen(str(one))
            parts += seen
        return await only_seen(parts, caller.sees_entry, lambda places: fetch(places, checks.limit(limit), anyone))
