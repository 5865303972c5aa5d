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
from remit.core.events import Fact
from remit.core.facts import Begun, Claim, Place, claimed, messages_taken, place, refused, started
from remit.core.guards import Answer, Facts
from remit.core.lifecycle import TERMINAL
from remit.core.outcome import Outcome
from remit.core.receipt import Slice, kept_back
from remit.core.remit import Origin, Pass, Remit
from remit.core.values import Json
from remit.engine import ends
from remit.engine.admission import Admission, Hop
from remit.engine.bell import Bell
from remit.engine.conduct import Admit, Conductor, Superseded
from remit.engine.directory import Agent, Directory
from remit.engine.ears import Ears
from remit.engine.live import FIRST, Hold, Live
from remit.engine.presence import Presence
from remit.engine.resume import Resumed, taken_up
from remit.engine.slots import Slots
from remit.errors import Refused
from remit.ports import Clock, Decision, Ids, Record, Store, View

MESSAGES_MOVED = "messages-moved"


class StepOf(NamedTuple):
    """What a delegation carries when it is a step of a plan."""

    id: str
    slices: Sequence[Slice]
    team: frozenset[str]
    messages: tuple[str, ...] = ()  # in its prompt already, and taken when it is admitted

    def taken(self, view: View, child: Remit, now: int) -> tuple[Fact, ...] | None:
        """The messages leave the inbox with the step's admission; None if someone else took one meanwhile."""
        if not self.messages:
            return ()
        waiting = {one.id for one in view.waiting(child.session, child.holder, "", len(self.messages))}
        if not waiting.issuperset(self.messages):
            return None
        return (messages_taken(list(self.messages), child.holder, place(child), now),)


class Floor(NamedTuple):
    """What everything that passes work on needs of the runtime."""

    store: Store
    directory: Directory
    clock: Clock
    ids: Ids
    admission: Admission
    conductor: Conductor
    bell: Bell
    presence: Presence
    ears: Ears
    slots: Slots


class Wanted(NamedTuple):
    """A hop that someone wants to make, before anybody has said yes: the child's remit, and what is asked."""

    remit: Remit
    agent: Agent | None
    hop: Hop


class Delegations:
    def __init__(self, floor: Floor) -> None:
        self._floor = floor

    async def begin(
        self, wish: Pass, ceiling: Bounds, session: str, agent: Agent | None = None, lead: str = ""
    ) -> Outcome:
        """Starts a run: a person asks the first holder, who is in the directory unless the engine brings one along."""
        floor = self._floor
        first, agent, hop = first_wanted(floor, wish, ceiling, session, wish.microseconds, agent)
        live = alive(first, agent, hop.now)
        live.stand_in = agent is not None and agent.stand_in
        begun = Begun(floor.presence.worker, lead=lead)

        def admit(view: View) -> Decision[Json]:
            verdict, facts = floor.admission.judge(view, guards.FIRST_HOLDER, hop)
            if verdict.answer is Answer.DENY:
                return Decision([verdict.rule, verdict.sentence])  # there is no run yet to record it in
            made = (started(first, hop.now, begun), *probe(floor, live, hop, facts))
            return Decision(first.id, made, floor.presence.first_beat())

        with floor.presence.kept(), floor.ears.kept():
            try:
                return await floor.conductor.carry(live, agent, Admit(f"{first.id}/start", admit))
            except Superseded:
                return await outcome_of(floor, first.id)
            finally:
                floor.presence.said()

    async def delegate(self, asker: Live, wish: Pass, step: StepOf | None = None) -> Outcome:
        """Passes a part of the asker's task on. The child's remit is derived here, from the engine's own record."""
        floor = self._floor
        asker.must_be_at_work()
        ops = asker.ops("step", step.id) if step else asker.ops("delegate", wish.to, wish.task)
        if asker.hold.again and (known := await self._known(ops)) is not None:
            return await self._again(asker, known)
        child, agent, hop = wanted(floor, asker, wish, wish.microseconds)
        live = alive(child, agent, hop.now, asker.remit)
        live.receipt.withheld = kept_back(asker.sight, child.sees, wish.sees)
        if step is not None:
            live.team = step.team
            live.receipt.given(step.slices)
        begun = Begun(floor.presence.worker, step.id if step else "")

        def admit(view: View) -> Decision[Json]:
            asker.must_hold(view)
            verdict, facts = floor.admission.judge(view, guards.ORDER, hop)
            if verdict.answer is Answer.DENY:
                no = refused(asker.remit, wish, hop.now, rule=verdict.rule, sentence=verdict.sentence)
                return Decision([verdict.rule, verdict.sentence], (no,))
            taken = step.taken(view, child, hop.now) if step else ()
            if taken is None:
                return Decision([MESSAGES_MOVED, "its messages were taken by someone else; look again"])
            return Decision(child.id, (started(child, hop.now, begun), *taken, *probe(floor, live, hop, facts)))

        if asker.card.concurrency is None:
            return await floor.conductor.carry(live, agent, Admit(ops[0], admit))
        async with floor.slots.given_up(asker):  # others of its kind may work while it waits
            return await floor.conductor.carry(live, agent, Admit(ops[0], admit))

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
                if record is not None and (tried == 0 or record.status == "completed"):
                    return told(view, record) if record.status in TERMINAL else record
            return None

        return await self._floor.store.read(look)

    async def _again(self, asker: Live, known: "Outcome | Record") -> Outcome:
        if isinstance(known, Outcome):
            return known
        floor = self._floor
        now = floor.clock.now()
        found: list[Resumed] = []

        def take(view: View) -> Decision[Json]:
            found.clear()
            asker.must_hold(view)
            record = view.record(known.id)
            assert record is not None
            if record.status in TERMINAL or record.status == "cancelling":
                return Decision(None)
            claim = Claim(floor.presence.worker, record.fence + 1, record.attempt + 1)
            found.append(taken_up(view, record, claim.fence, claim.attempt))
            return Decision(None, (claimed(at(record), record.holder, now, claim),))

        await floor.store.tx(floor.ids.new(), take)
        if not found:
            return await outcome_of(floor, known.id)
        resumed = found[0]
        hold = resumed.hold._replace(queued=False)
        agent = floor.directory.get(resumed.remit.holder)
        if agent is None:
            raise Refused(f"there is no agent '{resumed.remit.holder}' here to carry its task on", rule="unknown")
        live = alive(resumed.remit, agent, now, asker.remit, hold)
        return await floor.conductor.carry(resumed.fill(live), agent, sends=resumed.sends)


