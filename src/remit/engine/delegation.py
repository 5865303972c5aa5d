"""THE path: every hop goes facts -> guards -> remit -> task -> run, and ends with exactly one event."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from anyio import CancelScope

from remit.core import guards
from remit.core import remit as remits
from remit.core.bounds import Bounds
from remit.core.breaker import CLOSED
from remit.core.card import Card
from remit.core.events import Unsealed
from remit.core.guards import Answer, Facts
from remit.core.kinds import Begun, Claim, Place, claimed, messages_taken, place, refused, started
from remit.core.lifecycle import TERMINAL
from remit.core.outcome import Outcome
from remit.core.receipt import Slice, kept_back
from remit.core.record import Record
from remit.core.remit import Origin, Pass, Remit
from remit.core.values import Json
from remit.engine.admission import Admission, Proposal
from remit.engine.attempt import outcomes as ends
from remit.engine.attempt.live import FIRST, Attempt, LiveTask
from remit.engine.attempt.resume import Resumed, resume
from remit.engine.attempt.slots import Slots
from remit.engine.attempt.stops import StopListener
from remit.engine.attempt.turns import Admit, Conductor, Superseded
from remit.engine.directory import Agent, Directory
from remit.engine.presence.bell import Bell
from remit.engine.presence.heartbeat import Presence
from remit.errors import Refused
from remit.ports import Clock, Decision, Ids, Store, View

MESSAGES_MOVED = "messages-moved"


class StepOf(NamedTuple):
    """What a delegation carries when it is a step of a plan."""

    id: str
    slices: Sequence[Slice]
    team: frozenset[str]
    messages: tuple[str, ...] = ()  # in its prompt already, and taken when it is admitted

    def taken(self, view: View, child: Remit, now: int) -> tuple[Unsealed, ...] | None:
        """The messages leave the inbox with the step's admission; None if someone else took one meanwhile."""
        if not self.messages:
            return ()
        waiting = {one.id for one in view.waiting(child.session, child.holder, "", len(self.messages))}
        if not waiting.issuperset(self.messages):
            return None
        return (messages_taken(list(self.messages), child.holder, place(child), now),)


class Services(NamedTuple):
    """What everything that passes work on needs of the runtime."""

    store: Store
    directory: Directory
    clock: Clock
    ids: Ids
    admission: Admission
    conductor: Conductor
    bell: Bell
    presence: Presence
    stops: StopListener
    slots: Slots


class Wanted(NamedTuple):
    """A hop that someone wants to make, before anybody has said yes: the child's remit, and what is asked."""

    remit: Remit
    agent: Agent | None
    hop: Proposal


class Delegations:
    def __init__(self, services: Services) -> None:
        self._services = services

    async def begin(
        self, wish: Pass, ceiling: Bounds, session: str, agent: Agent | None = None, led_as: str = ""
    ) -> Outcome:
        """Starts a run: a person asks the first holder, who is in the directory unless the engine brings one along."""
        services = self._services
        first, agent, hop = first_wanted(services, wish, ceiling, session, wish.microseconds, agent)
        live = alive(first, agent, hop.now)
        live.stand_in = agent is not None and agent.stand_in
        begun = Begun(services.presence.worker, led_as=led_as)

        def admit(view: View) -> Decision[Json]:
            verdict, facts = services.admission.judge(view, guards.FIRST_HOLDER, hop)
            if verdict.answer is Answer.DENY:
                return Decision([verdict.rule, verdict.sentence])  # there is no run yet to record it in
            made = (started(first, hop.now, begun), *probe(services, live, hop, facts))
            return Decision(first.id, made, services.presence.first_beat())

        with services.presence.while_working(), services.stops.while_working():
            try:
                return await services.conductor.carry(live, agent, Admit(f"{first.id}/start", admit))
            except Superseded:
                return await outcome_of(services, first.id)
            finally:
                services.presence.beat_written()

    async def delegate(self, asker: LiveTask, wish: Pass, step: StepOf | None = None) -> Outcome:
        """Passes a part of the asker's task on. The child's remit is derived here, from the engine's own record."""
        services = self._services
        asker.must_be_at_work()
        ops = asker.ops("step", step.id) if step else asker.ops("delegate", wish.to, wish.task)
        if asker.attempt.is_rerun and (known := await self._known(ops)) is not None:
            return await self._again(asker, known)
        child, agent, hop = wanted(services, asker, wish, wish.microseconds)
        live = alive(child, agent, hop.now, asker.remit)
        live.receipt.withheld = kept_back(asker.sight, child.sees, wish.sees)
        if step is not None:
            live.team = step.team
            live.receipt.given(step.slices)
        begun = Begun(services.presence.worker, step.id if step else "")

        def admit(view: View) -> Decision[Json]:
            asker.must_hold(view)
            verdict, facts = services.admission.judge(view, guards.ORDER, hop)
            if verdict.answer is Answer.DENY:
                no = refused(asker.remit, wish, hop.now, rule=verdict.rule, sentence=verdict.sentence)
                return Decision([verdict.rule, verdict.sentence], (no,))
            taken = step.taken(view, child, hop.now) if step else ()
            if taken is None:
                return Decision([MESSAGES_MOVED, "its messages were taken by someone else; look again"])
            return Decision(child.id, (started(child, hop.now, begun), *taken, *probe(services, live, hop, facts)))

        if asker.card.concurrency is None:
            return await services.conductor.carry(live, agent, Admit(ops[0], admit))
        async with services.slots.given_up(asker):  # others of its kind may work while it waits
            return await services.conductor.carry(live, agent, Admit(ops[0], admit))

    # -- carried out again ------------------------------------------------------------------------------------

    async def _known(self, ops: list[str]) -> "Outcome | Record | None":
        """What came of the same delegation when the task was carried out before. What failed in an earlier try is not
        held against this one."""

        def look(view: View) -> Outcome | Record | None:
            for tried, op in enumerate(ops):
                done = view.done(op)
                if done is None:
                    continue
                if not isinstance(done[0], str):
                    if tried == 0:
                        rule, sentence = (str(part) for part in done[0]) if isinstance(done[0], list) else ("", "")
                        return Outcome("", "", "refused", error=Refused(sentence, rule=rule))
                    continue
                record = view.record(done[0])
                if record is not None and (tried == 0 or record.state == "completed"):
                    return told(view, record) if record.state in TERMINAL else record
            return None

        return await self._services.store.read(look)

    async def _again(self, asker: LiveTask, known: "Outcome | Record") -> Outcome:
        if isinstance(known, Outcome):
            return known
        services = self._services
        now = services.clock.now()
        found: list[Resumed] = []

        def take(view: View) -> Decision[Json]:
            found.clear()
            asker.must_hold(view)
            record = view.record(known.id)
            assert record is not None
            if record.state in TERMINAL or record.state == "cancelling":
                return Decision(None)
            claim = Claim(services.presence.worker, record.fence + 1, record.attempt + 1)
            found.append(resume(view, record, claim.fence, claim.attempt))
            return Decision(None, (claimed(at(record), record.holder, now, claim),))

        await services.store.tx(services.ids.new(), take)
        if not found:
            return await outcome_of(services, known.id)
        resumed = found[0]
        attempt = resumed.attempt._replace(queued=False)
        agent = services.directory.get(resumed.remit.holder)
        if agent is None:
            raise Refused(f"there is no agent '{resumed.remit.holder}' here to carry its task on", rule="unknown")
        live = alive(resumed.remit, agent, now, asker.remit, attempt)
        return await services.conductor.carry(resumed.fill(live), agent, sends=resumed.sends)


