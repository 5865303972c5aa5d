"""Forking a run: a new run that has everything that another one had recorded up to an event, and continues from there.

The fork records the operations of the original as done, under ids of its own and with their answers. So its code runs
from the start, and each request for an answer of a model, a tool, an effect or a person returns what the original got.
Tasks that had ended by then are not run again; those that were open are started again when they are requested, and
continue in the same way. Nothing of the original changes, no money moves, and no entry is written again.
"""

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from remit.core.events import Event, Place, read
from remit.core.kinds.tasks import FirstData, Lineage
from remit.core.kinds.workspace import KeptTask, as_first_recorded, kept_task, work_kept
from remit.core.lifecycle import BEGINNINGS, Record
from remit.core.values import INT_LIMIT, Json, shown
from remit.engine.attempt.replay import is_fork, origin_of
from remit.errors import BadInput, Conflict
from remit.ports import DoneBefore, Ids, Span, View

# Operations that a task does for itself: a fork moves, pays, ends and starts its plans by operations of its own.
_OWN: Final = ("task.", "hold.", "lease.", "plan.", "step.")
_ENDS: Final = frozenset(("task.completed", "task.failed", "task.cancelled", "task.died"))
_ANSWERABLE: Final = frozenset(("effect.done", "tool.done"))


class Fork(NamedTuple):
    """The start of a fork: the last event of the original that it keeps, the lineage of its first task, and the
    operations that it records as done."""

    at: int
    lineage: Lineage
    done: list[DoneBefore]


class Given(NamedTuple):
    """An answer to use in the place of the one that the original recorded."""

    answer: Json


def fork_of(view: View, root: Record, at: int | None, given: Given | None, ids: Ids, place: Place, now: int) -> Fork:
    """Return the start of a fork; `at` is the last event that it keeps, or None for all."""
    events = recorded(view, root, at)
    fork = Past(view, root, events).fork(ids, place, now)
    if given is not None:
        fork.done[-1:] = [_answered_otherwise(fork.done[-1:], events[-1], given.answer)]
    return fork


def recorded(view: View, root: Record, at: int | None = None) -> list[Event]:
    """Return the events of a run up to event `at`, after those of the runs that it is a retry of: a retry uses what
    they finished."""
    before = None if at is None or at >= INT_LIMIT else at + 1  # no store can look for more
    events = view.events(Span(run=root.id, before=before))
    if not events or events[0].seq > root.began:
        if at is not None and at < root.began:
            raise BadInput(f"event {at} is before run {root.id}, which begins with event {root.began}")
        raise _pruned(root)
    if at is not None and events[-1].seq != at:
        raise BadInput(f"event {at} is not one of run {root.id}; `remit history --run {root.id}` lists them")
    for tried in _earlier_tries(view, root):
        found = view.events(Span(run=tried.id, before=before))
        if not found or found[0].seq > tried.began:
            raise _pruned(root)
        events += found
    return sorted(events, key=lambda event: event.seq) if root.origin else events


def _earlier_tries(view: View, root: Record) -> list[Record]:
    if not root.origin:
        return []
    first = view.record(root.origin)
    if first is None and not is_fork(view, root.origin):
        raise _pruned(root)
    tries = [*([first] if first is not None else ()), *view.lineage(root.origin)]
    return [tried for tried in tries if tried.began < root.began]


def _pruned(root: Record) -> Conflict:
    of_it = f"run {root.id}" if not root.origin else f"run {root.id} or of a run that it is a retry of"
    return Conflict(f"the events of {of_it} were pruned, so it cannot be forked")


