"""Plans and teams that the engine leads for a person, in this process or from the queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from remit.core.allow import has
from remit.core.bounds import Bounds
from remit.core.card import Card
from remit.core.lifecycle import Outcome
from remit.core.plan import Lead, Plan, assigned
from remit.core.records import NamedTuple
from remit.core.remit import STAND_IN
from remit.core.values import Json
from remit.engine.asking import Asked, PlanOptions, Submission
from remit.engine.assembly import Engine
from remit.engine.delegation import Led
from remit.engine.queue.submitting import Accepted
from remit.errors import BadInput

if TYPE_CHECKING:
    from remit.engine.plans import PlanOutcome


class Leader(NamedTuple):
    """Leads plans and teams, within a ceiling."""

    engine: Engine
    ceiling: Bounds

    async def plan(self, plan: Plan, asked: Asked, options: PlanOptions) -> PlanOutcome:
        """Run a plan and return the outcome of every step."""
        outcomes: list[PlanOutcome] = []
        outcome = await self.plan_run(plan, asked, options, outcomes.append)
        if outcomes:
            return outcomes[0]
        if outcome.error is not None and isinstance(outcome.error.__cause__, BadInput):
            raise outcome.error.__cause__
        outcome.unwrap()
        raise AssertionError("a plan that completed has outcomes")

    async def plan_run(
        self, plan: Plan, asked: Asked, options: PlanOptions, tell: Callable[[PlanOutcome], object] = lambda _: None
    ) -> Outcome:
        """Run a plan and return the outcome of the run; `tell` gets the outcome of its steps."""
        leading = self.engine.leading
        leading.runner.check_schemas(plan)  # check before the run starts
        led = Led(leading.planner(plan, options, tell), STAND_IN, _lead(plan, options))
        return await self.engine.begin(asked, self.ceiling, led)

    async def team(self, asked: Asked, options: PlanOptions, plan: Plan | None = None) -> Outcome:
        """Run a team: the coordinator writes the plan, unless there is one, and combines the members' results. Return
        the outcome."""
        agent = self.engine.services.ground.directory.get(asked.wish.to)
        if agent is None:
            return await self.engine.begin(asked, self.ceiling)
        lead = _lead(plan, options, coordinated=plan is not None)
        led = Led(self.engine.leading.coordinator(agent, options, plan), "team", lead)
        return await self.engine.begin(asked, self.ceiling, led)

    async def submit(self, submission: Submission, session: str, cards: list[Card]) -> Accepted:
        """Queue a plan or team. A plan is checked against all known cards, and the agent of each step is chosen now, so
        that it is the same in every process."""
        return await self.engine.queue.begin(self.assigned(submission, cards), self.ceiling, session)

    def assigned(self, submission: Submission, cards: list[Card]) -> Submission:
        """Return the submission with an agent for each step of its plan. Raise `BadInput` if agents with these cards
        cannot carry it out."""
        lead = submission.lead
        if lead is None or lead.plan is None:
            return submission
        bounds = self.ceiling & submission.wish.within
        known = {card.name: card for card in cards if has(bounds.agents, card.name)}
        self.engine.leading.runner.check(lead.plan, known, bounds)
        return submission._replace(lead=lead._replace(plan=assigned(lead.plan, known)))


def _lead(plan: Plan | None, options: PlanOptions, *, coordinated: bool = False) -> dict[str, Json] | None:
    """Return the record of a plan or a team, so that a worker can retry it; None if only this program can run it: it
    has functions, or a plan that no record can hold."""
    if options.approve_steps or options.abort is not None:
        return None
    try:
        return Lead(plan, options.concurrency, options.reveal, coordinated).data
    except BadInput:  # too long, or with a schema that is not JSON; such a plan runs, but only here
        return None
