"""How a task can end: the event to write, and what the asker gets."""

from typing import Any, NamedTuple, cast

from remit.core.backoff import retryable
from remit.core.events import Event
from remit.core.outcome import Outcome, OutcomeState
from remit.core.remit import Remit
from remit.core.values import Json
from remit.errors import Cancelled, Failed, Refused, RemitError, StoreError, TimedOut

_ERROR_LIMIT = 2_000
_FAILURES = frozenset(("task.failed", "task.retrying", "task.died"))


class Ending(NamedTuple):
    kind: str
    data: dict[str, Json]
    outcome: Outcome

    @property
    def counts_against_the_agent(self) -> bool:
        """Whether it is a failure of the agent's own: being refused or stopped is not, and no more is a full disk."""
        cause = self.outcome.error.__cause__ if self.outcome.error else None
        return self.kind in _FAILURES and not isinstance(cause, Refused | StoreError)

    @property
    def retryable(self) -> bool:
        return self.kind == "task.failed" and self.outcome.error is not None and self.outcome.error.retryable


def completed(remit: Remit, value: Json) -> Ending:
    return Ending("task.completed", {"result": value}, Outcome(remit.holder, remit.id, "completed", value))


def refused(remit: Remit, no: Json) -> Outcome:
    rule, sentence = (str(part) for part in no) if isinstance(no, list) else ("unknown", "there is no such agent")
    return Outcome(remit.holder, "", "refused", error=Refused(sentence, rule=rule))


def failed(remit: Remit, error: Exception) -> Ending:
    said = str(error) or "no message"
    sentence = f"'{remit.holder}' failed: {type(error).__name__}: {said}"
    again = retryable(error) or isinstance(error, StoreError)  # what the store cannot do now it may do later
    failure = Failed(_kept(sentence), agent=remit.holder, task=remit.id, retryable=again)
    failure.__cause__ = error
    return _end(remit, "task.failed", "failed", failure, kind=type(error).__name__)


def timed_out(remit: Remit, *, final: bool) -> Ending:
    """`final` when the remit's own deadline has passed, and not only the time of one attempt."""
    sentence = f"'{remit.holder}' ran out of time; its work was cancelled"
    error = TimedOut(sentence, agent=remit.holder, task=remit.id, retryable=not final)
    return _end(remit, "task.failed", "timed-out", error)


def stopped(remit: Remit, why: str) -> Ending:
    sentence = f"'{remit.holder}' was cancelled: {why}"
    return _end(remit, "task.cancelled", "cancelled", Cancelled(sentence, agent=remit.holder, task=remit.id))


def released(remit: Remit) -> Ending:
    """Not an end: the process stops, and the task goes back into the queue."""
    return stopped(remit, "its process was stopped; another carries it out")._replace(kind="task.released", data={})


def dead(remit: Remit, end: Ending, attempts: int) -> Ending:
    """The last attempt went like the others."""
    sentence = f"{end.data['error']}; that was attempt {attempts} of {attempts}"
    return Ending("task.died", {**end.data, "error": _kept(sentence)}, end.outcome._replace(state="dead"))


def _end(remit: Remit, event: str, state: OutcomeState, error: RemitError, *, kind: str = "") -> Ending:
    data: dict[str, Json] = {"error": str(error), "type": kind or type(error).__name__}
    if error.retryable:
        data["retryable"] = True
    return Ending(event, data, Outcome(remit.holder, remit.id, state, error=error))


def _kept(sentence: str) -> str:
    """An error's text as the journal keeps it: not longer than a page, and only characters a database keeps."""
    clean = sentence.encode("utf-8", "replace").decode().replace("\0", "\\0")
    return clean if len(clean) <= _ERROR_LIMIT else f"{clean[: _ERROR_LIMIT - 1]}…"


_KINDS: dict[str, tuple[OutcomeState, type[Failed]]] = {
    "task.failed": ("failed", Failed),
    "task.cancelled": ("cancelled", Cancelled),
    "task.died": ("dead", Failed),
}


def told(began: Event, ended: Event) -> Outcome:
    """The outcome of a task as the journal has it."""
    asked, last = began.agent, ended.agent
    by = last if last != asked else ""
    data = cast("dict[str, Any]", ended.data)
    if ended.kind == "task.completed":
        return Outcome(asked, ended.task, "completed", data.get("result"), by=by)
    state, kind = _KINDS[ended.kind]
    if ended.kind == "task.failed" and data.get("type") == "TimedOut":
        state, kind = "timed-out", TimedOut
    sentence = data.get("error", "its record was pruned")
    error = kind(sentence, agent=last, task=ended.task, retryable=bool(data.get("retryable")))
    return Outcome(asked, ended.task, state, error=error, by=by)
