"""Slots: how many tasks and calls of an agent run at once, and which tasks wait for which."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Final, TypeAlias

import anyio

from remit.core.events import Unsealed
from remit.core.kinds.tasks import Requeue, Wait, moved, requeued, waiting
from remit.core.records import NamedTuple
from remit.core.remit import LASTS, Pass, expires
from remit.core.times import SECOND
from remit.core.values import Json
from remit.engine.attempt.control import Line
from remit.engine.attempt.endings import AT_ONCE
from remit.engine.attempt.live import LiveTask, resumed_until
from remit.engine.door import Admission
from remit.engine.ground import Ground
from remit.engine.presence.bell import Bell
from remit.engine.presence.heartbeat import Heartbeat
from remit.engine.timing import move_on_after
from remit.ports import Decision, View

_QUEUED: Final = "queued"
_LOOK_SECONDS: Final = 1.0


class Slots(NamedTuple):
    ground: Ground
    admission: Admission
    bell: Bell
    heartbeat: Heartbeat

    # -- waiting ---------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def given_up(self, asker: LiveTask, wait: Wait) -> AsyncGenerator[None]:
        """Release the slots while the body waits for something outside the asker's line of work; several waits may
        overlap."""
        asker.control.step_back()
        try:
            async with self.idle(asker, wait):
                yield
        finally:
            if asker.control.step_up():
                await self.take_again(asker)

    @asynccontextmanager
    async def idle(self, asker: LiveTask, wait: Wait) -> AsyncGenerator[None]:
        """Release the asker's slots while the body waits. Unlike `given_up`, do not take them again afterwards: the
        caller does that if the asker needs them."""
        asker.life.step_aside()
        try:
            await self.rest(asker, wait)
            yield
        finally:
            asker.life.step_in()

    async def rest(self, asker: LiveTask, wait: Wait) -> None:
        """Record the asker as waiting. If no task of its line works, also release the line's slot and record all tasks
        of the line as waiting."""
        members = self._idle_members(asker)
        await self._say_waiting(asker, members if asker.life.rests or asker in members else (asker, *members), wait)

    def _idle_members(self, asker: LiveTask) -> list[LiveTask]:
        """Release the line's slot if none of its tasks works. Return the tasks whose state must change to `waiting`."""
        line = asker.control.own_line
        if line.working or line.rests or not line.queued:
            return []
        line.rests = True
        line.let_go()
        return [member for member in line.members.values() if not member.life.rests]

    async def _say_waiting(self, asker: LiveTask, resting: Iterable[LiveTask], wait: Wait | None = None) -> None:
        """Record the tasks as waiting, so that tasks outside the line can use their slots. `wait` is what the asker
        waits for; the other tasks of its line wait for a task of the line."""
        members = tuple(resting)
        if not members:
            return
        now = self.ground.clock.now()
        for member in members:
            member.life.rest()

        def decide(view: View) -> Decision[None]:
            asker.must_hold(view)
            at_work = [member for member in members if _stands(view, member, "running")]
            waits = [(member, wait if member is asker else None) for member in at_work]
            return Decision(None, tuple(_waits(member, now, own or _line_wait(member)) for member, own in waits))

        await self.ground.store.tx(self.ground.ids.new(), decide)

    # -- resuming --------------------------------------------------------------------------------------------

    async def take_again(self, asker: LiveTask) -> None:
        """Take the slots again after a wait. If none is free, wait before all tasks that have not started. If the asker
        still waits for others, only check whether its whole line waits."""
        if asker.life.waits:
            await self._say_waiting(asker, self._idle_members(asker))
            return
        line = asker.control.own_line
        async with self.bell.listen() as listener:
            try:
                while True:
                    await line.hold()
                    with anyio.CancelScope(shield=True):
                        if await self._resume(asker) != _QUEUED:
                            return
                    if line.working == 1:  # only the asker would work: do not hold a slot while it cannot run
                        line.rests = True
                        line.let_go()
                    await listener.wait(_LOOK_SECONDS)
            except BaseException:  # a started task must not end while queued: let it continue, if only to stop
                with anyio.CancelScope(shield=True):
                    await self._resume(asker, anyway=True)
                raise

    async def _resume(self, asker: LiveTask, *, anyway: bool = False) -> str:
        state, woken = await self.ground.store.tx(
            self.ground.ids.new(), lambda view: self._resumed(view, asker, anyway=anyway)
        )
        if state != _QUEUED:
            asker.life.wake()
            asker.control.own_line.rests = False
            for member in woken or ():
                member.life.wake()
        return state

    def _resumed(self, view: View, asker: LiveTask, *, anyway: bool) -> Decision[str]:
        remit = asker.remit
        record = view.record(remit.id)
        if record is None or record.fence != asker.attempt.fence or record.state not in ("waiting", "pending"):
            return Decision("as it is", aside=())
        now = self.ground.clock.now()
        free = asker.card.concurrency is None or self.admission.room_for(view, record.holder, now) > 0
        if anyway or (free and self.line_has_room(view, asker)):
            woken = [member for member in self.woken(view, asker) if member is not asker]
            back = () if record.state == "waiting" else (asker,)
            return Decision("running", tuple(self.resumed((asker, *woken), now, back)), aside=woken)
        if record.state == "pending":
            return Decision(_QUEUED)
        back = Requeue(self.heartbeat.worker, record.fence, AT_ONCE, record.attempt, record.failures)
        event = requeued("task.queued", asker.place, remit.holder, now, back, _expiry_in_queue(asker, now))
        return Decision(_QUEUED, (event,))

    # -- a line with another task ------------------------------------------------------------------------------

    @staticmethod
    def concerns(asker: LiveTask) -> bool:
        """Whether slots matter for a task that the asker delegates; usually they do not."""
        line = asker.control.line
        return asker.agent.card.concurrency is not None or (line is not None and line.rests)

    def passing_on(self, view: View, asker: LiveTask, now: int, child: str) -> tuple[Unsealed, ...] | None:
        """Return the events to record with a child that starts in the asker's line: an agent with a concurrency limit
        releases its slot while it waits, and a line that waited works again. Return None if the line has to wait for a
        slot first."""
        line = asker.control.own_line
        if line.rests and not self.line_has_room(view, asker):
            return None
        woken = self.resumed(self.woken(view, asker), now) if line.rests else ()
        if asker.card.concurrency is not None and _stands(view, asker, "running"):
            return (_waits(asker, now, Wait("task", child)), *woken)
        return tuple(woken)

    @staticmethod
    def passed_on(asker: LiveTask) -> None:
        """Update the line and the asker in memory after the events of `passing_on` are recorded."""
        line = asker.control.own_line
        if line.rests:
            line.rests = False
            for member in line.members.values():
                if not member.life.apart and member.card.concurrency is None:
                    member.life.wake()
        if asker.card.concurrency is not None:
            asker.life.rest()

    def line_has_room(self, view: View, asker: LiveTask) -> bool:
        """Whether the asker's line holds a slot of the workspace, or may take one."""
        line = asker.control.own_line
        return not line.queued or _works(view, line) or self.admission.room(view) > 0

    def woken(self, view: View, asker: LiveTask) -> list[LiveTask]:
        """Return the tasks that waited only because their whole line waited. They wait for tasks that they delegated,
        and their agents have no concurrency limit."""
        line = asker.control.own_line
        if not line.rests:
            return []
        return [
            member
            for member in line.members.values()
            if not member.life.apart and member.card.concurrency is None
            if member.life.rests and _stands(view, member, "waiting")
        ]

    @staticmethod
    def resumed(members: Iterable[LiveTask], now: int, queued: Sequence[LiveTask] = ()) -> Iterable[Unsealed]:
        """Return the events that mark these tasks as running again; `queued` are those of them that were queued."""
        return [
            moved("task.resumed", one.place, one.remit.holder, now, _new_expiry(one, now, queued=one in queued))
            for one in members
        ]


