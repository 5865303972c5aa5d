"""Ending a task: exactly one event says how, and only whoever holds the task may write it."""

from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from remit.core import backoff, lifecycle
from remit.core import breaker as breakers
from remit.core.events import Unsealed
from remit.core.kinds import Place, Requeue, breaker_set, ended, message_sent, moved, requeued
from remit.core.message import Message
from remit.core.record import Record
from remit.core.values import Json, encode
from remit.engine.admission import Admission
from remit.engine.attempt import outcomes as ends
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.outcomes import Ending
from remit.engine.presence.bell import ANYTHING, Bell
from remit.ports import Clock, Decision, Ids, Store, View, Wants

NOT_OURS = ""
AT_ONCE: Final = 0  # ready whatever the clock of whoever looks says
_NOT_YET = "not yet"
_ANNOUNCED = 8_000  # characters of a result that an announcement quotes; the whole of it is with the task


class Endings(NamedTuple):
    store: Store
    admission: Admission
    clock: Clock
    ids: Ids
    bell: Bell

    async def finish(self, live: LiveTask, end: Ending) -> Ending | None:
        """Records the end, and says what was recorded; None if the task was not this process's to end any more."""
        made: list[Ending] = []

        def record(view: View) -> Decision[str]:
            made.clear()
            return self._decide(view, live, end, made)

        task = live.remit.id
        while True:
            said = await self.store.tx(f"{task}/end/{live.attempt.fence}", record, Wants((task,)))
            if said != _NOT_YET:
                # Nothing made: it was recorded when this was torn down before, and what was recorded then counts.
                return made[0] if made else end if said == end.kind else None
            await self.bell.until(ANYTHING, lambda view: _alone(view, task) or None)

    def _decide(self, view: View, live: LiveTask, end: Ending, made: list[Ending]) -> Decision[str]:
        remit, now = live.remit, self.clock.now()
        standing = view.standing(remit.id)
        if standing is None or standing.fence != live.attempt.fence or standing.state in lifecycle.TERMINAL:
            return Decision(NOT_OURS)
        if standing.state == "cancelling" and end.kind != "task.cancelled":
            end = ends.stopped(remit, live.stopped or "cancelled")  # cancelled first: completion came too late
        if end.kind == "task.cancelled" and standing.state == "cancelling" and not _alone(view, remit.id):
            return Decision(_NOT_YET)
        end, first = self._outcome(live, end, now)
        facts = [first, *self._lesson(view, live, end, now)]
        if end.kind in lifecycle.ENDS:
            if live.attempt.is_rerun:
                facts += abandoned(view, remit.id, now)
            if live.attempt.asked_how == "spawn":
                facts.append(announcement(live.place, remit.holder, _to(live), end, now))
        made.append(end)
        return Decision(end.kind, facts)

    def _outcome(self, live: LiveTask, end: Ending, now: int) -> tuple[Ending, Unsealed]:
        """What an end becomes: the queue tries again what may go better, until it has been tried often enough."""
        remit, hold = live.remit, live.attempt
        if end.kind == "task.released":
            rest = Requeue("", hold.fence + 1, AT_ONCE, hold.attempt - 1, hold.failures)
            return end, requeued("task.released", live.place, remit.holder, now, rest, {})
        if hold.queued and end.retryable:
            if hold.attempt >= hold.attempts:
                end = ends.dead(remit, end, hold.attempts)
            else:
                failures = hold.failures + 1
                ready_at = now + backoff.delay(hold.attempt, self.ids.chance())
                if remit.bounds.deadline is not None and ready_at < remit.bounds.deadline:
                    rest = Requeue("", hold.fence + 1, ready_at, hold.attempt, failures)
                    data = turn_data(live, end.data)
                    fact = requeued("task.retrying", live.place, remit.holder, now, rest, data)
                    return end._replace(kind="task.retrying"), fact
        return end, ended(remit, end.kind, now, turn_data(live, end.data))

    def _lesson(self, view: View, live: LiveTask, end: Ending, now: int) -> tuple[Unsealed, ...]:
        """What the agent's breaker learns from this end; most of the time nothing."""
        if end.kind == "task.completed":
            return self.praise(view, live, now)
        if live.stand_in or not end.counts_against_the_agent:
            return ()
        name, before = live.remit.holder, view.breaker(live.remit.holder)
        why = str(end.outcome.error)[:200]
        after = breakers.failed(before, self.admission.breaker_policy, live.remit.id, why, now)
        return (breaker_set(name, after, live.place, now),) if after != before else ()

    @staticmethod
    def praise(view: View, live: LiveTask, now: int) -> tuple[Unsealed, ...]:
        """A turn that went well ends a row of failures, whether it answered or handed over."""
        if not live.breaker_was_open:
            return ()
        name, before = live.remit.holder, view.breaker(live.remit.holder)
        after = breakers.succeeded(before, live.remit.id)
        return (breaker_set(name, after, live.place, now),) if after != before else ()


def turn_data(live: LiveTask, data: dict[str, Json]) -> dict[str, Json]:
    """What the event that ends a turn says besides: its receipt, and the tokens it used."""
    data["receipt"] = live.receipt.data()
    if live.tokens:
        data["tokens"] = live.tokens
    return data


def _alone(view: View, task: str) -> bool:
    """Whether nothing under it is still open."""
    return all(record.id == task for record in view.below(task))


def _to(live: LiveTask) -> tuple[str, str]:
    return live.remit.asker, live.remit.parent


def abandoned(view: View, task: str, now: int, ending: AbstractSet[str] = frozenset()) -> list[Unsealed]:
    """Ends what a task delegated in an earlier attempt and did not ask for again: nobody waits for it any more.
    `ending` are those that end already in the same transaction."""
    gone = {task}
    facts: list[Unsealed] = []
    for record in view.below(task):
        if record.parent in gone and record.asked_how == "delegate":
            gone.add(record.id)
            if record.id not in ending:
                facts += over(view, record, "task.cancelled", "its asker ended without it", now)
    return facts


def over(view: View, record: Record, kind: str, why: str, now: int) -> list[Unsealed]:
    """The end of a task that nobody carries out, and the announcement of it."""
    place = Place(record.run, record.session, record.id)
    word = {"task.cancelled": "was cancelled", "task.died": "died"}.get(kind, "failed")
    data: dict[str, Json] = {"error": f"'{record.holder}' {word}: {why}", "type": _TYPES.get(kind, "Failed")}
    facts = [moved(kind, place, record.holder, now, data)]
    if record.asked_how == "spawn":
        began = view.event(record.began)
        asker = str(began.data["asker"]) if began is not None else ""
        facts.append(announcement(place, record.holder, (asker, record.parent), facts[0], now))
    return facts


_TYPES: Final = {"task.cancelled": "Cancelled"}


def announcement(at: Place, agent: str, to: tuple[str, str], end: Ending | Unsealed, now: int) -> Unsealed:
    """What the asker of a spawned task finds in its inbox: sent with the end itself, so exactly once."""
    state = lifecycle.lands(end.kind)
    value = end.data.get("result")
    said = end.data.get("error") if state != "completed" else value if isinstance(value, str) else encode(value)
    text = f"task {at.task} by '{agent}' {state}: {said}"
    short = text if len(text) <= _ANNOUNCED else f"{text[: _ANNOUNCED - 1]}…"
    asker, task = to
    message = Message(f"{at.task}/told", at.session, agent, asker, short, now, reader=task, about=at.task)
    return message_sent(message, at)
