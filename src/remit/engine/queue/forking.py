"""Forking a run: a new run that has everything that another one had recorded up to an event, and goes on from there.

The fork records the operations of the original as done, under ids of its own and with their answers. So its code runs
from the start, and each request for an answer of a model, a tool, an effect or a person returns what the original got.
Tasks that had ended by then are not run again; those that were open are started again when they are requested, and
continue in the same way. Nothing of the original changes, no money moves, and no entry is written again.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from remit.core.events import Event, Place
from remit.core.kinds.tasks import Lineage
from remit.core.kinds.workspace import as_first_recorded, work_kept
from remit.core.lifecycle import BEGINNINGS, Record
from remit.core.values import Json, shown
from remit.engine.attempt.replay import origin_of
from remit.errors import BadInput, Conflict
from remit.ports import DoneBefore, Ids, Span, View

# Operations that a task does for itself: a fork moves, pays and ends by operations of its own.
_OWN: Final = ("task.", "hold.", "lease.")
_ENDS: Final = frozenset(("task.completed", "task.failed", "task.cancelled", "task.died"))
_ANSWERABLE: Final = frozenset(("effect.done", "tool.done"))


class Fork(NamedTuple):
    """What a fork starts with: the last event of the original that counts, the lineage of its first task, and the
    operations that it records as done."""

    at: int
    lineage: Lineage
    done: list[DoneBefore]


class Given(NamedTuple):
    """An answer to use in the place of the one that the original recorded."""

    answer: Json


def fork_of(view: View, root: Record, at: int | None, given: Given | None, ids: Ids, place: Place, now: int) -> Fork:
    """Return what a fork of a run starts with; `at` is the last event that counts, or None for all."""
    events = _recorded(view, root, at)
    past = _Past(view, root, events)
    origins = {task: ids.new() for task in past.open}
    kept = [*past.kept(origins, place, now)]
    if given is not None:
        kept[-1:] = [_answered_otherwise(kept[-1:], events[-1], given.answer)]
    tries = {task: past.tries(task) for task in origins}
    marks = [
        DoneBefore(f"{origin}/forked", [tries[task], past.origins[task]], work_kept(past.began[task], place, now))
        for task, origin in origins.items()
    ]
    return Fork(events[-1].seq, Lineage(origins[root.id], tries[root.id]), [*marks, *kept])


def _recorded(view: View, root: Record, at: int | None) -> list[Event]:
    events = view.events(Span(run=root.id, before=None if at is None else at + 1))
    if not events or events[0].seq > root.began:
        if at is not None and at < root.began:
            raise BadInput(f"event {at} is before run {root.id}, which begins with event {root.began}")
        raise Conflict(f"the events of run {root.id} were pruned, so it cannot be forked")
    if at is not None and events[-1].seq != at:
        raise BadInput(f"event {at} is not one of run {root.id}; `remit history --run {root.id}` lists them")
    return events


class _Past:
    """What had been recorded by an event of a run."""

    def __init__(self, view: View, root: Record, events: list[Event]) -> None:
        self._view = view
        self._root = root.id
        self._events = events
        ended = {event.task for event in events if event.kind in _ENDS}
        self.began = {event.task: event for event in events if event.kind in BEGINNINGS}
        self.open = [task for task in self.began if task not in ended or task == root.id]
        self.origins = {task: self._origin(task) for task in self.open}
        self._unanswered = self._questions("question.asked") - self._questions("question.answered")
        self._finished = {f"{event.op}/begun" for event in events if event.kind == "tool.done"}

    def _questions(self, kind: str) -> set[str]:
        return {str(event.data["question"]) for event in self._events if event.kind == kind}

    def _origin(self, task: str) -> str:
        record = self._view.record(task)
        return task if record is None else origin_of(record)

    def kept(self, origins: dict[str, str], place: Place, now: int) -> Iterator[DoneBefore]:
        """Yield the operations of the open tasks, under their new origins."""
        of = {self.origins[task]: origin for task, origin in origins.items()}
        for event in self._events:
            first, _, rest = (event.op or "").partition("/")
            if first not in of or rest == "forked" or self._is_own(event):
                continue
            op, answer = f"{of[first]}/{rest}", self._answer(event)
            if event.kind in BEGINNINGS and event.task in origins:
                op, answer = f"{op}/forked", origins[event.task]
            yield DoneBefore(op, answer, work_kept(as_first_recorded(event), place, now))

    def _is_own(self, event: Event) -> bool:
        """Whether an operation is none that the fork takes over: it moves the task itself, asks a question that nobody
        had answered, or begins the call of a tool that had not returned."""
        if event.kind in BEGINNINGS:
            return event.task == self._root
        if event.kind == "tool.begun":
            return event.op not in self._finished
        return event.kind.startswith(_OWN) or str(event.data.get("question", "")) in self._unanswered

    def tries(self, task: str) -> int:
        """Return how often a task had failed: operations name the try that they belong to."""
        prefix = f"{self.origins[task]}/"
        names = (event.op.removeprefix(prefix).partition("/")[0] for event in self._of(prefix) if event.op)
        return max((int(name) for name in names if name.isdecimal()), default=0)

    def _of(self, prefix: str) -> Iterable[Event]:
        return (event for event in self._events if event.op is not None and event.op.startswith(prefix))

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
