"""Slots: whoever waits for another task holds none, and takes one again before it goes on."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import anyio

from remit.core.kinds import Requeue, moved, requeued
from remit.engine.admission import Admission
from remit.engine.attempt.endings import AT_ONCE
from remit.engine.attempt.live import LiveTask, LiveTasks
from remit.engine.presence.bell import Bell
from remit.engine.presence.heartbeat import Presence
from remit.ports import Clock, Decision, Ids, Store, View

_QUEUED: Final = "queued"
_LOOK_SECONDS: Final = 1.0


class Slots(NamedTuple):
    store: Store
    clock: Clock
    ids: Ids
    admission: Admission
    runs: LiveTasks
    bell: Bell
    presence: Presence

    @asynccontextmanager
    async def given_up(self, asker: LiveTask) -> AsyncGenerator[None]:
        """While the asker waits; it may wait for several at once."""
        try:
            await self._pause(asker)
            yield
        finally:
            await self._go_on(asker)

    async def _pause(self, asker: LiveTask) -> None:
        asker.waits += 1
        if asker.waits == 1:
            self.runs.waiting += asker.attempt.queued
            fact = moved("task.waiting", asker.place, asker.remit.holder, self.clock.now(), {})

            def wait(view: View) -> Decision[None]:
                asker.must_hold(view)
                standing = view.standing(asker.remit.id)
                return Decision(None, (fact,) if standing is not None and standing.state == "running" else ())

            await self.store.tx(self.ids.new(), wait)  # whoever takes it over waits again

    async def _go_on(self, asker: LiveTask) -> None:
        """Takes a slot again; if there is none it stands in the queue, before all that has not begun yet."""
        asker.waits -= 1
        if asker.waits:
            return
        self.runs.waiting -= asker.attempt.queued
        said = ""
        async with self.bell.listen() as pull:
            with anyio.CancelScope(shield=True):
                said = await self.store.tx(self.ids.new(), lambda view: self._resumed(view, asker))
            try:
                while said == _QUEUED:
                    await pull.wait(_LOOK_SECONDS)
                    said = await self.store.tx(self.ids.new(), lambda view: self._resumed(view, asker))
            except BaseException:  # nothing ends out of the queue but what never began: it goes on, if only to stop
                with anyio.CancelScope(shield=True):
                    await self.store.tx(self.ids.new(), lambda view: self._resumed(view, asker, anyway=True))
                raise

    def _resumed(self, view: View, asker: LiveTask, *, anyway: bool = False) -> Decision[str]:
        remit = asker.remit
        record = view.record(remit.id)
        if record is None or record.fence != asker.attempt.fence or record.state not in ("waiting", "pending"):
            return Decision("as it is")
        now = self.clock.now()
        if anyway or self.admission.has_room(view, record, now):
            return Decision("running", (moved("task.resumed", asker.place, remit.holder, now, {}),))
        if record.state == "pending":
            return Decision(_QUEUED)
        rest = Requeue(self.presence.worker, record.fence, AT_ONCE, record.attempt, record.failures)
        return Decision(_QUEUED, (requeued("task.queued", asker.place, remit.holder, now, rest, {}),))
