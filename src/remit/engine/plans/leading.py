"""Leading in a holder's place: carrying out a plan, or taking a team from its goal to its answer."""

from collections.abc import Callable
from typing import NamedTuple

from remit.core.plan import Plan
from remit.core.text import shown
from remit.core.values import Json
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.turns import Conductor
from remit.engine.directory import PLANNER, Agent
from remit.engine.plans.running import PlanOptions, PlanOutcome, PlanRunner, StepOutcome
from remit.engine.plans.team import TeamRun
from remit.errors import Failed
from remit.ports.turn import TurnLike

_NAMED = 5  # steps that did not complete and are told one by one


class Leading(NamedTuple):
    """Makes the agents that lead plans and teams on behalf of a task's holder."""

    runner: PlanRunner
    conductor: Conductor

    def agent(self, live: LiveTask) -> Agent:
        """Return the agent for a task whose record says what it leads."""
        lead = live.lead
        assert lead is not None  # it is asked for those that have one
        options = PlanOptions(lead.concurrency, lead.reveal)
        if lead.plan is not None and not lead.coordinated:
            return self.planner(lead.plan, options)
        return self.coordinator(live.agent, options, lead.plan)

    def planner(
        self, plan: Plan, options: PlanOptions, tell: Callable[[PlanOutcome], object] = lambda _: None
    ) -> Agent:
        """Return the agent that carries out a plan; `tell` receives the outcome before the task ends."""

        async def carry_out(turn: TurnLike) -> Json:
            live = self._live(turn)
            outcome = await self.runner.run(live, plan, options)
            live.steps = outcome.told(plan)
            tell(outcome)
            if not outcome.ok:
                raise _incomplete(plan, outcome, live)
            return outcome.states()

        return Agent(PLANNER.card, carry_out, stand_in=True)

    def coordinator(self, agent: Agent, options: PlanOptions, plan: Plan | None = None) -> Agent:
        """Return the agent that leads a team in its coordinator's name, to this plan if there is one."""
        team = TeamRun(self.runner, self.conductor, agent, options, plan)

        async def lead(turn: TurnLike) -> Json:
            return await team.answer(self._live(turn), turn.remit.task)

        return Agent(agent.card, lead, agent.retry, agent.rules)

    def _live(self, turn: TurnLike) -> LiveTask:
        live = self.conductor.alive.get(turn.remit.id)
        assert live is not None  # it is running: this is its holder's turn
        return live


def _incomplete(plan: Plan, outcome: PlanOutcome, live: LiveTask) -> Failed:
    """Say which steps did not complete. It is worth another try if that holds for all that failed by themselves."""
    steps = outcome.steps
    left = [step for step in steps.values() if step.state != "completed"]
    own = [steps[step.id] for step in plan.steps if all(steps[one].state == "completed" for one in step.after)]
    again = all(step.retryable for step in own if step.state != "completed")
    named = "; ".join(_said(step) for step in left[:_NAMED])
    more = f"; and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
    sentence = f"{len(left)} of {len(steps)} steps did not complete: {named}{more}"
    return Failed(sentence, agent=live.remit.holder, task=live.remit.id, retryable=again)


def _said(step: StepOutcome) -> str:
    return f"step {shown(step.id)} {step.state}: {step.reason}"
