"""Slots: whoever waits for another task holds none, and takes one again before it goes on."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import anyio

from remit.core.kinds import Requeue, moved, requeued
from remit.engine.admission import Admission
from remit.engine.attempt.endings import AT_ONCE
from remit.engine.attempt.live import LiveTask, LiveTasks
from remit.engine.ground import Ground
from remit.engine.presence.bell import Bell
from remit.engine.presence.heartbeat import Heartbeat
from remit.ports import Decision, View

_QUEUED: Final = "queued"
_LOOK_SECONDS: Final = 1.0


class Slots(NamedTuple):
    ground: Ground
    admission: Admission
    alive: LiveTasks
    bell: Bell
    heartbeat: Heartbeat

    @asynccontextmanager
    async def given_up(self, asker: LiveTask) -> AsyncGenerator[None]:
        """Give up the asker's slot while it waits; it may wait for several tasks at once."""
        try:
            await self._pause(asker)
            yield
        finally:
            await self._go_on(asker)

    async def _pause(self, asker: LiveTask) -> None:
        asker.control.waits += 1
        if asker.control.waits == 1:
            self.alive.waiting += asker.attempt.queued
            waiting = moved("task.waiting", asker.place, asker.remit.holder, self.ground.clock.now(), {})

            def decide(view: View) -> Decision[None]:
                asker.must_hold(view)
                standing = view.standing(asker.remit.id)
                return Decision(None, (waiting,) if standing is not None and standing.state == "running" else ())

            await self.ground.store.tx(self.ground.ids.new(), decide)  # whoever takes it over waits again

    async def _go_on(self, asker: LiveTask) -> None:
        """Take a slot again; if there is none, stand in the queue before all that has not begun yet."""
        asker.control.waits -= 1
        if asker.control.waits:
            return
        self.alive.waiting -= asker.attempt.queued
        async with self.bell.listen() as listener:
            state = ""
            with anyio.CancelScope(shield=True):
                state = await self._resume(asker)
            try:
                while state == _QUEUED:
                    await listener.wait(_LOOK_SECONDS)
                    state = await self._resume(asker)
            except BaseException:  # nothing ends out of the queue but what never began: it goes on, if only to stop
                with anyio.CancelScope(shield=True):
                    await self._resume(asker, anyway=True)
                raise

    async def _resume(self, asker: LiveTask, *, anyway: bool = False) -> str:
        return await self.ground.store.tx(self.ground.ids.new(), lambda view: self._resumed(view, asker, anyway=anyway))

    def _resumed(self, view: View, asker: LiveTask, *, anyway: bool) -> Decision[str]:
        remit = asker.remit
        record = view.record(remit.id)
        if record is None or record.fence != asker.attempt.fence or record.state not in ("waiting", "pending"):
            return Decision("as it is")
        now = self.ground.clock.now()
        if anyway or self.admission.has_room(view, record, now):
            return Decision("running", (moved("task.resumed", asker.place, remit.holder, now, {}),))
        if record.state == "pending":
            return Decision(_QUEUED)
        back = Requeue(self.heartbeat.worker, record.fence, AT_ONCE, record.attempt, record.failures)
        return Decision(_QUEUED, (requeued("task.queued", asker.place, remit.holder, now, back, {}),))
