"""Looking after what nobody runs: taking over from processes that are gone, ending what is late, pruning."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any, Final

from remit.core.events import Unsealed
from remit.core.kinds import Claim, FirstData, Requeue, fenced, read, requeued
from remit.core.record import Record
from remit.core.times import SECOND
from remit.core.values import Json
from remit.engine.attempt.endings import AT_ONCE
from remit.engine.consequences import ended_unrun
from remit.engine.hops import LASTS, place_of
from remit.engine.presence.peers import Peers
from remit.engine.services import Services
from remit.engine.settings import Serving
from remit.engine.upkeep.prune import prune
from remit.errors import StoreError
from remit.ports import Beat, Decision, View

_BATCH: Final = 64

_log = logging.getLogger("remit")


class Caretaker:
    """One in every worker. `busy` is what that worker runs."""

    def __init__(self, services: Services, busy: MutableMapping[str, Any], serving: Serving) -> None:
        self._services = services
        self._ground = services.ground
        self._busy = busy
        self._keep = serving.keep
        self._look_every = round(serving.pace.look * SECOND)
        self._prune_every = round(serving.pace.prune * SECOND)
        self._pruned = self._ground.clock.ticks()
        self._peers = Peers(self._ground.clock, services.heartbeat.silence)
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
        await self.look()

    async def look(self) -> None:
        """Do whatever there is to do."""
        await self._end_late()
        await self._requeue_strays()
        await self._prune()
        beats = await self._ground.store.read(lambda view: view.workers())
        for beat in self._peers.gone([beat for beat in beats if beat.worker != self._services.heartbeat.worker]):
            await self._take_over(beat)

    async def requeue(self, tasks: set[str]) -> None:
        """Return to the queue the tasks that the store says we run, but that we do not."""
        await self._ground.store.tx(self._ground.ids.new(), lambda view: self._requeued(view, tasks))
        alive = self._services.conductor.alive
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
                events += _ended_when_alone(view, task, set(), now)
            return Decision(len(events), events)

        if await ground.store.read(lambda view: bool(view.late(ground.clock.now(), 1) or view.cancelling(""))):
            await ground.store.tx(ground.ids.new(), decide)

    async def _prune(self) -> None:
        """Prune once in a while, so that a store does not grow for ever; a process that is here for a moment never
        does."""
        now = self._ground.clock.ticks()
        if self._keep is not None and now - self._pruned >= self._prune_every:
            self._pruned = now
            await prune(self._ground, self._keep)

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
        events = [event for record in reversed(held) for event in _left_behind(view, record, set(), now)]
        return Decision(len(events), events)

    def _idle(self, view: View) -> list[str]:
        """List what is on record as ours and nobody here runs."""
        held = view.held(self._services.heartbeat.worker)
        idle = (record.id for record in held if record.asked_how != "delegate" and record.id not in self._busy)
        return [task for task in idle if self._services.conductor.alive.get(task) is None]

    async def _requeue_strays(self) -> None:
        """Requeue what is on record as ours and nobody here runs: we were torn down before we knew of our claim, or its
        end could not be recorded. It must be seen twice, as a claim may be on its way."""
        now = self._ground.clock.ticks()
        self._strays = {task: self._strays.get(task, now) for task in await self._ground.store.read(self._idle)}
        if strays := {task for task, since in self._strays.items() if now - since >= self._look_every}:
            await self.requeue(strays)

    async def _take_over(self, gone: Beat) -> None:
        ground = self._ground

        def decide(view: View) -> Decision[int]:
            now = ground.clock.now()
            ending: set[str] = set()
            held = reversed(view.held(gone.worker))  # what is below comes first
            taken = [_left_behind(view, record, ending, now) for record in held]
            events = [event for some in taken for event in some]
            # What waits for others to stop is looked at again.
            return Decision(len(events), events, gone._replace(count=0) if all(taken) else None)

        if await ground.store.tx(ground.ids.new(), decide):
            _log.info("took over what a process left behind that is gone: %s", gone.worker)


LATE: Final = "its time was up before it could begin"


def _left_behind(view: View, record: Record, ending: set[str], now: int) -> list[Unsealed]:
    """Say what becomes of a task whose process is gone."""
    if record.state == "cancelling":
        return _ended_when_alone(view, record.id, ending, now)
    if record.parent and record.asked_how == "delegate":
        parent = view.standing(record.parent)
        if parent is None or parent.state not in ("pending", "running", "waiting"):
            return [ended_unrun(record, "task.cancelled", "its asker ended without it", now)]
        return [fenced(place_of(record), record.holder, now, Claim("", record.fence + 1, record.attempt))]
    if record.led_by_program:
        return [ended_unrun(record, "task.failed", f"the process that ran this {record.led_as} is gone", now)]
    back = Requeue("", record.fence + 1, AT_ONCE, record.attempt, record.failures)
    data: dict[str, Json] = {"lost_by": record.worker}
    began = view.event(record.began)
    if record.asked_how == "delegate" and began is not None and "deadline" not in read(began, FirstData)["bounds"]:
        data["until"] = now + LASTS  # it stands in the queue now, which has nothing to do with the time of an attempt
    return [requeued("task.lost", place_of(record), record.holder, now, back, data)]


def _ended_when_alone(view: View, task: str, ending: set[str], now: int) -> list[Unsealed]:
    """Cancel a task, once nothing is left under it that is not ending with it."""
    first, *rest = view.below(task)
    if any(record.id not in ending for record in rest):
        return []
    ending.add(task)
    return [ended_unrun(first, "task.cancelled", "cancelled", now)]
