"""Between a turn and the entries: every read is checked against what the holder sees and noted on its receipt."""

from typing import Protocol, cast

from remit.core import checks, scope
from remit.core import entry as entries
from remit.core.entry import Draft, Entry
from remit.core.scope import Scope
from remit.core.values import encode
from remit.engine.acts import ONCE, Act
from remit.engine.attempt.live import LiveTask
from remit.engine.sharing.entries import Authority, Entries
from remit.errors import Refused


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
        return await self._entries.put(draft, self._authority("set", draft.namespace, draft.key))

    async def get(self, namespace: str, key: str) -> Entry | None:
        return await self._entries.get(namespace, key)

    async def recent(self, wanted: list[Scope], limit: int) -> list[Entry]:
        return await self._entries.recent(wanted, checks.limit(limit))

    async def by_key(self, wanted: Scope, limit: int) -> list[Entry]:
        return await self._entries.by_key([wanted], checks.limit(limit))

    async def touch(self, namespace: str, key: str, by: int) -> bool:
        entries.address(namespace, key)
        return await self._entries.touch((namespace, key), by, self._authority("touch", namespace, key))

    async def remove(self, namespace: str, key: str) -> bool:
        entries.address(namespace, key)
        return await self._entries.remove(namespace, key, self._authority("remove", namespace, key))

    def _authority(self, verb: str, namespace: str, key: str) -> Authority:
        return self._entries.owner(self._act, verb, namespace, key)


class HolderAccess:
    """A holder in its turn: sees what its remit shows it."""

    def __init__(self, entries: Entries, live: LiveTask) -> None:
        self._entries = entries
        self._live = live

    @property
    def session(self) -> str:
        return self._live.remit.session

    async def put(self, draft: Draft) -> int:
        self._may_write(draft.namespace, draft.key)
        version = await self._put(draft)
        self._live.wrote[draft.namespace, draft.key] = scope.of_key(draft.namespace, draft.key)
        return version

    async def _put(self, draft: Draft) -> int:
        """Write, or find what was written when the task was run before. In a new try it is written again, unless it was
        to be written only over what it had read: that was so, and is not any more because it was written."""
        live = self._live
        what = draft.value if isinstance(draft.value, str) else encode(draft.value)
        ops = live.operations.ids("set", draft.namespace, draft.key, what, repr(draft.expect))
        if (
            draft.expect is not None
            and live.attempt.is_rerun
            and (done := await self._entries.done(ops, live.must_hold)) is not None
        ):
            return cast("int", done[0])
        return await self._entries.put(draft, Authority(live.writer, live.place, ops[0], live.must_hold))

    async def get(self, namespace: str, key: str) -> Entry | None:
        entries.address(namespace, key)
        self._may_see(namespace, key)
        entry = await self._entries.get(namespace, key, self._live.must_hold)
        if entry is not None:
            await self._all_seen([entry])
        return entry

    async def recent(self, wanted: list[Scope], limit: int) -> list[Entry]:
        parts = [part for one in wanted for part in self._visible(one)]
        return await self._all_seen(await self._entries.recent(parts, checks.limit(limit), self._live.must_hold))

    async def by_key(self, wanted: Scope, limit: int) -> list[Entry]:
        parts = self._visible(wanted)
        return await self._all_seen(await self._entries.by_key(parts, checks.limit(limit), self._live.must_hold))

    async def touch(self, namespace: str, key: str, by: int) -> bool:
        entries.address(namespace, key)
        self._may_see(namespace, key)
        self._may_write(namespace, key)
        return await self._entries.touch((namespace, key), by, self._authority("touch", namespace, key))

    async def remove(self, namespace: str, key: str) -> bool:
        entries.address(namespace, key)
        self._may_see(namespace, key)
        self._may_write(namespace, key)
        return await self._entries.remove(namespace, key, self._authority("remove", namespace, key))

    def _authority(self, what: str, *about: str) -> Authority:
        live = self._live
        return Authority(live.writer, live.place, live.op(what, *about), live.must_hold)

    async def _all_seen(self, seen: list[Entry]) -> list[Entry]:
        """Note on the receipt what was seen and why; memory that is read lives on."""
        live = self._live
        for entry in seen:
            live.receipt.entry(entry, live.why(entry.namespace, entry.key))
            if entry.extension is not None:
                await self._extend(entry)
        return seen

    async def _extend(self, entry: Entry) -> None:
        by = entries.read_extends(entry, self._entries.now())
        if by is not None:
            where = (entry.namespace, entry.key)
            await self._entries.touch(where, by, self._authority("extend", *where))

    def _visible(self, wanted: Scope) -> list[Scope]:
        """List the scopes through which the holder sees any of it; none is refused, not answered with nothing."""
        self._live.must_be_at_work()
        parts = scope.parts(self._live.sight, wanted)
        if not parts:
            raise self._unseen(str(wanted))
        return parts

    def _may_see(self, namespace: str, key: str) -> None:
        self._live.must_be_at_work()
        if not self._live.sees(namespace, key):
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
            where = f"{namespace}/{key}; its card's writes and the bounds of the run say where"
            sentence = f"'{holder}' may not write {where}"
            raise Refused(sentence, rule="not-writable")
