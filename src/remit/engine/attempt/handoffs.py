"""Handing a task over: to another agent, or in parts to several at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, cast

from anyio.lowlevel import checkpoint

from remit.core import command as commands
from remit.core import remit as remits
from remit.core.bounds import TOP
from remit.core.command import END, Command, HandoffState, Measured, Move, Send, Update
from remit.core.guards import FAN_OUT, GIVE_BACK, HANDOFF, Passage, Refusable
from remit.core.kinds.money import SPENDS, Spent, spent_in
from remit.core.kinds.tasks import handed
from remit.core.lifecycle import Outcome
from remit.core.loops import ONCE, Repetition, repeated
from remit.core.question import QuestionDraft
from remit.core.receipt import Slice
from remit.core.records import NamedTuple
from remit.core.remit import NO_RIGHTS, NOTHING_ALONG, Pass, Passing, Remit, known_pass
from remit.core.times import SECOND
from remit.core.values import Json, encode
from remit.engine.attempt import endings
from remit.engine.attempt.endings import Ending, turn_data
from remit.engine.attempt.live import Handoff, LiveTask, LiveTasks, SentBack
from remit.engine.attempt.slots import Batch
from remit.engine.directory import Agent
from remit.engine.door import Admission, Admitted, Handing, Proposal
from remit.engine.ground import Ground
from remit.engine.timing import together
from remit.errors import BadInput, Refused
from remit.ports import Decide, Decision, Span, View

_TENTH: Final = SECOND // 10
_FAILED: Final = 8_000  # characters of the failure that go back with the task


class Sends(NamedTuple):
    """The parts of a parallel handoff, the agent that joins them, and the data that goes along."""

    parts: tuple[Send, ...]
    join: str = ""
    update: Update = {}  # noqa: RUF012 - never changed
    along: Passing = NOTHING_ALONG


class Handoffs:
    """Follows the handoff commands that agents return. `send` delegates a part of a parallel handoff, and `ask` asks a
    person; assembly.py sets both, to avoid import cycles."""

    def __init__(self, ground: Ground, admission: Admission, alive: LiveTasks, *, gives_back: bool = False) -> None:
        self.gives_back = gives_back  # whether a task goes back if the agent that took it over fails
        self.send: Callable[[LiveTask, Pass, Repetition, Batch], Awaitable[Outcome]]
        self.ask: Callable[[LiveTask, QuestionDraft, str], Awaitable[object]]
        self._ground = ground
        self._admission = admission
        self._alive = alive

    async def must_allow(self, live: LiveTask, command: Command) -> None:
        """Check the handoff of a command without making it. If a rule refuses it, record the refusal and raise
        `Refused`."""
        live.must_be_at_work()
        if isinstance(command.goto, str):
            await self._ask(live, command, HANDOFF)
        elif command.goto is not END:
            await self._must_allow_join(live, command)
            await self._ask(live, command, FAN_OUT)

    async def follow(self, live: LiveTask, command: Command) -> LiveTask | Ending:
        """Follow the command: return the next turn, of another agent or the same one, or the end."""
        before = live.handoff.results
        try:
            ticks, began = self._ground.clock.ticks(), live.began
            live.began = ticks
            if live.spends or (began is not None and ticks - began >= _TENTH):
                command = await self._with_figures(live, command, ticks - (began or ticks))
            state = commands.merged(live.handoff.state, command.update)
            if command.goto is END:
                result = command.result if command.result is not None else state.data()
                return await self.with_artifacts(live, endings.completed(live.remit, result))
            if isinstance(command.goto, str):
                return await self._hand(live, command, state, _along(live, command))
            return await self._fan_out(live, command, state)
        except (Refused, BadInput) as no:
            return self._stays(live, no, before)

    async def go_on(self, live: LiveTask, sends: Sends) -> LiveTask | Ending:
        """Continue a parallel handoff that an earlier attempt started. Return the next turn. If joining the parts is
        refused and the previous handoff was refused too, return the failure of the task."""
        before = live.handoff.results
        try:
            return await self.join(live, sends)
        except (Refused, BadInput) as no:
            return self._stays(live, no, before)

    async def give_back(self, live: LiveTask, ending: Ending) -> LiveTask | None:
        """Hand a failed task back to the agent that handed it over, with the failure, and return that agent's turn.
        Return None if the task has not failed, was not handed over or was stopped, or if a rule refuses the way back:
        then its ending stands."""
        sender = live.handoff.sender
        if ending.kind != "task.failed" or sender in ("", live.remit.holder) or live.control.has_stopped:
            return None
        failed = str(ending.outcome.error)[:_FAILED]
        try:
            remit, move = await self._record(live, Command(sender), NOTHING_ALONG, GIVE_BACK, failed=failed)
        except (Refused, BadInput):
            return None
        before = live.handoff
        handoff = Handoff(live.remit.holder, before.state, (*before.trail, move), failed=failed)
        heir = self._alive.enter(live.succeeded_by(remit, self._agent(remit.holder), handoff))
        heir.receipt.beside([Slice.of(f"why {handoff.sender} failed", "passed", failed, heir.took)])
        return heir

    async def send_back(self, live: LiveTask, sent: SentBack) -> LiveTask:
        """Record that a person sent the result back to the task's holder. Return the holder's next turn, which gets the
        result and the reason."""
        now = self._ground.clock.now()
        data = turn_data(live, {"update": {}, "content": "", "sent_back": {**sent._asdict()}})

        def decide(_view: View) -> Decision[Json]:
            return Decision(None, (handed(live.remit, live.remit.holder, now, data),))

        await self._ground.store.tx(live.op("handoff"), live.guarded(decide))
        live.turn_recorded()
        told = replace(live.handoff, refused="", sent_back=sent)
        again = self._alive.enter(live.succeeded_by(live.remit, live.agent, told))
        text = sent.result if isinstance(sent.result, str) else encode(sent.result)
        again.receipt.beside([Slice.of("a result that was sent back", "passed", f"{sent.why}\n{text}", again.took)])
        return again

    async def _with_figures(self, live: LiveTask, command: Command, ticks: int) -> Command:
        """Return the command with the usage of this turn added for the next holder: tokens, time (`ticks`) and
        credits."""
        spent = Spent(0, 0)
        if live.spends:
            spent = await self._ground.store.read(lambda view: _spent(view, live.remit))
        measured = Measured(max(spent.tokens, 0), round(ticks / SECOND, 1), max(spent.credits, 0))
        update = commands.with_figures(command.update, measured)
        return command if update is command.update else replace(command, update=update)

    def _stays(self, live: LiveTask, no: Refused | BadInput, before: tuple[Outcome, ...]) -> LiveTask | Ending:
        """Leave a task with its holder because its handoff was refused. Return the holder's next turn, which gets the
        reason and the results of parts that arrived meanwhile. If the previous handoff was refused too, return the
        failure of the task."""
        if live.handoff.refused:
            return endings.failed(live.remit, no)
        told = replace(live.handoff, refused=str(no))
        again = self._alive.enter(live.succeeded_by(live.remit, live.agent, told))
        if told.results is not before:
            _take_results(again, told.results)
        return again

    async def join(self, live: LiveTask, sends: Sends) -> LiveTask:
        """Send the parts out, wait for them, and return the turn of the agent that gets the results."""
        results = await self._send_all(live, sends)
        if sends.join and sends.join != live.remit.holder:  # the fan-out and its join count as one handoff
            live.handoff = replace(live.handoff, trail=live.handoff.trail[:-1], results=results)
            joining = Command(sends.join, sends.update)
            return await self._hand(live, joining, live.handoff.state, sends.along, of_parts=True)
        back = replace(live.handoff, sender=live.remit.holder, refused="", results=results)
        again = self._alive.enter(live.succeeded_by(live.remit, live.agent, back))
        _take_results(again, results)
        return again

    async def with_artifacts(self, live: LiveTask, ending: Ending) -> Ending:
        """Return the end of a task with the artifacts that its result refers to. If its holder does not see one of
        them, the task fails."""
        try:
            carried = await self._artifact_data(live, ending.outcome.value)
        except Refused as no:
            return endings.failed(live.remit, no)
        return ending._replace(data={**ending.data, **carried}) if carried else ending

    async def _artifact_data(self, live: LiveTask, value: Json) -> dict[str, Json]:
        """Return the artifacts that a value refers to, for the data of its event."""
        from remit.core.artifact import references  # noqa: PLC0415 - imported for the first value that may have one

        found = references(value)
        if not found:
            return {}
        from remit.engine.attempt.seeing import carried_by  # noqa: PLC0415 - and this for the first that has one

        now = self._ground.clock.now()
        carried = await self._ground.store.read(lambda view: carried_by(view, live, found, now))
        return {"artifacts": cast("Json", carried)}

    # -- inside -----------------------------------------------------------------------------------------

    async def _hand(
        self, live: LiveTask, command: Command, state: HandoffState, along: Passing, *, of_parts: bool = False
    ) -> LiveTask:
        """Hand the task to another agent, and return the turn of that agent. Raise `Refused` if a rule refuses it."""
        remit, move = await self._record(live, command, along, HANDOFF, of_parts=of_parts)
        sender, results = live.remit.holder, live.handoff.results
        handoff = Handoff(sender, state, (*live.handoff.trail, move), "", results)
        heir = self._alive.enter(live.succeeded_by(remit, self._agent(remit.holder), handoff))
        if along.within.deadline is not None:
            clock = self._ground.clock
            heir.control.shorten((along.within.deadline - clock.now()) / SECOND)
        heir.receipt.beside([Slice.of(f"handed over by {sender}", "passed", state.text)])
        _take_results(heir, results)
        return heir

    async def _fan_out(self, live: LiveTask, command: Command, state: HandoffState) -> LiveTask:
        """Send parts of the task to several agents concurrently. Return the turn that follows: of the sender, or of
        `join`."""
        assert isinstance(command.goto, tuple)
        await self._must_allow_join(live, command)
        along = _along(live, command)
        _, move = await self._record(live, command, along, FAN_OUT)
        live.handoff = replace(live.handoff, state=state, trail=(*live.handoff.trail, move))
        return await self.join(live, Sends(command.goto, command.join, command.update, along))

    async def _must_allow_join(self, live: LiveTask, command: Command) -> None:
        """Check before any part starts that the results can be handed to `join`."""
        if command.join and command.join != live.remit.holder:
            await self._ask(live, commands.narrowed(command, command.join), HANDOFF)

    async def _send_all(self, live: LiveTask, sends: Sends) -> tuple[Outcome, ...]:
        parts = sends.parts
        results: list[Outcome | None] = [None] * len(parts)
        batch = Batch(len(parts))

        async def send(index: int) -> None:
            part = parts[index]
            wish = known_pass(part.agent, part.task, sends.along, part.value)
            results[index] = await self.send(live, wish, ONCE, batch)

        try:
            await together(send, len(parts))
        except ExceptionGroup as failed:  # the store failed, or the turn is over: one error stands for all
            raise failed.exceptions[0] from None
        return tuple(result for result in results if result is not None)

    async def _ask(self, live: LiveTask, command: Command, passage: Passage) -> None:
        """Request admission for a handoff without making it. If a rule refuses it, record the refusal and raise
        `Refused`. If a rule requires an approval, ask a person first."""
        proposal, _ = self._proposed(live, command, _along(live, command))

        def decide(view: View) -> Decision[Json]:
            admitted = self._admission.admit(view, passage, proposal)
            return Decision(None) if admitted.ok else _no(admitted)

        await self._decided(live, proposal, decide)

    async def _decided(self, live: LiveTask, proposal: Proposal, decide: Decide[Json]) -> None:
        """Request admission for a handoff, and ask a person first if that is required."""
        op, store = live.op("handoff"), self._ground.store
        answer, asks = await store.tx(op, live.guarded(decide))
        while isinstance(asks, QuestionDraft):
            await self.ask(live, asks, proposal.op)
            answer, asks = await store.tx(op, live.guarded(decide))
        await _raise_refusal(proposal, answer)

    async def _record(
        self,
        live: LiveTask,
        command: Command,
        along: Passing,
        passage: Passage,
        *,
        of_parts: bool = False,
        failed: str = "",
    ) -> tuple[Remit, Move]:
        """Request admission for a handoff and record it. Return the task's remit after the handoff, and the move. If it
        is refused, record the refusal and raise `Refused`. `of_parts` marks a handoff that joins parts; `failed` is the
        error with which the task goes back."""
        proposal, move = self._proposed(live, command, along, of_parts=of_parts)
        data = turn_data(live, {"update": {**command.update}, "content": move.content})
        if "artifacts" in command.update or "context" in command.update:
            data |= await self._artifact_data(live, cast("Json", {**command.update}))
        if along is not NOTHING_ALONG:
            data["passed"] = along.data
        whom: str | list[str] = proposal.wish.to
        if isinstance(command.goto, tuple):
            whom = [send.agent for send in command.goto]
            data |= {"payloads": [send.payload for send in command.goto], "join": command.join}
            if any(send.data is not None for send in command.goto):
                data["data"] = [send.data for send in command.goto]
        if of_parts:
            data["of_parts"] = True
        if failed:
            data["failed"] = failed

        def decide(view: View) -> Decision[Json]:
            admitted = self._admission.admit(view, passage, proposal)
            if not admitted.ok:
                return _no(admitted)
            more: dict[str, Json] = {"joins": True} if admitted.joins and isinstance(whom, str) else {}
            if admitted.funds and "opens" in admitted.funds:
                more |= admitted.funds
            return Decision(None, (handed(live.remit, whom, proposal.now, {**data, **more}), *admitted.events))

        await self._decided(live, proposal, decide)
        live.turn_recorded()  # recorded once: a join after a fan-out is another event of the same turn
        return proposal.child, move

    def _agent(self, name: str) -> Agent:
        """Return the agent that takes a task over."""
        agent = self._ground.directory.get(name)
        assert agent is not None  # the guards refuse an unknown agent
        return agent

    def _proposed(
        self, live: LiveTask, command: Command, along: Passing, *, of_parts: bool = False
    ) -> tuple[Proposal, Move]:
        remit, trail = live.remit, live.handoff.trail
        sends = 0
        if isinstance(command.goto, tuple):
            wish, called = Pass(command.goto[0].agent, remit.task), label(command.goto)
            heir, sends = remit, len(command.goto)
        else:
            wish = known_pass(str(command.goto), remit.task, along)
            called, heir = wish.to, remits.handed_to(remit, wish.to, along)
        move = commands.move(remit.holder, called, command.update)
        handing = Handing(len(trail), repeated(trail, move, self._admission.limits.same_handoff), sends, of_parts)
        now, tally = self._ground.clock.now(), Refusable(live.refusals)
        op = live.operations.handing(f"{called}/{move.content}", of_parts=of_parts)
        return Proposal(heir, remit, wish, live.card, now, handing, tally=tally, op=op), move


def _spent(view: View, remit: Remit) -> Spent:
    """Return the tokens and credits that the task has spent since its last handoff, or since its start."""
    credits_ = tokens = 0
    for event in view.events(Span(run=remit.root, task=remit.id)):
        if event.kind == "task.handed":
            credits_ = tokens = 0
        elif event.kind in SPENDS:
            spent = spent_in(event)
            credits_, tokens = credits_ + spent.credits, tokens + spent.tokens
    return Spent(credits_, tokens)


def _no(admitted: Admitted) -> Decision[Json]:
    if admitted.asks is not None:
        return Decision(None, aside=admitted.asks)
    return Decision({**admitted.refusal.data()}, admitted.events)


async def _raise_refusal(proposal: Proposal, answer: Json) -> None:
    if isinstance(answer, dict):
        proposal.note_refusal()
        # Yield, so that an endless loop of refused calls can be cancelled and does not block the event loop.
        await checkpoint()
        raise Refused.read(answer)


def label(sends: Sequence[Send]) -> str:
    """Return a parallel handoff as one text: agents and payloads."""
    return "; ".join(f"{send.agent}: {send.task}" for send in sends)


def _along(live: LiveTask, command: Command) -> Passing:
    """Return the rights and bounds that a command passes on: only rights that its sender has."""
    if not command.passes and command.within is TOP:
        return NOTHING_ALONG
    rights = live.rights.passed_on(command, live.remit.session) if command.passes else NO_RIGHTS
    return Passing(rights, command.within.on_board(live.remit.session))


def _take_results(live: LiveTask, results: Sequence[Outcome]) -> None:
    slices = [Slice.of(f"result of {one.agent}", "dependency", str(one), one.trust) for one in results]
    live.receipt.beside(slices)
    for outcome in results:
        live.take(outcome.trust)
