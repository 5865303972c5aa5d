"""The possible ends of a task: the event and the asker's outcome; and reading outcomes from the journal."""

from __future__ import annotations

from dataclasses import replace
from traceback import format_exception
from typing import NamedTuple, cast

from remit.core.backoff import retryable, wanted_wait
from remit.core.events import Event
from remit.core.kinds import EndData, read
from remit.core.lifecycle import TERMINAL, Outcome, OutcomeState, Record
from remit.core.remit import Remit
from remit.core.secret import Redaction
from remit.core.trust import TRUSTED
from remit.core.values import Json
from remit.engine import traces
from remit.engine.presence.bell import Bell
from remit.engine.traces import owners_fault
from remit.errors import BadInput, Cancelled, Failed, NoAnswer, OutOfRequests, Refused, RemitError, StoreError, TimedOut
from remit.ports import View

_ERROR_LIMIT = 2_000


class Ending(NamedTuple):
    """The end of a task: the kind and data of the event, and the asker's outcome."""

    kind: str
    data: dict[str, Json]
    outcome: Outcome

    @property
    def retryable(self) -> bool:
        return self.kind == "task.failed" and self.outcome.error is not None and self.outcome.error.retryable

    def wanted_wait(self, now: int) -> int:
        """Return the pause that the failing server asks for, in microseconds."""
        error = self.outcome.error
        return wanted_wait(error.__cause__, now) if error is not None and error.__cause__ is not None else 0


class Circled(Refused):
    """A turn was stopped because it made no progress; the text names the agent."""


def completed(remit: Remit, value: Json) -> Ending:
    return Ending("task.completed", {"result": value}, Outcome(remit.holder, remit.id, "completed", value))


def refused(remit: Remit, refusal: Refused) -> Outcome:
    return Outcome(remit.holder, "", "refused", error=refusal)


def failed(remit: Remit, error: BaseException) -> Ending:
    again = retryable(error) or isinstance(error, StoreError)  # a store error may pass
    fault = owners_fault(error)
    if fault is not None:
        error = fault.error
    own = fault is None and is_own(error, remit.id)
    # The failure of another agent already names its place.
    where = traces.place(error) if own or fault is not None else ""
    whose = f" in {fault.role}" if fault is not None else ""
    sentence = f"'{remit.holder}' failed: {type(error).__name__}: {said(error)}{whose}"
    if isinstance(error, Circled):
        sentence = str(error)
    failure = Failed(
        _kept(sentence, f" ({where})" if where else ""), agent=remit.holder, task=remit.id, retryable=again
    )
    failure.__cause__ = error
    ending = _ending(remit, "task.failed", "failed", failure, kind=type(error).__name__)
    if told := traces.trace(error):
        ending.data["trace"] = told
    if not own:
        ending.data["spared"] = True
    return ending


def unusable(remit: Remit, no: BadInput) -> Ending:
    """Return the end of a task whose result cannot be stored. It may be too long or not JSON because of the agent's
    input, so it does not count for the breaker."""
    ending = failed(remit, no)
    ending.data["spared"] = True
    return ending


