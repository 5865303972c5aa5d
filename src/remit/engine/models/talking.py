"""Conversations with models: recorded position by position, and continued from the record when a task is run again.

A position is one answer. Its record has the text that the model was sent since the previous answer, and the answer. It
is found by its number alone, so a later attempt continues where the record ends, even if the prompt, the instructions,
the tools, the clock or the code have changed.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

from remit.core.allow import has
from remit.core.events import Event, read
from remit.core.kinds.models import TalkRestarted, ToolBegun, ToolDone, ToolUsed, model_told, talk_restarted
from remit.core.kinds.tasks import FirstData
from remit.core.prompt import Note, UsedBefore, cut, messages_told, restart_note
from remit.core.trust import TRUSTED, UNTRUSTED, Trust
from remit.core.values import Json, digest
from remit.engine.attempt import live as marks
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.operations import Operations
from remit.engine.attempt.replay import kept_effects
from remit.engine.ground import Ground
from remit.engine.inbox import Inbox
from remit.engine.models.asking import Models
from remit.engine.models.remembering import Remembering
from remit.engine.models.toolbox import may_be_done
from remit.errors import Failed, Refused
from remit.ports import Decision, View
from remit.ports.models import EarlierRun, KeptAnswer, ModelAnswer, ModelCall, Position
from remit.ports.turn import OF_RUN, Hops

OWN = ""  # the name of a turn's own conversation
ENDED_EARLY = "the agent ended before it came to all that its model had answered"


class KeptTalks(NamedTuple):
    models: Models
    inbox: Inbox
    remembering: Remembering

    async def begin(self, live: LiveTask, begins: str, name: str | None = None) -> KeptTalk:
        """Start a conversation; in a later attempt, find the one of this name, or the one with this beginning."""
        if name is None:
            name = await self._name(live, begins)
        else:
            begins = ""  # found by its name, however it begins
        live.conversation.must_go_on()
        found = live.conversation.talks.get(_place(live, name))
        return found or self._put(live, name, begins)

    async def _name(self, live: LiveTask, begins: str) -> str:
        """Return the name of a conversation: `OWN` for the first one of an agent whose turn is a conversation with a
        model, otherwise `begins`, with a number if that name is taken. Tools may run agents in another order in each
        attempt. So in a rerun, a conversation that begins like a recorded one gets the name of the recorded one."""
        if live.attempt.is_rerun and _is_free(live, OWN):
            own = await self.models.record(live, OWN)
            other = await self.models.record(live, begins)
            if own is not None and own.get("begins") != begins and other is not None and _is_free(live, begins):
                return begins
        if live.agent.rules.converses and not live.operations.inside_tool and _is_free(live, OWN):
            return OWN
        if _is_free(live, begins):
            return begins
        names = (f"{begins}.{number}" for number in range(2, 1_000))
        return next(one for one in names if _is_free(live, one))

    def _put(self, live: LiveTask, name: str, begins: str) -> KeptTalk:
        talk = live.conversation.talks[_place(live, name)] = KeptTalk(self, live, name, begins)
        if live.operations.inside_tool:
            live.conversation.inside.setdefault(live.operations.where, None)
        return talk

    async def kept_answers(self, live: LiveTask) -> list[KeptAnswer]:
        """Return the requests and the answers of earlier attempts of this turn, the oldest first."""
        prefix = live.operations.of_conversations("models")

        def look(view: View) -> list[Json]:
            live.must_hold(view)
            found = (view.done(event.op or "") for event in view.done_under(prefix))
            return [one[0] for one in found if one is not None]

        kept = await self.models.ground.store.read(look) if live.attempt.is_rerun else []
        return [
            _kept_answer(self.models, live, one) for one in kept if isinstance(one, dict) and one.keys() & _OF_MODEL
        ]

    def talks(self, live: LiveTask) -> list[KeptTalk]:
        """Return the conversations of the current turn, or of the running tool call; the latest first."""
        where = _place(live, "")
        return [talk for place, talk in reversed(live.conversation.talks.items()) if place.startswith(where)]


class KeptTalk:
    """One conversation. `sent` is the conversation so far as messages of the framework, and `before` the earlier runs
    of the session, once the adapter has read them."""

    __slots__ = (
        "_all_recalled",
        "_before",
        "_called",
        "_live",
        "_next",
        "_round",
        "_saw",
        "_services",
        "before",
        "begins",
        "from_record",
        "given",
        "hops",
        "name",
        "sent",
        "tail",
    )

    def __init__(self, services: KeptTalks, live: LiveTask, name: str, begins: str) -> None:
        self._services = services
        self._live = live
        self.name = name
        self.begins = begins
        self.sent: list[Any] = []
        self.given: list[Any] = []
        self.before: list[Any] | None = None
        self.tail: list[Any] | None = None
        self.hops: Hops | None = None
        self._round = 0  # number of its latest round
        self._called: tuple[str, ...] = ()  # the tools that it called
        self._all_recalled = False  # whether every answer so far came from the record
        self.from_record = False  # whether the previous answer came from the record
        self._saw: list[Any] = []  # slices of the receipt that came with the messages
        self._next = ""  # id of the last position that was read
        # The summary of the conversation that it replaces; "" for a conversation inside a tool call.
        self._before = "" if live.operations.inside_tool else live.conversation.before

    @property
    def is_own(self) -> bool:
        """Whether this is the conversation of the turn's agent itself, not of another agent inside it."""
        return self.name == OWN

    @property
    def is_of_run(self) -> bool:
        """Whether this conversation belongs to the run of the turn's agent: its own, or one that follows it."""
        return self.name == OWN or self.name.startswith(OF_RUN)

    async def past(self) -> tuple[EarlierRun, ...]:
        """Return the earlier runs of the session that the turn is given, the oldest first."""
        return await self._services.remembering.past(self._live)

    async def recall(self, framework: str) -> KeptAnswer | None:
        """Return the record at the next position and advance, or None if the model must be asked. Raise `Failed` if the
        record is of another framework."""
        live = self._live
        live.conversation.must_go_on()
        self._next = live.operations.position(self.name)
        if not live.attempt.is_rerun:
            return None
        record = await self._services.models.record(live, self.name)
        self.from_record, self._all_recalled = self._all_recalled, record is not None
        if record is None:
            return None
        if (written_by := record.get("framework", "")) != framework:
            raise self.lost_error(
                f"its record is one of {written_by or 'no framework'}, and the agent is {framework} now"
            )
        try:
            kept = await self._services.models.recalled(live, self.name, record)
        except (LookupError, TypeError, ValueError) as error:
            raise self.lost_error(
                f"the record of what its model answered cannot be read ({type(error).__name__})"
            ) from error
        self._before = ""
        self._round, self._called = live.conversation.round, kept.answer.calls
        return kept

    async def check_finished(self) -> None:
        """Mark the conversation as lost if its turn ended although the record continues: the framework took another
        path this time."""
        place, _, number = self._next.rpartition("/")
        following = f"{place}/{int(number or 0) + 1}"
        if self._all_recalled and await self._services.models.ground.store.read(lambda view: view.done(following)):
            self.lost_error(ENDED_EARLY)

    async def news(self) -> str:
        """Return the text to add to the next request, or "". Take the messages that have arrived, and add a note if
        this is the last answer that the run can pay. The first request takes no messages, because the prompt has them;
        after a restart it gets the summary of the earlier conversation."""
        live = self._live
        if not self.sent or self.name != OWN:
            return self._before
        then = marks.before(live)
        arrived = await self._services.inbox.take(live, at=f"{live.operations.position(self.name)}/news")
        self._saw = cast("list[Any]", marks.marks(live, then).get("saw", []))
        news = messages_told([Note(one.sender, one.text, one.trust) for one in arrived]) if arrived else ""
        last = await self._services.models.costs.last_word(live)
        return f"{news}\n\n{last}" if news and last else news or last

    async def tell(self, told: str, results: int) -> None:
        """Record results of tools that the next request brings to the model, before it is asked."""
        live, ground = self._live, self._services.models.ground
        op = f"{live.operations.position(self.name)}{_TOLD}"

        def decide(view: View) -> Decision[Json]:
            live.must_own(view)
            return Decision({"told": told}, (model_told(live.remit, results, ground.clock.now()),))

        with live.verb():
            await ground.store.tx(op, decide)

    async def ask(self, call: ModelCall, told: str) -> ModelAnswer:
        """Ask the model, and record the request with its answer."""
        begins = "" if self.sent else self.begins
        framework = call.at.framework if call.at is not None else ""
        at = Position(self.name, begins, told, framework, tuple(self._saw))
        answer = await self._services.models.ask(self._live, call._replace(at=at))
        self._before = ""
        self._round, self._called = self._live.conversation.round, answer.calls
        return answer

    async def exchanged(self, words: str, *, says: bool, hands_on: bool) -> None:
        """Judge the latest round, in which the model used no tool of the turn. A call of a denied tool counts as a
        refusal, even if the framework rejected the call first."""
        circles = self._services.models.circles
        if denied := [name for name in self._called if has(self._live.card.deny, name)]:
            await circles.unknown(self._live, denied)
        await circles.exchanged(self._live, words, self._round, says=says, hands_on=hands_on)

    def warning(self) -> str:
        """Return the warning that the model makes no progress, and clear it. Return "" if there is none."""
        conversation = self._live.conversation
        text, conversation.warning = conversation.warning, ""
        return text

    async def result(self, call: str) -> tuple[Json] | None:
        """Return the recorded result of a tool call, for a call that this attempt does not reach; its tool may no
        longer exist. If only the start of the call is recorded, return a note that it may have been done. Return None
        if nothing is recorded. The call is not repeated."""
        live, ground = self._live, self._services.models.ground
        prefix = live.operations.tools_of(call)

        def look(view: View) -> tuple[Event, tuple[Json] | None] | None:
            found = [one for one in view.done_under(prefix) if one.kind in ("tool.begun", "tool.done")]
            latest = max(found, key=lambda one: one.kind == "tool.done", default=None)
            return None if latest is None else (latest, view.done(latest.op or ""))

        found = await ground.store.read(look)
        if found is None:
            return None
        event, kept = found
        op = (event.op or "").removesuffix("/begun")
        (await kept_effects(ground, live)).forget(live.operations.effects_inside(op))
        if event.kind == "tool.begun" or kept is None:
            return (may_be_done(read(event, ToolBegun)["tool"]),)
        value, _outcome, *beside = cast("list[Any]", kept[0])
        for one in beside:
            marks.apply(live, one)
        return (value,)

    def was_used(self, call: str) -> bool:
        """Whether this run has reached the tool call with this id."""
        live = self._live
        return (live.operations.where, call) in live.conversation.used

    def lost_error(self, why: str) -> Failed:
        """Mark the conversation as lost, and return the error to raise because its record cannot be continued. No
        conversation is restarted silently."""
        return mark_lost(self._live, why)


