"""Running a plan again from one of its steps.

The plan runs in a fork of its run that lacks the work of the step and of the steps that depend on it. A retry within
the same lineage would not do: the journal only grows, so every later try would find the results that are not to count,
and the run that had them would no longer show how it ended. The fork leaves the original as it is, and can be retried.
"""

from collections.abc import Iterable
from enum import Enum, auto
from typing import Final, NamedTuple

from remit.core.checks import meant
from remit.core.events import Event, Place, read
from remit.core.kinds.tasks import FirstData
from remit.core.kinds.workspace import PlanStarted, StepData, as_first_recorded, kept_task
from remit.core.lifecycle import BEGINNINGS, TERMINAL, Record
from remit.core.values import shown
from remit.engine.attempt.replay import origin_of
from remit.engine.plans import approval_of, approves_step
from remit.engine.queue.forking import Fork, Past, recorded
from remit.errors import BadInput, Conflict
from remit.ports import Ids, View


class _Fate(Enum):
    """How a fork treats a step: drops all of its work, keeps its finished work, or keeps its result."""

    AGAIN = auto()
    GOES_ON = auto()
    STAYS = auto()


class _Planned(NamedTuple):
    """A plan of a run: the origin of the task that carries it out, and its steps."""

    origin: str
    steps: list[StepData]


def again_from(view: View, root: Record, step: str, ids: Ids, place: Place, now: int) -> Fork:
    """Return the start of a fork that runs a plan of this run again from a step. Raise `BadInput` if the run has no
    such step, `Conflict` if it has no plan or if its plan has not ended."""
    events = recorded(view, root)
    plans = _plans(events)
    planned = _plan_with(step, plans, root)
    chosen = _Chosen(view, events, _levels(view, root, events, plans, planned, step))
    kept = [event for event in events if chosen.counts(event)]
    return Past(view, root, kept, chosen.unfinished).fork(ids, place, now)


def _plans(events: Iterable[Event]) -> dict[str, _Planned]:
    """Return the plans that a run started, by the operation id without the try, because every try of a task starts the
    same plan again."""
    plans: dict[str, _Planned] = {}
    for event in map(as_first_recorded, events):
        if event.kind == "plan.started" and event.op is not None:
            origin, _, rest = event.op.partition("/")
            plans[f"{origin}/{rest.partition('/')[2]}"] = _Planned(origin, read(event, PlanStarted)["steps"])
    return plans


def _plan_with(step: str, plans: dict[str, _Planned], root: Record) -> _Planned:
    found = [plan for plan in plans.values() if any(one["id"] == step for one in plan.steps)]
    if not plans:
        raise Conflict(f"run {root.id} has started no plan, so there is no step to run it from; retry it as a whole")
    if not found:
        known = {one["id"]: None for plan in plans.values() for one in plan.steps}
        raise BadInput(f"there is no step {shown(step)} in the plan of run {root.id}{_nearest(step, [*known])}")
    if len(found) > 1:
        raise BadInput(
            f"step {shown(step)} is in {len(found)} plans of run {root.id}; "
            "fork the run at the last event before that step instead"
        )
    return found[0]


_NAMED: Final = 10  # steps that are listed


def _nearest(step: str, known: list[str]) -> str:
    if near := meant(step, known):
        return near
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    return f"; it has {', '.join(shown(one) for one in known[:_NAMED])}{more}"


class _Level(NamedTuple):
    """A plan, and its steps that run again (`again`). If the chosen step is in an inner plan, `through` is the step of
    this plan that contains the inner plan. The fork continues that step: it does not start it again, and does not count
    its recorded result."""

    plan: _Planned
    again: frozenset[str]
    through: str = ""


def _levels(
    view: View, root: Record, events: list[Event], plans: dict[str, _Planned], planned: _Planned, step: str
) -> list[_Level]:
    """Return the plan with the step, and the plans that it is a part of."""
    levels = [_Level(planned, _behind(planned.steps, step))]
    began = {event.task: read(event, FirstData) for event in events if event.kind in BEGINNINGS}
    owner = next((task for task in reversed(began) if _origin(view, task) == planned.origin), root.id)
    leading = view.record(owner)
    if leading is not None and leading.state not in TERMINAL:
        raise Conflict(f"the plan of task {owner} is {leading.state}; cancel it or wait until it has ended")
    while owner in began and (parent := began[owner]["parent"]):
        above, through = _origin(view, parent), began[owner].get("step", "")
        levels += [
            _Level(plan, _behind(plan.steps, through) - {through}, through)
            for plan in plans.values()
            if plan.origin == above and any(one["id"] == through for one in plan.steps)
        ]
        owner = parent
    return levels


def _origin(view: View, task: str) -> str:
    record = view.record(task)
    return task if record is None else origin_of(record)


def _behind(steps: list[StepData], first: str) -> frozenset[str]:
    """Return a step and all steps that depend on it, directly or not."""
    behind = {first}
    followers: dict[str, list[str]] = {}
    for step in steps:
        for before in step["after"]:
            followers.setdefault(before, []).append(step["id"])
    waiting = [first]
    while waiting:
        for id_ in followers.get(waiting.pop(), ()):
            if id_ not in behind:
                behind.add(id_)
                waiting.append(id_)
    return frozenset(behind)


