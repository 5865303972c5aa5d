"""Slots: whoever waits for another task holds none, and takes one again before it goes on."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import anyio

from remit.core.facts import Rest, moved, rested
from remit.engine.admission import Admission
from remit.engine.bell import Bell
from remit.engine.endings import AT_ONCE
from remit.engine.live import Live, Runs
from remit.engine.presence import Presence
from remit.ports import Clock, Decision, Ids, Store, View

_QUEUED: Final = "queued"
_LOOK_SECONDS: Final = 1.0


class Slots(NamedTuple):
    store: Store
    clock: Clock
    ids: Ids
    admission: Admission
    runs: Runs
    bell: Bell
    presence: Presence

    @asynccontextmanager
    async def given_up(self, asker: Live) -> AsyncGenerator[None]:
        """While the asker waits; it may wait for several at once."""
        try:
            await self._pause(asker)
            yield
        finally:
            await self._go_on(asker)

    async def _pause(self, asker: Live) -> None:
        asker.waits += 1
        if asker.waits == 1:
            self.runs.waiting += asker.hold.queued
            fact = moved("task.waiting", asker.place, asker.remit.holder, self.clock.now(), {})

            def wait(view: View) -> Decision[None]:
                asker.must_hold(view)
                standing = view.standing(asker.remit.id)
                return Decision(None, (fact,) if standing is not None and standing.status == "running" else ())

            await self.store.tx(self.ids.new(), wait)  # whoever takes it over waits again

    async def _go_on(self, asker: Live) -> None:
        """Takes a slot again; if there is none it stands in the queue, before all that has not begun yet."""
        asker.waits -= 1
        if asker.waits:
            return
        self.runs.waiting -= asker.hold.queued
        said = ""
        async with self.bell.hang() as pull:
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

    def _resumed(self, view: View, asker: Live, *, anyway: bool = False) -> Decision[str]:
        remit = asker.remit
        record = view.record(remit.id)
        if record is None or record.fence != asker.hold.fence or record.status not in ("waiting", "pending"):
            return Decision("as it is")
        now = self.clock.now()
        if anyway or self.admission.has_room(view, record, now):
            return Decision("running", (moved("task.resumed", asker.place, remit.holder, now, {}),))
        if record.status == "pending":
            return Decision(_QUEUED)
        rest = Rest(self.presence.worker, record.fence, AT_ONCE, record.attempt, record.tries)
        return Decision(_QUEUED, (rested("task.queued", asker.place, remit.holder, now, rest, {}),))
