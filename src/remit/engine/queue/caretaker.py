"""Looking after what nobody runs: taking over from processes that are gone, ending what is late."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, MutableMapping
from typing import Any, Final

from remit.core.times import SECOND
from remit.engine.consequences import ended_unrun
from remit.engine.money.accounts import Accounts
from remit.engine.people.messenger import AnswerDesk, Messenger
from remit.engine.presence.peers import Peers
from remit.engine.queue.losses import ended_when_alone, not_run
from remit.engine.queue.succession import take_over
from remit.engine.services import Services
from remit.engine.settings import Serving
from remit.engine.upkeep.keeping import Upkeep
from remit.engine.upkeep.tallying import Tallying
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
        self._look_every = round(serving.pace.look * SECOND)
        self.upkeep = Upkeep(self._ground, serving)
        self.beside = [self.upkeep.serve, *_messengers(services, serving)]  # what goes on beside the work
        self._peers = Peers(self._ground.clock, services.heartbeat.silence, serving.pace.look)
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
    return [Messenger(desk, services.bell, services.heartbeat, serving.channels, serving.pace.look).serve]


LATE: Final = "its time was up before it could begin"
TAKEN_OVER: Final = "another process has taken it over"
