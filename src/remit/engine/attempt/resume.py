"""Taking a task up where its record says it is: in whose hands, with what handed over, and what is under way."""

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from remit.core import command as commands
from remit.core import remit as remits
from remit.core.command import HandoffState, Move, Send
from remit.core.events import Event
from remit.core.outcome import Outcome
from remit.core.record import Record
from remit.core.remit import Remit
from remit.core.values import Json
from remit.engine.attempt import outcomes as ends
from remit.engine.attempt.live import Attempt, LiveTask, op_name, ops
from remit.engine.attempt.turns import Sends, label
from remit.errors import Refused
from remit.ports import Span, View


class Resumed(NamedTuple):
    """Where a task stands. `sends` is a parallel handoff whose results nobody has got yet; of `joined`, the parts and
    in which turn they were sent, the results have been handed on."""

    remit: Remit
    attempt: Attempt
    state: HandoffState = HandoffState()
    trail: tuple[Move, ...] = ()
    sender: str = ""
    turns: int = 0
    sends: Sends | None = None
    joined: tuple[int, tuple[Send, ...]] = (0, ())
    results: tuple[Outcome, ...] = ()

    def fill(self, live: LiveTask) -> LiveTask:
        live.state, live.trail, live.sender, live.turns = self.state, self.trail, self.sender, self.turns
        live.results = self.results
        return live


def resume(view: View, record: Record, fence: int, attempt: int) -> Resumed:
    """The task as whoever claims it now finds it."""
    began = view.event(record.began)
    assert began is not None  # a row points at the event that made it
    data = cast("dict[str, Any]", began.data)
    current = Attempt(
        fence,
        attempt,
        record.failures,
        data.get("origin", ""),
        record.asked_how,
        queued=True,
        timeout=data.get("timeout", 0),
        attempts=data.get("attempts", Attempt().attempts),
    )
    fresh = Resumed(remits.restored(began), current)
    if record.holder == began.agent and not current.is_rerun:
        return fresh
    found = replay_handoffs(fresh, (event for event in view.events(Span(run=record.run)) if event.task == record.id))
    return found._replace(results=_results(view, found))


def replay_handoffs(start: Resumed, events: Iterable[Event]) -> Resumed:
    """After all its handoffs."""
    found = start
    for event in events:
        if event.kind == "task.handed":
            found = _handed(found, cast("dict[str, Any]", event.data))
    return found


def _handed(before: Resumed, data: dict[str, Any]) -> Resumed:
    holder, to, update = before.remit.holder, data["to"], data["update"]
    if isinstance(to, str):
        joins = before.sends is not None and before.sends.join == to
        trail = before.trail[:-1] if joins else before.trail  # the fan-out and its join are one handoff
        return before._replace(
            remit=remits.handed_to(before.remit, to),
            state=before.state if joins else commands.merged(before.state, update),
            trail=(*trail, Move(holder, to, data["content"])),
            sender=holder,
            turns=before.turns + 1,
            sends=None,
            joined=(before.turns, before.sends.parts) if before.sends is not None else before.joined,
        )
    parts = tuple(Send(agent, payload) for agent, payload in zip(to, data["payloads"], strict=True))
    return before._replace(
        state=commands.merged(before.state, update),
        trail=(*before.trail, Move(holder, label(parts), data["content"])),
        turns=before.turns + 1,
        sends=Sends(parts, data["join"], update),
    )


def _results(view: View, found: Resumed) -> tuple[Outcome, ...]:
    """What came of the parts that were joined: looked up by the operations that sent them."""
    turns, parts = found.joined
    counts: dict[str, int] = {}
    names = (op_name(turns, "delegate", part.agent, part.task) for part in parts)
    sent = (ops(found.remit.id, found.attempt, counts, name) for name in names)
    came = (_came_of(view, part, known) for part, known in zip(parts, sent, strict=True))
    return tuple(one for one in came if one is not None)


def _came_of(view: View, part: Send, ops: list[str]) -> Outcome | None:
    for op in ops:
        if (done := view.done(op)) is not None:
            return _told(view, part, done[0])
    return None


def _told(view: View, part: Send, answer: Json) -> Outcome | None:
    if isinstance(answer, list):
        rule, sentence = (str(one) for one in answer)
        return Outcome(part.agent, "", "refused", error=Refused(sentence, rule=rule))
    record = view.record(str(answer))
    if record is None or record.ended is None:
        return None
    began, ended = view.event(record.began), view.event(record.ended)
    return ends.told(began, ended) if began and ended else None
