"""Running a plan: a step starts as soon as its own dependencies are done, and sees only their results."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol, cast

import anyio

from remit.core import plan as plans
from remit.core.bounds import Bounds
from remit.core.card import Card
from remit.core.checks import items, meant, of_type
from remit.core.entry import Message
from remit.core.events import Event, read
from remit.core.kinds.people import QuestionAsked
from remit.core.kinds.tasks import EndData, StepTold
from remit.core.kinds.workspace import effect_done, plan_started, step_ended
from remit.core.lifecycle import Outcome, Record
from remit.core.plan import Plan, PlanOptions, Step, StepEnd, StepSchedule, StepState
from remit.core.prompt import Done, Note, Reveal, prompt, prompt_with_summary, summary, summed_up
from remit.core.question import QuestionDraft
from remit.core.receipt import Slice
from remit.core.remit import DELEGATION_TIME, Pass
from remit.core.times import SECOND
from remit.core.trust import TRUSTED, Trust, least
from remit.core.values import TASK_LIMIT, Json, decode, digest, encode, plain, shown
from remit.engine.approvals import rejected
from remit.engine.attempt import endings
from remit.engine.attempt.live import LiveTask
from remit.engine.delegation import Delegations, MessagesMoved, StepOf
from remit.engine.ground import Ground
from remit.engine.inbox import Inbox
from remit.engine.people import Questions
from remit.engine.traces import owners_function
from remit.errors import BadInput
from remit.ports import Decision, View

ASK: Final = "ask"  # the value of a function that leaves the decision to a person
_APPROVAL: Final = ("approval of step '", "'")


class Approvals(NamedTuple):
    ground: Ground
    live: LiveTask
    questions: Questions

    async def once(self, step: str, identity: str, ask: Callable[[], Awaitable[bool | str] | bool | str]) -> bool | str:
        """Call the owner's function for the approval of a step, and record its answer: True, False or "ask". In a
        rerun, return the answer that this try recorded, or True if an earlier try recorded a yes. Otherwise call the
        function again."""
        ground, live = self.ground, self.live
        ops = live.operations.ids("approve", identity)

        def answered(view: View) -> bool | str | None:
            live.must_hold(view)
            done = [view.done(op) for op in ops]
            if done[0] is not None:
                return ASK if done[0][0] == ASK else bool(done[0][0])
            return True if any(one is not None and one[0] is True for one in done) else None

        if live.attempt.is_rerun and (known := await ground.store.read(answered)) is not None:
            return known
        with owners_function("approve_steps= of this plan"):
            said = ask()
            given = await said if inspect.isawaitable(said) else said
        approved = ASK if given == ASK else bool(given) and not isinstance(given, str)  # no other text counts as yes
        event = effect_done(live.remit, step.join(_APPROVAL), identity, approved, ground.clock.now())
        return (await ground.store.tx(ops[0], live.guarded(lambda _view: Decision(approved, (event,))))).answer

    async def person(self, step: Step, who: str, identity: str) -> str:
        """Ask a person to approve a step. Return why it was rejected, or "" if it was approved."""
        text = f"step '{step.id}' is to be done by '{who}': {step.title}"
        shows = {"action": "step", "agent": who, "step": step.id, "task": step.description or step.title}
        if step.description:
            shows["title"] = step.title
        draft = QuestionDraft("tool", text, shows={**shows}, about=(self.live.operations.origin, identity))
        said = await self.questions.ask_once(self.live, draft, self.live.operations.asking("step", identity))
        if not said.approved:
            return rejected(said, "it").removesuffix("; go on without it")
        await self.questions.use(self.live, said, draft)
        return ""


def approval_of(event: Event) -> str:
    """Return the step whose approval an event records, or ""."""
    before, after = _APPROVAL
    key = str(event.data["key"]) if event.kind == "effect.done" else ""
    return key.removeprefix(before).removesuffix(after) if key.startswith(before) else ""


def approves_step(event: Event) -> str:
    """Return the step that a person is asked about with this event, or ""."""
    shows = read(event, QuestionAsked).get("shows", {}) if event.kind == "question.asked" else {}
    return str(shows["step"]) if shows.get("action") == "step" else ""


# Limits of the whole run: if one of them refuses a step, starting another is pointless.
_SPENT = frozenset({"deadline", "tier", "tasks", "credits"})
_PATIENCE = DELEGATION_TIME / SECOND


class Schemas(Protocol):
    """Checks values against schemas; an adapter implements it."""

    def check(self, schema: Mapping[str, Any], value: Json) -> list[str]: ...
    def check_schema(self, schema: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The outcome of a step; `reason` says why it has no value, `task_id` is its latest task."""

    id: str
    title: str
    agent: str
    state: StepState
    value: Json = None
    reason: str = ""
    task_id: str = ""
    trust: Trust = TRUSTED
    retryable: bool = False  # whether a retry may help


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """The outcome of every step, in the order of the plan."""

    steps: dict[str, StepOutcome]

    @property
    def ok(self) -> bool:
        return all(step.state == "completed" for step in self.steps.values())

    def summary(self, steps: Iterable[str] | None = None) -> str:
        """Return the results of these completed steps, or of all, one line each, in the order of the plan. A step with
        `memory_scope` gets this text. Untrusted results are marked. For an empty list of steps, return ""."""
        given = self.steps if steps is None else items(steps, "steps takes a list of step ids")
        wanted = {plain(one, "a step's id", TASK_LIMIT) for one in given}
        if strange := sorted(wanted - self.steps.keys()):
            raise BadInput(f"there is no step {shown(strange[0])} in this plan{meant(strange[0], self.steps)}")
        done = [one for one in self.steps.values() if one.id in wanted and one.state == "completed"]
        return summed_up([_done_step(one) for one in done])

    def states(self) -> dict[str, Json]:
        """Return the state of each step, without the results, which are in the journal with their tasks."""
        return {step.id: step.state for step in self.steps.values()}

    def step_states(self, plan: Plan) -> list[Json]:
        """Return the state and the task of each step, for the end event of the task that ran the plan. The results are
        recorded with those tasks."""
        return [_step_state(self.steps[step.id], step) for step in plan.steps]