def _kept_answer(models: Models, live: LiveTask, kept: dict[str, Any]) -> KeptAnswer:
    """Return a recorded request with its answer. If there was no answer, return the tool results that the request was
    to send, with an empty answer."""
    return models.kept_answer(live, kept) if "text" in kept else KeptAnswer(kept["told"], ModelAnswer("", "", None))


def mark_lost(live: LiveTask, why: str) -> Failed:
    """Mark the conversation of a turn as lost, and return the error that says so."""
    remit, conversation = live.remit, live.conversation
    conversation.why_lost = why
    conversation.lost = Failed(
        f"the conversation of '{remit.holder}' with its model cannot be continued: {why}. See what was done with "
        f"remit show {remit.id} --talk; to restart the conversation: remit retry {remit.id} --restart",
        agent=remit.holder,
        task=remit.id,
        retryable=False,
    )
    return conversation.lost


def _place(live: LiveTask, name: str) -> str:
    return f"{live.operations.where}/talk/{name}"


def _is_free(live: LiveTask, name: str) -> bool:
    return _place(live, name) not in live.conversation.talks


_LISTED: Final = 50  # earlier tool calls in the prompt, the latest ones
_LONG: Final = 300  # characters of a result
_BEGUN: Final = "/begun"
_NEWS: Final = "/news"
_TOLD: Final = "/told"
_OF_MODEL: Final = frozenset(("text", "told"))  # fields of the record of a request


