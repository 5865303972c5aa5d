"""What follows when a task ends or is taken from whoever runs it. Every engine part writes through this, so that no
call site can forget it.

`Consequent` is a store whose decisions are completed: for each event that ends, moves or hands over a task, the
consequences of its kind are appended in the same transaction.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from remit.core import breaker as breakers
from remit.core import lifecycle
from remit.core.breaker import CLOSED, BreakerPolicy
from remit.core.events import Unsealed
from remit.core.kinds import FirstData, Place, breaker_set, message_sent, moved, read
from remit.core.message import Message
from remit.core.record import Record, Standing
from remit.core.values import Json, encode
from remit.ports import NOTHING, Decide, Decided, Decision, Store, View, Wants

T = TypeVar("T")

_ANNOUNCED: Final = 8_000  # characters of a result that an announcement quotes; the whole of it is with the task
_WHY: Final = 200


class Happening(NamedTuple):
    """An event of this decision, what it is decided on, and which tasks the same decision ends anyway.

    `standing` is how its task stood before it.
    """

    view: View
    event: Unsealed
    standing: Standing | None
    ending: set[str]
    breaker_policy: BreakerPolicy


Consequence: TypeAlias = Callable[[Happening], Sequence[Unsealed]]


def breaker_learns(happening: Happening) -> Sequence[Unsealed]:
    """A success ends a row of failures; a failure of the agent's own adds to it, unless it is marked as spared."""
    view, event, _, _, policy = happening
    before = view.breaker(event.agent)
    if event.kind in _SUCCESSES:
        if before is CLOSED:
            return ()
        after = breakers.succeeded(before, event.task)
    elif event.kind in _FAILURES and not event.data.get("spared"):
        why = str(event.data.get("error", ""))[:_WHY]
        after = breakers.failed(before, policy, event.task, why, event.at)
    else:
        return ()
    return () if after == before else (breaker_set(event.agent, after, _place(event), event.at),)


def delegated_children_end(happening: Happening) -> Sequence[Unsealed]:
    """What an earlier attempt delegated and this one did not ask for again ends too: nobody waits for it any more."""
    view, event, standing, ending, _ = happening
    if standing is not None and "receipt" in event.data and not standing.is_rerun:
        return ()  # whoever ran it in one go has seen the end of all that it delegated
    gone = {event.task}
    ends: list[Unsealed] = []
    for record in view.below(event.task):
        if record.parent in gone and record.asked_how == "delegate":
            gone.add(record.id)
            if record.id not in ending:
                ends.append(ended_unrun(record, "task.cancelled", "its asker ended without it", event.at))
    return ends


def asker_is_told(happening: Happening) -> Sequence[Unsealed]:
    """Whoever spawned a task finds its end announced in its inbox: sent with the end itself, so exactly once."""
    view, event, standing, _, _ = happening
    if standing is None or standing.asked_how != "spawn":
        return ()
    record = view.record(event.task)
    assert record is not None
    began = view.event(record.began)
    asker = read(began, FirstData)["asker"] if began is not None else ""
    return (announcement(event, asker, record.parent),)


# Kind of event -> what follows from it, in this order. Money and approvals add their lines here.
_END: Final[tuple[Consequence, ...]] = (breaker_learns, delegated_children_end, asker_is_told)
CONSEQUENCES: Final[dict[str, tuple[Consequence, ...]]] = {
    **dict.fromkeys(sorted(lifecycle.ENDS), _END),
    "task.retrying": (breaker_learns,),
    "task.handed": (breaker_learns,),
    "task.released": (),
    "task.lost": (),
    "task.fenced": (),
    "task.claimed": (),
}
_FOLLOWED: Final = frozenset(kind for kind, consequences in CONSEQUENCES.items() if consequences)
_SUCCESSES: Final = frozenset(("task.completed", "task.handed"))
_FAILURES: Final = frozenset(("task.failed", "task.retrying", "task.died"))


class Consequent:
    """A store that completes every decision with its consequences; in all else the store itself."""

    __slots__ = ("_breaker_policy", "_store", "listen", "read", "subscribe", "workspace")

    def __init__(self, store: Store, breaker_policy: BreakerPolicy) -> None:
        self._store = store
        self._breaker_policy = breaker_policy
        self.workspace = store.workspace
        self.read = store.read
        self.subscribe = store.subscribe
        self.listen = store.listen

    def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Coroutine[Any, Any, T]:
        return self._store.tx(op, self._completed(decide), wants)

    def transact(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Coroutine[Any, Any, Decided[T]]:
        return self._store.transact(op, self._completed(decide), wants)

    def _completed(self, decide: Decide[T]) -> Decide[T]:
        def completed(view: View) -> Decision[T]:
            decision = decide(view)
            for event in decision.events:
                if event.kind in _FOLLOWED:
                    following = self._following(view, decision.events)
                    return decision._replace(events=(*decision.events, *following)) if following else decision
            return decision

        return completed

    def _following(self, view: View, decided: Sequence[Unsealed]) -> list[Unsealed]:
        """List what follows from these events, and what follows from that."""
        events = list(decided)
        ending = {event.task for event in events if event.kind in lifecycle.ENDS}
        for event in events:  # grows while it is walked
            consequences = CONSEQUENCES.get(event.kind)
            if not consequences:
                continue
            happening = Happening(view, event, view.standing(event.task), ending, self._breaker_policy)
            for consequence in consequences:
                if following := consequence(happening):
                    events += following
                    ending.update(one.task for one in following if one.kind in lifecycle.ENDS)
        return events[len(decided) :]


def ended_unrun(record: Record, kind: str, why: str, now: int, *, type_: str = "") -> Unsealed:
    """Make the end of a task that nobody runs."""
    word = {"task.cancelled": "was cancelled", "task.died": "died"}.get(kind, "failed")
    error = type_ or ("Cancelled" if kind == "task.cancelled" else "Failed")
    data: dict[str, Json] = {"error": f"'{record.holder}' {word}: {why}", "type": error, "spared": True}
    return moved(kind, Place(record.run, record.session, record.id), record.holder, now, data)


def announcement(end: Unsealed, asker: str, reader: str) -> Unsealed:
    """Make the message that tells an asker how a task it spawned has ended."""
    state = lifecycle.lands(end.kind)
    value = end.data.get("result")
    said = end.data.get("error") if state != "completed" else value if isinstance(value, str) else encode(value)
    text = f"task {end.task} by '{end.agent}' {state}: {said}"
    short = text if len(text) <= _ANNOUNCED else f"{text[: _ANNOUNCED - 1]}…"
    message = Message(f"{end.task}/told", end.session, end.agent, asker, short, end.at, reader=reader, about=end.task)
    return message_sent(message, _place(end))


def _place(event: Unsealed) -> Place:
    return Place(event.run, event.session, event.task)
