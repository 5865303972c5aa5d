"""Status, wait, cancel and retry of tasks, wherever they run. It needs no agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from remit.core import lifecycle
from remit.core import remit as remits
from remit.core.events import Event, Place, Unsealed, labels_restored, read
from remit.core.kinds.tasks import FirstData, Lineage, Wait, moved
from remit.core.lifecycle import Outcome, Record
from remit.core.remit import LASTS, expires, task_of
from remit.core.times import iso
from remit.core.values import Json, plain, shown, with_data
from remit.engine.acts import ONCE, Act, ActContent
from remit.engine.attempt import endings
from remit.engine.attempt.endings import AT_ONCE
from remit.engine.attempt.live import LiveTask, LiveTasks
from remit.engine.attempt.replay import continues, next_of, origin_of
from remit.engine.attempt.slots import Slots
from remit.engine.consequences import ended_unrun
from remit.engine.door import funded_again, place_of
from remit.engine.ground import Ground
from remit.engine.presence.bell import Bell
from remit.engine.timing import fail_after
from remit.errors import BadInput, Conflict, NotFound, StoreError
from remit.ports import Decision, TaskLine, View, Which

if TYPE_CHECKING:
    from remit.engine.plans import PlanOutcome
    from remit.engine.queue.forking import Fork, Given
    from remit.engine.queue.task import Status

# Fields that a retried task does not inherit.
_OF_ITS_OWN: Final = frozenset(("purse", "opens", "metered", "restart", "forked"))


class TaskControl:
    """Status, wait, cancel and retry of tasks. `lend` starts this process's worker, so that a process that waits for a
    queued task can also run it."""

    def __init__(self, ground: Ground, bell: Bell, slots: Slots, alive: LiveTasks, worker: str) -> None:
        self.lend: Callable[[], object]
        self._ground = ground
        self._bell = bell
        self._slots = slots
        self._alive = alive
        self._worker = worker

    # -- status -----------------------------------------------------------------------------------------------

    async def status(self, task: str, asker: LiveTask | None = None) -> Status:
        from remit.engine.queue.task import Status

        if asker is not None:
            asker.must_be_at_work()

        def look(view: View) -> Status:
            record = self._record(view, task, asker)
            began = view.event(record.began)
            assert began is not None
            data = read(began, FirstData)
            outcome = endings.of_record(view, record)
            line = TaskLine(record, task_of(data), data["asker"], labels_restored(data))
            return Status.of(line, outcome, self._ground.clock.now())

        return await self._ground.store.read(look)

    async def statuses(self, which: Which) -> list[Status]:
        from remit.engine.queue.task import Status

        def look(view: View) -> list[Status]:
            now = self._ground.clock.now()
            return [Status.of(line, _outcome_of(view, line), now) for line in view.task_lines(which)]

        return await self._ground.store.browse(look)

    async def outcome(self, task: str, seconds: float | None = None) -> Outcome:
        """Wait for a task as a person, who holds no slot, and return its outcome. Raise `TimeoutError` after
        `seconds`."""
        ended = await self._ground.store.read(lambda view: self._outcome(view, task))
        if ended is not None:
            return ended
        self.lend()
        if seconds is None:
            return await endings.awaited(self._bell, task)
        with fail_after(self._ground.clock, seconds):
            return await endings.awaited(self._bell, task)
        raise TimeoutError  # never reached: `fail_after` raises it

    async def awaited(self, asker: LiveTask, task: str, seconds: float | None = None) -> Outcome:
        """Wait for a task on behalf of an agent, and return its outcome. The agent releases its slot meanwhile, and
        takes one again before it continues."""
        asker.must_be_at_work()

        def look(view: View) -> Outcome | None:
            asker.must_hold(view)
            return self._outcome(view, task, asker)

        ended = await self._ground.store.read(look)
        if ended is not None:
            return ended
        with asker.verb():
            # It has a slot again when the timeout is raised.
            async with self._slots.given_up(asker, Wait("task", task)):
                with fail_after(self._ground.clock, seconds):
                    return await endings.awaited(self._bell, task)
        raise TimeoutError  # never reached: `fail_after` raises it

    async def settled(self, run: str) -> None:
        """Wait until no task of a run is open. The open tasks are awaited one by one; then the tree is read again for
        tasks that these have submitted meanwhile, once for each level."""
        read = self._ground.store.read
        while open_ := await read(lambda view: [record.id for record in view.below(run)]):
            for task in open_:
                await self._bell.until(task, lambda view, task=task: _has_ended(view, task) or None)

    async def plan_outcome(self, outcome: Outcome, asker: LiveTask | None = None) -> PlanOutcome:
        """Return the outcome of every step of the ended plan or team that has this outcome. Raise `Conflict` if the
        task is neither a plan nor a team."""
        from remit.engine.plans import steps_told

        def look(view: View) -> PlanOutcome | None:
            record = self._record(view, outcome.id, asker)
            if not record.led_as:
                raise Conflict(f"task {record.id} is no plan and no team; it has a result and no steps")
            return steps_told(view, record)

        told = await self._ground.store.read(look)
        if told is None:  # it ended before its steps were recorded
            outcome.unwrap()
            raise NotFound(f"the outcome of the steps of task {outcome.id} is not on record")
        return told

    # -- cancelling ---------------------------------------------------------------------------------------------

    async def cancel(self, task: str, why: str, asker: LiveTask | None = None, act: Act = ONCE) -> int:
        """Cancel a task and all its subtasks in one transaction, and stop those that run in this process. Other
        processes stop theirs. Return the number of tasks."""
        plain(why, "why", 200)
        if asker is not None:
            asker.must_be_at_work()

        def decide(view: View) -> Decision[int]:
            if asker is not None:
                asker.must_hold(view)
            record = self._record(view, task, asker)
            if record.state in lifecycle.TERMINAL:
                raise Conflict(f"task {task} has {_word(record.state)} already; there is nothing left to cancel")
            below = view.below(task)
            events = self._cancelled(view, below, why, act.by)
            return Decision(len(below), events, aside=[one.id for one in below])

        count, stopped = await act.perform(self._ground, ActContent("cancel", task, why), decide)
        for one in stopped or ():
            live = self._alive.get(one)
            if live is not None:
                live.control.stop(why)
        # Its process may be dead, and there may be no worker to take over.
        from remit.engine.queue.takeover import Succession

        if isinstance(self._ground.store, Succession):
            await self._ground.store.take_over_all()
        return count

    def _cancelled(self, view: View, below: list[Record], why: str, by: str) -> list[Unsealed]:
        """Return the events of a cancellation: tasks that no process runs end at once, the others when their process
        has stopped them."""
        now = self._ground.clock.now()
        said: dict[str, Json] = {"why": why, "by": by} if by else {"why": why}
        events: list[Unsealed] = []
        waited_for: set[str] = set()
        for record in reversed(below):  # subtasks first
            if record.id not in waited_for and self._is_idle(view, record):
                events.append(ended_unrun(record, "task.cancelled", why, now, by=by))
                continue
            waited_for.add(record.parent)
            if record.state != "cancelling":
                events.append(moved("task.cancelling", place_of(record), record.holder, now, said))
        return events

    def _is_idle(self, view: View, record: Record) -> bool:
        """Whether no process runs the task. A queued task is idle if no worker has claimed it. A delegated task is idle
        if its process has no heartbeat, or if it is assigned to this process and does not run: its asker was requeued
        and has not requested it again."""
        if record.asked_how != "delegate" or not record.parent:
            return not record.worker
        if record.worker == self._worker:
            return self._alive.get(record.id) is None
        return all(beat.worker != record.worker for beat in view.workers())

    # -- retrying -----------------------------------------------------------------------------------------------

    async def retry(self, task: str, asker: LiveTask | None = None, act: Act = ONCE, *, restart: bool = False) -> str:
        """Run the same assignment again as a new task, without repeating its finished work. Return the id of the new
        task. If an agent requests it, the new task gets no more time than the agent has. With `restart`, restart the
        conversations that cannot be continued."""
        ground = self._ground
        until = asker.remit.bounds.deadline if asker is not None else None
        if asker is not None:
            asker.must_be_at_work()
        again = ground.ids.new()

        def decide(view: View) -> Decision[str]:
            if asker is not None:
                asker.must_hold(view)
            record = self._record(view, task, asker)
            began, lineage = _retried_from(view, record)
            now = ground.clock.now()
            data = _funded_once_more(view, record, _once_more(began, record, lineage, now, until), again, act)
            if restart:
                data["restart"] = True
            run = record.run if record.parent else again
            return Decision(again, (Unsealed("task.submitted", now, data, run, record.session, again, began.agent),))

        self.lend()
        content = ActContent("retry", task, {"restart": True} if restart else None)
        return (await act.perform(ground, content, decide)).answer

    async def fork(
        self,
        run: str,
        at: int | None = None,
        act: Act = ONCE,
        *,
        changes: dict[str, Json] | None = None,
        given: Given | None = None,
    ) -> str:
        """Start a new run that has everything that the given run had recorded up to event `at`, and that continues from
        there. `changes` replaces the text and data of its task; `given` replaces the answer that event `at` recorded.
        Return the id of the new run."""
        from remit.engine.queue.forking import fork_of

        def forked(view: View, root: Record, place: Place, now: int) -> Fork:
            if root.parent:
                raise BadInput(f"task {root.id} is a part of run {root.run}, and only a whole run can be forked")
            return fork_of(view, root, at, given, self._ground.ids, place, now)

        changes = changes or {}
        answer: Json = None if given is None else [given.answer]
        content = ActContent("fork", run, {"at": at, "task": None, "answer": answer, **changes})
        return await self._forked(content, act, forked, changes)

    async def retry_from(self, run: str, step: str, act: Act = ONCE, *, restart: bool = False) -> str:
        """Run a plan again from a step, in a new run: the step and those that depend on it are done again, the results
        of the others count. Return its id."""
        from remit.engine.queue.replanning import again_from

        def forked(view: View, root: Record, place: Place, now: int) -> Fork:
            if root.parent:
                raise BadInput(f"task {root.id} is a part of run {root.run}; retry that run from the step")
            if root.state not in lifecycle.TERMINAL:
                raise Conflict(
                    f"run {root.id} is {root.state}; cancel it or wait until it has ended, then retry it from a step"
                )
            return again_from(view, root, step, self._ground.ids, place, now)

        content = ActContent("retry", run, {"from": step, "restart": restart})
        return await self._forked(content, act, forked, {"restart": True} if restart else {}, {"step": step})

    async def _forked(
        self,
        content: ActContent,
        act: Act,
        fork_of: Callable[[View, Record, Place, int], Fork],
        changes: dict[str, Json],
        how: dict[str, Json] | None = None,
    ) -> str:
        ground = self._ground
        again = ground.ids.new()

        def decide(view: View) -> Decision[str]:
            root = self._record(view, content.target)
            began, now = view.event(root.began), ground.clock.now()
            assert began is not None  # a row points at the event that made it
            _must_be_on_record(root, began)
            fork = fork_of(view, root, Place(again, root.session, again), now)
            data = _funded_once_more(view, root, _once_more(began, root, fork.lineage, now, None), again, act)
            data |= {"forked": {"run": root.id, "at": fork.at, **(how or {})}, **changes}
            if "data" in changes:
                with_data(data["task"], data["data"])  # raises if they are too long together, or both empty
                if data["data"] is None:
                    del data["data"]
            first = Unsealed("task.submitted", now, data, again, root.session, again, began.agent)
            return Decision(again, (first,), besides=fork.done)

        self.lend()
        return (await act.perform(ground, content, decide)).answer

    # -- inside -----------------------------------------------------------------------------------------------

    @staticmethod
    def _record(view: View, task: str, asker: LiveTask | None = None) -> Record:
        """Return a task. For an agent, raise `NotFound` unless it is below the agent's own task."""
        record = view.record(task)
        if asker is not None and (record is None or not _is_below(view, record, asker)):
            raise NotFound(f"there is no task {shown(task)} that '{asker.remit.holder}' has asked for")
        if record is None:
            raise _missing(view, task)
        return record

    def _outcome(self, view: View, task: str, asker: LiveTask | None = None) -> Outcome | None:
        return endings.of_record(view, self._record(view, task, asker))