def is_own(error: BaseException, task: str) -> bool:
    """Whether a failure is the agent's own, not that of a rule, the store, or an agent it called. Making no progress
    and getting no answer from any model are its own."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_own(one, task) for one in cast("BaseExceptionGroup[BaseException]", error).exceptions)
    if isinstance(error, Refused):
        return error.rule == "repeat"
    if isinstance(error, Failed):
        return error.task == task and isinstance(error, NoAnswer | OutOfRequests)
    if isinstance(error, StoreError):
        return False
    return error.__cause__ is None or is_own(error.__cause__, task)


def timed_out(remit: Remit, *, final: bool, short: bool = False) -> Ending:
    """Return the end of a task whose time is up; `final` if that was its deadline, not only the time of one attempt. If
    the time was `short`, less than the default, it does not count for the breaker: the caller set the limit."""
    sentence = f"'{remit.holder}' ran out of time; its work was cancelled"
    error = TimedOut(sentence, agent=remit.holder, task=remit.id, retryable=not final)
    ending = _ending(remit, "task.failed", "timed-out", error)
    if short:
        ending.data["spared"] = True
    return ending


def stopped(remit: Remit, why: str, *, unheard: bool = False) -> Ending:
    """Return the end of a cancelled task; `unheard` if its asker had ended by then, so that no one received the
    outcome."""
    sentence = f"'{remit.holder}' was cancelled: {why}"
    error = Cancelled(sentence, agent=remit.holder, task=remit.id)
    ending = _ending(remit, "task.cancelled", "cancelled", error)
    if unheard:
        ending.data["unheard"] = True
    return ending


def released(remit: Remit) -> Ending:
    """Return the ending that requeues a task because its process stops; the task itself continues."""
    return stopped(remit, "its process was stopped; another carries it out")._replace(kind="task.released", data={})


def without_secrets(ending: Ending, redaction: Redaction) -> Ending:
    """Return the ending with all registered secrets removed from its error. Drop the exception's cause if its traceback
    contains a secret, since logs and models see the whole traceback."""
    error = ending.outcome.error
    if not redaction or not isinstance(error, Failed):
        return ending
    shown = "".join(format_exception(error))
    if redaction.text(shown) == shown:
        return ending
    clean = type(error)(redaction.text(str(error)), agent=error.agent, task=error.task, retryable=error.retryable)
    return ending._replace(outcome=replace(ending.outcome, error=clean))


def dead(ending: Ending, attempts: int) -> Ending:
    """Return the last failure as final, after all attempts failed."""
    sentence = f"{ending.data['error']}; that was attempt {attempts} of {attempts}"
    return Ending("task.died", {**ending.data, "error": _kept(sentence)}, replace(ending.outcome, state="dead"))


def _ending(remit: Remit, event: str, state: OutcomeState, error: RemitError, *, kind: str = "") -> Ending:
    data: dict[str, Json] = {"error": str(error), "type": kind or type(error).__name__}
    if error.retryable:
        data["retryable"] = True
    return Ending(event, data, Outcome(remit.holder, remit.id, state, error=error))


def said(error: BaseException) -> str:
    """Return the text of an error, whatever its class does; of an exception group, the texts of its members."""
    if isinstance(error, BaseExceptionGroup):
        inside = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return "; ".join(f"{type(one).__name__}: {said(one)}" for one in inside)
    try:
        return str(error) or "no message"
    except Exception:  # noqa: BLE001 - foreign code
        return "its message cannot be read"


def _kept(sentence: str, place: str = "") -> str:
    """Return an error's text, shortened to a page, with its place, and only with characters that a database can
    hold."""
    clean = sentence.encode("utf-8", "replace").decode().replace("\0", "\\0")
    most = _ERROR_LIMIT - len(place)
    return (clean if len(clean) <= most else f"{clean[: most - 1]}…") + place


# -- reading outcomes ------------------------------------------------------------------------------------------------

_KINDS: dict[str, tuple[OutcomeState, type[Failed]]] = {
    "task.failed": ("failed", Failed),
    "task.cancelled": ("cancelled", Cancelled),
    "task.died": ("dead", Failed),
}


def from_events(began: Event, ended: Event) -> Outcome:
    """Return the outcome of a task from its first and last event."""
    asked, last = began.agent, ended.agent
    by = last if last != asked else ""
    data = read(ended, EndData)
    trust = data.get("trust", TRUSTED)
    if ended.kind == "task.completed":
        return Outcome(asked, ended.task, "completed", data.get("result"), by=by, trust=trust)
    state, kind = _KINDS[ended.kind]
    if ended.kind == "task.failed" and data.get("type") == "TimedOut":
        state, kind = "timed-out", TimedOut
    sentence = data.get("error", "its record was pruned")
    error = kind(sentence, agent=last, task=ended.task, retryable=bool(data.get("retryable")))
    return Outcome(asked, ended.task, state, error=error, by=by, trust=trust)


def is_unheard(view: View, record: Record) -> bool:
    """Whether a task was stopped only because its asker had ended. In a rerun, the asker has to request it again."""
    ended = view.event(record.ended) if record.state == "cancelled" and record.ended is not None else None
    return ended is not None and bool(read(ended, EndData).get("unheard"))


def of_record(view: View, record: Record) -> Outcome | None:
    """Return the outcome of a task, or None while it has not ended."""
    if record.state not in TERMINAL:
        return None
    began, ended = view.event(record.began), view.event(record.ended or 0)
    assert began is not None
    assert ended is not None
    return from_events(began, ended)


async def awaited(bell: Bell, task: str) -> Outcome:
    """Wait for the outcome of a task, whichever process runs it."""

    def look(view: View) -> Outcome | None:
        record = view.record(task)
        return of_record(view, record) if record is not None else None

    return await bell.until(task, look)
