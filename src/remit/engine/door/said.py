"""What people have said."""

from __future__ import annotations

from typing import Any, NamedTuple

from remit.core.events import Unsealed
from remit.core.kinds import Place, QuestionAnswered, question_event, read
from remit.core.question import Question, Reply
from remit.core.values import Json
from remit.errors import Refused
from remit.ports import View


class Said(NamedTuple):
    """What came of a question: how it ended, by whom and why, and the value that was given. `digest` is that of exactly
    what was asked."""

    question: str
    state: str
    by: str
    why: str
    value: Json = None
    digest: str = ""

    @property
    def approved(self) -> bool:
        return self.state == "approved"


def said_in(view: View, question: str) -> Said | None:
    """Tell what came of a question; None while it is open."""
    found = view.question(question)
    return None if found is None or found.answered is None else said_of(view, found)


def said_under(view: View, op: str) -> Said | None:
    """Tell what came of the question that an operation needed."""
    done = view.done(f"{op}/ask")
    return said_in(view, str(done[0])) if done is not None else None


def said_of(view: View, question: Question) -> Said:
    """Read the answer to a question. What has expired counts as its expiry says."""
    event = view.event(question.answered or 0)
    assert event is not None  # a row points at the event that answered it
    data = read(event, QuestionAnswered)
    return Said(question.id, _counts_as(question), data["by"], data["why"], data.get("value"), question.digest)


def _counts_as(question: Question) -> str:
    if question.state != "expired":
        return question.state
    return {"approve": "approved", "default": "answered"}.get(question.expires, "rejected")


def rejected(said: Said, what: str) -> str:
    """Say to an agent that a person said no."""
    if said.state == "withdrawn":
        return f"{what} was not approved: the question was withdrawn; go on without it"
    whom = f" by {said.by}" if said.by else ""
    why = f": {said.why}" if said.why else ""
    return f"{what} was not approved{whom}{why}; go on without it"


def not_answered(said: Said) -> Refused:
    why = said.why or "nobody answered in time"
    return Refused(f"question {said.question} was not answered: {why}; go on without an answer", rule="approval")


def answered(question: Question, reply: Reply, now: int) -> Unsealed:
    """Make the event of an answer."""
    data: dict[str, Any] = {
        "question": question.id,
        "state": reply.state,
        "by": reply.by,
        "channel": reply.channel,
        "why": reply.why,
    }
    if reply.value is not None:
        data["value"] = reply.value
    place = Place(question.run, question.session, question.task)
    return question_event("question.answered", place, question.agent, now, data)
