"""Taking a task up where its record says it is: in whose hands, with what handed over, and what is under way."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from remit.core import command as commands
from remit.core import remit as remits
from remit.core.command import Move, Send
from remit.core.events import Event
from remit.core.identity import question
from remit.core.kinds import EntrySet, FirstData, Handed, Lineage, read
from remit.core.lead import Lead, lead_restored
from remit.core.outcome import Outcome
from remit.core.record import Record
from remit.core.remit import NOTHING_ALONG, Remit, known_pass, passing_restored
from remit.core.trust import TRUSTED, Trust, least
from remit.core.values import Json
from remit.engine.attempt import outcomes
from remit.engine.attempt.handoffs import Sends, label
from remit.engine.attempt.live import NOBODY_WROTE, NOT_HANDED, Handoff, LiveTask, Written
from remit.engine.attempt.operations import FIRST, Attempt, Operations
from remit.engine.directory import Agent
from remit.errors import Refused
from remit.ports import Span, View


class Joined(NamedTuple):
    """Parts of a parallel handoff that have come back: what was sent, by whom, and in which turn."""

    sends: Sends
    holder: str
    turns: int


class Resumed(NamedTuple):
    """Where a task stands. `sends` is a parallel handoff whose results nobody has got yet; what came of those `joined`
    has been handed on."""

    remit: Remit
    attempt: Attempt
    handoff: Handoff = NOT_HANDED
    turns: int = 0
    sends: Sends | None = None
    joined: Joined | None = None
    took: Trust = TRUSTED
    past: Mapping[str, Written] = NOBODY_WROTE
    lead: Lead | None = None

    def live(self, agent: Agent) -> LiveTask:
        """Make the task alive again, in the hands of whoever holds it now."""
        live = LiveTask(self.remit, agent, self.attempt, self.handoff)
        live.operations = Operations(self.remit.id, self.attempt, self.turns, self.remit.holder)
        live.take(least((self.took, *(result.trust for result in self.handoff.results))))
        live.recall(self.past)
        live.lead = self.lead
        live.spends = self.attempt.is_rerun
        return live


def origin_of(record: Record) -> str:
    """Return the id of the first task of a lineage."""
    return record.origin or record.id


def next_of(view: View, origin: str) -> Lineage:
    """Make the lineage of one more try."""
    tried = [first] if (first := view.record(origin)) is not None else []
    return Lineage(origin, 1 + max((one.failures for one in (*tried, *view.lineage(origin))), default=0))


def resume(view: View, record: Record, fence: int, number: int) -> Resumed:
    """Find where a task stands that is claimed now."""
    began = view.event(record.began)
    assert began is not None  # a row points at the event that made it
    data = read(began, FirstData)
    attempt = Attempt(
        fence,
        number,
        record.failures,
        record.origin,
        record.asked_how,
        queued=True,
        timeout=data.get("timeout", 0),
        attempts=data.get("attempts", FIRST.attempts),
    )
    lead = lead_restored(data["lead"]) if "lead" in data else None
    fresh = Resumed(remits.restored(began), attempt, lead=lead)
    if record.holder == began.agent and not attempt.is_rerun:
        return fresh
    resumed = replay_handoffs(fresh, view.events(Span(run=record.run, task=record.id)))
    return resumed._replace(handoff=replace(resumed.handoff, results=_results(view, resumed)))


def replay_handoffs(start: Resumed, events: Iterable[Event]) -> Resumed:
    """Replay the task's handoffs from its events, and what its holders wrote."""
    resumed = start
    past: dict[str, Written] = {}
    for event in events:
        if event.kind == "task.handed":
            resumed = _handed(resumed, read(event, Handed))
        elif event.kind == "entry.set":
            data = read(event, EntrySet)
            past.setdefault(event.agent, {})[data["namespace"], data["key"]] = data["version"]
    return resumed._replace(past=past) if past else resumed


def _handed(before: Resumed, data: Handed) -> Resumed:
    holder, to = before.remit.holder, data["to"]
    update, content = data["update"], data["content"]
    handoff, said = before.handoff, data.get("trust", TRUSTED)
    along = passing_restored(data["passed"]) if "passed" in data else NOTHING_ALONG
    if isinstance(to, str):
        joins = before.sends is not None and before.sends.join == to
        trail = handoff.trail[:-1] if joins else handoff.trail  # the fan-out and its join are one handoff
        state = handoff.state if joins else commands.merged(handoff.state, update)
        return before._replace(
            remit=remits.handed_to(before.remit, to, along),
            handoff=Handoff(holder, state, (*trail, Move(holder, to, content)), failed=data.get("failed", "")),
            turns=before.turns + 1,
            sends=None,
            joined=Joined(before.sends, holder, before.turns) if before.sends is not None else before.joined,
            took=said,
        )
    parts = tuple(Send(agent, payload) for agent, payload in zip(to, data.get("payloads", ()), strict=True))
    trail = (*handoff.trail, Move(holder, label(parts), content))
    return before._replace(
        handoff=replace(handoff, state=commands.merged(handoff.state, update), trail=trail),
        turns=before.turns + 1,
        sends=Sends(parts, data.get("join", ""), update, along),
        took=least((before.took, said)),
    )


def _results(view: View, resumed: Resumed) -> tuple[Outcome, ...]:
    """Look up what came of the parts that were joined, by the operations that sent them."""
    if resumed.joined is None:
        return ()
    sends, holder, turns = resumed.joined
    operations = Operations(resumed.remit.id, resumed.attempt, turns, holder)
    asked = (known_pass(part.agent, part.task, sends.along) for part in sends.parts)
    ids = [operations.ids("delegate", *question(wish)) for wish in asked]
    results = (_result(view, part, known) for part, known in zip(sends.parts, ids, strict=True))
    return tuple(outcome for outcome in results if outcome is not None)


def asked(view: View, op: str) -> tuple[str, tuple[Json] | None]:
    """Look up the answer to a delegation, a task or a refusal, following those that ended unheard. Return the operation
    to use, and its answer; None if it was not asked for yet."""
    first, again = op, 0
    while (done := view.done(op)) is not None:
        record = view.record(done[0]) if isinstance(done[0], str) else None
        if record is None or not outcomes.is_unheard(view, record):
            break
        again += 1
        op = f"{first}/again/{again}"
    return op, done


def _result(view: View, part: Send, ids: list[str]) -> Outcome | None:
    for op in ids:
        if (done := asked(view, op)[1]) is not None:
            return _outcome(view, part, done[0])
    return None


def _outcome(view: View, part: Send, answer: Json) -> Outcome | None:
    if isinstance(answer, dict):
        return Outcome(part.agent, "", "refused", error=Refused.read(answer))
    record = view.record(str(answer))
    return outcomes.of_record(view, record) if record is not None else None
