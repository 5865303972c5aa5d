"""Between a turn and the entries: every read is checked against what the holder sees and noted on its receipt, every
write against where it may write."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeAlias, cast

from remit.core import checks, scope
from remit.core import entry as entries
from remit.core.entry import Draft, Entry
from remit.core.scope import Scope
from remit.core.trust import TRUSTED, UNTRUSTED
from remit.core.values import encode
from remit.engine.acts import ONCE, Act
from remit.engine.attempt.live import LiveTask
from remit.engine.sharing.entries import Authority, Entries, Sight
from remit.errors import Refused
from remit.ports import View

Fetch: TypeAlias = Callable[[list[Scope], int, Callable[[View], None]], Awaitable[list[Entry]]]


class Access(Protocol):
    """What `turn.context` and the board work with."""

    @property
    def session(self) -> str: ...
    async def put(self, draft: Draft) -> int: ...
    async def get(self, namespace: str, key: str) -> Entry | None: ...
    async def recent(self, wanted: list[Scope], limit: int) -> list[Entry]: ...
    async def by_key(self, wanted: Scope, limit: int) -> list[Entry]: ...
    async def touch(self, namespace: str, key: str, by: int) -> bool: ...
    async def remove(self, namespace: str, key: str) -> bool: ...


class OwnerAccess:
    """The person who owns the workspace: sees and writes all of it, outside any run."""

    def __init__(self, entries: Entries, session: str, act: Act = ONCE) -> None:
        self._entries = entries
        self._act = act
        self.session = session

    async def put(self, draft: Draft) -> int:
        return await self._entries.put(draft, self._authority())

    async def get(self, namespace: str, key: str) -> Entry | None:
        return await self._entries.get(namespace, key)

    async def recent(self, wanted: list[Scope], limit: int) -> list[Entry]:
        return await self._entries.recent(wanted, checks.limit(limit))

    async def by_key(self, wanted: Scope, limit: int) -> list[Entry]:
        return await self._entries.by_key([wanted], checks.limit(limit))

    async def touch(self, namespace: str, key: str, by: int) -> bool:
        entries.address(namespace, key)
        return await self._entries.touch((namespace, key), by, self._authority())

    async def remove(self, namespace: str, key: str) -> bool:
        entries.address(namespace, key)
        return await self._entries.remove(namespace, key, self._authority())

    def _authority(self) -> Authority:
        return self._entries.owner(self._act)


class HolderAccess:
    """A holder in its turn: sees and writes what its remit lets it."""

    def __init__(self, entries: Entries, live: LiveTask) -> None:
        self._entries = entries
        self._live = live

    @property
    def session(self) -> str:
        return self._live.remit.session

    async def put(self, draft: Draft) -> int:
        self._may_write(draft.namespace, draft.key)
        live = self._live
        if live.says != draft.trust == TRUSTED:
            draft = replace(draft, trust=UNTRUSTED)
        version = await self._put(draft)
        live.has_written(draft.namespace, draft.key, version)
        return version

    async def _put(self, draft: Draft) -> int:
        """Write, or find what was written when the task was run before. In a new try it is written again, unless it was
        to be written only over what it had read: that was so, and is not any more because it was written."""
        live, where = self._live, (draft.namespace, draft.key)
        what = draft.value if isinstance(draft.value, str) else encode(draft.value)
        ops = live.operations.ids("set", *where, what, repr(draft.expect))
        if (
            draft.expect is not None
            and live.attempt.is_rerun
            and (done := await self._entries.done(ops, live.must_hold)) is not None
        ):
            return cast("int", done[0])
        return await self._entries.put(draft, self._authority(ops[0], where))

    async def get(self, namespace: str, key: str) -> Entry | None:
        entries.address(namespace, key)
        self._may_look(namespace, key)
        entry = await self._entries.get(namespace, key, self._live.must_hold)
        if not self._live.sees(namespace, key, entry):
            raise self._unseen(f"{namespace}/{key}")
        if entry is not None:
            await self._all_seen([entry])
        return entry

    async def recent(self, wanted: list[Scope], limit: int) -> list[Entry]:
        return await self._look(wanted, limit, self._entries.recent)

    async def by_key(self, wanted: Scope, limit: int) -> list[Entry]:
        return await self._look([wanted], limit, self._entries.by_key)

    async def newest(self, wanted: list[Scope], limit: int) -> dict[Scope, list[Entry]]:
        """Find the newest entries that the holder sees of each of these scopes, in one read. None is on the receipt
        before it is noted with `note`."""
        seen = {one: parts for one in wanted if (parts := scope.parts(self._live.sight, one))}
        if not seen:
            return {}
        found = await self._entries.newest(seen, limit, self._live.must_hold)
        return {
            one: [entry for entry in entries if self._live.sees(entry.namespace, entry.key, entry)]
            for one, entries in found.items()
        }

    async def note(self, taken: list[Entry]) -> None:
        """Note on the receipt what the holder is told of what `newest` found."""
        await self._all_seen(taken)

    async def touch(self, namespace: str, key: str, by: int) -> bool:
        entries.address(namespace, key)
        self._may_write(namespace, key)
        where = (namespace, key)
        return await self._entries.touch(where, by, self._authority(self._live.op("touch", *where), where))

    async def remove(self, namespace: str, key: str) -> bool:
        entries.address(namespace, key)
        self._may_write(namespace, key)
        where = (namespace, key)
        return await self._entries.remove(namespace, key, self._authority(self._live.op("remove", *where), where))

    def _authority(self, op: str, where: tuple[str, str]) -> Authority:
        live = self._live
        unseen = partial(self._unseen, "/".join(where))
        return Authority(live.writer, live.place, op, live.must_hold, Sight(partial(live.sees, *where), unseen))

    async def _look(self, wanted: list[Scope], limit: int, fetch: Fetch) -> list[Entry]:
        """Fetch what is seen of several scopes. A version that it sees and that is gone leaves no gap in the list."""
        parts = _addresses(part for one in wanted for part in self._visible(one))
        most = checks.limit(limit)
        while True:
            found = await fetch(parts, most, self._live.must_hold)
            gone = {(one.namespace, one.key) for one in found if not self._live.sees(one.namespace, one.key, one)}
            if not gone:
                return await self._all_seen(found)
            parts = [part for part in parts if (part.namespace, part.key) not in gone]

    async def _all_seen(self, seen: list[Entry]) -> list[Entry]:
        """Note on the receipt what was seen and why, and how far it is trusted; memory that is read lives on."""
        live = self._live
        for entry in seen:
            live.take(entry.trust)
            live.receipt.entry(entry, live.why(entry))
            if entry.extension is not None:
                await self._extend(entry)
        return seen

    async def _extend(self, entry: Entry) -> None:
        by = entries.read_extends(entry, self._entries.now())
        if by is not None:
            where = (entry.namespace, entry.key)
            await self._entries.touch(where, by, self._authority(self._live.op("extend", *where), where))

    def _visible(self, wanted: Scope) -> list[Scope]:
        """List the scopes through which the holder sees any of it; none is refused, not answered with nothing."""
        self._live.must_be_at_work()
        parts = scope.parts(self._live.sight, wanted)
        if not parts:
            raise self._unseen(str(wanted))
        return parts

    def _may_look(self, namespace: str, key: str) -> None:
        self._live.must_be_at_work()
        if not self._live.may_see(namespace, key):
            raise self._unseen(f"{namespace}/{key}")

    def _unseen(self, what: str) -> Refused:
        # The same sentence whether or not anything is there: what is withheld leaves no trace.
        self._live.receipt.withhold(what, "asked for, not passed")
        holder = self._live.remit.holder
        sentence = f"'{holder}' does not see {what}; its asker can pass it with sees=[...], or its card can read it"
        return Refused(sentence, rule="not-visible")

    def _may_write(self, namespace: str, key: str) -> None:
        self._live.must_be_at_work()
        if not scope.covers(self._live.reach, namespace, key):
            holder = self._live.remit.holder
            how = "its asker can pass it with writes=[...], or its card can write it"
            raise Refused(f"'{holder}' may not write {namespace}/{key}; {how}", rule="not-writable")


def _addresses(seen: Iterable[Scope]) -> list[Scope]:
    """Say where to look, each place once: of one entry several versions may be seen."""
    return [*dict.fromkeys(one.address for one in seen)]