class Earlier(NamedTuple):
    """The state that a turn's earlier conversations left behind: the number of answers of the latest, the used tools,
    the delivered messages, and the tools' effects on the turn."""

    positions: int
    used: list[UsedBefore]
    notes: list[Note]
    marked: list[dict[str, Any]]


class LostTalks(NamedTuple):
    ground: Ground

    async def find(self, live: LiveTask) -> Failed | None:
        """Count how often the conversation of this turn has started. Return an error if a conversation is recorded and
        the turns of the agent are no longer conversations with a model."""
        operations = live.operations

        def look(view: View) -> tuple[int, Earlier | None, dict[str, Any] | None]:
            begun = len(view.done_under(operations.generations))
            earlier = _earlier(view, operations, begun) if begun else None
            return begun, earlier, None if live.agent.rules.converses else _left_over(view, operations, begun)

        generation, earlier, record = await self.ground.store.read(look)
        if earlier is not None:
            live.restart_talk(generation)
            await self._enter(live, earlier)
        if record is None:
            return None
        framework = record.get("framework", "")
        return mark_lost(live, f"its record is one of {framework}, and the agent asks no model that way now")

    async def lost_talk_error(self, live: LiveTask, *, ended: bool) -> Failed | None:
        """Return the error of a turn that could not continue its recorded conversation, or None. If the turn has
        `ended` without an error, also check that it has used every recorded answer."""
        found = live.talks
        if (not found and not live.agent.rules.converses) or not ended or live.conversation.lost is not None:
            return live.conversation.lost if found else None
        for talk in found:
            await talk.check_finished()
        operations = live.operations
        if live.conversation.lost is None and await self.ground.store.read(
            lambda view: _left_over(view, operations, operations.generation)
        ):
            return mark_lost(live, ENDED_EARLY)
        return live.conversation.lost

    async def restart(self, live: LiveTask) -> bool:
        """Restart the conversation of a turn, if its agent or the person who retried the task allows it. A task may
        restart conversations at most as often as it may be attempted. Return whether it was restarted."""
        operations, why = live.operations, live.conversation.why_lost
        generation = operations.generation + 1

        def decide(view: View) -> Decision[bool]:
            live.must_own(view)
            begun = view.done_under(operations.generations)
            own = [event for event in begun if event.task == live.remit.id]
            if len(own) >= (live.attempt.attempts or live.agent.retry.attempts) or not _is_allowed(view, live):
                return Decision(False)
            data = _data(operations.turn, why, _earlier(view, operations, generation))
            return Decision(True, (talk_restarted(live.remit, data, self.ground.clock.now()),))

        if live.control.why_stopped():
            return False
        try:
            if not (await self.ground.store.tx(f"{operations.generations}{generation}", decide)).answer:
                return False
        except Refused:  # another process has the task, so its end here does not count
            return False
        live.restart_talk(generation)

        def look(view: View) -> tuple[Earlier, list[Event]]:
            return _earlier(view, operations, generation), view.done_under(operations.effects_of_turn)

        earlier, effects = await self.ground.store.read(look)
        (await kept_effects(self.ground, live)).put_back(effects)
        await self._enter(live, earlier)
        return True

    async def _enter(self, live: LiveTask, earlier: Earlier) -> None:
        """Label the turn with the effects of the earlier conversations, and pass them to the next one."""
        for marked in earlier.marked:
            marks.apply(live, marked)
        for note in earlier.notes:
            live.take(note.trust)
            live.receipt.message(note.sender, note.text, note.trust)
        kept = await kept_effects(self.ground, live)
        for prefix in live.operations.effects_left_behind:
            kept.forget(prefix)
        more = max(0, len(earlier.used) - _LISTED)
        live.conversation.before = restart_note(earlier.used[-_LISTED:], more, earlier.notes)


