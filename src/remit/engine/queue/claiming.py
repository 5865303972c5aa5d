"""Choosing the queued tasks that this process starts next, and claiming them."""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from remit.core.events import Unsealed, read
from remit.core.guards import CLAIM
from remit.core.kinds.tasks import Claim, FirstData, claimed
from remit.core.lifecycle import Record
from remit.core.plan import lead_restored
from remit.core.remit import STAND_IN, known_pass
from remit.core.values import INT_LIMIT
from remit.engine.attempt.live import resumed_until
from remit.engine.attempt.replay import Resumed, resume
from remit.engine.consequences import ended_unrun
from remit.engine.directory import Directory
from remit.engine.door import Proposal, place_of
from remit.engine.queue.takeover import LATE, SUSPECT, Suspects, why_dead
from remit.engine.services import Services
from remit.errors import Refused, StoreError
from remit.ports import Decision, View

# Exceptions of reading a damaged record.
UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError, StoreError)
_LOOKED_AT: Final = 256  # queued plans that are read; the first ones may all be for other processes


def _due_here(
    view: View, directory: Directory, room: tuple[str, int], now: int, losses: int = INT_LIMIT
) -> list[Record]:
    """Return the first tasks in the queue of a holder that fit its free capacity and that this process can run, without
    those that were lost more than `losses` times."""
    holder, most = room
    if holder != STAND_IN:
        return view.due(holder, "", now, most, losses)
    ours: list[Record] = []
    for record in view.due(holder, "", now, _LOOKED_AT, losses):
        if len(ours) < most and _has_all(view, directory, record):
            ours.append(record)
    return ours


def is_here(view: View, directory: Directory, record: Record) -> bool:
    """Whether this process can run a task whose holder it has; if the task is a plan, whether it has the agents of all
    steps."""
    return record.holder != STAND_IN or _has_all(view, directory, record)


def _has_all(view: View, directory: Directory, record: Record) -> bool:
    """Whether this process has all members of a plan. A record that cannot be read may be claimed by any process, which
    then fails the task."""
    try:
        began = view.event(record.began)
        assert began is not None  # a row points at the event that made it
        lead = lead_restored(read(began, FirstData)["lead"])  # pyright: ignore[reportTypedDictNotRequiredAccess] - it has one
        return lead.plan is None or directory.has_all(lead.plan)
    except UNREADABLE:
        return True


BATCH: Final = 64  # tasks claimed in one transaction
_BESIDE: Final = 64  # further tasks to read if some of the first have no capacity or are for other processes
NOTHING_CLAIMED: Final[Decision[int]] = Decision(0)

_log = logging.getLogger("remit")


class ClaimedTask(NamedTuple):
    """A task for this process to run."""

    resumed: Resumed
    now: int
    losses: int = 0