class Past:
    """The record of a run up to an event, from which a fork starts. `unfinished` are tasks that count as open although
    they ended."""

    def __init__(
        self, view: View, root: Record, events: list[Event], unfinished: Collection[str] = frozenset()
    ) -> None:
        self._view = view
        self._root = root.id
        self._events = events
        self._began = {event.task: event for event in events if event.kind in BEGINNINGS}
        self._origins = {task: self._origin(task) for task in self._began}
        ended = {event.task for event in events if event.kind in _ENDS and event.task not in unfinished}
        completed = {self._origins.get(event.task) for event in events if event.kind == "task.completed"}
        self._open = {task for task in self._began if task not in ended or task == root.id}
        self._failed = {
            task
            for task, event in self._began.items()
            if task in ended and self._origins[task] not in completed and read(event, FirstData)["parent"]
        } - self._open
        self._unfinished = unfinished
        self._unanswered = self._questions("question.asked") - self._questions("question.answered")
        self._finished = {f"{event.op}/begun" for event in events if event.kind == "tool.done"}

    def _questions(self, kind: str) -> set[str]:
        return {str(event.data["question"]) for event in self._events if event.kind == kind}

    def _origin(self, task: str) -> str:
        record = self._view.record(task)
        return task if record is None else origin_of(record)

    def fork(self, ids: Ids, place: Place, now: int) -> Fork:
        """Return the start of a fork at the last event. Tasks that were open or had failed get new origins: the fork
        continues them, and a retry of the original does not find the fork's work."""
        news: dict[str, str] = {}
        marks: list[DoneBefore] = []
        tries = self._tries()
        for task, began in self._began.items():
            origin = self._origins[task]
            if origin in news or not (task in self._open or task in self._failed):
                continue
            news[origin] = ids.new()
            number = tries.get(origin, 0) + (task in self._failed or task in self._unfinished)
            marks.append(DoneBefore(f"{news[origin]}/forked", [number, origin], work_kept(began, place, now)))
        kept = self._done_before(news, place, now)
        mine = self._origins[self._root]
        return Fork(self._events[-1].seq, Lineage(news[mine], tries.get(mine, 0)), [*marks, *kept])

    def _done_before(self, news: dict[str, str], place: Place, now: int) -> Iterator[DoneBefore]:
        """Yield the recorded operations of the tasks with new origins, under their ids in the fork. Leave out those
        that the fork must do itself. If an operation started a task that was open or had failed, also yield the record
        with that task's new origin."""
        for event in self._events:
            first, _, rest = (event.op or "").partition("/")
            if first not in news or rest == "forked" or self._is_own(event):
                continue
            op, was = f"{news[first]}/{rest}", as_first_recorded(event)
            begins = event.kind in BEGINNINGS
            if begins and (event.task in self._open or event.task in self._failed):
                yield DoneBefore(f"{op}/forked", news[self._origins[event.task]], work_kept(was, place, now))
                if event.task in self._open:
                    continue
            record = self._view.record(event.task) if begins else None
            ended = None if record is None else KeptTask(task=record.id, state=record.state)
            yield DoneBefore(op, self._answer(event), work_kept(was, place, now, ended or kept_task(event)))

    def _is_own(self, event: Event) -> bool:
        """Whether the fork must do this operation itself: it moves the task, asks a question that was not answered by
        then, or starts a tool call that had not returned."""
        if event.kind in BEGINNINGS:
            return not read(event, FirstData)["parent"]
        if event.kind == "tool.begun":
            return event.op not in self._finished
        return event.kind.startswith(_OWN) or str(event.data.get("question", "")) in self._unanswered

    def _tries(self) -> dict[str, int]:
        """Return how often each task had failed, by its origin. Find the number in the first events of its retries and
        in the ids of its operations."""
        tries: dict[str, int] = {}
        for task, event in self._began.items():
            origin = self._origins[task]
            tries[origin] = max(tries.get(origin, 0), read(event, FirstData).get("failures", 0))
        for event in self._events:
            first, _, rest = (event.op or "").partition("/")
            name = rest.partition("/")[0]
            if name.isdecimal():
                tries[first] = max(tries.get(first, 0), int(name))
        return tries

    def _answer(self, event: Event) -> Json:
        done = self._view.done(event.op or "")
        return None if done is None else done[0]


def _answered_otherwise(last: list[DoneBefore], event: Event, answer: Json) -> DoneBefore:
    """Return the record of the last event with another answer."""
    if not last or event.kind not in _ANSWERABLE or last[0].event.data["of"] != event.seq:
        raise BadInput(
            f"event {event.seq} is {shown(event.kind)}, which has no answer to replace; "
            "answer= takes the result of an effect (effect.done) or of a tool (tool.done)"
        )
    kept = last[0]
    data = {**event.data, "result": answer} if "result" in event.data else event.data
    told: Json = [answer, *kept.answer[1:]] if event.kind == "tool.done" and isinstance(kept.answer, list) else answer
    return DoneBefore(kept.op, told, kept.event._replace(data={**kept.event.data, "data": data}))