def _new_expiry(live: LiveTask, now: int, *, queued: bool = False) -> dict[str, Json]:
    """Return the new expiry of a resumed task, as event data. If the task's clock was stopped, the recorded expiry may
    be long past. A delegated task that was queued gets the time of an attempt again. Return {} if the expiry does not
    change."""
    if live.attempt.asked_how == "delegate" and (queued or live.life.stood_still):
        return {"until": resumed_until(live.agent, live.remit, now)}
    return {"until": expires(live.remit.bounds, now, LASTS)} if live.life.stood_still else {}


def _expiry_in_queue(live: LiveTask, now: int) -> dict[str, Json]:
    """Return the new expiry of a task that waits in the queue for its slot, as event data; {} if it does not change. A
    delegated task normally expires with its attempt. If the machine sleeps, that time would pass, and the task would be
    failed although its process still waits."""
    if live.attempt.asked_how == "delegate" or live.life.stood_still:
        return {"until": expires(live.remit.bounds, now, LASTS)}
    return {}


def _stands(view: View, live: LiveTask, state: str) -> bool:
    standing = view.standing(live.remit.id)
    return standing is not None and standing.state == state and standing.fence == live.attempt.fence


def _works(view: View, line: Line[LiveTask]) -> bool:
    return any(_stands(view, member, "running") for member in line.members.values())


def _waits(live: LiveTask, now: int, wait: Wait) -> Unsealed:
    return waiting(live.place, live.remit.holder, now, wait)


def _line_wait(live: LiveTask) -> Wait:
    """Return what a task waits for while its whole line waits: its child, if there is exactly one."""
    children = [task for task, member in live.control.own_line.members.items() if member.remit.parent == live.remit.id]
    return Wait("task", children[0] if len(children) == 1 else "")


# The result of an admission attempt: the task, and its id, a refusal, or None if the agent is busy and the caller is
# willing to wait.
Attempted: TypeAlias = tuple[LiveTask, Json]

