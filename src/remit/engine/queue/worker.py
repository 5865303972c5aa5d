"""Carrying out what is in the queue: claim, run, put back."""

import asyncio
import logging
from typing import Final, NamedTuple, cast

import anyio

from remit.core.events import Unsealed
from remit.core.kinds import Claim, Queued, claimed, moved
from remit.core.record import Record
from remit.core.remit import Remit
from remit.core.values import Json
from remit.engine.attempt.endings import abandoned, announcement, over
from remit.engine.attempt.live import Attempt, LiveTask
from remit.engine.attempt.resume import Resumed, resume
from remit.engine.attempt.turns import Sends, Superseded
from remit.engine.delegation import Services, alive, at
from remit.engine.directory import Agent
from remit.engine.presence.bell import Listener
from remit.engine.queue.caretaker import ROUNDS, Caretaker
from remit.errors import StoreError
from remit.ports import Decision, Dispatcher, View

HANDS: Final = 100  # tasks that one process carries out at a time
BATCH: Final = 64  # tasks claimed in one transaction
_PAUSES: Final = (0.1, 0.5, 2.0)  # seconds before the store is tried again

_UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError, StoreError)

_log = logging.getLogger("remit")


class Claimed(NamedTuple):
    """Work for this process."""

    resumed: Resumed
    breaker_was_open: bool
    now: int


