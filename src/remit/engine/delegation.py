"""Delegating: a hop is admitted through the door, then carried to its one end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from anyio.lowlevel import checkpoint

from remit.core.bounds import Bounds
from remit.core.card import Card
from remit.core.events import Unsealed
from remit.core.guards import BEGIN, DELEGATE, RESUME
from remit.core.kinds import Begun, Claim, claimed, messages_taken, place, started
from remit.core.lifecycle import TERMINAL
from remit.core.outcome import Outcome
from remit.core.receipt import Slice, kept_back
from remit.core.record import Record
from remit.core.remit import Pass, Remit, known_pass
from remit.core.repeats import ONCE, WARN, Repetition
from remit.core.values import Json
from remit.engine.admission import Proposal
from remit.engine.attempt import outcomes
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.resume import Resumed, resume
from remit.engine.attempt.turns import Superseded
from remit.engine.attempt.watching import Watch, action_of
from remit.engine.directory import Agent
from remit.engine.hops import first_proposed, place_of, proposed
from remit.engine.services import Services
from remit.errors import Refused
from remit.ports import Decide, Decision, View, Wants


class MessagesMoved(Exception):
    """Someone else took the messages that a step's prompt has; look again."""


class StepOf(NamedTuple):
    """What a delegation carries when it is a step of a plan."""

    id: str
    slices: Sequence[Slice]
    team: frozenset[str]
    messages: tuple[str, ...] = ()  # in its prompt already, and taken when it is admitted

    def taken(self, view: View, child: Remit, now: int) -> tuple[Unsealed, ...]:
        """Take the messages out of the inbox with the step's admission."""
        if not self.messages:
            return ()
        if view.still_waiting(child.root, child.holder, len(self.messages)) != [*self.messages]:
            raise MessagesMoved
        return (messages_taken(list(self.messages), child.holder, place(child), now),)


class Led(NamedTuple):
    """A holder that the engine brings along in a person's place: it runs a plan, or leads a team."""

    agent: Agent
    led_as: str


