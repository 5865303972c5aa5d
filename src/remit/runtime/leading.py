"""Runs that the engine leads in a person's place: a plan, or a team."""

from typing import NamedTuple

from remit.core.allow import ANY
from remit.core.bounds import Bounds
from remit.core.card import Card
from remit.core.outcome import Outcome
from remit.core.plan import Plan
from remit.core.remit import Pass
from remit.core.values import Json
from remit.engine.assembly import Engine
from remit.engine.directory import Agent
from remit.engine.plans.running import PlanOptions, PlanOutcome
from remit.engine.plans.team import TeamRun
from remit.engine.turn import Planning, Turn
from remit.errors import BadInput


class Leader(NamedTuple):
    """Within which ceiling, and in which session."""

    engine: Engine
    ceiling: Bounds
    session: str

    async def plan(self, plan: Plan, given: Pass, options: Planning) -> PlanOutcome:
        """What became of every step."""
        outcomes: list[PlanOutcome] = []

        async def carry_out(turn: Turn) -> Json:
            outcomes.append(await turn.run_plan(plan, **options))
            if not outcomes[0].ok:
                bad = sum(step.state != "completed" for step in outcomes[0].steps.values())
                raise RuntimeError(f"{bad} of {len(outcomes[0].steps)} steps did not complete")
            return outcomes[0].states()

        planner = Agent(Card("plan", role="carries out a plan", asks=ANY), carry_out, stand_in=True)
        outcome = await self._begin(given, planner, "plan")
        if outcomes:
            return outcomes[0]
        if outcome.error is not None and isinstance(outcome.error.__cause__, BadInput):
            raise outcome.error.__cause__
        outcome.unwrap()
        raise AssertionError("a plan that completed has outcomes")

    async def team(self, given: Pass, options: Planning) -> Outcome:
        """The coordinator plans, and puts together what the members bring."""
        services = self.engine.services
        agent = services.directory.get(given.to)
        leading: Agent | None = None
        if agent is not None:
            team = TeamRun(self.engine.plan_runner, services.conductor, agent, PlanOptions(**options))

            async def led_as(turn: Turn) -> Json:
                return await team.answer(turn.remit.id, given.task)

            leading = Agent(agent.card, led_as)
        return await self._begin(given, leading, "team")

    async def _begin(self, given: Pass, agent: Agent | None, led_as: str) -> Outcome:
        return await self.engine.delegations.begin(given, self.ceiling, self.session, agent, led_as=led_as)