def first_wanted(
    services: Services, wish: Pass, ceiling: Bounds, session: str, lasts: int, agent: Agent | None = None
) -> Wanted:
    """What a person asks for."""
    now = services.clock.now()
    origin = Origin(services.ids.new(), services.store.workspace, session or services.ids.new())
    first = remits.begin(origin, wish, ceiling, now + lasts)
    agent = agent or services.directory.get(wish.to)
    return Wanted(first, agent, Proposal(first, wish, agent, None, now))


def wanted(services: Services, asker: LiveTask, wish: Pass, lasts: int) -> Wanted:
    """What an agent asks for, as part of its own task."""
    now = services.clock.now()
    parent = asker.remit
    agent = services.directory.get(wish.to)
    kit = remits.kit(parent, asker.card) if wish.tools else remits.NONE
    child = remits.derive(parent, wish, services.ids.new(), asker.sight, kit, now + lasts)
    return Wanted(child, agent, Proposal(parent, wish, agent, asker.card, now))


def alive(remit: Remit, agent: Agent | None, now: int, parent: Remit | None = None, hold: Attempt = FIRST) -> LiveTask:
    """A task with the scope that cancels it when its time is up."""
    card = agent.card if agent else Card(remit.holder)
    deadline = remit.bounds.deadline
    assert deadline is not None
    if parent is not None and deadline == parent.bounds.deadline:
        return LiveTask(remit, card, CancelScope(), hold)  # the asker's own timer ends it, as the scopes nest
    left = max(0, deadline - now)
    final = not hold.timeout or left <= hold.timeout
    seconds = (left if final else hold.timeout) / 1e6
    live = LiveTask(remit, card, CancelScope(deadline=asyncio.get_running_loop().time() + seconds), hold)
    live.final = final
    return live


def at(record: Record) -> Place:
    return Place(record.run, record.session, record.id)


def told(view: View, record: Record) -> Outcome:
    """What came of a task that has ended."""
    began, ended = view.event(record.began), view.event(record.ended or 0)
    assert began is not None
    assert ended is not None
    return ends.told(began, ended)


async def outcome_of(services: Services, task: str) -> Outcome:
    """What comes of a task, whoever carries it out."""

    def look(view: View) -> Outcome | None:
        record = view.record(task)
        return told(view, record) if record is not None and record.state in TERMINAL else None

    return await services.bell.until(task, look)


def probe(services: Services, live: LiveTask, hop: Proposal, facts: Facts) -> tuple[Unsealed, ...]:
    live.breaker_was_open = facts.breaker is not CLOSED
    return services.admission.probe(facts, hop, live.remit.id) if live.breaker_was_open else ()