# Requests admission once. A patient caller gets None instead of a refusal if the agent is busy.
Attempt: TypeAlias = Callable[[bool], Awaitable[Attempted]]


class Batch:
    """Several hops that are requested together. No hop starts before all are judged, so that no hop is admitted only
    because another has already ended."""

    __slots__ = ("_all_judged", "_left")

    def __init__(self, size: int) -> None:
        self._left = size
        self._all_judged = asyncio.Event()

    def judged(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._all_judged.set()

    async def wait(self) -> None:
        await self._all_judged.wait()


class Ticket:
    """One hop of a batch, or a single hop without a batch. The other hops of the batch wait until this one is judged or
    has to wait for something else."""

    __slots__ = ("_batch",)

    def __init__(self, batch: Batch | None = None) -> None:
        self._batch = batch

    def judged(self) -> Batch | None:
        """Mark the hop as judged, once. Return the batch to wait for, or None."""
        batch, self._batch = self._batch, None
        if batch is not None:
            batch.judged()
        return batch


ALONE: Final = Ticket()


class BusyAgents:
    """The callers in this process that wait for each busy agent. Only the first of them polls the agent, so that fifty
    waiting callers do not poll fifty times. `patience` is the default wait in seconds."""

    def __init__(self, ground: Ground, admission: Admission, slots: Slots, patience: float) -> None:
        self._ground = ground
        self._admission = admission
        self._slots = slots
        self._patience = round(patience * SECOND)
        self.relieve: Callable[[], Awaitable[object]] | None = None  # releases what dead processes hold
        self._places: dict[str, deque[asyncio.Event]] = {}

    async def admitted(
        self, wish: Pass, attempt: Attempt, asker: LiveTask | None = None, ticket: Ticket = ALONE
    ) -> Attempted:
        """Request admission, and wait while the wanted agent is busy. The asker releases its own slot meanwhile."""
        patience = self._patience if wish.patience is None else wish.patience
        if not patience or wish.to not in self._places:
            rests = asker is not None and asker.control.own_line.rests
            attempted = await (self._again(attempt, asker, patient=patience > 0) if rests else attempt(patience > 0))
            if attempted[1] is not None:
                return attempted
        ticket.judged()
        said = patience if wish.microseconds is None else wish.microseconds
        until = self._ground.clock.ticks() + min(patience, said)
        async with self._in_line(wish.to) as first:
            while True:
                left = until - self._ground.clock.ticks()
                async with self._idle(asker, wish.to):
                    await self._free(first, self._room(wish.to, asker), left / SECOND if left > 0 else _LOOK_SECONDS)
                attempted = await self._again(attempt, asker, patient=self._ground.clock.ticks() < until)
                if attempted[1] is not None:
                    return attempted

    async def _again(self, attempt: Attempt, asker: LiveTask | None, *, patient: bool) -> Attempted:
        """Repeat the admission with a worker slot held. Release the slot again if the agent is still busy."""
        if asker is None:
            return await attempt(patient)
        line = asker.control.own_line
        await line.hold()
        live, answer = await attempt(patient)
        if answer is None and line.rests:
            line.let_go()
        return live, answer

    @asynccontextmanager
    async def _in_line(self, agent: str) -> AsyncGenerator[asyncio.Event]:
        """Join the queue for a busy agent. The yielded event is set when this caller is first."""
        places = self._places.setdefault(agent, deque())
        asked_for = self._admission.asked_for
        first = asyncio.Event()
        places.append(first)
        places[0].set()
        asked_for[agent] = len(places)
        try:
            yield first
        finally:
            places.remove(first)
            asked_for[agent] = len(places)
            if places:
                places[0].set()
            else:
                del self._places[agent], asked_for[agent]

    def _idle(self, asker: LiveTask | None, agent: str) -> AbstractAsyncContextManager[None]:
        return self._slots.idle(asker, Wait("slot", agent)) if asker is not None else nullcontext()

    def _room(self, agent: str, asker: LiveTask | None) -> Callable[[View], bool]:
        def is_free(view: View) -> bool:
            free = self._admission.room_for(view, agent, self._ground.clock.now()) > 0
            return free and (asker is None or self._slots.line_has_room(view, asker))

        return is_free

    async def _free(self, first: asyncio.Event, is_free: Callable[[View], bool], seconds: float) -> None:
        """Wait until this caller is first and the agent is free, at most this long."""
        with move_on_after(self._ground.clock, seconds):
            await first.wait()
            async with self._slots.bell.listen() as listener:
                looked = self._ground.clock.ticks()
                while not await self._ground.store.read(is_free):
                    await listener.wait(_LOOK_SECONDS)
                    if self.relieve is not None and self._ground.clock.ticks() - looked >= SECOND:
                        await self.relieve()  # admission checked before; a process may have died since
                        looked = self._ground.clock.ticks()