class _Chosen:
    """The events of a run that count when its plan runs again from a step: everything before the step, and the work of
    the steps that do not depend on it."""

    def __init__(self, view: View, events: list[Event], levels: list[_Level]) -> None:
        self._view = view
        self._levels = {level.plan.origin: level for level in levels}
        self._questions = {
            str(event.data["question"]): step for event in events if (step := approves_step(as_first_recorded(event)))
        }
        self._fates = {(level.plan.origin, step["id"]): _Fate.AGAIN for level in levels for step in level.plan.steps}
        self._fates |= self._of_tasks(events)
        self._tasks: dict[str, _Fate] = {}
        for event in events:
            if event.kind in BEGINNINGS and (fate := self._of_task(event)) is not None:
                self._tasks[event.task] = fate
        own = levels[0]
        about = [event for event in events if self._is_about(event, own)]
        last = max(map(_try_of, about), default=0)  # what an earlier try did before its end came before the step too
        self._cut = min((event.seq for event in about if _try_of(event) == last), default=0) or self._end(events, own)

    @property
    def unfinished(self) -> set[str]:
        """The tasks that continue."""
        going_on = {task for task, fate in self._tasks.items() if fate is _Fate.GOES_ON}
        return {task for task in going_on if not _has_completed(self._view, task)}

    def counts(self, event: Event) -> bool:
        if event.kind in BEGINNINGS and not read(event, FirstData)["parent"]:
            return True
        if self._refuses_step(event):
            return False
        step = self._step_of(event)
        if step is not None and step[1] != self._levels[step[0]].through:
            fate, first = self._fates[step], as_first_recorded(event)
            if fate is _Fate.GOES_ON and event.kind == "work.kept" and first.kind in BEGINNINGS:
                return (event.op or "").endswith("/forked")  # its failure, which an earlier fork took over, does not
            return fate is not _Fate.AGAIN and first.kind != "step.ended"
        fate = self._tasks.get(event.task)
        return event.seq < self._cut if fate is None else fate is not _Fate.AGAIN

    def _of_tasks(self, events: list[Event]) -> dict[tuple[str, str], _Fate]:
        """Return the fate of each step that was started and does not run again. If its last task completed, its result
        stays; otherwise the fork continues its work. If its result was rejected, the step is done again."""
        fates: dict[tuple[str, str], _Fate] = {}
        for event in events:
            step, first = self._step_of(event), as_first_recorded(event)
            if step is None or step[1] in self._levels[step[0]].again:
                continue
            if first.kind in BEGINNINGS:
                kept = kept_task(event)
                task = event.task if event.kind in BEGINNINGS else kept["task"] if kept is not None else ""
                fates[step] = _Fate.STAYS if task and _has_completed(self._view, task) else _Fate.GOES_ON
            elif first.kind == "step.ended" and fates.get(step) is _Fate.STAYS:
                fates[step] = _Fate.AGAIN  # its result was rejected
        return fates

    def _of_task(self, event: Event) -> _Fate | None:
        """Return how the fork treats a task: like its step, its asker, or the task that it is a retry of."""
        step, data = self._step_of(event), read(event, FirstData)
        if step is not None:
            return None if step[1] == self._levels[step[0]].through else self._fates[step]
        return self._tasks.get(data.get("origin", "")) or self._tasks.get(data["parent"])

    def _step_of(self, event: Event) -> tuple[str, str] | None:
        """Return the step that an event is about, as the origin of its plan and its id; None if it is about none."""
        level = self._levels.get((event.op or "").partition("/")[0])
        if level is None:
            return None
        first = as_first_recorded(event)
        if first.kind in BEGINNINGS or first.kind == "step.ended":
            step = str(first.data.get("step", ""))
        else:
            step = approval_of(first) or self._questions.get(str(first.data.get("question", "")), "")
        return (level.plan.origin, step) if (level.plan.origin, step) in self._fates else None

    def _refuses_step(self, event: Event) -> bool:
        """Whether an event records the refusal of a step. The fork does not keep this event, so that it requests the
        step again: the step may be admitted now."""
        if as_first_recorded(event).kind != "hop.refused" or event.op is None:
            return False
        return event.op.partition("/")[0] in self._levels and "/step/" in event.op

    def _is_about(self, event: Event, own: _Level) -> bool:
        step = self._step_of(event)
        return step is not None and step[0] == own.plan.origin and step[1] in own.again

    def _end(self, events: list[Event], own: _Level) -> int:
        """Return the number of the last task event of the task that leads the plan. If none of the steps that run again
        had been started, the fork starts from this event."""
        moves = (event for event in reversed(events) if event.kind.startswith("task."))
        return next(event.seq for event in moves if _origin(self._view, event.task) == own.plan.origin)


def _try_of(event: Event) -> int:
    """Return the try that an operation of a task belongs to."""
    number = (event.op or "").split("/", 2)[1]
    return int(number) if number.isdecimal() else 0


def _has_completed(view: View, task: str) -> bool:
    record = view.record(task)
    return record is not None and record.state == "completed"
