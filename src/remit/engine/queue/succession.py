"""What processes left behind that are gone: freed as soon as someone is refused for want of it.

A worker takes over from a process that is gone within seconds. Where no worker runs, nobody would: a killed script
would keep its money and its slots. So every refusal for want of money or of a slot looks first whether a holder is
gone, frees what it held by the rules of recovery, and is judged once more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final, TypeVar

from remit.core.events import Unsealed
from remit.core.guards import BUSY
from remit.core.record import Record
from remit.engine.consequences import ended_unrun
from remit.engine.door.parking import parts
from remit.engine.ground import StoreAround
from remit.engine.presence.peers import Peers
from remit.engine.queue.losses import all_left_behind
from remit.errors import Refused
from remit.ports import NOTHING, Beat, Clock, Decide, Decided, Decision, Ids, Store, View, Wants

T = TypeVar("T")

MONEY: Final = frozenset(("credits", "tier"))
SCARCE: Final = frozenset((BUSY, *MONEY))
_PAGE: Final = 500
_NEEDED: Final = "the process that ran it is gone, and its money was needed"

_log = logging.getLogger("remit")


class HeldByGone(Refused):
    """Something is refused that a process holds which is gone. It is freed, and the decision is made once more."""


class Succession(StoreAround):
    """A store in which nothing is refused because of a process that is gone. `own` is the worker of this process."""

    __slots__ = ("_clock", "_ids", "_peers", "_tried", "own")

    def __init__(self, store: Store, clock: Clock, ids: Ids, peers: Peers) -> None:
        super().__init__(store)
        self.own = ""
        self._clock = clock
        self._ids = ids
        self._peers = peers
        self._tried: set[str] = set()  # those that were taken over from here; what is left of them waits for others

    async def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> T:
        try:
            return await self._store.tx(op, decide, wants)
        except Refused as error:
            if not await self._changed_since(error):
                raise
        return await self.tx(op, decide, wants)

    async def transact(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Decided[T]:
        try:
            return await self._store.transact(op, decide, wants)
        except Refused as error:
            if not await self._changed_since(error):
                raise
        return await self.transact(op, decide, wants)

    def check(self, view: View, rule: str, sentence: str) -> None:
        """Stop a decision that is about to refuse something, if freeing what the gone ones hold may help."""
        if rule in SCARCE and (self._gone(view) or (rule in MONEY and any(_kept_for_nobody(view)))):
            raise HeldByGone(sentence, rule=rule)

    async def relieve(self, rule: str = BUSY) -> bool:
        """Free what processes hold that are gone, and for want of money what is kept for programs that are; tells
        whether there was anything."""
        gone = await self._store.read(self._gone)
        for beat in gone:
            await take_over(self._store, self._ids, self._clock, beat, died=self._peers.may_have_died(beat))
            self._tried.add(beat.worker)  # not before: whoever looks meanwhile would find nobody gone, and nothing free
        return bool(gone) | (rule in MONEY and await self._give_back())

    async def take_over_all(self) -> None:
        """Take over from every process that is gone, also once more."""
        self._tried.clear()
        await self.relieve()

    async def _changed_since(self, error: Refused) -> bool:
        """Free what there is to free, and tell whether to decide once more. Who was stopped by `check` always does: if
        there is nothing left to free, someone else was refused at the same time and has done it."""
        return error.rule in SCARCE and (await self.relieve(error.rule) or isinstance(error, HeldByGone))

    def _gone(self, view: View) -> list[Beat]:
        others = [beat for beat in view.workers() if beat.worker != self.own]
        unseen = [worker for worker in view.unseen() if worker != self.own]
        return [beat for beat in self._peers.gone(others, unseen) if beat.worker not in self._tried]

    async def _give_back(self) -> bool:
        """End runs whose program died while it waited for them, and that nobody has taken up since: nobody waits for
        their result, and their money is needed."""
        if not await self._store.read(lambda view: any(_kept_for_nobody(view))):
            return False

        def decide(view: View) -> Decision[int]:
            now = self._clock.now()
            events: list[Unsealed] = []
            for record in _kept_for_nobody(view):
                below = reversed(parts(view, record.id))
                events += [ended_unrun(one, "task.cancelled", "its asker ended without it", now) for one in below]
                events.append(ended_unrun(record, "task.failed", _NEEDED, now))
            return Decision(len(events), events)

        return bool(await self._store.tx(self._ids.new(), decide))


async def take_over(store: Store, ids: Ids, clock: Clock, gone: Beat, *, died: bool) -> None:
    """Take over what a process has left behind."""

    def decide(view: View) -> Decision[int]:
        heard = next((beat.count for beat in view.workers() if beat.worker == gone.worker), 0)
        if heard != gone.count:  # it has said something since, or someone else was quicker
            return Decision(0)
        taken = all_left_behind(view, view.held(gone.worker), clock.now(), died=died)
        events = [event for some in taken for event in some]
        # What waits for others to stop is looked at again.
        return Decision(len(events), events, gone._replace(count=0) if all(taken) else None)

    if await store.tx(ids.new(), decide):
        _log.info("took over what a process left behind that is gone: %s", gone.worker)


def _kept_for_nobody(view: View) -> Iterator[Record]:
    """Find runs with money set aside that a program waited for, that were lost with it, and that nobody runs."""
    after = ("", "")
    while page := view.leases(after, _PAGE):
        after = (page[-1].id, page[-1].unit)
        for lease in page:
            record = view.record(lease.id) if lease.kind == "carve" and lease.available else None
            if record is not None and _is_abandoned(record):
                yield record


def _is_abandoned(record: Record) -> bool:
    foreground = not record.parent and record.asked_how == "delegate"
    return foreground and record.state == "pending" and not record.worker and record.losses > 0
