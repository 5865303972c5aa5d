"""Follow-up events when a task ends or is taken from its process. All parts of the engine write through this module, so
that no call site can forget them.

`Consequent` is a store that completes decisions: for each event that ends, moves or hands over a task, the follow-up
events of its kind are appended in the same transaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias, TypeVar, cast

from remit.core import breaker as breakers
from remit.core import lifecycle
from remit.core.breaker import CLOSED, BreakerPolicy
from remit.core.entry import Message
from remit.core.events import Place, Unsealed, read
from remit.core.kinds.sharing import message_sent
from remit.core.kinds.tasks import FirstData, moved
from remit.core.kinds.workspace import breaker_set
from remit.core.lifecycle import Record, Standing
from remit.core.money import Book
from remit.core.records import NamedTuple
from remit.core.secret import NOTHING_SECRET, Redaction
from remit.core.trust import TRUSTED, Trust
from remit.core.values import Json, encode
from remit.engine.approvals import has_question, is_part, parked, parts, unparked, withdrawn
from remit.engine.door import holds_resolve, leases_close
from remit.engine.ground import StoreAround
from remit.ports import NOTHING, Decide, Decided, Decision, Store, View, Wants

T = TypeVar("T")

_ANNOUNCED: Final = 8_000  # characters of a result in a result message; the task has all of it
_WHY: Final = 200
_ANNOUNCED_WAYS: Final = frozenset(("spawn", "async"))


class Happening(NamedTuple):
    """The view of a decision, all its events so far, and the breaker policy."""

    view: View
    events: Sequence[Unsealed]
    breaker_policy: BreakerPolicy

    def is_part(self, task: str) -> bool:
        record = self.view.record(task)
        return record is not None and is_part(record)

    def moves(self, task: str) -> bool:
        """Whether this decision already moves the task."""
        return any(event.task == task and event.kind.startswith("task.") for event in self.events)

    def ends(self, task: str) -> bool:
        """Whether this decision already ends the task."""
        return any(event.task == task and event.kind in lifecycle.ENDS for event in self.events)


# A decision, one of its events, and the earlier state of the event's task -> the follow-up events.
Consequence: TypeAlias = Callable[[Happening, Unsealed, Standing | None], Sequence[Unsealed]]


def breaker_learns(happening: Happening, event: Unsealed, standing: Standing | None) -> Sequence[Unsealed]:
    """Return the event that updates the agent's breaker. A success resets the count of failures. A failure adds one,
    unless its event is marked as spared. If a probe ends without success or failure, another task may become the
    probe."""
    before = happening.view.breaker(event.agent)
    if event.kind in _SUCCESSES:
        if before is CLOSED:
            return ()
        after = breakers.succeeded(before, event.task)
    elif event.kind in _FAILURES and not event.data.get("spared"):
        why = str(event.data.get("error", ""))[:_WHY]
        after = breakers.failed(before, happening.breaker_policy, event.task, why, event.at)
    else:
        after = breakers.given_back(before, event.task, event.at)
    return () if after == before else (breaker_set(event.agent, after, _place(event), event.at),)


def delegated_children_end(happening: Happening, event: Unsealed, standing: Standing | None) -> Sequence[Unsealed]:
    """Return the events that cancel the open tasks which an ended task had delegated. An earlier attempt left them, and
    the last attempt did not request them again."""
    seen = "receipt" in event.data and "left" not in event.data
    if standing is not None and seen and standing.fence <= 1 and not standing.failures:
        return ()  # an attempt without a takeover has seen the end of all its delegations
    gone = {event.task}
    ends: list[Unsealed] = []
    for record in happening.view.below(event.task):
        if record.parent in gone and record.asked_how == "delegate":
            gone.add(record.id)
            if not happening.ends(record.id):
                ends.append(ended_unrun(record, "task.cancelled", "its asker ended without it", event.at))
    return ends


def asker_is_told(happening: Happening, event: Unsealed, standing: Standing | None) -> Sequence[Unsealed]:
    """Return the announcement of a task that was spawned, or submitted with `announce`. It is part of the transaction
    that ends the task, so it is sent exactly once."""
    if standing is None or standing.asked_how not in _ANNOUNCED_WAYS:
        return ()
    record = happening.view.record(event.task)
    assert record is not None
    began = happening.view.event(record.began)
    asker = read(began, FirstData)["asker"] if began is not None else ""
    parent = happening.view.record(record.parent)
    # Addressed to the first task of the retry lineage, so that any retry finds it in its inbox.
    return (announcement(event, asker, parent.origin if parent is not None and parent.origin else record.parent),)


def questions_withdrawn(happening: Happening, event: Unsealed, standing: Standing | None) -> Sequence[Unsealed]:
    """Return the events that withdraw a task's open questions."""
    if standing is None or not standing.ties:
        return ()
    view = happening.view
    open_ = view.questions_of(event.task)
    events = [withdrawn(question, event.at) for question in open_]
    if open_:  # requeue tasks that were parked for the answer
        events += [back for back in unparked(view, event.task, event.at) if not happening.moves(back.task)]
    return events


def parts_are_parked(happening: Happening, event: Unsealed, standing: Standing | None) -> Sequence[Unsealed]:
    """Return the events that park the tasks which a parked task delegated. They hold no slot, and continue only when
    that task continues."""
    if standing is None or (standing.asked_how == "delegate" and happening.is_part(event.task)):
        return ()
    return [parked(record, event.at) for record in parts(happening.view, event.task) if not happening.ends(record.id)]


def calls_end(happening: Happening, event: Unsealed, standing: Standing | None) -> Sequence[Unsealed]:
    """Return the events that end the open holds of this task."""
    return holds_resolve(happening.view, event, standing)


