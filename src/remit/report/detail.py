"""One task in detail: its history, folded from its record and its events."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from remit.core.backoff import ATTEMPTS
from remit.core.events import NO_LABELS, Event, Labels, labels_restored, read
from remit.core.kinds.money import SPENDS, spent_in
from remit.core.kinds.tasks import Cancelling, EndData, FirstData, Retrying
from remit.core.lifecycle import Record
from remit.core.records import NamedTuple, dataclass
from remit.core.remit import task_of
from remit.core.values import Json, shown
from remit.errors import StoreError
from remit.report.questions import AskedPerson, asked_in
from remit.report.tree import Node
from remit.report.uses import TOOLS, ModelUse, ToolUse, models_in, tool_use

# Events that end an attempt but not the task, and their words.
_BACK: Final = {"task.retrying": "failed", "task.released": "handed back", "task.lost": "lost with its process"}
_FAILS: Final = frozenset(("task.retrying", "task.failed", "task.died"))
_BEGINS: Final = ("task.claimed", "task.started")


class EarlierAttempt(NamedTuple):
    """An attempt that ended and did not end the task: it failed, its worker released it, or its process died. `at` is
    its end. `elapsed` is in microseconds, None if the events do not have its start."""

    how: str
    at: int
    elapsed: int | None
    error: str


@dataclass(frozen=True, slots=True)
class Detail:
    """Everything known about a task. `attempts` is the most attempts that it may have; `earlier` are those that did not
    end it. `below` counts its subtasks by state. `why` is the reason of its latest cancellation, or "". `credits` is
    its own spending without subtasks, `questions` are its questions to people, `models` and `tools` its model requests
    and tool calls, `labels` those of its run."""

    record: Record
    task: str
    asker: str
    attempts: int
    earlier: tuple[EarlierAttempt, ...]
    below: Counter[str]
    result: Json
    error: str
    why: str
    credits: int = 0
    questions: tuple[AskedPerson, ...] = ()
    models: tuple[ModelUse, ...] = ()
    tools: tuple[ToolUse, ...] = ()
    labels: Labels = NO_LABELS


def detail(record: Record, events: Sequence[Event], run: Iterable[Record]) -> Detail:
    """Return the details of a task from its events; `run` are the records of its run. Raise `StoreError` if the task's
    first event is missing."""
    began = next((read(event, FirstData) for event in events if event.seq == record.began), None)
    if began is None:
        raise StoreError(f"the event that began task {shown(record.id)} is not in the journal; run `remit doctor`")
    end = next((read(event, EndData) for event in events if event.seq == record.ended), EndData())
    reasons = [read(event, Cancelling).get("why", "") for event in events if event.kind == "task.cancelling"]
    return Detail(
        record=record,
        task=task_of(began),
        asker=began.get("asker", ""),
        attempts=began.get("attempts", 1) or ATTEMPTS,
        earlier=tuple(_earlier(events)),
        below=Counter(_below(record, run)),
        result=end.get("result"),
        error=end.get("error", ""),
        why=reasons[-1] if reasons else "",
        credits=sum(spent_in(event).credits for event in events if event.kind in SPENDS),
        questions=tuple(asked_in(events)),
        models=tuple(models_in(events)),
        tools=tuple(tool_use(event, 0) for event in events if event.kind in TOOLS),
        labels=labels_restored(began),
    )


class Failure(NamedTuple):
    """A failed attempt of a task. `chain` has the agents from the first task to this one; `trace` is the traceback of
    an error in the agent's code, otherwise ""."""

    task: str
    chain: tuple[str, ...]
    at: int
    error: str
    trace: str


def failures(events: Iterable[Event], top: Node) -> list[Failure]:
    """Return the failed attempts of a task and of its subtasks, in order."""
    askers = _askers(top)
    return [
        Failure(event.task, (*askers[event.task], event.agent), event.at, data.get("error", ""), data.get("trace", ""))
        for event in events
        if event.kind in _FAILS and event.task in askers
        for data in [read(event, EndData)]
    ]


def _askers(top: Node) -> dict[str, tuple[str, ...]]:
    """Return the agents above each task."""
    found: dict[str, tuple[str, ...]] = {top.id: ()}
    for node in top.walk():  # an asker comes before its subtasks
        found |= {child.id: (*found[node.id], node.agent) for child in node.children}
    return found


def _earlier(events: Iterable[Event]) -> Iterator[EarlierAttempt]:
    began: int | None = None
    for event in events:
        if event.kind in _BEGINS:
            began = event.at
        elif event.kind in _BACK:
            elapsed = event.at - began if began is not None else None
            error = read(event, Retrying).get("error", "")
            yield EarlierAttempt(_BACK[event.kind], event.at, elapsed, error)
            began = None


def _below(record: Record, run: Iterable[Record]) -> Iterator[str]:
    """Yield the states of all subtasks. An asker always started before the tasks that it requested."""
    under = {record.id}
    for other in sorted(run, key=lambda task: task.began):
        if other.parent in under:
            under.add(other.id)
            yield other.state