def first_wanted(
    floor: Floor, wish: Pass, ceiling: Bounds, session: str, lasts: int, agent: Agent | None = None
) -> Wanted:
    """What a person asks for."""
    now = floor.clock.now()
    origin = Origin(floor.ids.new(), floor.store.workspace, session or floor.ids.new())
    first = remits.begin(origin, wish, ceiling, now + lasts)
    agent = agent or floor.directory.get(wish.to)
    return Wanted(first, agent, Hop(first, wish, agent, None, now))


def wanted(floor: Floor, asker: Live, wish: Pass, lasts: int) -> Wanted:
    """What an agent asks for, as part of its own task."""
    now = floor.clock.now()
    parent = asker.remit
    agent = floor.directory.get(wish.to)
    kit = remits.kit(parent, asker.card) if wish.tools else remits.NONE
    child = remits.derive(parent, wish, floor.ids.new(), asker.sight, kit, now + lasts)
    return Wanted(child, agent, Hop(parent, wish, agent, asker.card, now))


def alive(remit: Remit, agent: Agent | None, now: int, parent: Remit | None = None, hold: Hold = FIRST) -> Live:
    """A task with the scope that cancels it when its time is up."""
    card = agent.card if agent else Card(remit.holder)
    deadline = remit.bounds.deadline
    assert deadline is not None
    if parent is not None and deadline == parent.bounds.deadline:
        return Live(remit, card, CancelScope(), hold)  # the asker's own timer ends it, as the scopes nest
    left = max(0, deadline - now)
    final = not hold.timeout or left <= hold.timeout
    seconds = (left if final else hold.timeout) / 1e6
    live = Live(remit, card, CancelScope(deadline=asyncio.get_running_loop().time() + seconds), hold)
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


async def outcome_of(floor: Floor, task: str) -> Outcome:
    """What comes of a task, whoever carries it out."""

    def look(view: View) -> Outcome | None:
        record = view.record(task)
        return told(view, record) if record is not None and record.status in TERMINAL else None

    return await floor.bell.until(task, look)


def probe(floor: Floor, live: Live, hop: Hop, facts: Facts) -> tuple[Fact, ...]:
    live.shaky = facts.breaker is not CLOSED
    return floor.admission.probe(facts, hop, live.remit.id) if live.shaky else ()