# Kind of event -> its follow-up functions, in this order.
_END: Final[tuple[Consequence, ...]] = (
    breaker_learns,
    calls_end,
    questions_withdrawn,
    delegated_children_end,
    asker_is_told,
)
CONSEQUENCES: Final[dict[str, tuple[Consequence, ...]]] = {
    **dict.fromkeys(sorted(lifecycle.ENDS), _END),
    # Matters only for a probe: a task's attempts count once, when it ends.
    "task.retrying": (breaker_learns, calls_end),
    "task.handed": (breaker_learns,),
    "task.released": (breaker_learns, calls_end),
    "task.lost": (breaker_learns, calls_end),
    "task.parked": (breaker_learns, calls_end, parts_are_parked),
    "task.fenced": (calls_end,),
    "task.claimed": (calls_end,),
}


def _without(*left_out: Consequence) -> dict[str, tuple[Consequence, ...]]:
    return {kind: tuple(one for one in all_ if one not in left_out) for kind, all_ in CONSEQUENCES.items()}


# What follows for a task that holds no money for calls and waits for no person, as nearly all; and for one whose end
# is not announced either.
_UNTIED: Final = _without(calls_end, questions_withdrawn)
_UNTIED_UNTOLD: Final = _without(calls_end, questions_withdrawn, asker_is_told)
_PUT_BACK: Final = frozenset(("task.lost", "task.released"))
_FOLLOWED: Final = frozenset(kind for kind, consequences in CONSEQUENCES.items() if consequences)
_SUCCESSES: Final = frozenset(("task.completed", "task.handed"))
_FAILURES: Final = frozenset(("task.failed", "task.died"))


class Consequent(StoreAround):
    """A store that completes every decision with its follow-up events."""

    __slots__ = ("_breaker_policy", "_redaction")

    def __init__(self, store: Store, breaker_policy: BreakerPolicy, redaction: Redaction = NOTHING_SECRET) -> None:
        super().__init__(store)
        self._redaction = redaction
        self._breaker_policy = breaker_policy

    def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Awaitable[Decided[T]]:
        def completed(view: View) -> Decision[T]:
            decision = decide(view)
            for event in decision.events:
                if event.kind in _FOLLOWED:
                    decision = self._complete(view, decision)
                    break
            return decision if self._redaction.is_empty else self._redacted(decision)

        return self._store.tx(op if self._redaction.is_empty else self._redaction.text(op), completed, wants)

    def _redacted(self, decision: Decision[T]) -> Decision[T]:
        """Return the decision with the owner's secrets removed."""
        redact = self._redaction.json
        events = [event._replace(data=cast("dict[str, Json]", redact(event.data))) for event in decision.events]
        return decision._replace(events=events, answer=cast("T", redact(cast("Json", decision.answer))))

    def _complete(self, view: View, decision: Decision[T]) -> Decision[T]:
        """Return the decision with the follow-up events of all its events, including follow-up events of follow-up
        events."""
        events = [*decision.events]
        happening, book = Happening(view, events, self._breaker_policy), None
        for place, event in enumerate(events):  # the list grows during the loop
            kind = event.kind
            # A task with an open question must not be claimed before the answer: park it instead of requeueing it.
            if kind in _PUT_BACK and has_question(view, event):
                kind = "task.parked"
                event = events[place] = event._replace(kind=kind)  # noqa: PLW2901
            consequences = CONSEQUENCES.get(kind)
            if not consequences:
                continue
            standing = view.standing(event.task)
            if standing is not None and not standing.ties:
                consequences = (_UNTIED if standing.asked_how in _ANNOUNCED_WAYS else _UNTIED_UNTOLD)[kind]
            for consequence in consequences:
                events += consequence(happening, event, standing)
            if standing is not None and standing.purse and kind in lifecycle.ENDS:
                # Close leases last: the follow-up events above may have moved their money.
                book = book or Book(view.lease)
                for one in events:
                    book.note(one)
                if closed := leases_close(book, event, standing):
                    events[place] = event._replace(data={**event.data, **closed})
                    book.moved_by(events[place])
        nothing_follows = events == [*decision.events]
        return decision if nothing_follows else Decision(decision.answer, events, *decision[2:])


def ended_unrun(record: Record, kind: str, why: str, now: int, *, type_: str = "", by: str = "") -> Unsealed:
    """Return the end of a task that no process runs."""
    word = {"task.cancelled": "was cancelled", "task.died": "died"}.get(kind, "failed")
    error = type_ or ("Cancelled" if kind == "task.cancelled" else "Failed")
    data: dict[str, Json] = {"error": f"'{record.holder}' {word}: {why}", "type": error, "spared": True}
    if by:
        data["by"] = by
    return moved(kind, Place(record.run, record.session, record.id), record.holder, now, data)


def announcement(end: Unsealed, asker: str, reader: str) -> Unsealed:
    """Return the message that reports the end of a spawned or announced task to its asker."""
    state = lifecycle.lands(end.kind)
    value = end.data.get("result")
    said = end.data.get("error") if state != "completed" else value if isinstance(value, str) else encode(value)
    text = f"task {end.task} by '{end.agent}' {state}: {said}"
    short = text if len(text) <= _ANNOUNCED else f"{text[: _ANNOUNCED - 1]}…"
    trust = cast("Trust", end.data.get("trust", TRUSTED))
    message = Message(f"{end.task}/told", end.session, end.agent, asker, short, end.at, reader, end.task, trust)
    return message_sent(message, _place(end))


def _place(event: Unsealed) -> Place:
    return Place(event.run, event.session, event.task)
