"""A team: a coordinator plans, members work independently, the coordinator combines the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

from remit.core.command import Command
from remit.core.kinds.workspace import TeamPlanned, team_planned
from remit.core.plan import DRAFT_LIMIT, Plan, PlanOptions, assigned, drafted, faults, restored, whole
from remit.core.prompt import goal_told
from remit.core.trust import TRUSTED, Trust, one_line, prompt_text
from remit.core.values import Json, checked, decode, encode, shown
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.turns import Conductor
from remit.engine.directory import PLANNER, Agent
from remit.engine.plans import PlanOutcome, PlanRunner, StepOutcome
from remit.errors import BadInput, Failed
from remit.ports import Decision, View
from remit.ports.turn import TurnLike

_FENCE = "```"
# The turns of a coordinator's task; the second happens only if its first plan is rejected.
_PLAN, _PLAN_AGAIN, _WORK, _SYNTHESIS = 1, 2, 3, 4

_ASK = """{goal}

## Team

{team}

## What to answer

Answer with a plan, as one JSON object and nothing else:
{{"steps": [{{"id": "a", "title": "...", "description": "...", "agent": "a member", "after": ["ids of steps"]}}]}}
At most {most} steps. Each member is told its own step and the results of the steps in "after", nothing else."""

_AGAIN = """

## Your last plan was not accepted

{faults}