class Worker:
    """One process's hands. `serve` works until it is cancelled or drained; then what is left goes back."""

    def __init__(
        self, services: Services, hands: int = HANDS, dispatcher: Dispatcher | None = None, keep: int | None = None
    ) -> None:
        self._services = services
        self._hands = hands
        self._dispatcher = dispatcher
        self._busy: dict[str, asyncio.Task[None]] = {}  # what holds one of our hands, or waits and holds none
        self._task: asyncio.Task[object] | None = None
        self._draining = False
        self._idle = asyncio.Event()
        self._begun = self._done = 0  # looks at what there is to claim
        self._pull: Listener | None = None
        self._caretaker = Caretaker(services, self._busy, keep)

    @property
    def closing(self) -> bool:
        """Whether what is torn down now is to be carried out by someone else."""
        return self._task is not None and (self._draining or self._task.cancelling() > 0)

    def __len__(self) -> int:
        return len(self._busy)

    def free(self) -> bool:
        return not self._draining and self._free() > 0

    def begin(self, remit: Remit, queued: Queued, now: int, *, breaker_was_open: bool) -> None:
        """Carries out a task that is on record as begun here."""
        hold = Attempt(asked_how=queued.asked_how, queued=True, timeout=queued.timeout, attempts=queued.attempts)
        self._start(Claimed(Resumed(remit, hold), breaker_was_open, now))

    async def serve(self) -> None:
        """Works until it is cancelled or has been drained."""
        services = self._services
        self._task = cast("asyncio.Task[object]", asyncio.current_task())
        services.conductor.closing = lambda: self.closing
        with services.presence.while_serving(self._hands), services.stops.while_working():
            async with services.bell.listen() as self._pull, anyio.create_task_group() as group:
                try:
                    if self._dispatcher is not None:
                        group.start_soon(self._dispatcher.serve, self.wake)
                    await self._rounds()
                finally:
                    await self._stop_all()
                group.cancel_scope.cancel()

    async def wake(self) -> None:
        """There may be something to claim. Comes back when this process has looked and has hands free, so that whoever
        wakes it does not offer what it is about to claim, nor more than it can take."""
        if self._pull is not None:
            self._pull.set()
        look = self._begun + 1
        while (self._done < look or self._free() <= 0) and not self._draining:
            self._idle.clear()
            await self._idle.wait()

    async def drain(self, seconds: float) -> int:
        """Takes nothing more, gives what runs that long to end, and puts the rest back; says how many that were."""
        self._draining = True
        self._idle.set()
        if self._pull is not None:
            self._pull.set()
        with anyio.move_on_after(seconds):
            while self._busy:
                self._idle.clear()
                await self._idle.wait()
        left = list(self._busy)
        for task in left:
            live = self._services.conductor.alive.get(task)
            if live is not None:
                live.release()
        while self._busy:
            self._idle.clear()
            await self._idle.wait()
        return len(left)

    async def _rounds(self) -> None:
        assert self._pull is not None
        failures = 0
        while not (self._draining and not self._busy):
            try:
                pause = await self._round()
                failures = 0
            except Exception as error:  # noqa: BLE001 - the work in hand goes on, and so must whoever looks for more
                pause = _PAUSES[min(failures, len(_PAUSES) - 1)]
                failures += 1
                _told(error, pause)
            await self._pull.wait(pause)

    async def _round(self) -> float:
        """Does what there is to do; says for how long there will be nothing."""
        await self._caretaker.tidy()
        self._begun += 1
        while not self._draining and self._free() > 0 and (found := await self._claim()):
            for one in found:
                self._start(one)
        self._done = self._begun
        self._idle.set()
        return ROUNDS if self._draining or self._free() <= 0 else await self._until_due()

    def _free(self) -> int:
        return self._hands - len(self._busy) + self._services.conductor.alive.waiting

    async def _until_due(self) -> float:
        now = self._services.clock.now()
        due = await self._services.store.read(lambda view: view.next_due(now))
        return ROUNDS if due is None else min(ROUNDS, max(0.001, (due - now) / 1e6))

    # -- claiming ---------------------------------------------------------------------------------------------

    async def _claim(self) -> list[Claimed]:
        """Everything this process may begin now, in one transaction."""
        if not await self._services.store.read(lambda view: view.queues()):
            return []
        found: list[Claimed] = []

        def decide(view: View) -> Decision[int]:
            found.clear()
            facts: list[Unsealed] = []
            now = self._services.clock.now()
            for record in self._due(view, now):
                # However far back a clock was set, no more time is left than there was at the last claim.
                latest = max(now, record.asked_at, record.claimed_at or 0)
                facts += self._take(view, record, latest, found)
            return Decision(len(facts), facts, self._services.presence.first_beat() if facts else None)

        took = await self._services.store.tx(self._services.ids.new(), decide)
        if took:
            self._services.presence.beat_written()
        if took and not found:  # what was there had to be ended: there may be more behind it
            return await self._claim()
        return found

    def _due(self, view: View, now: int) -> list[Record]:
        """Who is first: in the order of asking, as far as each agent and the workspace have room."""
        services = self._services
        most = min(self._free(), BATCH, services.admission.room(view, resuming=True))
        if most <= 0:
            return []
        due: list[Record] = []
        for holder in view.queues():
            room = min(most, services.admission.room_for(view, holder, now, resuming=True))
            room = min(room, services.admission.trusted(view, holder, now))
            if room > 0:
                due += view.due(holder, "", now, room)
        due.sort(key=lambda record: record.began)
        return due[:most]

    def _take(self, view: View, record: Record, now: int, found: list[Claimed]) -> list[Unsealed]:
        services = self._services
        if now >= record.until:
            late = over(view, record, "task.failed", "its time was up before it could begin", now)
            return [*late, *abandoned(view, record.id, now)]
        claim = Claim(services.presence.worker, record.fence + 1, record.attempt + 1)
        try:
            resumed = resume(view, record, claim.fence, claim.attempt)
        except _UNREADABLE as error:
            return _unreadable(view, record, error, now)
        if claim.attempt > resumed.attempt.attempts:
            why = f"the process that carried it out died {record.attempt} times"
            return [*over(view, record, "task.died", why, now), *abandoned(view, record.id, now)]
        allowed, probe = services.admission.breaker_allows(view, record, now)
        if not allowed:
            return []
        found.append(Claimed(resumed, bool(probe) or view.breaker(record.holder).failures > 0, now))
        return [claimed(at(record), record.holder, now, claim), *probe]

    def _start(self, work: Claimed) -> None:
        """Each task has an asyncio task of its own; a task group would cost more than the rest of it."""
        services, resumed = self._services, work.resumed
        agent = services.directory.get(resumed.remit.holder)
        assert agent is not None  # nothing is claimed for an agent that is not here
        live = resumed.fill(alive(resumed.remit, agent, work.now, hold=resumed.attempt))
        live.breaker_was_open = work.breaker_was_open
        services.conductor.alive.enter(live)  # it can be stopped from now on, not only from its first step on
        running = asyncio.get_running_loop().create_task(self._carry(live, agent, resumed.sends))
        self._busy[live.remit.id] = running
        running.add_done_callback(self._ended)

    def _ended(self, running: "asyncio.Task[None]") -> None:
        if not running.cancelled() and (error := running.exception()) is not None:
            _log.error("a task could not be carried out: %r", error, exc_info=error)

    async def _stop_all(self) -> None:
        """Nothing runs on when `serve` is left; what was claimed is put back on its way out."""
        with anyio.CancelScope(shield=True):
            await asyncio.sleep(0)  # what is cancelled before its first step could not put itself back
            running = list(self._busy.values())
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            if self._busy:  # cancelled before they had begun
                await self._caretaker.put_back(set(self._busy))

    async def _carry(self, live: LiveTask, agent: Agent, sends: Sends | None) -> None:
        remit = live.remit
        try:
            await self._services.conductor.carry(live, agent, sends=sends)
        except Superseded as error:
            _log.warning("task %s: %s", remit.id, error)
        except StoreError as error:  # the record says that it runs; when this process is gone, someone takes it over
            _log.warning("task %s could not be recorded: %s", remit.id, error)
        finally:
            self._busy.pop(remit.id, None)
            self._idle.set()
            if self._pull is not None:
                self._pull.set()


def _told(error: Exception, pause: float) -> None:
    if isinstance(error, StoreError):  # it may come back
        _log.warning("the store cannot be used, trying again in %g s: %s", pause, error)
    else:
        _log.error("looking for tasks failed, trying again in %g s: %r", pause, error, exc_info=error)


def _unreadable(view: View, record: Record, error: Exception, now: int) -> list[Unsealed]:
    """One task whose record was damaged is set aside; it must not keep the others waiting."""
    why = f"its record cannot be read ({type(error).__name__}); run `remit doctor`"
    _log.error("task %s: %s", record.id, why)
    data: dict[str, Json] = {"error": f"'{record.holder}' died: {why}", "type": "StoreError"}
    died = moved("task.died", at(record), record.holder, now, data)
    if record.asked_how != "spawn":
        return [died]
    asker = view.record(record.parent)
    to = (asker.holder if asker else "", record.parent)
    return [died, announcement(at(record), record.holder, to, died, now)]