def _done_step(outcome: StepOutcome) -> Done:
    text = outcome.value if isinstance(outcome.value, str) else encode(outcome.value)
    return Done(outcome.title, outcome.agent, "" if outcome.value is None else text, outcome.trust)


def _step_state(outcome: StepOutcome, step: Step) -> Json:
    line = {"id": step.id, "title": step.title, "agent": outcome.agent, "state": outcome.state}
    said = {"task": outcome.task_id, "reason": outcome.reason}
    if step.payload != "text":
        said["payload"] = step.payload
    return {**line, **{name: value for name, value in said.items() if value}}


class PlanRunner(NamedTuple):
    """Runs plans."""

    ground: Ground
    delegations: Delegations
    inbox: Inbox
    questions: Questions
    schemas: Callable[[], Schemas]

    def cards(self, live: LiveTask) -> dict[str, Card]:
        """Return the agents that may be given a step."""
        directory = self.ground.directory
        agents = (directory.get(name) for name in directory.roster(live.remit, live.card))
        return {agent.card.name: agent.card for agent in agents if agent is not None}

    async def run(self, live: LiveTask, plan: Plan, options: PlanOptions) -> PlanOutcome:
        """Check the whole plan, then run it. Raise `BadInput` for an invalid plan; nothing starts then."""
        live.must_be_at_work()
        of_type(plan, Plan, "run_plan takes a Plan(...)")
        cards = self.cards(live)
        self.check(plan, cards, live.remit.bounds)
        return await PlanRun(self, live, plan, options, cards).run()

    def check(self, plan: Plan, cards: Mapping[str, Card], bounds: Bounds) -> None:
        """Raise `BadInput` for a plan that agents with these cards cannot carry out within these bounds."""
        room = bounds.tasks
        most = plans.STEP_LIMIT if room is None else min(plans.STEP_LIMIT, room)
        if found := plans.faults(plan, cards, most=most):
            raise BadInput(f"the plan was refused: {'; '.join(found[:10])}")
        self.check_schemas(plan)

    def check_schemas(self, plan: Plan) -> None:
        """Raise `BadInput` for a plan with an invalid schema."""
        for step in plan.steps:
            if step.schema is not None:
                self.schemas().check_schema(step.schema)


