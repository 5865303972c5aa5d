"""How a task can end: the event to write, and what the asker gets."""

from typing import NamedTuple

from remit.core.outcome import Outcome, Status
from remit.core.remit import Remit
from remit.core.values import Json
from remit.errors import Cancelled, Failed, Refused, RemitError, TimedOut

_ERROR_LIMIT = 2_000


class End(NamedTuple):
    kind: str
    data: dict[str, Json]
    outcome: Outcome

    @property
    def counts_against_the_agent(self) -> bool:
        """Whether it is a failure of the agent's own: being refused or stopped is not."""
        cause = self.outcome.error.__cause__ if self.outcome.error else None
        return self.kind == "task.failed" and not isinstance(cause, Refused)


def completed(remit: Remit, value: Json) -> End:
    return End("task.completed", {"result": value}, Outcome(remit.holder, remit.id, "completed", value))


def refused(remit: Remit, no: Json) -> Outcome:
    rule, sentence = (str(part) for part in no) if isinstance(no, list) else ("unknown", "there is no such agent")
    return Outcome(remit.holder, "", "refused", error=Refused(sentence, rule=rule))


def failed(remit: Remit, error: Exception) -> End:
    said = str(error) or "no message"
    sentence = f"'{remit.holder}' failed: {type(error).__name__}: {said}"
    failure = Failed(_kept(sentence), agent=remit.holder, task=remit.id)
    failure.__cause__ = error
    return _end(remit, "task.failed", "failed", failure, kind=type(error).__name__)


def timed_out(remit: Remit) -> End:
    sentence = f"'{remit.holder}' ran out of time; its work was cancelled"
    return _end(remit, "task.failed", "timed-out", TimedOut(sentence, agent=remit.holder, task=remit.id))


def stopped(remit: Remit, why: str) -> End:
    sentence = f"'{remit.holder}' was cancelled: {why}"
    return _end(remit, "task.cancelled", "cancelled", Cancelled(sentence, agent=remit.holder, task=remit.id))


def _end(remit: Remit, event: str, status: Status, error: RemitError, *, kind: str = "") -> End:
    data: dict[str, Json] = {"error": str(error), "type": kind or type(error).__name__}
    return End(event, data, Outcome(remit.holder, remit.id, status, error=error))


def _kept(sentence: str) -> str:
    """An error's text as the journal keeps it: not longer than a page, and only characters a database keeps."""
    clean = sentence.encode("utf-8", "replace").decode().replace("\0", "\\0")
    return clean if len(clean) <= _ERROR_LIMIT else f"{clean[: _ERROR_LIMIT - 1]}…"
