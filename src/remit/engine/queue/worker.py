"""The worker of a process: it claims, runs and requeues tasks, and cleans up after others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, Final, Protocol, cast

import anyio

from remit.core.kinds.tasks import Lineage, Queued
from remit.core.plan import Lead
from remit.core.remit import Remit
from remit.core.times import SECOND
from remit.engine.accounts import Accounts
from remit.engine.attempt.control import Hands
from remit.engine.attempt.handoffs import Sends
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.operations import started_attempt
from remit.engine.attempt.replay import Resumed
from remit.engine.attempt.turns import Superseded
from remit.engine.consequences import ended_unrun
from remit.engine.presence.bell import Listener
from remit.engine.presence.peers import Peers
from remit.engine.queue.claiming import NOTHING_CLAIMED, ClaimedTask, Claims
from remit.engine.queue.takeover import LATE, ended_when_alone, not_run, take_over
from remit.engine.services import Services
from remit.engine.settings import HANDS, Serving
from remit.engine.timing import move_on_after
from remit.engine.upkeep.prune import Upkeep
from remit.engine.upkeep.tallying import Tallying
from remit.errors import NewerStore, StoreError
from remit.ports import Beat, Decision, Dispatcher, View

_log = logging.getLogger("remit")

_BATCH: Final = 64  # queued tasks that are ended in one transaction because they are late
TAKEN_OVER: Final = "another process has taken it over"


class FiresSchedules(Protocol):
    """The scheduler, as a worker sees it."""

    async def fire(self) -> int | None:
        """Submit the tasks of all due schedules. Return when to call again, or None if there is no schedule."""
        ...


class Worker:
    """Runs queued tasks. `serve` works until it is cancelled or drained; then the rest is requeued."""

    def __init__(
        self,
        services: Services,
        serving: Serving,
        dispatcher: Dispatcher | None,
        scheduler: Callable[[], FiresSchedules],
    ) -> None:
        self._services = services
        self._ground = services.ground
        self._hands = services.conductor.alive.hands = Hands(serving.concurrency or HANDS)
        self._pace = serving.pace
        self._dispatcher = dispatcher
        self._busy: dict[str, asyncio.Task[None]] = {}  # claimed tasks, running or waiting
        self._task: asyncio.Task[object] | None = None
        self.served = 0  # number of `serving` callers
        self._draining = False
        self._released = 0  # requeued tasks since the start of the drain
        self.unreturned = 0  # tasks that could not be requeued
        self._claiming = asyncio.Lock()
        self._unheard = False  # whether a claim is in progress, or was cancelled before its result arrived
        self._taking = 0  # submissions in progress that may start a task here
        self._changed = asyncio.Event()
        self._rounds_begun = self._rounds_done = 0
        self._crowded = True  # whether a task may be waiting for a slot or for capacity
        self._next_due: int | None = None  # otherwise: when the next delayed task is due
        self._listener: Listener | None = None
        self._caretaker = Caretaker(services, self._busy, serving, scheduler)
        self._claims = Claims(services, self._hands.most)

    @property
    def closing(self) -> bool:
        """Whether tasks that are cancelled now should be requeued for another worker."""
        return self._task is not None and (self._draining or self._task.cancelling() > 0)

    def __len__(self) -> int:
        return len(self._busy)

    def free(self) -> bool:
        return not self._draining and self._free() > 0

    def taking(self) -> None:
        """Record that a submission may start a task here."""
        self._taking += 1

    def end_taking(self) -> None:
        """Record that the submission of `taking` is decided, whether or not it has started a task."""
        self._taking -= 1
        self._changed.set()

    def begin(self, remit: Remit, queued: Queued, now: int, lineage: Lineage | None, lead: Lead | None) -> None:
        """Run a task that is recorded as started here; `lineage` is set for a retry, `lead` for a plan or team."""
        self._start(ClaimedTask(Resumed(remit, started_attempt(queued, lineage), lead=lead), now))

    async def serve(self) -> None:
        """Work until cancelled or drained, or until a newer remit has migrated the store (`NewerStore`, in a group)."""
        services = self._services
        self._task = cast("asyncio.Task[object]", asyncio.current_task())
        jobs = [beside() for beside in self._caretaker.beside]
        if self._dispatcher is not None:
            jobs.append(self._dispatcher.serve(self.wake))
        try:
            with services.heartbeat.while_serving(self._hands.most), services.stops.while_working():
                async with services.bell.listen() as self._listener, anyio.create_task_group() as group:
                    try:
                        for job in jobs:
                            group.start_soon(_itself, job)
                        await self._rounds()
                    finally:
                        await self._stop_all()
                    group.cancel_scope.cancel()
        finally:
            for job in jobs:
                job.close()  # else Python warns of one whose task was cancelled before it began

    async def wake(self) -> None:
        """Scan the queue. Return when a scan that started after this call has ended and at least one slot is free, or
        when the worker drains. So the dispatcher does not offer more tasks than this worker can claim."""
        self._wake_listener()
        wanted = self._rounds_begun + 1
        while (self._rounds_done < wanted or self._free() <= 0) and not self._draining:
            await self._next_change()

    async def drain(self, seconds: float) -> int:
        """Stop claiming, wait up to `seconds` for running tasks, and requeue the rest. Tasks that only wait for a
        person are requeued at once. Return the number of requeued tasks."""
        self._draining = True
        async with self._claiming:  # wait for the claim in progress; no claim starts after it
            self._changed.set()
        while self._taking:  # wait for submissions that may start a task here
            await self._next_change()
        self._wake_listener()
        for live in self._live_tasks():
            if live.life.asking and live.control.own_line.rests:  # the answer may take days
                live.control.release()
        with move_on_after(self._ground.clock, seconds if seconds > 0 else 0.0):
            while self._busy:
                await self._next_change()
        for live in self._live_tasks():
            live.control.release()
        self._services.insisting.hurry()
        while self._busy:
            await self._next_change()
        await self._put_back(self._caretaker.requeue_all_strays())
        return self._released + self.unreturned

    def _live_tasks(self) -> list[LiveTask]:
        found = (self._services.conductor.alive.get(task) for task in self._busy)
        return [live for live in found if live is not None]

    async def _put_back(self, writing: Awaitable[None]) -> None:
        """Requeue something. If the store cannot be reached, only log it: stopping must not fail for that."""
        try:
            await writing
        except StoreError as error:  # others take over when the heartbeat stops
            _log.warning("what was left could not be put back into the queue: %s", error)

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
            except Exception as error:  # noqa: BLE001 - running tasks continue, and this loop must too
                pause = self._pace.retry_store[min(failures, len(self._pace.retry_store) - 1)]
                failures += 1
                _bear(error, pause)
            await self._listener.wait(pause)

    async def _round(self) -> float:
        """Do everything that is due: clean up, submit scheduled tasks, claim and start queued tasks. Return the seconds
        until the next round."""
        await self._caretaker.tidy()
        if self._caretaker.next_planned is not None and not self._draining:
            await self._caretaker.fire_schedules()
        self._rounds_begun += 1
        self._heed_all(True)  # wake on every event during the scan: a task that ends now may free the slot we need
        while await self._claim_and_start():
            pass
        self._rounds_done = self._rounds_begun
        self._changed.set()
        self._heed_all(self._crowded)
        pause = self._pace.poll_interval if self._draining or self._free() <= 0 else await self._until_due()
        return pause if self._caretaker.next_planned is None else self._caretaker.until_planned(pause)

    def _heed_all(self, crowded: bool) -> None:
        """Wake on every event if a task waits for capacity, otherwise only on events of the queue."""
        assert self._listener is not None
        self._crowded = self._listener.heeds_all = crowded

    async def _claim_and_start(self) -> bool:
        """Claim tasks and start them. Return whether there may be more to claim. Draining waits for a claim in
        progress."""
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
        due = await self._ground.store.read(lambda view: view.next_due(now)) if self._crowded else self._next_due
        return self._pace.poll_interval if due is None else min(self._pace.poll_interval, max(0.001, (due - now) / 1e6))

    # -- claiming ---------------------------------------------------------------------------------------------

    async def _claim(self) -> list[ClaimedTask]:
        """Claim all tasks that this process may start now, in one transaction."""
        store, heartbeat = self._ground.store, self._services.heartbeat
        now = self._ground.clock.now()

        # Read first: an idle worker must not start a write transaction at every poll.
        def look(view: View) -> tuple[bool, int | None]:
            return (True, None) if view.front(now, 1) else (False, view.next_due(now))

        self._crowded, self._next_due = await store.read(look)
        if not self._crowded:
            return []

        def decide(view: View) -> Decision[int]:
            return NOTHING_CLAIMED if self._draining else self._claims.decide(view, self._free())

        # If we are cancelled in this transaction, the claim may be committed without our knowledge: see `_stop_all`.
        self._unheard = True
        written, claims = await store.tx(self._ground.ids.new(), decide)
        self._unheard = False
        if written:
            heartbeat.beat_written()
        if written and not claims:  # only ended tasks were found: there may be more behind them
            return await self._claim()
        return claims or []

    # -- running ----------------------------------------------------------------------------------------------

    def _start(self, claim: ClaimedTask) -> None:
        """Start a task in its own asyncio task; a task group would cost more than the rest of it."""
        resumed = claim.resumed
        agent = self._ground.directory.holder(resumed.remit.holder)
        assert agent is not None  # only tasks of registered agents are claimed
        live = resumed.live(agent).limit_time(self._ground.clock, claim.now)
        self._services.conductor.alive.enter(live)  # it can be cancelled from now on, not only from its first step
        running = asyncio.get_running_loop().create_task(self._carry(live, resumed.sends))
        self._busy[live.remit.id] = running
        self._claims.suspects.enter(live.remit.id, claim.losses)
        running.add_done_callback(_log_error)

    async def _carry(self, live: LiveTask, sends: Sends | None) -> None:
        task = live.remit.id
        conductor = self._services.conductor
        try:
            if self._draining:  # claimed while draining began: requeue it for another worker
                await conductor.put_back(live)
                self._released += 1
            else:
                outcome = await conductor.carry(live, sends)
                self._released += live.life.stop == "released" and outcome.state == "cancelled"
        except Superseded as error:
            _log.warning("task %s: %s", task, error)
        except StoreError as error:  # the store has it as running: another process takes it over when this one is gone
            _log_unrecorded(task, error)
            self.unreturned += self._draining
        finally:
            if self._busy.get(task) is asyncio.current_task():
                del self._busy[task]
            self._claims.suspects.leave(task)
            self._changed.set()
            if self._crowded or self._draining:
                self._wake_listener()

    async def _stop_all(self) -> None:
        """Cancel all running tasks when `serve` exits. Each task requeues itself."""
        with anyio.CancelScope(shield=True):
            await asyncio.sleep(0)  # a task that is cancelled before its first step could not requeue itself
            running = list(self._busy.values())
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            if self._busy:  # cancelled before their first step
                await self._put_back(self._caretaker.requeue(set(self._busy)))
            if self._unheard:  # the claim was cancelled, and may have been committed anyway
                await self._caretaker.requeue_claimed_unheard()


def _log_error(running: asyncio.Task[None]) -> None:
    if not running.cancelled() and (error := running.exception()) is not None:
        _log.error("a task could not be carried out: %r", error, exc_info=error)


def _log_unrecorded(task: str, error: StoreError) -> None:
    if not isinstance(error, NewerStore):  # `serve` reports it once
        _log.warning("task %s could not be recorded: %s", task, error)


def _bear(error: Exception, pause: float) -> None:
    """Log an error after which the worker tries again. Raise `NewerStore`, because trying again does not help: workers
    of the newer version take over."""
    if isinstance(error, NewerStore):
        raise error
    if isinstance(error, StoreError):  # the store may recover
        _log.warning("the store cannot be used, trying again in %g s: %s", pause, error)
    else:
        _log.error("looking for tasks failed, trying again in %g s: %r", pause, error, exc_info=error)


def _itself(job: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
    """Return the coroutine that it is given: `TaskGroup.start_soon` takes a function that returns one."""
    return job


class Caretaker:
    """The periodic cleanup of a worker: it ends expired tasks, requeues lost ones, takes over from dead processes, and
    submits scheduled tasks. `busy` has the tasks that this worker runs."""

    def __init__(
        self,
        services: Services,
        busy: MutableMapping[str, Any],
        serving: Serving,
        scheduler: Callable[[], FiresSchedules],
    ) -> None:
        self._services = services
        self._ground = services.ground
        self._busy = busy
        self._look_every = round(serving.pace.poll_interval * SECOND)
        self.upkeep = Upkeep(self._ground, serving)
        messenger = services.messenger
        self.beside = [self.upkeep.serve, *([] if messenger is None else [messenger.serve])]  # jobs in the background
        self._peers = Peers(self._ground.clock, services.heartbeat.silence, serving.pace.poll_interval)
        self._tallying = Tallying(self._ground)
        self._looked: int | None = None
        self._strays: dict[str, int] = {}
        self.next_planned: int | None = None  # the earliest planned time of all schedules, at the last look
        self._make_scheduler = scheduler
        self._scheduler: FiresSchedules | None = None  # most workspaces have no schedule

    async def tidy(self) -> None:
        """Run `look` if the poll interval has passed since its last run; otherwise do nothing. The first call also
        publishes the worker's heartbeat and cards."""
        now = self._ground.clock.ticks()
        if self._looked is not None and now - self._looked < self._look_every:
            return
        if self._looked is None:
            await self._services.heartbeat.beat_now()  # other processes see this worker at once
            await self._services.heartbeat.publish()
        self._looked = now
        try:
            await self.look()
        except BaseException:
            # We missed heartbeats while the read failed: restart all timeouts, or we would take over live workers.
            self._peers.restart_timeouts()
            raise

    async def look(self) -> None:
        """Run all periodic checks now: expired tasks, holds and questions, lost tasks, and dead processes."""
        heartbeat = self._services.heartbeat
        await heartbeat.set_clock(idle=not len(self._services.conductor.alive))
        await self._end_late()
        await self._expire()
        await self._stop_what_is_lost()
        await self._requeue_strays()
        self.upkeep.look()
        if heartbeat.lasting:  # in memory there are no heartbeats and no other processes
            await self._look_at_others(heartbeat.worker)
        await self._tallying.tidy()

    async def fire_schedules(self) -> None:
        """Submit the tasks of due schedules."""
        if self.next_planned is None or self._ground.clock.now() < self.next_planned:
            return
        if self._scheduler is None:
            self._scheduler = self._make_scheduler()
        self.next_planned = await self._scheduler.fire()

    def until_planned(self, pause: float) -> float:
        """Return `pause`, shortened so that it ends when the next schedule is due."""
        assert self.next_planned is not None
        return min(pause, max(0.001, (self.next_planned - self._ground.clock.now()) / 1e6))

    async def _look_at_others(self, own: str) -> None:
        beats, unseen = await self._ground.store.read(lambda view: (view.workers(), view.unseen()))
        others = [beat for beat in beats if beat.worker != own]
        for beat in self._peers.gone(others, [worker for worker in unseen if worker != own]):
            await self._take_over(beat)

    async def requeue(self, tasks: set[str]) -> None:
        """Requeue the tasks that the store assigns to this worker but that it does not run. Delegated tasks among them
        fail, and cancelled ones end."""
        await self._ground.store.tx(self._ground.ids.new(), lambda view: self._requeued(view, tasks))
        alive = self._services.conductor.alive
        self._services.insisting.unkept -= tasks
        for task in tasks:
            self._busy.pop(task, None)
            live = alive.get(task)
            if live is not None:
                alive.leave(live)

    async def _end_late(self) -> None:
        """End queued tasks that are past their deadline, and cancelled tasks that no worker holds. Also update
        `next_planned`, the time when the next schedule is due."""
        ground = self._ground

        def decide(view: View) -> Decision[int]:
            now = ground.clock.now()
            late = view.late(now, _BATCH)
            events = [ended_unrun(record, "task.failed", LATE, now) for record in late]
            for task in view.cancelling(""):
                events += ended_when_alone(view, task, set(), now)
            return Decision(len(events), events)

        def look(view: View) -> tuple[bool, int | None]:
            return bool(view.late(ground.clock.now(), 1) or view.cancelling("")), view.next_planned()

        late, self.next_planned = await ground.store.read(look)
        if late:
            await ground.store.tx(ground.ids.new(), decide)

    async def _expire(self) -> None:
        """End holds and questions whose time is up."""
        await Accounts(self._ground).expire()
        await self._services.questions.answers.expire_all()

    async def requeue_all_strays(self) -> None:
        """Requeue all tasks that the store assigns to this worker but that it does not run. Call this when the worker
        drains and no claim is in progress, because no later check would find them."""
        if strays := set(await self._ground.store.read(self._idle)):
            await self.requeue(strays)

    async def requeue_claimed_unheard(self) -> None:
        """Requeue tasks after a claim whose result this process never saw. The claim may commit late, so check in a new
        transaction that runs after it."""
        ground = self._ground
        try:
            await ground.store.tx(ground.ids.new(), lambda view: self._requeued(view, set(self._idle(view))))
        except StoreError as error:  # the store is closed: others take over when the heartbeat stops
            _log.warning("what was being claimed could not be put back: %s", error)

    def _requeued(self, view: View, tasks: set[str]) -> Decision[int]:
        now = self._ground.clock.now()
        held = [record for record in view.tasks_of_worker(self._services.heartbeat.worker) if record.id in tasks]
        events = [event for record in reversed(held) for event in not_run(view, record, now)]
        return Decision(len(events), events)

    def _idle(self, view: View) -> list[str]:
        """Return the tasks that the store assigns to this worker but that it does not run. Skip delegated tasks: they
        run inside their parent. Exception: delegated tasks whose end could not be written."""
        insisting, alive = self._services.insisting, self._services.conductor.alive
        held = view.tasks_of_worker(self._services.heartbeat.worker)
        idle = (record.id for record in held if record.asked_how != "delegate" or record.id in insisting.unkept)
        ours = (task for task in idle if task not in self._busy and task not in insisting.tasks)
        return [task for task in ours if alive.get(task) is None]

    async def _stop_what_is_lost(self) -> None:
        """Stop tasks that other processes have taken over: their results no longer count."""
        alive, worker = self._services.conductor.alive, self._services.heartbeat.worker
        before = {live.remit.id for live in alive.with_lost_claims({})}
        held = await self._ground.store.read(lambda view: {one.id: one.fence for one in view.tasks_of_worker(worker)})
        for live in alive.with_lost_claims(held):
            if live.remit.id in before and live.life.stop != "cancelled":  # it was running before the read
                live.control.stop(TAKEN_OVER)

    async def _requeue_strays(self) -> None:
        """Requeue tasks that the store assigns to this worker but that it does not run: their claim was interrupted,
        or their end could not be recorded. Requeue a task only if two checks find it, because a claim may be in
        progress."""
        now = self._ground.clock.ticks()
        self._strays = {task: self._strays.get(task, now) for task in await self._ground.store.read(self._idle)}
        if strays := {task for task, since in self._strays.items() if now - since >= self._look_every}:
            await self.requeue(strays)

    async def _take_over(self, gone: Beat) -> None:
        ground = self._ground
        await take_over(ground.store, ground.ids, ground.clock, gone, died=self._peers.may_have_died(gone))