class PlanRun:
    """One running plan."""

    def __init__(
        self, runner: PlanRunner, live: LiveTask, plan: Plan, options: PlanOptions, cards: Mapping[str, Card]
    ) -> None:
        self._runner = runner
        self._live = live
        self._options = options
        self._steps = {step.id: step for step in plan.steps}
        self._who = plans.assignees(plan, cards)
        self._team = frozenset(self._who.values())
        roster = tuple((name, cards[name].role) for name in sorted(self._team))
        self._reveal = Reveal(plan.goal, roster) if options.reveal else None
        told = (plan.goal, roster) if options.reveal else None
        self._identities = plans.identities(plan, self._who, told)
        self._identity = digest("".join(self._identities.values()))
        self._schedule = StepSchedule(plan)
        self._outcomes: dict[str, StepOutcome] = {}
        self._ready: deque[str] = deque(self._schedule.first())
        self._notes: dict[str, list[Note]] = {}
        self._running = 0
        self._says: Trust = live.says  # the leader's label before any result came in: it wrote the steps then

    async def run(self) -> PlanOutcome:
        await self._record_start()
        async with anyio.create_task_group() as group:
            self._group = group
            await self._admit()
        outcomes = {one: self._outcomes[one] for one in self._steps}
        self._live.take(least(outcome.trust for outcome in outcomes.values()))
        return PlanOutcome(outcomes)

    async def _record_start(self) -> None:
        now = self._runner.ground.clock.now()
        steps: list[Json] = [{**step.outline(), "agent": self._who[step.id]} for step in self._steps.values()]
        data: dict[str, Json] = {"receipt": self._live.receipt.data()}
        started = plan_started(self._live.remit, steps, now, data)
        op = self._live.op("plan", self._identity)
        await self._runner.ground.store.tx(op, self._live.guarded(lambda _view: Decision(None, (started,))))

    async def _admit(self) -> None:
        """Start the steps that are ready, as far as `concurrency` allows. Called at the beginning and after each step
        has ended. If the plan was aborted, start none."""
        if self._options.abort is not None and self._options.abort.is_set():
            await self._drain("the plan was aborted")
        while self._ready and self._running < self._options.concurrency:
            step = self._steps[self._ready.popleft()]
            if self._schedule.states[step.id] != "waiting":
                continue
            self._running += 1
            self._schedule.start(step.id)
            self._group.start_soon(self._one, step)

    async def _one(self, step: Step) -> None:
        no = await self._disapproved(step)
        outcome = await self._attempts(step) if not no else None
        self._running -= 1
        await (self._note(step, outcome) if outcome is not None else self._turn_down(step, no))
        await self._admit()

    async def _disapproved(self, step: Step) -> str:
        """Return why the approval of a step was denied, or "" if it may start. If the owner's approval function raises,
        the plan fails."""
        approve_steps = self._options.approve_steps
        if not approve_steps:
            return ""
        approvals = Approvals(self._runner.ground, self._live, self._runner.questions)
        who, identity = self._who[step.id], self._identities[step.id]
        if approve_steps is True:
            return await approvals.person(step, who, identity)
        approved = await approvals.once(step.id, identity, lambda: approve_steps(step))
        if approved == ASK:
            return await approvals.person(step, who, identity)
        return "" if approved else "it was not approved"

    async def _attempts(self, step: Step) -> Outcome:
        outcome = await self._with_messages(step, again=step.retries > 0)
        for tries in range(step.retries, 0, -1):
            if outcome.state in ("completed", "refused", "cancelled"):
                break
            again = await self._with_messages(step, again=tries > 1)
            if again.state == "refused":  # a rule refused the retry; keep the earlier failure
                break
            outcome = again
        return outcome

    async def _with_messages(self, step: Step, *, again: bool) -> Outcome:
        """Delegate a step with the messages in the member's inbox; repeat if another task took a message meanwhile."""
        who, told = self._who[step.id], self._notes.setdefault(step.id, [])
        while True:
            waiting = self._fitting(step, await self._runner.inbox.peek(self._live, who))
            notes = [*told, *(Note(one.sender, one.text, one.trust) for one in waiting)]
            text, slices = self._step_prompt(step, notes)
            trust = least((self._says, *(part.trust for part in slices)))
            identity = self._identities[step.id]
            extra = StepOf(step.id, identity, slices, self._team, tuple(one.id for one in waiting), trust, again)
            try:
                wish = Pass(who, text, busy_timeout=_PATIENCE, data=step.data)  # steps of one busy agent run one by one
            except BadInput as error:  # its dependencies are too long for one task: the step fails, not the plan
                return Outcome(who, "", "failed", error=error)
            try:
                outcome = await self._attempt(step, wish, extra)
            except MessagesMoved:
                continue
            if outcome.state != "refused":  # otherwise the messages stay in the inbox
                told[:] = notes
            return outcome

    def _fitting(self, step: Step, waiting: Sequence[Message]) -> Sequence[Message]:
        """Return the messages for which the prompt has room; the others stay for the next one."""
        told, new = self._notes[step.id], [Note(one.sender, one.text, one.trust) for one in waiting]
        room = len(new)
        most = TASK_LIMIT if step.data is None else TASK_LIMIT - len(encode(step.data)) - 2
        while room and len(self._step_prompt(step, [*told, *new[:room]])[0]) > most:
            room -= 1
        return waiting[:room]

    async def _attempt(self, step: Step, wish: Pass, extra: StepOf) -> Outcome:
        outcome = await self._runner.delegations.delegate(self._live, wish, extra)
        if not outcome.ok or step.payload == "text":
            return outcome
        found = self._structured(step, outcome)
        # The result of an earlier try: request it again.
        if not found.ok and self._live.operations.was_given(outcome.id):
            return await self._attempt(step, wish, extra)
        return found

    def _structured(self, step: Step, outcome: Outcome) -> Outcome:
        """Return the outcome if its result is JSON that matches the schema, otherwise a failure. It never falls back to
        text."""
        value = outcome.value
        try:
            if isinstance(value, str):
                value = decode(value)
            value = plans.structured(value, f"the result of step '{step.id}'")
        except (ValueError, RecursionError) as error:
            return replace(outcome, state="failed", value=None, error=BadInput(f"the result is not JSON: {error}"))
        wrong = self._runner.schemas().check(step.schema, value) if step.schema is not None else []
        if wrong:
            sentence = f"the result does not fit its schema: {'; '.join(wrong[:5])}"
            return replace(outcome, state="failed", value=None, error=BadInput(sentence))
        return replace(outcome, value=value)

    def _step_prompt(self, step: Step, notes: Sequence[Note]) -> tuple[str, list[Slice]]:
        """Return the step's prompt, and the parts that came from elsewhere."""
        if step.memory_scope != "own":
            # In the order of the plan: the order in which steps end differs from run to run.
            there = self._outcomes
            wanted = self._steps.keys() if isinstance(step.memory_scope, str) else frozenset(step.memory_scope)
            ids = [one for one in self._steps if one in wanted and one in there and there[one].state == "completed"]
            done = [_done_step(there[one]) for one in ids]
            text = prompt_with_summary(step, done, notes, self._reveal, self._says)
            shown_of = [summary(one.text) for one in done]
        else:
            ids = plans.sources(step, self._steps)
            done = [_done_step(self._outcomes[one]) for one in ids]
            text = prompt(step, done, notes, self._reveal, self._says)
            shown_of = [one.text for one in done]
        slices = [
            Slice.of(f"step {one}", "dependency", part, self._outcomes[one].trust)
            for one, part in zip(ids, shown_of, strict=True)
        ]
        slices += [Slice.of(f"message from {note.sender}", "message", note.text, note.trust) for note in notes]
        return text, slices

    async def _turn_down(self, step: Step, reason: str) -> None:
        """Skip a step that may not start, and all steps that have not started."""
        self._outcomes[step.id] = StepOutcome(step.id, step.title, self._who[step.id], "skipped", reason=reason)
        await self._give_up([StepEnd(step.id, "skipped", reason), *self._schedule.skip(step.id)])
        await self._drain(f'step "{step.id}": {reason}')

    async def _note(self, step: Step, outcome: Outcome) -> None:
        """Record how a step ended, and start or give up the steps that depend on it."""
        who = outcome.by or self._who[step.id]
        if outcome.ok:
            ended = StepOutcome(step.id, step.title, who, "completed", outcome.value, "", outcome.id, outcome.trust)
            self._outcomes[step.id] = ended
            self._ready.extend(self._schedule.complete(step.id))
            return
        reason = str(outcome.error)
        again = outcome.error is not None and outcome.error.retryable
        failed = StepOutcome(step.id, step.title, who, "failed", None, reason, outcome.id, outcome.trust, again)
        self._outcomes[step.id] = failed
        # Its task records the failure, unless there was no task, or its result was rejected afterwards.
        unsaid = not outcome.id or isinstance(outcome.error, BadInput)
        own = (StepEnd(step.id, "failed", reason),) if unsaid else ()
        await self._give_up([*own, *self._schedule.fail(step.id)])
        if outcome.rule in _SPENT:
            await self._drain(f"the run's limits are spent: {reason}")

    async def _drain(self, reason: str) -> None:
        """Start no more steps; running ones may finish, the rest is skipped."""
        self._ready.clear()
        await self._give_up(self._schedule.skip_rest(reason))

    async def _give_up(self, gone: list[StepEnd]) -> None:
        """Record the steps that will not run, in one transaction."""
        if not gone:
            return
        now = self._runner.ground.clock.now()
        for one in gone:
            step = self._steps[one.id]
            known = StepOutcome(one.id, step.title, self._who[one.id], one.state, reason=one.reason)
            self._outcomes.setdefault(one.id, known)
        events = [step_ended(self._live.remit, one.id, one.state, one.reason, now) for one in gone]
        op = self._live.op("steps", self._identity, *(one.id for one in gone))
        await self._runner.ground.store.tx(op, self._live.guarded(lambda _view: Decision(None, events)))


def steps_told(view: View, record: Record) -> PlanOutcome | None:
    """Return the outcome of every step of a finished plan, with the results of their tasks. Return None if the task has
    not ended, or if its end event has no steps."""
    ended = view.event(record.ended or 0)
    if ended is None or "steps" not in ended.data:
        return None
    steps = (_outcome(view, step) for step in read(ended, EndData).get("steps", ()))
    return PlanOutcome({step.id: step for step in steps})


def _outcome(view: View, step: StepTold) -> StepOutcome:
    state, task = cast("StepState", step["state"]), step.get("task", "")
    outcome = StepOutcome(step["id"], step["title"], step["agent"], state, None, step.get("reason", ""), task)
    record = view.record(task) if task else None
    came = endings.of_record(view, record) if record is not None else None
    if came is None:
        return outcome
    value = _read(came.value, step) if state == "completed" else None
    return replace(outcome, value=value, trust=came.trust, retryable=came.error is not None and came.error.retryable)


def _read(value: Json, step: StepTold) -> Json:
    return decode(value) if step.get("payload") == "structured" and isinstance(value, str) else value
