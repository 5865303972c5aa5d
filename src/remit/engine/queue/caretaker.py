"""Looking after what nobody carries out: taking over from processes that are gone, ending what is late, pruning."""

import asyncio
import logging
from collections.abc import MutableMapping
from typing import Final

from remit.core.events import Unsealed
from remit.core.kinds import Claim, Requeue, fenced, requeued
from remit.core.record import Record
from remit.core.times import SECOND
from remit.engine.attempt.endings import AT_ONCE, abandoned, over
from remit.engine.delegation import Services, at
from remit.engine.presence.heartbeat import Peers
from remit.engine.upkeep.prune import prune
from remit.ports import Beat, Decision, View

ROUNDS: Final = 1.0  # seconds between two looks
PRUNING: Final = 3_600 * SECOND  # between two looks at what is old
_BATCH: Final = 64

_log = logging.getLogger("remit")


class Caretaker:
    """One in every worker. `busy` is what that worker carries out; `keep` for how long what has ended is kept, for ever
    if not said."""

    def __init__(self, services: Services, busy: MutableMapping[str, "asyncio.Task[None]"], keep: int | None) -> None:
        self._services = services
        self._busy = busy
        self._keep = keep
        self._pruned = services.clock.ticks()
        self._watch = Peers(services.clock, services.presence.silence)
        self._looked: int | None = None
        self._strays: dict[str, float] = {}

    async def tidy(self) -> None:
        """Now and then: it is called much more often than there is something to do."""
        now = self._services.clock.ticks()
        if self._looked is not None and now - self._looked < ROUNDS * SECOND:
            return
        if self._looked is None:
            await self._services.presence.beat_now()  # others see at once that someone is there
        self._looked = now
        await self.look()

    async def look(self) -> None:
        """Does whatever there is to do."""
        await self._end_late()
        await self._heal()
        await self._prune()
        beats = await self._services.store.read(lambda view: view.workers())
        for beat in self._watch.gone([one for one in beats if one.worker != self._services.presence.worker]):
            await self._take_over(beat)

    async def put_back(self, tasks: set[str]) -> None:
        """What is on record as ours and is not."""
        services = self._services

        def decide(view: View) -> Decision[int]:
            now = services.clock.now()
            held = [record for record in view.held(services.presence.worker) if record.id in tasks]
            facts = [fact for record in reversed(held) for fact in _left_behind(view, record, set(), now)]
            return Decision(len(facts), facts)

        await services.store.tx(services.ids.new(), decide)
        for task in tasks:
            self._busy.pop(task, None)
            live = services.conductor.alive.get(task)
            if live is not None:
                services.conductor.alive.leave(live)

    async def _end_late(self) -> None:
        """What nobody has begun in time, and what is cancelled and in nobody's hands."""
        services = self._services

        def decide(view: View) -> Decision[int]:
            now = services.clock.now()
            facts: list[Unsealed] = []
            for record in view.late(now, _BATCH):
                facts += over(view, record, "task.failed", "its time was up before it could begin", now)
                facts += abandoned(view, record.id, now)
            for task in view.cancelling(""):
                facts += _when_alone(view, task, set(), now)
            return Decision(len(facts), facts)

        late = await services.store.read(lambda view: bool(view.late(services.clock.now(), 1) or view.cancelling("")))
        if late:
            await services.store.tx(services.ids.new(), decide)

    async def _prune(self) -> None:
        """So that a store does not grow for ever; a process that is here for a moment never does."""
        services, now = self._services, self._services.clock.ticks()
        if self._keep is not None and now - self._pruned >= PRUNING:
            self._pruned = now
            await prune(services.store, services.clock, services.ids, self._keep)

    async def _heal(self) -> None:
        """A task that is on record as ours, and that nobody here carries out, goes back into the queue: we were torn
        down before we knew of our claim, or its end could not be recorded. Seen twice, as a claim may be on its way."""
        services = self._services
        held = await services.store.read(lambda view: view.held(services.presence.worker))
        idle = (one.id for one in held if one.asked_how != "delegate" and one.id not in self._busy)
        now = asyncio.get_running_loop().time()
        self._strays = {one: self._strays.get(one, now) for one in idle if services.conductor.alive.get(one) is None}
        if strays := {one for one, since in self._strays.items() if now - since >= ROUNDS}:
            await self.put_back(strays)

    async def _take_over(self, gone: Beat) -> None:
        services = self._services

        def decide(view: View) -> Decision[int]:
            now = services.clock.now()
            ending: set[str] = set()
            held = reversed(view.held(gone.worker))  # what is below comes first
            found = [_left_behind(view, record, ending, now) for record in held]
            facts = [fact for made in found for fact in made]
            # What waits for others to stop is looked at again.
            return Decision(len(facts), facts, gone._replace(count=0) if all(found) else None)

        if await services.store.tx(services.ids.new(), decide):
            _log.info("took over what a process left behind that is gone: %s", gone.worker)


def _left_behind(view: View, record: Record, ending: set[str], now: int) -> list[Unsealed]:
    """What becomes of a task whose process is gone."""
    if record.state == "cancelling":
        return _when_alone(view, record.id, ending, now)
    if record.parent and record.asked_how == "delegate":
        parent = view.standing(record.parent)
        open_ = parent is not None and parent.state in ("pending", "running", "waiting")
        if not open_:
            return over(view, record, "task.cancelled", "its asker ended without it", now)
        return [fenced(at(record), record.holder, now, Claim("", record.fence + 1, record.attempt))]
    if record.led_as:
        failed = over(view, record, "task.failed", f"the process that ran this {record.led_as} is gone", now)
        return [*failed, *abandoned(view, record.id, now, ending)]
    rest = Requeue("", record.fence + 1, AT_ONCE, record.attempt, record.failures)
    return [requeued("task.lost", at(record), record.holder, now, rest, {"lost_by": record.worker})]


def _when_alone(view: View, task: str, ending: set[str], now: int) -> list[Unsealed]:
    """Cancelled, once nothing is left under it that is not ending with it."""
    first, *rest = view.below(task)
    if any(record.id not in ending for record in rest):
        return []
    ending.add(task)
    return over(view, first, "task.cancelled", "cancelled", now)
