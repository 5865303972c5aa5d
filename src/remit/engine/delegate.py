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
from remit.core.facts import messages_taken, place, refused, started
from remit.core.guards import Answer, Facts
from remit.core.outcome import Outcome
from remit.core.receipt import Slice, kept_back
from remit.core.remit import Origin, Pass, Remit
from remit.core.values import Json
from remit.engine.admission import Admission, Hop
from remit.engine.conduct import Conductor
from remit.engine.directory import Agent, Directory
from remit.engine.live import Live
from remit.ports import Clock, Decision, Ids, Store, View

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
        waiting = {one.id for one in view.waiting(child.session, child.holder, len(self.messages))}
        if not waiting.issuperset(self.messages):
            return None
        return (messages_taken(list(self.messages), child.holder, place(child), now),)


class Delegations:
    def __init__(
        self, store: Store, directory: Directory, clock: Clock, ids: Ids, admission: Admission, conductor: Conductor
    ) -> None:
        self._store = store
        self._directory = directory
        self._clock = clock
        self._ids = ids
        self._admission = admission
        self._conductor = conductor

    async def begin(self, wish: Pass, ceiling: Bounds, session: str, agent: Agent | None = None) -> Outcome:
        """Starts a run: a person asks the first holder, who is in the directory unless the engine brings one along."""
        now = self._clock.now()
        agent = agent or self._directory.get(wish.to)
        origin = Origin(self._ids.new(), self._store.workspace, session or self._ids.new())
        first = remits.begin(origin, wish, ceiling, now)
        live = self._live(first, agent, now)
        live.stand_in = agent is not None and agent.stand_in
        hop = Hop(first, wish, agent, None, now)

        def admit(view: View) -> Decision[Json]:
            verdict, facts = self._admission.judge(view, guards.FIRST_HOLDER, hop)
            if verdict.answer is Answer.DENY:
                return Decision([verdict.rule, verdict.sentence])  # there is no run yet to record it in
            return Decision(None, (started(first, now), *self._probe(live, hop, facts)))

        return await self._conductor.carry(live, agent, admit)

    async def delegate(self, asker: Live, wish: Pass, step: StepOf | None = None) -> Outcome:
        """Passes a part of the asker's task on. The child's remit is derived here, from the engine's own record."""
        asker.must_be_at_work()
        now = self._clock.now()
        agent = self._directory.get(wish.to)
        parent = asker.remit
        kit = remits.kit(parent, asker.card) if wish.tools else remits.NONE
        child = remits.derive(parent, wish, self._ids.new(), asker.sight, kit, now)
        live = self._live(child, agent, now, parent)
        live.receipt.withheld = kept_back(asker.sight, child.sees, wish.sees)
        if step is not None:
            live.team = step.team
            live.receipt.given(step.slices)
        hop = Hop(parent, wish, agent, asker.card, now)

        def admit(view: View) -> Decision[Json]:
            verdict, facts = self._admission.judge(view, guards.ORDER, hop)
            if verdict.answer is Answer.DENY:
                no = refused(parent, wish, now, rule=verdict.rule, sentence=verdict.sentence)
                return Decision([verdict.rule, verdict.sentence], (no,))
            taken = step.taken(view, child, now) if step else ()
            if taken is None:
                return Decision([MESSAGES_MOVED, "its messages were taken by someone else; look again"])
            begun = started(child, now, step.id if step else "")
            return Decision(None, (begun, *taken, *self._probe(live, hop, facts)))

        return await self._conductor.carry(live, agent, admit)

    def _probe(self, live: Live, hop: Hop, facts: Facts) -> tuple[Fact, ...]:
        live.shaky = facts.breaker is not CLOSED
        return self._admission.probe(facts, hop, live.remit.id) if live.shaky else ()

    @staticmethod
    def _live(remit: Remit, agent: Agent | None, now: int, parent: Remit | None = None) -> Live:
        card = agent.card if agent else Card(remit.holder)
        deadline = remit.bounds.deadline
        assert deadline is not None
        if parent is not None and deadline == parent.bounds.deadline:
            return Live(remit, card, CancelScope())  # the asker's own timer ends it, as the scopes nest
        seconds = max(0, deadline - now) / 1e6
        return Live(remit, card, CancelScope(deadline=asyncio.get_running_loop().time() + seconds))
