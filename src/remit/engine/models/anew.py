"""Beginning a conversation again whose record cannot be continued: only where someone allows it, on record, and with
the tools told that the earlier one used."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

from remit.core.events import Event
from remit.core.kinds import FirstData, TalkBegunAnew, ToolBegun, ToolDone, ToolUsed, read, talk_begun_anew
from remit.core.prompt import Note, UsedBefore, begun_anew, cut
from remit.core.trust import TRUSTED, UNTRUSTED, Trust
from remit.core.values import digest
from remit.engine.attempt import marks
from remit.engine.attempt.effects import kept_effects
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.operations import Operations
from remit.engine.ground import Ground
from remit.engine.models.talking import ENDED_EARLY, OWN, lost
from remit.errors import Failed, Refused
from remit.ports import Decision, View

_LISTED: Final = 50  # tool calls that the model is told; of more, the latest
_LONG: Final = 300  # characters of a result
_BEGUN: Final = "/begun"
_NEWS: Final = "/news"


class Earlier(NamedTuple):
    """What earlier conversations of a turn left: how many answers the latest has, the tools that were used, the
    messages that were told, and what the tools did to the turn."""

    positions: int
    used: list[UsedBefore]
    notes: list[Note]
    marked: list[dict[str, Any]]


class Anew(NamedTuple):
    ground: Ground

    async def find(self, live: LiveTask) -> Failed | None:
        """Find out how often the conversation of a turn has begun. Return an error if one is on record and the agent
        asks no model in a conversation any more."""
        operations = live.operations

        def look(view: View) -> tuple[int, Earlier | None, dict[str, Any] | None]:
            begun = len(view.done_under(operations.generations))
            earlier = _earlier(view, operations, begun) if begun else None
            return begun, earlier, None if live.agent.rules.converses else _left_over(view, operations, begun)

        generation, earlier, record = await self.ground.store.read(look)
        if earlier is not None:
            live.begin_anew(generation)
            await self._enter(live, earlier)
        if record is None:
            return None
        framework = record.get("framework", "")
        return lost(live, f"its record is one of {framework}, and the agent asks no model that way now")

    async def lost(self, live: LiveTask, *, ended: bool) -> Failed | None:
        """Return the error of a conversation that this run could not continue, or, if its turn has `ended` without an
        error, has left unfinished or has not begun."""
        found = live.talks
        if (not found and not live.agent.rules.converses) or not ended or live.conversation.lost is not None:
            return live.conversation.lost if found else None
        for talk in found:
            await talk.check_finished()
        operations = live.operations
        if live.conversation.lost is None and await self.ground.store.read(
            lambda view: _left_over(view, operations, operations.generation)
        ):
            return lost(live, ENDED_EARLY)
        return live.conversation.lost

    async def begin(self, live: LiveTask) -> bool:
        """Begin the conversation of a turn again: if its agent or the person who retried the task allows it, and for
        one task no more often than it may be attempted."""
        operations, why = live.operations, live.conversation.why_lost
        generation = operations.generation + 1

        def decide(view: View) -> Decision[bool]:
            live.must_own(view)
            begun = view.done_under(operations.generations)
            own = [event for event in begun if event.task == live.remit.id]
            if len(own) >= (live.attempt.attempts or live.agent.retry.attempts) or not _is_allowed(view, live):
                return Decision(False)
            data = _data(operations.turn, why, _earlier(view, operations, generation))
            return Decision(True, (talk_begun_anew(live.remit, data, self.ground.clock.now()),))

        if live.control.lost():
            return False
        try:
            if not await self.ground.store.tx(f"{operations.generations}{generation}", decide):
                return False
        except Refused:  # another process has the task: how it ends here does not count
            return False
        live.begin_anew(generation)

        def look(view: View) -> tuple[Earlier, list[Event]]:
            return _earlier(view, operations, generation), view.done_under(operations.effects_of_turn)

        earlier, effects = await self.ground.store.read(look)
        (await kept_effects(self.ground, live)).put_back(effects)
        await self._enter(live, earlier)
        return True

    async def _enter(self, live: LiveTask, earlier: Earlier) -> None:
        """Label the turn with what the earlier conversations did to it, and have the next one told."""
        for marked in earlier.marked:
            marks.apply(live, marked)
        for note in earlier.notes:
            live.take(note.trust)
            live.receipt.message(note.sender, note.text, note.trust)
        kept = await kept_effects(self.ground, live)
        for prefix in live.operations.effects_left_behind:
            kept.forget(prefix)
        more = max(0, len(earlier.used) - _LISTED)
        live.conversation.before = begun_anew(earlier.used[-_LISTED:], more, earlier.notes)


def _is_allowed(view: View, live: LiveTask) -> bool:
    """Whether its agent allows it, or the person who retried the task or one that it is part of."""
    if live.agent.rules.on_lost == "anew":
        return True
    task = live.remit.id
    while task and (record := view.record(task)) is not None:
        began = view.event(record.began)
        if began is not None and read(began, FirstData).get("anew"):
            return True
        task = record.parent
    return False


def _data(turn: str, why: str, earlier: Earlier) -> TalkBegunAnew:
    used: list[ToolUsed] = [{"tool": one.tool, "given": one.given, "outcome": one.outcome} for one in earlier.used]
    return {"turn": turn, "why": why, "positions": earlier.positions, "tools": used}


def _place(operations: Operations, what: str, generation: int) -> str:
    """The prefix of the ids of the `models` or `tools` of one generation."""
    return operations.of_conversations(what) + (f"anew/{generation}/" if generation else "")


def _left_over(view: View, operations: Operations, generation: int) -> dict[str, Any] | None:
    """Return the first record of a conversation that a framework had and that this run has not come to: the turn's own,
    or one that has a name. Others are known by how they begin, and need not begin so again; nor need a function come to
    the ones that it began itself."""
    place = f"{_place(operations, 'models', generation)}talk/"
    for event in view.done_under(place):
        name, _, number = (event.op or "").removeprefix(place).rpartition("/")
        if event.kind != "model.answered" or int(number) <= operations.answers(name):
            continue
        first = cast("dict[str, Any]", (view.done(f"{place}{name}/1") or ({},))[0])
        if first.get("framework") and (name == OWN or not first.get("begins")):
            return first
    return None


def _earlier(view: View, operations: Operations, generation: int) -> Earlier:
    """Read what the conversations of a turn left that began before this generation."""
    asked = _before(view, operations, "models", generation)
    latest = f"{_place(operations, 'models', generation - 1)}talk/"
    answers = [op for op, event in asked if event.kind == "model.answered" and op.startswith(latest)]
    notes: list[Note] = []
    for op, _ in asked:
        if op.endswith(_NEWS):
            rows = cast("list[list[Any]]", (view.done(op) or ([],))[0])
            notes += [Note(sender, text, trust) for _id, sender, text, _at, _about, trust in rows]
    used, marked = _used(view, _before(view, operations, "tools", generation), operations.of_conversations("tools"))
    return Earlier(len(answers), used, notes, marked)


def _before(view: View, operations: Operations, what: str, generation: int) -> list[tuple[str, Event]]:
    """List the first events of the `models` or `tools` of earlier generations, by their ids."""
    events = view.done_under(operations.of_conversations(what))
    own = _place(operations, what, generation)
    return [(event.op, event) for event in events if event.op is not None and not event.op.startswith(own)]


def _used(view: View, events: list[tuple[str, Event]], prefix: str) -> tuple[list[UsedBefore], list[dict[str, Any]]]:
    """List the tool calls that were made or begun, and what they did to their turn. Calls inside of a tool that is done
    are part of it."""
    done = {op: event for op, event in events if event.kind == "tool.done"}
    made = {op for op, event in done.items() if read(event, ToolDone)["outcome"] != "refused"}
    whole = {digest(op) for op in made}
    used: list[UsedBefore] = []
    marked: list[dict[str, Any]] = []
    trust: Trust = TRUSTED
    value: Any = None
    for op, event in events:
        if op in done:
            value, _outcome, *beside = cast("list[Any]", (view.done(op) or ([None, ""],))[0])
            marked += beside
            trust = UNTRUSTED if any(one.get("took", TRUSTED) != TRUSTED for one in beside) else trust
        if _is_inside(op.removeprefix(prefix), whole):
            continue
        if op in made:
            told = read(event, ToolDone)
            result = cut(value, _LONG) if isinstance(value, str) else told.get("result", "")
            used.append(UsedBefore(told["tool"], told["given"], result, told["outcome"], trust))
        elif event.kind == "tool.begun" and op.removesuffix(_BEGUN) not in made:
            begun = read(event, ToolBegun)
            used.append(UsedBefore(begun["tool"], begun["given"], outcome="begun", trust=trust))
    return used, marked


def _is_inside(rest: str, whole: set[str]) -> bool:
    """Whether a call was made inside of one of these tools: [anew/N/]tool/DIGEST/..."""
    parts = rest.split("/")
    if parts[0] == "anew":
        parts = parts[2:]
    return parts[0] == "tool" and parts[1] in whole
