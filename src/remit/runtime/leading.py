"""Runs that the engine leads in a person's place: a plan, or a team."""

from typing import NamedTuple

from remit.core.allow import ANY
from remit.core.bounds import Bounds
from remit.core.card import Card
from remit.core.chain import STAND_IN
from remit.core.outcome import Outcome
from remit.core.plan import Plan
from remit.core.values import Json
from remit.engine.asking import Asked
from remit.engine.assembly import Engine
from remit.engine.delegation import Led
from remit.engine.directory import Agent
from remit.engine.plans.running import PlanOptions, PlanOutcome
from remit.engine.plans.team import TeamRun
from remit.engine.turn import Turn
from remit.errors import BadInput


class Leader(NamedTuple):
    """Who leads runs, within which ceiling."""

    engine: Engine
    ceiling: Bounds

    async def plan(self, plan: Plan, asked: Asked, options: PlanOptions) -> PlanOutcome:
        """Run a plan and tell what became of every step."""
        self.engine.plans.check_schemas(plan)  # before there is a run
        outcomes: list[PlanOutcome] = []

        async def run_plan(turn: Turn) -> Json:
            outcome = await turn.run_plan(plan, **options._asdict())
            outcomes.append(outcome)
            if not outcome.ok:
                bad = sum(step.state != "completed" for step in outcome.steps.values())
                raise RuntimeError(f"{bad} of {len(outcome.steps)} steps did not complete")
            return outcome.states()

        planner = Agent(Card(STAND_IN, role="carries out a plan", asks=ANY), run_plan, stand_in=True)
        outcome = await self._begin(asked, Led(planner, STAND_IN))
        if outcomes:
            return outcomes[0]
        if outcome.error is not None and isinstance(outcome.error.__cause__, BadInput):
            raise outcome.error.__cause__
        outcome.unwrap()
        raise AssertionError("a plan that completed has outcomes")

    async def team(self, asked: Asked, options: PlanOptions) -> Outcome:
        """Have the coordinator plan, and put together what the members bring."""
        services = self.engine.services
        agent = services.ground.directory.get(asked.wish.to)
        led: Led | None = None
        if agent is not None:
            team = TeamRun(self.engine.plans, services.conductor, agent, options)

            async def lead(turn: Turn) -> Json:
                return await team.answer(turn.remit.id, asked.wish.task)

            led = Led(Agent(agent.card, lead), "team")
        return await self._begin(asked, led)

    async def _begin(self, asked: Asked, led: Led | None) -> Outcome:
        return await self.engine.delegations.begin(asked.wish, self.ceiling, asked.session, by=asked.by, led=led)