def _outcome_of(view: View, line: TaskLine) -> Outcome | None:
    """Return the outcome of a listed task. One damaged event must not hide the other tasks."""
    try:
        return endings.of_record(view, line.record)
    except StoreError as error:
        return Outcome(line.record.holder, line.record.id, "failed", error=error)


def _has_ended(view: View, task: str) -> bool:
    standing = view.standing(task)
    return standing is None or standing.state in lifecycle.TERMINAL


def _is_below(view: View, record: Record, asker: LiveTask) -> bool:
    """Whether a task is a subtask of the asker's task, or of a task that the asker's task retries or continues as a
    fork."""
    origin = asker.attempt.origin or asker.remit.id
    above = view.record(record.parent) if record.parent else None
    while above is not None:
        if continues(view, origin, origin_of(above)):
            return True
        above = view.record(above.parent) if above.parent else None
    return False


def _missing(view: View, task: str) -> NotFound:
    used = view.key_of_task(task)
    if used is None:
        return NotFound(f"there is no task {shown(task)} in this workspace")
    when = "" if used.ended_at is None else f" at {iso(used.ended_at)}"
    return NotFound(f"task {task} has {_word(used.state)}{when}, and its record was pruned, its result with it")


def _word(state: str) -> str:
    return {"dead": "died", "cancelled": "been cancelled"}.get(state, state)


