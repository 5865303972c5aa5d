"""Running what is in the queue: claim, run, requeue."""

from __future__ import annotations

import asyncio
import logging
from typing import Final, NamedTuple, cast

import anyio

from remit.core.events import Unsealed
from remit.core.guards import CLAIM
from remit.core.kinds import Claim, Queued, claimed
from remit.core.lead import Lead
from remit.core.record import Record
from remit.core.remit import Remit, known_pass
from remit.engine.admission import Proposal
from remit.engine.attempt.handoffs import Sends
from remit.engine.attempt.lines import Hands
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.operations import Attempt
from remit.engine.attempt.resume import Resumed, resume
from remit.engine.attempt.turns import Superseded
from remit.engine.consequences import ended_unrun
from remit.engine.hops import expires, place_of
from remit.engine.presence.bell import Listener
from remit.engine.queue import carriable
from remit.engine.queue.caretaker import LATE, Caretaker
from remit.engine.services import Services
from remit.engine.settings import HANDS, Serving
from remit.engine.timing import move_on_after
from remit.errors import StoreError
from remit.ports import Decision, Dispatcher, View

BATCH: Final = 64  # tasks claimed in one transaction

_log = logging.getLogger("remit")


class ClaimedTask(NamedTuple):
    """A task for this process to run."""

    resumed: Resumed
    now: int