class Claims:
    """Decides which queued tasks this worker claims. `suspects` are the claimed tasks that have lost several
    processes."""

    def __init__(self, services: Services, hands: int) -> None:
        self.suspects = Suspects(hands)
        self._services = services
        self._ground = services.ground
        self._is_blocked = False  # the last look found tasks, and none of them may start

    def decide(self, view: View, free: int) -> Decision[int]:
        """Claim all tasks that this process may start now, up to `free` slots; end tasks that can never start. The
        answer is the number of events. `aside` is the list of claimed tasks."""
        events: list[Unsealed] = []
        claims: list[ClaimedTask] = []
        now = self._ground.clock.now()
        alive = self._services.conductor.alive
        for record in self._due(view, now, free):
            if alive.get(record.id) is not None:  # still running from an earlier claim that is being stopped
                continue
            # If a clock was set back, the task must not gain time since its last claim.
            latest = max(now, record.asked_at, record.claimed_at or 0)
            taken = self._admit_task(view, record, latest)
            events += taken[0]
            claims += taken[1]
        return Decision(len(events), events, self._services.heartbeat.first_beat() if events else None, claims)

    def _due(self, view: View, now: int, free: int) -> list[Record]:
        """Return the tasks to claim next, by priority, then oldest first, within the limits of each agent and of the
        workspace.

        One query over all queues is enough while its first tasks fit and none is a suspect. Otherwise query each queue,
        so that a blocked queue does not hold up the others. After a scan in which all queues were blocked, skip the
        common query: during a burst for a full agent, each submission would read the same first tasks again."""
        most = min(free, BATCH, self._services.admission.room(view, resuming=True))
        if most <= 0:
            return []
        for looked_at in () if self._is_blocked else (most, most + _BESIDE):
            front = view.front(now, looked_at)
            if any(record.losses >= SUSPECT for record in front):
                break
            first = self._with_room(view, front, now, most)
            if len(first) == most or len(front) < looked_at:
                return first
        due = self._due_by_queue(view, now, most)
        self._is_blocked = not due
        return due

    def _room(self, view: View, holder: str, now: int, most: int) -> int:
        admission = self._services.admission
        room = min(most, admission.room_for(view, holder, now, resuming=True))
        return min(room, admission.trusted(view, holder, now)) if room > 0 else 0

    def _with_room(self, view: View, front: list[Record], now: int, most: int) -> list[Record]:
        """Return the tasks that this process can run, up to the free capacity of each agent."""
        left: dict[str, int] = {}
        taken: list[Record] = []
        for record in front:
            holder = record.holder
            if holder not in left:
                left[holder] = self._room(view, holder, now, most)
            if left[holder] > 0 and is_here(view, self._ground.directory, record):
                left[holder] -= 1
                taken.append(record)
        return taken[:most]

    def _due_by_queue(self, view: View, now: int, most: int) -> list[Record]:
        rooms = [(holder, room) for holder in view.queues() if (room := self._room(view, holder, now, most)) > 0]
        here = self._ground.directory
        due = [record for room in rooms for record in _due_here(view, here, room, now)]
        due.sort(key=_place_in_queue)
        chosen = self.suspects.choose(due, self._waits)
        if chosen.whole:
            return due[:most]
        # Suspects that have to wait must not hold up the tasks behind them.
        fresh = [one for room in rooms for one in _due_here(view, here, room, now, SUSPECT - 1)]
        due = sorted({one.id: one for one in (*fresh, *chosen.records)}.values(), key=_place_in_queue)
        return _within(due, rooms, most)

    def _waits(self, task: str) -> bool:
        live = self._services.conductor.alive.get(task)
        return live is not None and live.control.own_line.rests

    def _admit_task(self, view: View, record: Record, now: int) -> tuple[list[Unsealed], list[ClaimedTask]]:
        """Request admission for a task. Return its events and the claim; a task that can never start is ended."""
        claim = Claim(self._services.heartbeat.worker, record.fence + 1, record.attempt + 1)
        if now >= record.until:
            return [ended_unrun(record, "task.failed", LATE, now)], []
        try:
            resumed = resume(view, record, claim.fence, claim.attempt)
        except UNREADABLE as error:
            why = f"its record cannot be read ({type(error).__name__}); run `remit doctor`"
            _log.error("task %s: %s", record.id, why)
            return [ended_unrun(record, "task.died", why, now, type_="StoreError")], []
        agent = self._ground.directory.holder(record.holder)
        most = resumed.attempt.attempts or (agent.retry.attempts if agent is not None else claim.attempt + 1)
        if why := why_dead(record, most):
            return [ended_unrun(record, "task.died", why, now)], []
        proposal = Proposal(resumed.remit, resumed.remit, known_pass(record.holder, resumed.remit.task), None, now)
        if self._ground.directory.guards and claim.attempt == 1 and (no := self._refusal(record, proposal)):
            return [ended_unrun(record, "task.failed", str(no), now, type_=type(no).__name__)], []
        admitted = self._services.admission.admit(view, CLAIM, proposal)
        if not admitted.ok:
            return [], []
        until = resumed_until(agent, resumed.remit, now) if record.asked_how == "delegate" else 0
        taken = claimed(place_of(record), record.holder, now, claim, until)
        return [taken, *admitted.events], [ClaimedTask(resumed, now, record.losses)]

    def _refusal(self, record: Record, proposal: Proposal) -> Exception | None:
        """Return the refusal of a person's task by the owner's guards in this process, or the error of a guard that
        raised; None if it is allowed. The process that submitted the task may not have these guards."""
        agent = self._ground.directory.get(record.holder)
        if record.parent or agent is None:
            return None
        try:
            said = self._services.admission.owners_verdict("begin", proposal, agent.card)
        except Exception as error:  # noqa: BLE001 - of the owner's function; the worker serves on
            return error
        return None if said is None else Refused(said.sentence, rule=said.rule)


def _place_in_queue(record: Record) -> tuple[int, int]:
    return -record.priority, record.began


def _within(due: list[Record], rooms: list[tuple[str, int]], most: int) -> list[Record]:
    """Return the tasks up to the free capacity of each agent."""
    left = dict(rooms)
    taken: list[Record] = []
    for record in due:
        if left[record.holder] > 0:
            left[record.holder] -= 1
            taken.append(record)
    return taken[:most]