Answer with a corrected plan."""


class TeamRun:
    """One run of a team: the coordinator plans, the members run the plan, and the coordinator combines the results. If
    the coordinator's plan is invalid, it may write another one; if that is invalid too, the run fails. If the caller
    gave a plan, the coordinator does not write one."""

    def __init__(
        self, runner: PlanRunner, conductor: Conductor, agent: Agent, options: PlanOptions, plan: Plan | None = None
    ) -> None:
        self._runner = runner
        self._conductor = conductor
        self._agent = agent
        self._options = options
        self._given = plan

    async def answer(self, live: LiveTask, goal: str) -> Json:
        """Lead the team and return its result. A rerun continues with the plan that was accepted before."""
        ops = live.operations.ids("team")
        plan = await self._accepted_plan(live, ops) if live.attempt.is_rerun else None
        if plan is None:
            plan, live = self._checked(live) or await self._plan(live, goal)
            await self._keep(live, ops[0], plan)
        live.operations.skip_to(_WORK)
        outcome = await self._runner.run(live, plan, self._options)
        live.steps = outcome.step_states(plan)
        live.operations.skip_to(_SYNTHESIS)
        answer, _ = await self._ask(live, told_outcome(goal, outcome, live.remit.trust), "synthesis")
        return answer

    def _checked(self, live: LiveTask) -> tuple[Plan, LiveTask] | None:
        """Return the plan that the caller gave, checked and with an agent for every step, or None if the coordinator
        must write one."""
        if self._given is None:
            return None
        cards = self._runner.cards(live)
        self._runner.check(self._given, cards, live.remit.bounds)
        return assigned(self._given, cards), live

    async def _accepted_plan(self, live: LiveTask, ops: list[str]) -> Plan | None:
        """Return the plan that an earlier attempt accepted, or None. The team continues with this plan, so its finished
        steps are not repeated."""

        def look(view: View) -> Json:
            live.must_hold(view)
            return next((done[0] for op in ops if (done := view.done(op)) is not None), None)

        kept = await self._runner.ground.store.read(look)
        if kept is None:
            return None
        data = cast("TeamPlanned", kept)
        live.take(data.get("trust", TRUSTED))
        return restored(data["plan"])

    async def _keep(self, live: LiveTask, op: str, plan: Plan) -> None:
        """Record the accepted plan, and its trust label."""
        ground = self._runner.ground
        data: dict[str, Json] = {"plan": whole(plan)}
        if live.took != TRUSTED:
            data["trust"] = live.took
        planned = team_planned(live.remit, data, ground.clock.now())
        await ground.store.tx(op, live.guarded(lambda _view: Decision[Json](data, (planned,))))

    async def _plan(self, live: LiveTask, goal: str) -> tuple[Plan, LiveTask]:
        cards = self._runner.cards(live)
        team = "\n".join(f"- **{card.name}**: {_about(card.role, card.can)}" for card in cards.values())
        question = _ASK.format(goal=goal_told(goal, live.remit.trust), team=team or "- nobody", most=DRAFT_LIMIT)
        wrong: list[str] = []
        for text, turn in ((question, _PLAN), (None, _PLAN_AGAIN)):
            live.operations.skip_to(turn)
            again = _AGAIN.format(faults="\n".join(f"- {fault}" for fault in wrong))
            answer, live = await self._ask(live, text if text is not None else question + again, "plan")
            try:
                plan = drafted(_parsed(answer), goal=goal)
            except BadInput as no:
                wrong = [str(no)]
                continue
            wrong = faults(plan, cards, most=DRAFT_LIMIT)
            if not wrong:
                return assigned(plan, cards), live
        raise BadInput(f"no plan was accepted, and nothing was started: {'; '.join(wrong[:5])}")

    async def _ask(self, live: LiveTask, text: str, phase: str) -> tuple[Json, LiveTask]:
        """Call the coordinator for one turn within its own task. Return its answer and that turn."""
        turn = self._conductor.alive.enter(live.succeeded_by(live.remit._replace(task=text), live.agent, live.handoff))
        turn.phase, turn.composed = phase, True
        turn.receipt.withhold_all(live.receipt.withheld)  # withheld by the asker of the team, from each turn
        turn.receipt.task(text)
        answer = await self._conductor.call(turn, self._agent)
        if isinstance(answer, Command):
            raise BadInput(
                f"'{self._agent.card.name}' leads a team and cannot hand that over; answer with text or JSON"
            )
        return checked(answer, f"the answer of '{self._agent.card.name}'"), turn


def told_outcome(goal: str, outcome: PlanOutcome, trust: Trust = TRUSTED) -> str:
    """Return the final prompt of the coordinator: all results, and failed and skipped steps with their reasons."""
    parts = [goal_told(goal, trust), "", "## Results", ""]
    for step in outcome.steps.values():
        title = f"### {one_line(step.title)} (by {step.agent}): {step.state}"
        parts += [title, prompt_text(_result(step), step.trust), ""]
    return "\n".join([*parts, "## What to answer", "", "Put the pieces together. Say what is missing and why."])


def _result(step: StepOutcome) -> str:
    if step.state != "completed":
        return step.reason
    return step.value if isinstance(step.value, str) else encode(step.value)


def _parsed(answer: Json) -> Json:
    """Return the plan in an answer as JSON. If the answer is text, remove its code fence and parse it. Raise `BadInput`
    if it is not JSON."""
    if not isinstance(answer, str):
        return answer
    try:
        return decode(unfenced(answer))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the answer is not JSON ({error})") from error


def unfenced(answer: str) -> str:
    """Return the text without its code fence. It uses plain string methods, so that no text blocks the loop."""
    text = answer.strip()
    opening, _, rest = text.partition("\n")
    word = opening.removeprefix(_FENCE).strip().lower()
    if not opening.startswith(_FENCE) or not rest.endswith(_FENCE) or word not in ("", "json"):
        return text
    return rest.removesuffix(_FENCE)


def _about(role: str, can: tuple[str, ...]) -> str:
    parts = (one_line(role), f"can {one_line(', '.join(can))}" if can else "")
    return "; ".join(part for part in parts if part) or "no description"


_NAMED = 5  # failed steps that are listed


class Leading(NamedTuple):
    """Creates the agents that lead plans and teams for a task's holder."""

    runner: PlanRunner
    conductor: Conductor

    def agent(self, live: LiveTask) -> Agent:
        """Return the agent that runs a plan task or a team task in the place of its holder: the one that runs the plan,
        or the coordinator. The record of the task says which."""
        lead = live.lead
        assert lead is not None  # only called for a task with a lead
        options = PlanOptions(lead.concurrency, lead.reveal)
        if lead.plan is not None and not lead.coordinated:
            return self.planner(lead.plan, options)
        return self.coordinator(live.agent, options, lead.plan)

    def planner(
        self, plan: Plan, options: PlanOptions, tell: Callable[[PlanOutcome], object] = lambda _: None
    ) -> Agent:
        """Return the agent that carries out a plan; `tell` gets the outcome before the task ends."""

        async def carry_out(turn: TurnLike) -> Json:
            live = self._live(turn)
            outcome = await self.runner.run(live, plan, options)
            live.steps = outcome.step_states(plan)
            tell(outcome)
            if not outcome.ok:
                raise _incomplete(plan, outcome, live)
            return outcome.states()

        return Agent(PLANNER.card, carry_out, stand_in=True)

    def coordinator(self, agent: Agent, options: PlanOptions, plan: Plan | None = None) -> Agent:
        """Return the agent that leads a team for its coordinator, with this plan if there is one."""
        team = TeamRun(self.runner, self.conductor, agent, options, plan)

        async def lead(turn: TurnLike) -> Json:
            return await team.answer(self._live(turn), turn.remit.task)

        return Agent(agent.card, lead, agent.retry, agent.rules)

    def _live(self, turn: TurnLike) -> LiveTask:
        live = self.conductor.alive.get(turn.remit.id)
        assert live is not None  # the task is running: this is its holder's turn
        return live


def _incomplete(plan: Plan, outcome: PlanOutcome, live: LiveTask) -> Failed:
    """Return the error that lists the steps which did not complete. The error is retryable if every failure that was
    not caused by another step is."""
    steps = outcome.steps
    left = [step for step in steps.values() if step.state != "completed"]
    own = [steps[step.id] for step in plan.steps if all(steps[one].state == "completed" for one in step.after)]
    again = all(step.retryable for step in own if step.state != "completed")
    named = "; ".join(_step_line(step) for step in left[:_NAMED])
    more = f"; and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
    sentence = f"{len(left)} of {len(steps)} steps did not complete: {named}{more}"
    return Failed(sentence, agent=live.remit.holder, task=live.remit.id, retryable=again)


def _step_line(step: StepOutcome) -> str:
    return f"step {shown(step.id)} {step.state}: {step.reason}"