def _is_allowed(view: View, live: LiveTask) -> bool:
    """Whether the conversation may be restarted: the agent allows it, or a person retried the task, or a task above it,
    with a restart."""
    if live.agent.rules.on_lost == "restart":
        return True
    task = live.remit.id
    while task and (record := view.record(task)) is not None:
        began = view.event(record.began)
        if began is not None and read(began, FirstData).get("restart"):
            return True
        task = record.parent
    return False


def _data(turn: str, why: str, earlier: Earlier) -> TalkRestarted:
    used: list[ToolUsed] = [{"tool": one.tool, "given": one.given, "outcome": one.outcome} for one in earlier.used]
    return {"turn": turn, "why": why, "positions": earlier.positions, "tools": used}


def _recorded_place(operations: Operations, what: str, generation: int) -> str:
    """Return the prefix of the ids of the operations that a turn recorded after restart number `generation`. `what` is
    `models` or `tools`."""
    return operations.of_conversations(what) + (f"restart/{generation}/" if generation else "")


def _left_over(view: View, operations: Operations, generation: int) -> dict[str, Any] | None:
    """Return the first record of a conversation that has answers which this attempt has not used, or None. The
    conversation must belong to a framework, and be the turn's own or have a given name. A conversation that is found by
    its beginning does not count: a later attempt need not repeat it."""
    place = f"{_recorded_place(operations, 'models', generation)}talk/"
    for event in view.done_under(place):
        name, _, number = (event.op or "").removeprefix(place).rpartition("/")
        if event.kind != "model.answered" or int(number) <= operations.answers(name):
            continue
        first = cast("dict[str, Any]", (view.done(f"{place}{name}/1") or ({},))[0])
        if first.get("framework") and (name == OWN or not first.get("begins")):
            return first
    return None


