"""Tasks whose process is gone: who takes them over, what becomes of them, and who is to blame."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, MutableMapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from remit.core.events import Unsealed
from remit.core.guards import BUSY
from remit.core.kinds import Claim, FirstData, Requeue, fenced, read, requeued
from remit.core.lifecycle import Record
from remit.core.remit import LASTS
from remit.core.times import SECOND
from remit.core.values import Json
from remit.engine.accounts import Accounts
from remit.engine.approvals import parts
from remit.engine.attempt.endings import AT_ONCE
from remit.engine.consequences import ended_unrun
from remit.engine.door import place_of
from remit.engine.ground import StoreAround
from remit.engine.messenger import AnswerDesk, Messenger
from remit.engine.presence.peers import Peers
from remit.engine.services import Services
from remit.engine.settings import Serving
from remit.engine.upkeep.prune import Upkeep
from remit.engine.upkeep.tallying import Tallying
from remit.errors import Refused, StoreError
from remit.ports import NOTHING, Beat, Clock, Decide, Decided, Decision, Ids, Store, View, Wants

SUSPECT: Final = 2  # losses that make a task a suspect
ALONE: Final = 3  # losses from which on it is the only suspect of its worker
_SHARE: Final = 16  # of its hands, a worker has one of so many for suspects that need not be alone


class Chosen(NamedTuple):
    """What a worker may begin now; `whole` unless suspects were left out."""

    records: list[Record]
    whole: bool


class Suspects:
    """The suspects in the hands of one worker: few at a time, and one that was lost three times is the only one."""

    def __init__(self, hands: int) -> None:
        self._few = max(1, hands // _SHARE)
        self._held: dict[str, int] = {}

    def enter(self, task: str, losses: int) -> None:
        if losses >= SUSPECT:
            self._held[task] = losses

    def leave(self, task: str) -> None:
        self._held.pop(task, None)

    def choose(self, due: Iterable[Record], waits: Callable[[str], bool]) -> Chosen:
        """Choose what may be begun now. Suspects take turns: none overtakes another. One that waits for another task
        does nothing that could end its process, and what it waits for may be a suspect too."""
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
    """Tell which task a process most likely died of: the only one that it had, or its only suspect. Empty if that
    cannot be told. Whoever is lost for the first time is not to blame: machines are switched off."""
    own = [record for record in held if not _is_part(record)]  # what is delegated is a part of what its asker does
    own = [record for record in own if record.state == "running"] or own  # whoever waits does nothing
    if len(own) != 1:
        own = [record for record in own if record.losses >= SUSPECT]
    return own[0].id if len(own) == 1 and own[0].losses else ""


def why_dead(record: Record, most: int) -> str:
    """Say why a task is not begun once more; empty if it may be."""
    if most == 1 and record.losses:
        return "the process that carried it out died, and it may be begun only once (attempts=1)"
    if record.attempt < most:
        return ""
    if not record.losses:
        return f"its end could not be recorded, in {record.attempt} attempts"
    return f"the process that carried it out died {'once' if record.losses == 1 else f'{record.losses} times'}"


def all_left_behind(view: View, held: Sequence[Record], now: int, *, died: bool) -> list[list[Unsealed]]:
    """Say what becomes of the tasks of a process that is gone; nothing for one that waits for others to stop. Of one
    that did not die, but stands still, nobody is to blame."""
    ending: set[str] = set()
    to_blame = blamed(held) if died else ""
    # What is below comes first.
    return [_left_behind(view, record, ending, now, blame=record.id == to_blame) for record in reversed(held)]


def not_run(view: View, record: Record, now: int) -> list[Unsealed]:
    """Say what becomes of a task that is on record as run by this process, and is not. Whoever waited for one that was
    delegated or run in the foreground was told that the store failed, so it is not run again."""
    if record.state == "cancelling":
        return ended_when_alone(view, record.id, set(), now)
    if record.asked_how == "delegate":
        return [ended_unrun(record, "task.failed", "the store was away, and its end could not be recorded", now)]
    return [_lost(view, record, now, returned=0, losses=record.losses)]


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
    return [_lost(view, record, now, returned=0 if blame else 1, losses=record.losses + 1)]


def _lost(view: View, record: Record, now: int, *, returned: int, losses: int) -> Unsealed:
    """Make the event of a task that goes back into the queue because nobody runs it any more."""
    back = Requeue("", record.fence + 1, AT_ONCE, max(0, record.attempt - returned), record.failures)
    data: dict[str, Json] = {"lost_by": record.worker, "losses": losses}
    began = view.event(record.began)
    if record.asked_how == "delegate" and began is not None and "deadline" not in read(began, FirstData)["bounds"]:
        data["until"] = now + LASTS  # it stands in the queue now, which has nothing to do with the time of an attempt
    return requeued("task.lost", place_of(record), record.holder, now, back, data)


def _is_part(record: Record) -> bool:
    return bool(record.parent) and record.asked_how == "delegate"


def ended_when_alone(view: View, task: str, ending: set[str], now: int) -> list[Unsealed]:
    """Cancel a task, once nothing is left under it that is not ending with it."""
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


_BATCH: Final = 64


class Caretaker:
    """One in every worker. `busy` is what that worker runs."""

    def __init__(self, services: Services, busy: MutableMapping[str, Any], serving: Serving) -> None:
        self._services = services
        self._ground = services.ground
        self._busy = busy
        self._look_every = round(serving.pace.poll_interval * SECOND)
        self.upkeep = Upkeep(self._ground, serving)
        self.beside = [self.upkeep.serve, *_messengers(services, serving)]  # what goes on beside the work
        self._peers = Peers(self._ground.clock, services.heartbeat.silence, serving.pace.poll_interval)
        self._tallying = Tallying(self._ground)
        self._looked: int | None = None
        self._strays: dict[str, int] = {}

    async def tidy(self) -> None:
        """Look, now and then: it is called much more often than there is something to do."""
        now = self._ground.clock.ticks()
        if self._looked is not None and now - self._looked < self._look_every:
            return
        if self._looked is None:
            await self._services.heartbeat.beat_now()  # others see at once that someone is there
            await self._services.heartbeat.publish()
        self._looked = now
        try:
            await self.look()
        except BaseException:  # whoever cannot look hears nothing
            self._peers.watch_anew()
            raise

    async def look(self) -> None:
        """Do whatever there is to do."""
        heartbeat = self._services.heartbeat
        await heartbeat.set_clock(idle=not len(self._services.conductor.alive))
        await self._end_late()
        await self._expire()
        await self._stop_what_is_lost()
        await self._requeue_strays()
        self.upkeep.look()
        if heartbeat.lasting:  # in memory nobody says that they are there, and nobody outlives this process
            await self._look_at_others(heartbeat.worker)
        await self._tallying.tidy()

    async def _look_at_others(self, own: str) -> None:
        beats, unseen = await self._ground.store.read(lambda view: (view.workers(), view.unseen()))
        others = [beat for beat in beats if beat.worker != own]
        for beat in self._peers.gone(others, [worker for worker in unseen if worker != own]):
            await self._take_over(beat)

    async def requeue(self, tasks: set[str]) -> None:
        """Return to the queue the tasks that the store says we run, but that we do not."""
        await self._ground.store.tx(self._ground.ids.new(), lambda view: self._requeued(view, tasks))
        alive = self._services.conductor.alive
        self._services.insisting.unkept -= tasks
        for task in tasks:
            self._busy.pop(task, None)
            live = alive.get(task)
            if live is not None:
                alive.leave(live)

    async def _end_late(self) -> None:
        """End what nobody has begun in time, and what is cancelled and in nobody's hands."""
        ground = self._ground

        def decide(view: View) -> Decision[int]:
            now = ground.clock.now()
            late = view.late(now, _BATCH)
            events = [ended_unrun(record, "task.failed", LATE, now) for record in late]
            for task in view.cancelling(""):
                events += ended_when_alone(view, task, set(), now)
            return Decision(len(events), events)

        if await ground.store.read(lambda view: bool(view.late(ground.clock.now(), 1) or view.cancelling(""))):
            await ground.store.tx(ground.ids.new(), decide)

    async def _expire(self) -> None:
        """End what is held or asked and whose time is up."""
        await Accounts(self._ground).expire()
        await self._services.questions.answers.expire_all()

    async def requeue_all_strays(self) -> None:
        """Do so at once when this process leaves and no claim is on its way: nobody looks for what it leaves behind."""
        if strays := set(await self._ground.store.read(self._idle)):
            await self.requeue(strays)

    async def requeue_claimed_unheard(self) -> None:
        """Do the same when nobody here heard what came of a claim: it may be written only now, so this looks after it,
        in a transaction of its own."""
        ground = self._ground
        try:
            await ground.store.tx(ground.ids.new(), lambda view: self._requeued(view, set(self._idle(view))))
        except StoreError as error:  # closed by now: others take it over when this process is silent
            _log.warning("what was being claimed could not be put back: %s", error)

    def _requeued(self, view: View, tasks: set[str]) -> Decision[int]:
        now = self._ground.clock.now()
        held = [record for record in view.held(self._services.heartbeat.worker) if record.id in tasks]
        events = [event for record in reversed(held) for event in not_run(view, record, now)]
        return Decision(len(events), events)

    def _idle(self, view: View) -> list[str]:
        """List what is on record as ours and nobody here runs. What a task delegated goes on with that task, unless its
        end could not be recorded."""
        insisting, alive = self._services.insisting, self._services.conductor.alive
        held = view.held(self._services.heartbeat.worker)
        idle = (record.id for record in held if record.asked_how != "delegate" or record.id in insisting.unkept)
        ours = (task for task in idle if task not in self._busy and task not in insisting.tasks)
        return [task for task in ours if alive.get(task) is None]

    async def _stop_what_is_lost(self) -> None:
        """Stop what others have taken over from here: nothing of it counts any more."""
        alive, worker = self._services.conductor.alive, self._services.heartbeat.worker
        before = {live.remit.id for live in alive.lost({})}
        held = await self._ground.store.read(lambda view: {one.id: one.fence for one in view.held(worker)})
        for live in alive.lost(held):
            if live.remit.id in before and live.life.stop != "cancelled":  # it was here before we looked
                live.control.stop(TAKEN_OVER)

    async def _requeue_strays(self) -> None:
        """Requeue what is on record as ours and nobody here runs: we were torn down before we knew of our claim, or its
        end could not be recorded. It must be seen twice, as a claim may be on its way."""
        now = self._ground.clock.ticks()
        self._strays = {task: self._strays.get(task, now) for task in await self._ground.store.read(self._idle)}
        if strays := {task for task, since in self._strays.items() if now - since >= self._look_every}:
            await self.requeue(strays)

    async def _take_over(self, gone: Beat) -> None:
        ground = self._ground
        await take_over(ground.store, ground.ids, ground.clock, gone, died=self._peers.may_have_died(gone))


def _messengers(services: Services, serving: Serving) -> list[Callable[[], Coroutine[Any, Any, None]]]:
    """Give what tells channels of questions, if there are any."""
    if not serving.channels:
        return []
    desk = AnswerDesk(services.ground, services.questions.answers)
    return [Messenger(desk, services.bell, services.heartbeat, serving.channels, serving.pace.poll_interval).serve]


LATE: Final = "its time was up before it could begin"
TAKEN_OVER: Final = "another process has taken it over"
