"""Waiting for an agent that works on as much as it may: in the order of asking, as long as whoever asks is patient."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Final, NamedTuple, TypeAlias

from remit.core.remit import Pass
from remit.core.times import SECOND
from remit.core.values import Json
from remit.engine.admission import Admission
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.slots import Slots
from remit.engine.ground import Ground
from remit.engine.timing import move_on_after
from remit.ports import View

_LOOK_SECONDS: Final = 1.0


class Attempted(NamedTuple):
    """What the door answered: the task's id, a refusal, or None if it was full and whoever asks is patient."""

    live: LiveTask
    answer: Json


# Asks the door once. Whoever is patient is not refused for want of room.
Attempt: TypeAlias = Callable[[bool], Awaitable[Attempted]]


class Batch:
    """Several hops that are asked for at once. Each is judged before the first of them begins, so that none is admitted
    only because another was quick."""

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
    """One hop of a batch, or one by itself. The others wait until it is judged, or has to wait for something else."""

    __slots__ = ("_batch",)

    def __init__(self, batch: Batch | None = None) -> None:
        self._batch = batch

    def judged(self) -> Batch | None:
        """Say that it is; once. Gives the batch to wait for, if there is one."""
        batch, self._batch = self._batch, None
        if batch is not None:
            batch.judged()
        return batch


ALONE: Final = Ticket()


class BusyAgents:
    """Those who wait here for each busy agent. Only the first of them looks whether it is free, so that fifty who wait
    do not look fifty times. `patience` is for those who say nothing about it, in seconds."""

    def __init__(self, ground: Ground, admission: Admission, slots: Slots, patience: float) -> None:
        self._ground = ground
        self._admission = admission
        self._slots = slots
        self._patience = round(patience * SECOND)
        self.relieve: Callable[[], Awaitable[object]] | None = None  # frees what processes hold that are gone
        self._places: dict[str, deque[asyncio.Event]] = {}

    async def admitted(
        self, wish: Pass, attempt: Attempt, asker: LiveTask | None = None, ticket: Ticket = ALONE
    ) -> Attempted:
        """Ask the door, and wait while the wanted agent is busy. An asker gives up its own slot meanwhile."""
        patience = self._patience if wish.patience is None else wish.patience
        if not patience or wish.to not in self._places:
            rests = asker is not None and asker.control.own_line.rests
            attempted = await (self._again(attempt, asker, patient=patience > 0) if rests else attempt(patience > 0))
            if attempted.answer is not None:
                return attempted
        ticket.judged()
        said = patience if wish.microseconds is None else wish.microseconds
        until = self._ground.clock.ticks() + min(patience, said)
        async with self._in_line(wish.to) as first:
            while True:
                left = until - self._ground.clock.ticks()
                async with self._idle(asker):
                    await self._free(first, self._room(wish.to, asker), left / SECOND if left > 0 else _LOOK_SECONDS)
                attempted = await self._again(attempt, asker, patient=self._ground.clock.ticks() < until)
                if attempted.answer is not None:
                    return attempted

    async def _again(self, attempt: Attempt, asker: LiveTask | None, *, patient: bool) -> Attempted:
        """Ask the door again, with a hand to begin with; it is not held while we wait for something else."""
        if asker is None:
            return await attempt(patient)
        line = asker.control.own_line
        await line.hold()
        attempted = await attempt(patient)
        if attempted.answer is None and line.rests:
            line.let_go()
        return attempted

    @asynccontextmanager
    async def _in_line(self, agent: str) -> AsyncGenerator[asyncio.Event]:
        """Stand behind those who wait for the agent already; the event says that nobody is before us any more."""
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

    def _idle(self, asker: LiveTask | None) -> AbstractAsyncContextManager[None]:
        return self._slots.idle(asker) if asker is not None else nullcontext()

    def _room(self, agent: str, asker: LiveTask | None) -> Callable[[View], bool]:
        def is_free(view: View) -> bool:
            free = self._admission.room_for(view, agent, self._ground.clock.now()) > 0
            return free and (asker is None or self._slots.line_has_room(view, asker))

        return is_free

    async def _free(self, first: asyncio.Event, is_free: Callable[[View], bool], seconds: float) -> None:
        """Wait until we are first and it is free, but no longer than that."""
        with move_on_after(self._ground.clock, seconds):
            await first.wait()
            async with self._slots.bell.listen() as listener:
                looked = self._ground.clock.ticks()
                while not await self._ground.store.read(is_free):
                    await listener.wait(_LOOK_SECONDS)
                    if self.relieve is not None and self._ground.clock.ticks() - looked >= SECOND:
                        await self.relieve()  # the door looked before; a holder may have died since
                        looked = self._ground.clock.ticks()
