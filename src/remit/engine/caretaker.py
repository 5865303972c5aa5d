"""Looking after what nobody carries out: taking over from processes that are gone, ending what is late, pruning."""

import asyncio
import logging
from collections.abc import MutableMapping
from typing import Final

from remit.core.events import Fact
from remit.core.facts import Claim, Rest, fenced, rested
from remit.core.times import SECOND
from remit.engine.delegate import Floor, at
from remit.engine.endings import AT_ONCE, abandoned, over
from remit.engine.presence import Watch
from remit.engine.prune import prune
from remit.ports import Beat, Decision, Record, View

ROUNDS: Final = 1.0  # seconds between two looks
PRUNING: Final = 3_600 * SECOND  # between two looks at what is old
_BATCH: Final = 64

_log = logging.getLogger("remit")


class Caretaker:
    """One in every worker. `busy` is what that worker carries out; `keep` for how long what has ended is kept, for ever
    if not said."""

    def __init__(self, floor: Floor, busy: MutableMapping[str, "asyncio.Task[None]"], keep: int | None) -> None:
        self._floor = floor
        self._busy = busy
        self._keep = keep
        self._pruned = floor.clock.ticks()
        self._watch = Watch(floor.clock, floor.presence.silence)
        self._looked: int | None = None
        self._strays: dict[str, float] = {}

    async def tidy(self) -> None:
        """Now and then: it is called much more often than there is something to do."""
        now = self._floor.clock.ticks()
        if self._looked is not None and now - self._looked < ROUNDS * SECOND:
            return
        if self._looked is None:
            await self._floor.presence.now()  # others see at once that someone is there
        self._looked = now
        await self.look()

    async def look(self) -> None:
        """Does whatever there is to do."""
        await self._end_late()
        await self._heal()
        await self._prune()
        beats = await self._floor.store.read(lambda view: view.workers())
        for beat in self._watch.gone([one for one in beats if one.worker != self._floor.presence.worker]):
            await self._take_over(beat)

    async def put_back(self, tasks: set[str]) -> None:
        """What is on record as ours and is not."""
        floor = self._floor

        def decide(view: View) -> Decision[int]:
            now = floor.clock.now()
            held = [record for record in view.held(floor.presence.worker) if record.id in tasks]
            facts = [fact for record in reversed(held) for fact in _left_behind(view, record, set(), now)]
            return Decision(len(facts), facts)

        await floor.store.tx(floor.ids.new(), decide)
        for task in tasks:
            self._busy.pop(task, None)
            live = floor.conductor.runs.get(task)
            if live is not None:
                floor.conductor.runs.leave(live)

    async def _end_late(self) -> None:
        """What nobody has begun in time, and what is cancelled and in nobody's hands."""
        floor = self._floor

        def decide(view: View) -> Decision[int]:
            now = floor.clock.now()
            facts: list[Fact] = []
            for record in view.late(now, _BATCH):
                facts += over(view, record, "task.failed", "its time was up before it could begin", now)
                facts += abandoned(view, record.id, now)
            for task in view.cancelling(""):
                facts += _when_alone(view, task, set(), now)
            return Decision(len(facts), facts)

        late = await floor.store.read(lambda view: bool(view.late(floor.clock.now(), 1) or view.cancelling("")))
        if late:
            await floor.store.tx(floor.ids.new(), decide)

    async def _prune(self) -> None:
        """So that a store does not grow for ever; a process that is here for a moment never does."""
        floor, now = self._floor, self._floor.clock.ticks()
        if self._keep is not None and now - self._pruned >= PRUNING:
            self._pruned = now
            await prune(floor.store, floor.clock, floor.ids, self._keep)

    async def _heal(self) -> None:
        """A task that is on record as ours, and that nobody here carries out, goes back into the queue: we were torn
        down before we knew of our claim, or its end could not be recorded. Seen twice, as a claim may be on its way."""
        floor = self._floor
        held = await floor.store.read(lambda view: view.held(floor.presence.worker))
        idle = (one.id for one in held if one.way != "delegate" and one.id not in self._busy)
        now = asyncio.get_running_loop().time()
        self._strays = {one: self._strays.get(one, now) for one in idle if floor.conductor.runs.get(one) is None}
        if strays := {one for one, since in self._strays.items() if now - since >= ROUNDS}:
            await self.put_back(strays)

    async def _take_over(self, gone: Beat) -> None:
        floor = self._floor

        def decide(view: View) -> Decision[int]:
            now = floor.clock.now()
            ending: set[str] = set()
            held = reversed(view.held(gone.worker))  # what is below comes first
            found = [_left_behind(view, record, ending, now) for record in held]
            facts = [fact for made in found for fact in made]
            # What waits for others to stop is looked at again.
            return Decision(len(facts), facts, gone._replace(count=0) if all(found) else None)

        if await floor.store.tx(floor.ids.new(), decide):
            _log.info("took over what a process left behind that is gone: %s", gone.worker)


def _left_behind(view: View, record: Record, ending: set[str], now: int) -> list[Fact]:
    """What becomes of a task whose process is gone."""
    if record.status == "cancelling":
        return _when_alone(view, record.id, ending, now)
    if record.parent and record.way == "delegate":
        parent = view.standing(record.parent)
        open_ = parent is not None and parent.status in ("pending", "running", "waiting")
        if not open_:
            return over(view, record, "task.cancelled", "its asker ended without it", now)
        return [fenced(at(record), record.holder, now, Claim("", record.fence + 1, record.attempt))]
    if record.lead:
        failed = over(view, record, "task.failed", f"the process that ran this {record.lead} is gone", now)
        return [*failed, *abandoned(view, record.id, now, ending)]
    rest = Rest("", record.fence + 1, AT_ONCE, record.attempt, record.tries)
    return [rested("task.lost", at(record), record.holder, now, rest, {"lost_by": record.worker})]


def _when_alone(view: View, task: str, ending: set[str], now: int) -> list[Fact]:
    """Cancelled, once nothing is left under it that is not ending with it."""
    first, *rest = view.below(task)
    if any(record.id not in ending for record in rest):
        return []
    ending.add(task)
    return over(view, first, "task.cancelled", "cancelled", now)
