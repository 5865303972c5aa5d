"""Approvals at admission: when a person must be asked, what people have answered, and which tasks wait for an
answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

from remit.core.allow import ANY, names_data
from remit.core.card import Card
from remit.core.events import Place, Unsealed, read
from remit.core.identity import question
from remit.core.kinds.people import QuestionAnswered, question_asked, question_event, question_used
from remit.core.kinds.tasks import Requeue, requeued
from remit.core.lifecycle import Record
from remit.core.prices import dollars
from remit.core.question import Expiry, Question, QuestionDraft, Reply
from remit.core.records import NamedTuple
from remit.core.remit import LASTS, Pass, Remit, expires, path, place, restored
from remit.core.trust import TRUSTED, Trust
from remit.core.values import Json, excerpt, shown
from remit.engine.traces import owners_function
from remit.errors import Refused
from remit.ports import View


class Said(NamedTuple):
    """The decision on a closed question: its state, the person, the reason and the value. `digest` is the digest of the
    request that the person saw."""

    question: str
    state: str
    by: str
    why: str
    value: Json = None
    digest: str = ""
    expired: bool = False  # whether the time was up before an answer

    @property
    def approved(self) -> bool:
        return self.state == "approved"


def said_in(view: View, question: str) -> Said | None:
    """Return the end of a question, or None while it is open."""
    found = view.question(question)
    return None if found is None or found.answered is None else said_of(view, found)


def said_under(view: View, op: str) -> Said | None:
    """Return the decision on the question that was asked under an operation id. Return None if none was asked, or if it
    is open."""
    done = view.done(f"{op}/ask")
    return said_in(view, str(done[0])) if done is not None else None


def said_of(view: View, question: Question) -> Said:
    """Return the decision on a closed question. If the question has expired, its `expires` says whether it counts as
    approved, answered with the default, or rejected."""
    event = view.event(question.answered or 0)
    assert event is not None  # the row refers to its event
    data = read(event, QuestionAnswered)
    expired = question.state == "expired"
    return Said(question.id, _counts_as(question), data["by"], data["why"], data.get("value"), question.digest, expired)


def _counts_as(question: Question) -> str:
    if question.state != "expired":
        return question.state
    return {"approve": "approved", "default": "answered"}.get(question.expires, "rejected")


def rejected(said: Said, what: str) -> str:
    """Return the sentence for an agent whose request a person rejected."""
    if said.state == "withdrawn":
        return f"{what} was not approved: the question was withdrawn; go on without it"
    whom = f" by {said.by}" if said.by else ""
    why = f": {said.why}" if said.why else ""
    return f"{what} was not approved{whom}{why}; go on without it"


def not_answered(said: Said) -> Refused:
    why = said.why or "nobody answered in time"
    return Refused(f"question {said.question} was not answered: {why}; go on without an answer", rule="approval")


def answered(question: Question, reply: Reply, now: int) -> Unsealed:
    """Return the event of an answer."""
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


POLICY: Final = "policy"
_TASK: Final = 7_000  # characters of a task in a summary; `shows` has all of it


class WantedHop(NamedTuple):
    """A requested hop, for functions that decide whether it is allowed or needs approval.

    `kind` is begin, delegate, submit, spawn or handoff. `asker` is the agent that asks, "" for a person; `agent` is the
    wanted agent and `card` its card. `credits` are reserved for the task, None if it shares the asker's money. `chain`
    are the agents that wait for it, the first holder of the run first; `depth` is how deep the wanted agent would be.
    `by` is the person who started the run, "" if none is named. `trust` is the label of the task's text.
    """

    kind: str
    asker: str
    agent: str
    task: str
    credits: int | None
    card: Card
    chain: tuple[str, ...] = ()
    depth: int = 0
    by: str = ""
    session: str = ""
    run: str = ""
    trust: Trust = TRUSTED


def wanted_hop(kind: str, child: Remit, under: Remit, wish: Pass, card: Card) -> WantedHop:
    """Return the facts of a hop for a function of the owner. If no agent asks, `under` is the child itself."""
    first = child is under
    return WantedHop(
        kind,
        "" if first else under.holder,
        wish.to,
        wish.task,
        wish.credits,
        card,
        () if first else under.names,
        child.chain.depth,
        child.by,
        child.session,
        child.root,
        child.trust,
    )


# Returns whether a person must approve a hop: True, False, or the reason.
NeedsApproval: TypeAlias = Callable[[WantedHop], "bool | str"]


class Approving(NamedTuple):
    """The rules on approvals. `needs_approval` is the owner's function for all hops; a card may require approval too.
    `expires` says what happens if no one answers."""

    needs_approval: NeedsApproval | None = None
    expires: Expiry = "reject"

    def needed(self, kind: str, child: Remit, under: Remit, wish: Pass, card: Card) -> str:
        """Return why a person must approve a hop, or "" if no approval is needed."""
        if card.needs_approval:
            return f"'{card.name}' works only after an approval"
        if self.needs_approval is None:
            return ""
        with owners_function("Policy(needs_approval=...)"):
            given = self.needs_approval(wanted_hop(kind, child, under, wish, card))
        return "" if given is False else _reason(given, card.name, under.holder)

    def draft(self, kind: str, child: Remit, under: Remit, wish: Pass, card: Card, why: str) -> QuestionDraft:
        """Return the question for an approval, with everything that the approval permits."""
        shows: dict[str, Any] = {
            "action": kind,
            "agent": wish.to,
            "task": wish.task,
            "chain": path(under.names),
            "because": why,
            "tools": names_data(card.tools) if card.tools else [],
            "asks": names_data(card.asks) if card.asks else [],
        }
        if wish.credits is not None:
            shows["credits"] = dollars(wish.credits)
        elif child.bounds.credits is not None:
            shows["credits"] = f"at most {dollars(child.bounds.credits)}, shared"
        word = {"handoff": f"hand this over to '{wish.to}'"}.get(kind, f"ask '{wish.to}'")
        text = f"'{under.holder}' wants to {word}: {excerpt(wish.task, _TASK)}"
        about = (under.id, *under.names, *question(wish))  # without its deadline, which differs in every attempt
        return QuestionDraft("hop", text, expires=self.expires, shows=shows, about=about)


def _reason(given: object, agent: str, asker: str) -> str:
    """Return the reason that is shown with a request for approval. `given` is the result of the owner's
    `needs_approval` function; if it is neither a text nor True, the reason says so."""
    if isinstance(given, str) and given:
        return given
    if given is True:
        return f"'{agent}' is asked by '{asker}'"
    return f"about '{agent}' the policy says {shown(given)}, which is neither yes nor no"


def analysis_only(card: Card) -> bool:
    """Whether an agent can only read and reply: it has no tools and may ask no agent."""
    return not card.tools and card.tools is not ANY and not card.asks and card.asks is not ANY


class Permit(NamedTuple):
    """The state of an approval. If it is granted, `events` consume it and `task` is the task text that the person
    changed, or "". If it is rejected or does not fit, `no` is the reason. If no person has decided yet, `asks` is
    True."""

    events: tuple[Unsealed, ...] = ()
    no: str = ""
    asks: bool = False
    task: str = ""


ASKS: Final = Permit(asks=True)


def permit(view: View, op: str, draft: QuestionDraft, under: Remit, agent: str, now: int) -> Permit:
    """Return the state of the approval for an action. An approval permits the action only if it was asked under the
    operation `op`, for exactly this content and in the same task, and has not been used."""
    done = view.done(f"{op}/ask")
    question = view.question(str(done[0])) if done is not None else None
    if question is None or question.is_open:
        return ASKS
    found = said_of(view, question)
    if not found.approved:
        return Permit(no=rejected(found, f"asking '{agent}'"))
    if question.used or question.digest != draft.digest or question.task != under.id:
        return Permit(no=f"asking '{agent}' was approved once, for something else; it is not approved again by itself")
    used = question_used(question.id, place(under), under.holder, now)
    return Permit((used,), task=cast("str", found.value) or "")


def automatic(question: str, draft: QuestionDraft, under: Remit, now: int) -> tuple[Unsealed, ...]:
    """Return the events of an automatic approval: asked, approved and used at once, with the reason."""
    where = place(under)
    row = Question(question, *where, under.holder, "hop", draft.digest, now, now, "open", "reject", 0, None, 0)
    reply = Reply("approved", POLICY, "auto", "it can only look and say: it has no tools and asks nobody")
    return (
        question_asked(question, draft, now, where, under.holder, now),
        answered(row, reply, now),
        question_used(question, where, under.holder, now),
    )


def withdrawn(question: Question, now: int) -> Unsealed:
    """Return the event that withdraws the question of a task that has ended."""
    return answered(question, Reply("withdrawn", "", "", "its task is over"), now)


AT_ONCE: Final = 0  # due at once, by any process's clock


def has_question(view: View, event: Unsealed) -> bool:
    """Whether a task, or a task that it delegated, waits for the answer to an open question. A worker that claimed the
    task could not continue it."""
    asking = {question.task for question in view.questions_open_in(event.run)}
    if not asking:
        return False
    return event.task in asking or any(part.id in asking for part in parts(view, event.task))


def parts(view: View, task: str) -> list[Record]:
    """Return the open tasks that a task delegated, directly or through other delegated tasks. Submitted and spawned
    tasks are left out, because they run independently of it."""
    line = {task}
    found: list[Record] = []
    for record in view.below(task):
        if record.parent in line and is_part(record):
            line.add(record.id)
            found.append(record)
    return found


def is_part(record: Record) -> bool:
    """Whether a task was delegated by another task. A worker that resumes the asker resumes such a task too."""
    return bool(record.parent) and record.asked_how == "delegate"


def parked(record: Record, now: int) -> Unsealed:
    """Return the event that parks a delegated task together with its asker. A parked task has no process and waits for
    an answer."""
    back = Requeue("", record.fence + 1, AT_ONCE, record.attempt, record.failures)
    return requeued("task.parked", Place(record.run, record.session, record.id), record.holder, now, back, {})


def unparked(view: View, task: str, now: int) -> list[Unsealed]:
    """Return the events that requeue the parked tasks that wait for an answer in this task: the task itself, or the
    asker that it is a part of."""
    events: list[Unsealed] = []
    record = view.record(task)
    while record is not None:
        if record.state == "waiting" and not record.worker and not is_part(record):
            events.append(_queued(view, record, now))
        record = view.record(record.parent) if is_part(record) else None
    return events


def _queued(view: View, record: Record, now: int) -> Unsealed:
    began = view.event(record.began)
    assert began is not None  # the row refers to its event
    back = Requeue("", record.fence, AT_ONCE, record.attempt, record.failures)
    place = Place(record.run, record.session, record.id)
    until = expires(restored(began).bounds, now, LASTS)
    return requeued("task.queued", place, record.holder, now, back, {"until": until})