class Delegations:
    def __init__(self, services: Services) -> None:
        self._services = services

    async def begin(
        self, wish: Pass, ceiling: Bounds, session: str, *, by: str = "", led: Led | None = None
    ) -> Outcome:
        """Start a run: a person asks the first holder."""
        services = self._services
        proposal = first_proposed(services.ground, wish, ceiling, session, wish.microseconds)
        if led is not None and led.agent.stand_in:
            proposal = proposal._replace(brought=led.agent.card)
        agent = led.agent if led is not None else services.ground.directory.get(wish.to)
        begun = Begun(services.heartbeat.worker, led_as=led.led_as if led is not None else "", by=by)
        first = proposal.child

        def decide(view: View) -> Decision[Json]:
            admitted = services.admission.admit(view, BEGIN, proposal)
            if not admitted.ok:
                return Decision({**admitted.refusal.data()}, admitted.events)
            events = (started(first, proposal.now, begun), *admitted.events)
            return Decision(first.id, events, services.heartbeat.first_beat())

        with services.heartbeat.while_working(), services.stops.while_working():
            try:
                live = _live(first, agent).limit_time(proposal.now)
                return await self._admitted_and_carried(live, f"{first.id}/start", decide, Wants())
            except Superseded:
                return await outcomes.awaited(services.bell, first.id)
            finally:
                services.heartbeat.beat_written()

    async def delegate(self, asker: LiveTask, wish: Pass, step: StepOf | None = None) -> Outcome:
        """Pass a part of the asker's task on. The child's remit is derived here, from the engine's own record."""
        if step is not None:  # a plan does not repeat itself
            return await self._delegated(asker, wish, asker.operations.ids("step", step.id), step)
        ops = asker.operations.ids("delegate", wish.to, wish.task)
        watch = Watch(asker, action_of(ops[0], wish))
        outcome = await self._delegated(asker, wish, ops, again=watch.again)
        watch.learn((outcome,))
        if outcome.state == "refused":
            await checkpoint()  # whoever asks in vain for ever can be stopped, and holds up nobody else
        return outcome

    async def part(self, asker: LiveTask, wish: Pass, again: Repetition = ONCE) -> Outcome:
        """Pass on one of several parts that go out at once; whether that is a repeat is judged for all of them."""
        return await self._delegated(asker, wish, asker.operations.ids("delegate", wish.to, wish.task), again=again)

    async def _delegated(
        self, asker: LiveTask, wish: Pass, ops: list[str], step: StepOf | None = None, *, again: Repetition = ONCE
    ) -> Outcome:
        asker.must_be_at_work()
        if asker.attempt.is_rerun and (known := await self._known(ops)) is not None:
            return await self._taken_up_again(asker, known)
        proposal = proposed(self._services.ground, asker, wish, wish.microseconds)
        if again is not ONCE:
            proposal = proposal._replace(repetition=again)
        outcome = await self._asked(asker, proposal, ops[0], step)
        if outcome.state == "refused":
            proposal.note_refusal()
        return outcome

    async def _asked(self, asker: LiveTask, proposal: Proposal, op: str, step: StepOf | None = None) -> Outcome:
        services, wish, child = self._services, proposal.wish, proposal.child
        live = _live(child, services.ground.directory.get(wish.to)).limit_time(proposal.now, asker.remit)
        live.receipt.withhold_all(kept_back(asker.sight, child.sees, wish.sees))
        if step is not None:
            live.team = step.team
            live.receipt.given(step.slices)
        decide = self._decision(asker, proposal, step)
        wants = asker.wants
        if asker.card.concurrency is None:
            answer = await services.conductor.admit(live, op, decide, wants)
            return await services.conductor.carry(live) if isinstance(answer, str) else _refused(child, answer)
        async with services.slots.given_up(asker):  # others of its kind may work while it waits
            return await self._admitted_and_carried(live, op, decide, wants)

    def _decision(self, asker: LiveTask, proposal: Proposal, step: StepOf | None) -> Decide[Json]:
        admission, worker = self._services.admission, self._services.heartbeat.worker

        def decide(view: View) -> Decision[Json]:
            asker.must_hold(view)
            admitted = admission.admit(view, DELEGATE, proposal)
            if not admitted.ok:
                return Decision({**admitted.refusal.data()}, admitted.events)
            child, now = proposal.child, proposal.now
            times = proposal.repetition.times
            begun = Begun(worker, step.id if step else "", "", "", admitted.joins, times if times >= WARN else 0)
            taken = step.taken(view, child, now) if step else ()
            return Decision(child.id, (started(child, now, begun), *taken, *admitted.events))

        return decide

    async def _admitted_and_carried(self, live: LiveTask, op: str, decide: Decide[Json], wants: Wants) -> Outcome:
        conductor = self._services.conductor
        answer = await conductor.admit(live, op, decide, wants)
        return await conductor.carry(live) if isinstance(answer, str) else _refused(live.remit, answer)

    # -- run again --------------------------------------------------------------------------------------------

    async def _known(self, ops: list[str]) -> Outcome | Record | None:
        """Find what came of the same delegation when the task was run before. What failed in an earlier try is not
        held against this one."""

        def look(view: View) -> Outcome | Record | None:
            for tried, op in enumerate(ops):
                done = view.done(op)
                if done is None:
                    continue
                if isinstance(done[0], dict):
                    if tried == 0:
                        return Outcome("", "", "refused", error=Refused.read(done[0]))
                    continue
                record = view.record(str(done[0]))
                if record is not None and (tried == 0 or record.state == "completed"):
                    return outcomes.of_record(view, record) or record
            return None

        return await self._services.ground.store.read(look)

    async def _taken_up_again(self, asker: LiveTask, known: Outcome | Record) -> Outcome:
        """Go on with a delegation that an earlier life of the asker began."""
        if isinstance(known, Outcome):
            return known
        services = self._services
        ground = services.ground
        now = ground.clock.now()

        def decide(view: View) -> Decision[Json]:
            asker.must_hold(view)
            record = view.record(known.id)
            assert record is not None
            if record.state in TERMINAL or record.state == "cancelling":
                return Decision(None)
            claim = Claim(services.heartbeat.worker, record.fence + 1, record.attempt + 1)
            resumed = resume(view, record, claim.fence, claim.attempt)
            wish = known_pass(record.holder, resumed.remit.task)
            admitted = services.admission.admit(
                view, RESUME, Proposal(resumed.remit, asker.remit, wish, asker.card, now)
            )
            if not admitted.ok:
                return Decision({**admitted.refusal.data()}, admitted.events)
            events = (claimed(place_of(record), record.holder, now, claim), *admitted.events)
            return Decision(None, events, aside=resumed)

        answer, aside = await ground.store.transact(ground.ids.new(), decide)
        if isinstance(answer, dict):
            return outcomes.refused(asker.remit, Refused.read(answer))
        if aside is None:
            return await outcomes.awaited(services.bell, known.id)
        resumed: Resumed = aside
        resumed = resumed._replace(attempt=resumed.attempt._replace(queued=False))
        agent = ground.directory.get(resumed.remit.holder)
        assert agent is not None  # the guards have seen to it
        live = services.conductor.alive.enter(resumed.live(agent).limit_time(now, asker.remit))
        return await services.conductor.carry(live, resumed.sends)


def _refused(remit: Remit, answer: Json) -> Outcome:
    return outcomes.refused(remit, Refused.read(cast("dict[str, Json]", answer)))


def _live(remit: Remit, agent: Agent | None) -> LiveTask:
    """Make a task alive. If there is no such agent the door says no, and nothing is ever asked of the nobody here."""
    return LiveTask(remit, agent if agent is not None else Agent(Card(remit.holder), _nobody))


async def _nobody(_turn: object) -> object:
    raise AssertionError("the door lets nothing through to an agent that is not there")