class Worker:
    """Runs tasks from the queue. `serve` works until it is cancelled or drained; then what is left is requeued."""

    def __init__(self, services: Services, serving: Serving, dispatcher: Dispatcher | None = None) -> None:
        self._services = services
        self._ground = services.ground
        self._hands = services.conductor.alive.hands = Hands(serving.hands or HANDS)
        self._pace = serving.pace
        self._dispatcher = dispatcher
        self._busy: dict[str, asyncio.Task[None]] = {}  # what is in our hands, or waits and needs none
        self._task: asyncio.Task[object] | None = None
        self.served = 0  # how many serve with it, besides those that it was lent to
        self._draining = False
        self._released = 0  # how many were put back into the queue since
        self._claiming = asyncio.Lock()
        self._unheard = False  # whether a claim is on its way; still so if nobody waited for what came of it
        self._taking = 0  # submissions under way that may begin a task here
        self._changed = asyncio.Event()
        self._rounds_begun = self._rounds_done = 0
        self._listener: Listener | None = None
        self._caretaker = Caretaker(services, self._busy, serving)

    @property
    def closing(self) -> bool:
        """Whether what is torn down now is to be run by someone else."""
        return self._task is not None and (self._draining or self._task.cancelling() > 0)

    def __len__(self) -> int:
        return len(self._busy)

    def free(self) -> bool:
        return not self._draining and self._free() > 0

    def taking(self) -> None:
        """Note that a submission may begin a task here."""
        self._taking += 1

    def taken(self) -> None:
        """Note that it did or did not."""
        self._taking -= 1
        self._changed.set()

    def begin(self, remit: Remit, queued: Queued, now: int, lead: Lead | None = None) -> None:
        """Run a task that is on record as begun here."""
        attempt = Attempt(asked_how=queued.asked_how, queued=True, timeout=queued.timeout, attempts=queued.attempts)
        self._start(ClaimedTask(Resumed(remit, attempt, lead=lead), now))

    async def serve(self) -> None:
        """Work until cancelled or drained."""
        services = self._services
        self._task = cast("asyncio.Task[object]", asyncio.current_task())
        with services.heartbeat.while_serving(self._hands.most), services.stops.while_working():
            async with services.bell.listen() as self._listener, anyio.create_task_group() as group:
                try:
                    if self._dispatcher is not None:
                        group.start_soon(self._dispatcher.serve, self.wake)
                    await self._rounds()
                finally:
                    await self._stop_all()
                group.cancel_scope.cancel()

    async def wake(self) -> None:
        """Look for something to claim. Comes back when this process has looked and has hands free, so that whoever
        wakes it does not offer what it is about to claim, nor more than it can take."""
        self._wake_listener()
        wanted = self._rounds_begun + 1
        while (self._rounds_done < wanted or self._free() <= 0) and not self._draining:
            await self._next_change()

    async def drain(self, seconds: float) -> int:
        """Take nothing more, give what runs that long to end, and requeue the rest; tells how many that were."""
        self._draining = True
        async with self._claiming:  # what was being claimed is in our hands now, and nothing is claimed after it
            self._changed.set()
        while self._taking:  # what a submission is about to begin here is in our hands too
            await self._next_change()
        self._wake_listener()
        with move_on_after(self._ground.clock, seconds if seconds > 0 else 0.0):
            while self._busy:
                await self._next_change()
        for task in list(self._busy):
            live = self._services.conductor.alive.get(task)
            if live is not None:
                live.control.release()
        while self._busy:
            await self._next_change()
        await self._caretaker.requeue_all_strays()
        return self._released

    async def _next_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _wake_listener(self) -> None:
        if self._listener is not None:
            self._listener.wake()

    async def _rounds(self) -> None:
        assert self._listener is not None
        failures = 0
        while not (self._draining and not self._busy):
            try:
                pause = await self._round()
                failures = 0
            except Exception as error:  # noqa: BLE001 - the work in hand goes on, and so must whoever looks for more
                pause = self._pace.retry_store[min(failures, len(self._pace.retry_store) - 1)]
                failures += 1
                _log_trouble(error, pause)
            await self._listener.wait(pause)

    async def _round(self) -> float:
        """Do what there is to do, and tell for how long there will be nothing."""
        await self._caretaker.tidy()
        self._rounds_begun += 1
        while await self._claim_and_start():
            pass
        self._rounds_done = self._rounds_begun
        self._changed.set()
        return self._pace.look if self._draining or self._free() <= 0 else await self._until_due()

    async def _claim_and_start(self) -> bool:
        """Claim what there is and start it; whoever drains waits for a claim that is under way."""
        async with self._claiming:
            if self._draining or self._free() <= 0:
                return False
            claims = await self._claim()
            for claim in claims:
                self._start(claim)
        return bool(claims) and not self._draining

    def _free(self) -> int:
        return self._hands.free()

    async def _until_due(self) -> float:
        now = self._ground.clock.now()
        due = await self._ground.store.read(lambda view: view.next_due(now))
        return self._pace.look if due is None else min(self._pace.look, max(0.001, (due - now) / 1e6))

    # -- claiming ---------------------------------------------------------------------------------------------

    async def _claim(self) -> list[ClaimedTask]:
        """Claim everything this process may begin now, in one transaction."""
        store, heartbeat = self._ground.store, self._services.heartbeat
        if not await store.read(lambda view: view.queues()):
            return []

        def decide(view: View) -> Decision[int]:
            events: list[Unsealed] = []
            claims: list[ClaimedTask] = []
            now = self._ground.clock.now()
            for record in self._due(view, now):
                # However far back a clock was set, no more time is left than there was at the last claim.
                latest = max(now, record.asked_at, record.claimed_at or 0)
                taken = self._taken(view, record, latest)
                events += taken[0]
                claims += taken[1]
            return Decision(len(events), events, heartbeat.first_beat() if events else None, claims)

        self._unheard = True
        written, claims = await store.transact(self._ground.ids.new(), decide)
        self._unheard = False
        if written:
            heartbeat.beat_written()
        if written and not claims:  # what was there had to be ended: there may be more behind it
            return await self._claim()
        return claims or []

    def _due(self, view: View, now: int) -> list[Record]:
        """List who is first: in the order of asking, as far as each agent and the workspace have room."""
        admission = self._services.admission
        most = 0 if self._draining else min(self._free(), BATCH, admission.room(view, resuming=True))
        if most <= 0:
            return []
        due: list[Record] = []
        for holder in view.queues():
            room = min(most, admission.room_for(view, holder, now, resuming=True))
            room = min(room, admission.trusted(view, holder, now))
            if room > 0:
                due += carriable.due(view, self._ground.directory, holder, now, room)
        due.sort(key=lambda record: record.began)
        return due[:most]

    def _taken(self, view: View, record: Record, now: int) -> tuple[list[Unsealed], list[ClaimedTask]]:
        """Take a task through the door; what can never be begun is ended."""
        claim = Claim(self._services.heartbeat.worker, record.fence + 1, record.attempt + 1)
        if now >= record.until:
            return [ended_unrun(record, "task.failed", LATE, now)], []
        try:
            resumed = resume(view, record, claim.fence, claim.attempt)
        except carriable.UNREADABLE as error:
            why = f"its record cannot be read ({type(error).__name__}); run `remit doctor`"
            _log.error("task %s: %s", record.id, why)
            return [ended_unrun(record, "task.died", why, now, type_="StoreError")], []
        agent = self._ground.directory.holder(record.holder)
        most = resumed.attempt.attempts or (agent.retry.attempts if agent is not None else claim.attempt)
        if claim.attempt > most:
            why = f"the process that carried it out died {record.attempt} times"
            return [ended_unrun(record, "task.died", why, now)], []
        proposal = Proposal(resumed.remit, resumed.remit, known_pass(record.holder, resumed.remit.task), None, now)
        admitted = self._services.admission.admit(view, CLAIM, proposal)
        if not admitted.ok:
            return [], []
        until = expires(resumed.remit.bounds, now) if record.asked_how == "delegate" else 0
        taken = claimed(place_of(record), record.holder, now, claim, until)
        return [taken, *admitted.events], [ClaimedTask(resumed, now)]

    # -- running ----------------------------------------------------------------------------------------------

    def _start(self, claim: ClaimedTask) -> None:
        """Give each task an asyncio task of its own; a task group would cost more than the rest of it."""
        resumed = claim.resumed
        agent = self._ground.directory.holder(resumed.remit.holder)
        assert agent is not None  # nothing is claimed for an agent that is not here
        live = resumed.live(agent).limit_time(self._ground.clock, claim.now)
        self._services.conductor.alive.enter(live)  # it can be stopped from now on, not only from its first step on
        running = asyncio.get_running_loop().create_task(self._carry(live, resumed.sends))
        self._busy[live.remit.id] = running
        running.add_done_callback(_log_error)

    async def _carry(self, live: LiveTask, sends: Sends | None) -> None:
        task = live.remit.id
        conductor = self._services.conductor
        try:
            if self._draining:  # it was on its way when that began: it is for whoever is left
                await conductor.put_back(live)
                self._released += 1
            else:
                outcome = await conductor.carry(live, sends)
                self._released += live.control.released and outcome.state == "cancelled" and not live.control.stopped
        except Superseded as error:
            _log.warning("task %s: %s", task, error)
        except StoreError as error:  # the record says that it runs; when this process is gone, someone takes it over
            _log.warning("task %s could not be recorded: %s", task, error)
        finally:
            self._busy.pop(task, None)
            self._changed.set()
            self._wake_listener()

    async def _stop_all(self) -> None:
        """Let nothing run on when `serve` is left; what was claimed is requeued on its way out."""
        with anyio.CancelScope(shield=True):
            await asyncio.sleep(0)  # what is cancelled before its first step could not requeue itself
            running = list(self._busy.values())
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            if self._busy:  # cancelled before they had begun
                await self._caretaker.requeue(set(self._busy))
            if self._unheard:  # cancelled on its way, and written all the same
                await self._caretaker.requeue_claimed_unheard()


def _log_error(running: asyncio.Task[None]) -> None:
    if not running.cancelled() and (error := running.exception()) is not None:
        _log.error("a task could not be carried out: %r", error, exc_info=error)


def _log_trouble(error: Exception, pause: float) -> None:
    if isinstance(error, StoreError):  # it may come back
        _log.warning("the store cannot be used, trying again in %g s: %s", pause, error)
    else:
        _log.error("looking for tasks failed, trying again in %g s: %r", pause, error, exc_info=error)