def _retried_from(view: View, record: Record) -> tuple[Event, Lineage]:
    """Return the first event of a task that may be retried, and the lineage of its retry. Raise `Conflict` if it may
    not be."""
    task = record.id
    if record.state not in lifecycle.GONE:
        raise Conflict(f"task {task} is {record.state}; only what failed, died or was cancelled is retried")
    began = view.event(record.began)
    assert began is not None
    _must_be_on_record(record, began)
    origin = origin_of(record)
    retries = view.lineage(origin)
    if (other := next((retry for retry in retries if retry.state not in lifecycle.GONE), None)) is not None:
        raise Conflict(f"task {task} was retried already, as {other.id}, which is {other.state}")
    return began, next_of(view, origin)


def _must_be_on_record(record: Record, began: Event) -> None:
    """Raise `Conflict` for a plan or a team that a program ran with functions of its own: no worker can run it."""
    if record.led_by_program and "lead" not in began.data:
        raise Conflict(
            f"task {record.id} was a {record.led_as} run by a program, with approve_steps= or abort= or too large to "
            "record; start it again there"
        )


def _funded_once_more(view: View, record: Record, data: dict[str, Json], again: str, act: Act) -> dict[str, Json]:
    """Return the first event's data of a task that runs again, with the leases that pay for it."""
    began = view.event(record.began)
    assert began is not None
    funds = funded_again(view, record, read(began, FirstData), again).data
    data = {name: said for name, said in data.items() if name not in _OF_ITS_OWN} | (funds or {})
    return {**data, "by": act.by} if act.by else data


def _once_more(began: Event, record: Record, lineage: Lineage, now: int, until: int | None) -> dict[str, Json]:
    """Return the data of the first event of a retried task. Its bounds are those of the original. The deadline is moved
    later by the time that has passed since the original was due, but not beyond `until`."""
    first = read(began, FirstData)
    bounds = remits.restored(began).bounds.later(now - max(record.asked_at, first.get("ready_at", AT_ONCE)))
    if until is not None:
        bounds = bounds.until(until)
    return {
        **began.data,
        "bounds": bounds.data,
        "until": expires(bounds, now, LASTS),
        "asked_how": "submit",
        "dedup_key": "",
        "content": "",
        "ready_at": AT_ONCE,
        "timeout": first.get("timeout", 0),
        "attempts": first.get("attempts", 0),
        **lineage._asdict(),
    }