def _earlier(view: View, operations: Operations, generation: int) -> Earlier:
    """Return what the conversations of a turn left behind before its restart number `generation`: the number of answers
    of the latest, and of all of them the used tools, the delivered messages and the effects on the turn."""
    asked = _before(view, operations, "models", generation)
    latest = f"{_recorded_place(operations, 'models', generation - 1)}talk/"
    answers = [op for op, event in asked if event.kind == "model.answered" and op.startswith(latest)]
    notes: list[Note] = []
    for op, _ in asked:
        if op.endswith(_NEWS):
            rows = cast("list[list[Any]]", (view.done(op) or ([],))[0])
            notes += [Note(sender, text, trust) for _id, sender, text, _at, _about, trust in rows]
    used, marked = _tool_calls_before(
        view, _before(view, operations, "tools", generation), operations.of_conversations("tools")
    )
    return Earlier(len(answers), used, notes, marked)


def _before(view: View, operations: Operations, what: str, generation: int) -> list[tuple[str, Event]]:
    """Return the operations that the turn recorded before restart number `generation`: the id and the first event of
    each. `what` is `models` or `tools`."""
    events = view.done_under(operations.of_conversations(what))
    own = _recorded_place(operations, what, generation)
    return [(event.op, event) for event in events if event.op is not None and not event.op.startswith(own)]


def _tool_calls_before(
    view: View, events: list[tuple[str, Event]], prefix: str
) -> tuple[list[UsedBefore], list[dict[str, Any]]]:
    """Return the tool calls that were made or started, and their effects on the turn. Calls inside a finished tool call
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
    """Whether an operation was made inside a tool call whose digest is in `whole`. Its id, without the prefix, has the
    form `[restart/N/]tool/DIGEST/...`"""
    parts = rest.split("/")
    if parts[0] == "restart":
        parts = parts[2:]
    return parts[0] == "tool" and parts[1] in whole
