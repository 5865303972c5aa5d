"""Tasks whose process is gone: takeover, their fate, and which task is to blame."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from remit.core.events import Unsealed, read
from remit.core.guards import BUSY
from remit.core.kinds.tasks import Claim, FirstData, Requeue, fenced, requeued
from remit.core.lifecycle import Record
from remit.core.records import NamedTuple
from remit.core.remit import LASTS
from remit.core.values import Json
from remit.engine.approvals import parts
from remit.engine.attempt.endings import AT_ONCE
from remit.engine.consequences import ended_unrun
from remit.engine.door import place_of
from remit.engine.ground import StoreAround
from remit.engine.presence.peers import Peers
from remit.errors import Refused
from remit.ports import NOTHING, Beat, Clock, Decide, Decided, Decision, Ids, Store, View, Wants

LATE: Final = "its time was up before it could begin"
SUSPECT: Final = 2  # losses that make a task a suspect
ALONE: Final = 3  # losses from which on it is the only suspect of its worker
_SHARE: Final = 16  # one of so many slots may run a suspect that need not be alone


class Chosen(NamedTuple):
    """The tasks that a worker may start now; `whole` is False if suspects were left out."""

    records: list[Record]
    whole: bool


class Suspects:
    """The suspects that one worker runs: few at a time; a task that was lost three times is the only one."""

    def __init__(self, hands: int) -> None:
        self._few = max(1, hands // _SHARE)
        self._held: dict[str, int] = {}

    def enter(self, task: str, losses: int) -> None:
        if losses >= SUSPECT:
            self._held[task] = losses

    def leave(self, task: str) -> None:
        self._held.pop(task, None)

    def choose(self, due: Iterable[Record], waits: Callable[[str], bool]) -> Chosen:
        """Return the tasks that may start now. Suspects keep their order. A suspect that waits for another task does
        not count: it cannot kill its process, and the task it waits for may be a suspect too."""
        records: list[Record] = []
        at_work = [losses for task, losses in self._held.items() if not waits(task)]
        count, worst, whole = len(at_work), max(at_work, default=0), True
        for record in due:
            if record.losses >= SUSPECT:
                worst = max(worst, record.losses)
                whole = whole and count < (self._few if worst < ALONE else 1)
                if not whole:
                    continue
                count += 1
            records.append(record)
        return Chosen(records, whole)


def blamed(held: Sequence[Record]) -> str:
    """Return the id of the task that most likely killed its process, or "" if that is unclear. Blame a task only if it
    was the only one running, or the only suspect, and only from its second loss on: the first may be a reboot."""
    own = [record for record in held if not _is_part(record)]  # a delegated task is part of its asker's
    own = [record for record in own if record.state == "running"] or own  # a waiting task cannot have killed it
    if len(own) != 1:
        own = [record for record in own if record.losses >= SUSPECT]
    return own[0].id if len(own) == 1 and own[0].losses else ""


def why_dead(record: Record, most: int) -> str:
    """Return the reason why a task is dead, or "" if it may start again."""
    if most == 1 and record.losses:
        return "the process that carried it out died, and it may be begun only once (attempts=1)"
    if record.attempt < most:
        return ""
    if not record.losses:
        return f"its end could not be recorded, in {record.attempt} attempts"
    return f"the process that carried it out died {'once' if record.losses == 1 else f'{record.losses} times'}"


def all_left_behind(view: View, held: Sequence[Record], now: int, *, died: bool) -> list[list[Unsealed]]:
    """Return the events that requeue, fence or end the tasks of a dead or stopped process; none for a task that waits
    for others to stop. If the process is only stopped and did not die, no task is blamed: each requeued task
    gets its attempt back."""
    ending: set[str] = set()
    to_blame = blamed(held) if died else ""
    # Subtasks first.
    return [_left_behind(view, record, ending, now, blame=record.id == to_blame) for record in reversed(held)]


def not_run(view: View, record: Record, now: int) -> list[Unsealed]:
    """Return the events for a task that the store assigns to this process but that does not run. Delegated and
    foreground tasks fail, because their caller already got a `StoreError`; queued tasks are requeued."""
    if record.state == "cancelling":
        return ended_when_alone(view, record.id, set(), now)
    if record.asked_how == "delegate":
        return [ended_unrun(record, "task.failed", "the store was away, and its end could not be recorded", now)]
    return [_requeue_lost(view, record, now, returned=0, losses=record.losses)]


def _left_behind(view: View, record: Record, ending: set[str], now: int, *, blame: bool) -> list[Unsealed]:
    if record.state == "cancelling":
        return ended_when_alone(view, record.id, ending, now)
    if _is_part(record):
        parent = view.standing(record.parent)
        if parent is None or parent.state not in ("pending", "running", "waiting"):
            return [ended_unrun(record, "task.cancelled", "its asker ended without it", now)]
        return [fenced(place_of(record), record.holder, now, Claim("", record.fence + 1, record.attempt))]
    if record.led_by_program:
        return [ended_unrun(record, "task.failed", f"the process that ran this {record.led_as} is gone", now)]
    return [_requeue_lost(view, record, now, returned=0 if blame else 1, losses=record.losses + 1)]


def _requeue_lost(view: View, record: Record, now: int, *, returned: int, losses: int) -> Unsealed:
    """Return the event that requeues a task which no process runs any more."""
    back = Requeue("", record.fence + 1, AT_ONCE, max(0, record.attempt - returned), record.failures)
    data: dict[str, Json] = {"lost_by": record.worker, "losses": losses}
    began = view.event(record.began)
    if record.asked_how == "delegate" and began is not None and "deadline" not in read(began, FirstData)["bounds"]:
        data["until"] = now + LASTS  # it is queued now: the time of an attempt does not apply
    return requeued("task.lost", place_of(record), record.holder, now, back, data)


def _is_part(record: Record) -> bool:
    return bool(record.parent) and record.asked_how == "delegate"


def ended_when_alone(view: View, task: str, ending: set[str], now: int) -> list[Unsealed]:
    """Return the event that ends a cancelled task, and add the task to `ending`. Return no event while it has an open
    subtask that is not in `ending`."""
    first, *rest = view.below(task)
    if any(record.id not in ending for record in rest):
        return []
    ending.add(task)
    return [ended_unrun(first, "task.cancelled", "cancelled", now)]


T = TypeVar("T")

MONEY: Final = frozenset(("credits", "tier"))
SCARCE: Final = frozenset((BUSY, *MONEY))
_PAGE: Final = 500
_NEEDED: Final = "the process that ran it is gone, and its money was needed"

_log = logging.getLogger("remit")


class HeldByGone(Refused):
    """The refusal of a request because a dead process holds the slot or the money. `Succession` catches it, releases
    what that process holds, and decides again."""


class Succession(StoreAround):
    """A store that, before it refuses something for lack of a slot or money, releases those that dead processes hold.
    `own` is the worker of this process."""

    __slots__ = ("_clock", "_ids", "_peers", "_tried", "own")

    def __init__(self, store: Store, clock: Clock, ids: Ids, peers: Peers) -> None:
        super().__init__(store)
        self.own = ""
        self._clock = clock
        self._ids = ids
        self._peers = peers
        # Workers taken over by this process; their remaining tasks wait for others to stop.
        self._tried: set[str] = set()

    async def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Decided[T]:
        try:
            return await self._store.tx(op, decide, wants)
        except Refused as error:
            if not await self._changed_since(error):
                raise
        return await self.tx(op, decide, wants)

    def check(self, view: View, rule: str, sentence: str) -> None:
        """Raise `HeldByGone` in a decision that is about to refuse something, if releasing what dead processes hold may
        help."""
        if rule in SCARCE and (self._gone_workers(view) or (rule in MONEY and any(_kept_for_nobody(view)))):
            raise HeldByGone(sentence, rule=rule)

    async def relieve(self, rule: str = BUSY) -> bool:
        """Release the slots and money that dead processes hold. If `rule` is about money, also release the money
        reserved for runs whose program died. Return whether there was anything to release."""
        gone = await self._store.read(self._gone_workers)
        for beat in gone:
            died = self._peers.may_have_died(beat)
            if await take_over(self._store, self._ids, self._clock, beat, died=died):
                # Not earlier: a concurrent check would see no dead process and nothing released yet.
                self._tried.add(beat.worker)
        return bool(gone) | (rule in MONEY and await self._give_back())

    async def take_over_all(self) -> None:
        """Try to take over the tasks of every dead process, also of those that were tried before."""
        self._tried.clear()
        await self.relieve()

    async def _changed_since(self, error: Refused) -> bool:
        """Release what dead processes hold, if the refusal is for lack of a slot or money. Return whether to decide
        again: something was released, or `check` raised `HeldByGone`. In the latter case another caller may have
        released it."""
        return error.rule in SCARCE and (await self.relieve(error.rule) or isinstance(error, HeldByGone))

    def _gone_workers(self, view: View) -> list[Beat]:
        others = [beat for beat in view.workers() if beat.worker != self.own]
        unseen = [worker for worker in view.unseen() if worker != self.own]
        return [beat for beat in self._peers.gone(others, unseen) if beat.worker not in self._tried]

    async def _give_back(self) -> bool:
        """End runs whose program died while it waited for them, and that no worker has claimed since: their result has
        no reader, and their money is needed. Return whether there were any."""
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

        return bool((await self._store.tx(self._ids.new(), decide)).answer)


async def take_over(store: Store, ids: Ids, clock: Clock, gone: Beat, *, died: bool) -> bool:
    """Take over the tasks of a dead process. Return False if its heartbeat has changed meanwhile: another process was
    faster, or the last heartbeat of a killed process reached the server only now."""

    def decide(view: View) -> Decision[int | None]:
        heard = next((beat.count for beat in view.workers() if beat.worker == gone.worker), 0)
        if heard != gone.count:
            return Decision(None)
        taken = all_left_behind(view, view.tasks_of_worker(gone.worker), clock.now(), died=died)
        events = [event for some in taken for event in some]
        # Keep the heartbeat row if a task still waits for others to stop, so that it is checked again.
        return Decision(len(events), events, gone._replace(count=0) if all(taken) else None)

    taken = (await store.tx(ids.new(), decide)).answer
    if taken:
        _log.info("took over what a process left behind that is gone: %s", gone.worker)
    return taken is not None


def _kept_for_nobody(view: View) -> Iterator[Record]:
    """Yield the runs that still have reserved money although the program that waited for them has died, and that no
    process has claimed since."""
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
