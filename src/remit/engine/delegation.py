"""Delegating: a hop is admitted, then run to its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias, cast

from anyio.lowlevel import checkpoint

from remit.core import remit as remits
from remit.core.bounds import TOP, Bounds
from remit.core.card import Card
from remit.core.events import Labels, Unsealed
from remit.core.guards import ALLOW, BEGIN, BUSY, DELEGATE, RESUME, Refusable
from remit.core.identity import canonical_fields, question
from remit.core.kinds.sharing import messages_taken
from remit.core.kinds.tasks import Begun, Claim, Lineage, Wait, claimed, started
from remit.core.lifecycle import TERMINAL, Outcome, Record
from remit.core.loops import GROWN, ONCE, USUAL, Repetition, Sign, Thresholds
from remit.core.plan import Lead
from remit.core.question import QuestionDraft
from remit.core.receipt import Slice, kept_back
from remit.core.records import NamedTuple
from remit.core.remit import NO_RIGHTS, Pass, Remit, known_pass, place
from remit.core.trust import TRUSTED, Trust
from remit.core.values import Json, digest, encode
from remit.engine.approvals import Said
from remit.engine.attempt import endings
from remit.engine.attempt.live import LiveTask, resumed_until
from remit.engine.attempt.operations import Operations
from remit.engine.attempt.replay import Resumed, find_answer, forked_from, next_of, origin_of, resume
from remit.engine.attempt.slots import ALONE, Attempted, Batch, Ticket
from remit.engine.attempt.turns import Superseded
from remit.engine.directory import Agent
from remit.engine.door import Admitted, Proposal, deadline, first_proposed, place_of
from remit.engine.ground import Ground
from remit.engine.services import Services
from remit.errors import Refused
from remit.ports import Decision, View
from remit.ports.models import tell_listener

_PASSING: Final = frozenset(("concurrency", "breaker"))  # refusals that pass with time
_SHORT: Final = 64


class Watch:
    """Loop detection for one delegation, or for several that start together. `again` is how often the same delegation
    was requested, this time included."""

    __slots__ = ("_action", "_task", "_wish", "again")

    def __init__(
        self, task: LiveTask, action: str, at: Thresholds, wish: Pass | None = None, echo: int | None = None
    ) -> None:
        """`at` are the thresholds; `wish` is the pass, if there is only one; `echo` is how often an answer may be
        repeated while the text grows."""
        self._task = task
        if at is not USUAL:
            task.delegated.judge_by(at)
        self._action = action
        self._wish = wish if echo is not None and wish is not None and len(wish.task) >= GROWN else None
        self.again = task.delegated.asks(action)
        if self._wish is not None and echo is not None:
            times = task.echoes.times(self._wish.to, self._wish.task)
            if times >= echo:
                self.again = Repetition(max(self.again.times, at.block + times - echo), echo=echo, at=at)

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Record the outcomes of the delegations. If the task keeps requesting a delegation that is already blocked,
        stop the task."""
        seen = self._task.delegated
        if self._wish is not None:
            self._hear(self._wish, outcomes[0])
        again = self.again
        if again is not ONCE and again.sign >= Sign.BLOCK and all(outcome.rule == "repeat" for outcome in outcomes):
            seen.blocked(self._action)
            now = again
        elif len(outcomes) == 1 and outcomes[0].error is None:
            now = seen.record(self._action, _outcome_text(outcomes[0]))
        elif any(outcome.rule in _PASSING for outcome in outcomes):
            return
        else:
            came = [_outcome_text(outcome) for outcome in outcomes]
            now = seen.record(self._action, came[0] if len(came) == 1 else digest(encode(came)))
        if now is not ONCE and now.sign is Sign.STOP:
            self._task.control.give_up(_why(now, outcomes[-1]))

    def _hear(self, wish: Pass, outcome: Outcome) -> None:
        if outcome.ok:
            value = outcome.value
            self._task.echoes.learn(wish.to, wish.task, value if isinstance(value, str) else encode(value))
        elif self.again.echo and outcome.rule == "repeat":
            self._task.echoes.refused(wish.to)


def _why(again: Repetition, last: Outcome) -> Exception:
    if last.error is not None and last.rule == "repeat":
        return last.error
    return Refused(f"the same was asked {again.times} times, and each time it was: {last}", rule="repeat")


def action_of(op: str, wish: Pass) -> str:
    """Return a key that identifies a delegation within its task: agent, task text and everything passed along. `op`
    already contains a digest of the first two."""
    asked = op.rsplit("/", 2)[1]
    return asked if _is_plain(wish) else f"{asked}/{digest(encode(canonical_fields(wish)))}"


def action_of_all(wishes: Sequence[Pass]) -> str:
    """Return a key that identifies several delegations that go out together."""
    return digest(encode([[wish.to, wish.task] if _is_plain(wish) else canonical_fields(wish) for wish in wishes]))


def _is_plain(wish: Pass) -> bool:
    """Whether nothing is passed along, as nearly always: then agent and text identify the delegation."""
    return not wish.further or (wish.within is TOP and not wish.passes and wish.data is None)


def _outcome_text(outcome: Outcome) -> str:
    value = outcome.value if outcome.error is None else str(outcome.error)
    text = value if isinstance(value, str) else encode(value)
    return f"{outcome.state} {text if len(text) <= _SHORT else digest(text)}"


class MessagesMoved(Exception):
    """Another task took messages that are in the prompt of a plan step. The prompt must be built again."""


class StepOf(NamedTuple):
    """The data of a delegation that is a step of a plan."""

    id: str
    identity: str  # the digest of its request, which identifies it in a rerun
    slices: Sequence[Slice]
    team: frozenset[str]
    messages: tuple[str, ...] = ()  # messages in its prompt, taken from the inbox at admission
    trust: Trust = TRUSTED  # the label of its prompt
    again: bool = False  # whether it is retried if it fails

    def reads(self, view: View, child: Remit, now: int) -> tuple[Unsealed, ...]:
        """Return the event that takes the step's messages from the inbox, for the transaction that admits the step.
        Raise `MessagesMoved` if they are not the next messages in the inbox any more."""
        if not self.messages:
            return ()
        if view.still_waiting(child.root, child.holder, len(self.messages)) != [*self.messages]:
            raise MessagesMoved
        return (messages_taken(list(self.messages), child.holder, place(child), now),)


class Edit:
    """The task text as a person changed it; empty if it was not changed."""

    __slots__ = ("task",)

    def __init__(self) -> None:
        self.task = ""

    def note(self, said: Said) -> None:
        if said.approved and isinstance(said.value, str):
            self.task = said.value

    def applied(self, wish: Pass) -> Pass:
        return wish.asking_for(self.task) if self.task else wish


class Besides(NamedTuple):
    """The optional parts of a delegation: the plan step that it runs, how often it was repeated, the plan or team to
    run instead of the agent, and its ticket in a batch of parallel parts."""

    step: StepOf | None = None
    again: Repetition = ONCE
    lead: Lead | None = None
    ticket: Ticket = ALONE


PLAIN: Final = Besides()


def _first_fields(besides: Besides, worker: str, until: int, lineage: Lineage | None, admitted: Admitted) -> Begun:
    """Return the optional fields of the first event of a task."""
    if besides is PLAIN:
        return Begun(worker, "", "", admitted.joins, until, 0, lineage, None, admitted.funds)
    step, again, lead, _ = besides
    repeats = again.times if again.times >= again.at.warn else 0
    name, joins, funds = step.id if step else "", admitted.joins, admitted.funds
    begun = Begun(worker, name, "", joins, until, repeats, lineage, None, funds)
    return begun if lead is None else begun._replace(led_as=lead.led_as, lead=lead.data)


class Known(NamedTuple):
    """The result of an earlier attempt of the asker for a delegation: its outcome, or the task that is still open, or
    the first task of the retry lineage. `op` is the current operation id."""

    outcome: Outcome | None = None
    open: Record | None = None
    origin: str = ""
    op: str = ""
    earlier: bool = False  # whether the outcome is from an earlier try


UNKNOWN: Final = Known()
UNFINISHED: Final = frozenset(("failed", "timed-out", "cancelled", "dead"))


Tell: TypeAlias = "Callable[[str], None] | None"


class Led(NamedTuple):
    """A holder that the engine provides for a person: it runs a plan, or leads a team."""

    agent: Agent
    led_as: str
    lead: dict[str, Json] | None = None  # the work as it is recorded, so that a worker can run it again


class Delegations:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._echo, self._repeats = services.admission.limits.echo, services.admission.limits.repeats

    def watch(self, asker: LiveTask, passes: list[Pass]) -> Watch:
        """Return the watch for delegations that go out together."""
        return Watch(asker, action_of_all(passes), self._repeats, passes[0] if len(passes) == 1 else None, self._echo)

    async def begin(
        self, wish: Pass, ceiling: Bounds, session: str, *, labels: Labels, led: Led | None = None, tell: Tell = None
    ) -> Outcome:
        """Start a run: a person asks the first holder. `tell` gets the id of the run as soon as it is recorded."""
        services = self._services
        with services.heartbeat.while_working(), services.stops.while_working():
            attempt = partial(self._first_attempt, wish, ceiling, session, labels, led)
            live, answer = await services.busy.admitted(wish, attempt)
            del attempt  # there may be thousands of runs in flight
            if not isinstance(answer, str):
                return _refused(live, answer)
            services.heartbeat.beat_written()
            if tell is not None:
                tell(answer)
            try:
                return await services.conductor.carry(live)
            except Superseded:
                return await endings.awaited(services.bell, live.remit.id)

    async def _first_attempt(
        self, wish: Pass, ceiling: Bounds, session: str, labels: Labels, led: Led | None, wait: bool
    ) -> Attempted:
        """Request admission for a run once. `wait` says that the caller waits for a busy agent."""
        services = self._services
        proposal = first_proposed(services.ground, wish, ceiling, session, labels)
        agent, led_as, lead = services.ground.directory.get(wish.to), "", None
        if led is not None:
            agent, led_as, lead = led
            proposal = proposal._replace(brought=agent.card) if agent.stand_in else proposal
        first = proposal.child
        tell_listener(first.id)
        live = _live(first, agent).limit_time(services.ground.clock, proposal.now, said=wish.microseconds)
        begun = Begun(services.heartbeat.worker, led_as=led_as, until=live.expires(proposal.now), lead=lead)

        def decide(view: View) -> Decision[Json]:
            admitted = services.admission.admit(view, BEGIN, proposal)
            if not admitted.ok:
                return _no(admitted, patient=wait)
            funded = begun._replace(funds=admitted.funds) if admitted.funds else begun
            events = (started(first, proposal.now, funded), *admitted.events)
            return Decision(first.id, events, services.heartbeat.first_beat())

        return live, (await services.conductor.admit(live, f"{first.id}/start", decide))[0]

    async def delegate(self, asker: LiveTask, wish: Pass, step: StepOf | None = None) -> Outcome:
        """Delegate a part of the asker's task. The child's remit is derived here, from the engine's own record."""
        if step is not None:  # plan steps are not checked for repeats
            return await self._delegated(asker, wish, asker.operations.ids("step", step.identity), Besides(step))
        ops = asker.operations.ids("delegate", *question(wish))
        watch = Watch(asker, action_of(ops[0], wish), self._repeats, wish, self._echo)
        again = watch.again
        outcome = await self._delegated(asker, wish, ops, PLAIN if again is ONCE else Besides(again=again))
        watch.learn((outcome,))
        if outcome.state == "refused":
            # Yield, so that an endless loop of refused calls can be cancelled and does not block the event loop.
            await checkpoint()
        return outcome

    async def lead(self, asker: LiveTask, wish: Pass, lead: Lead) -> Outcome:
        """Delegate a goal to a team, through its coordinator."""
        ops = asker.operations.ids(lead.led_as, *question(wish), encode(lead.data))
        watch = Watch(asker, f"{lead.led_as}/{action_of(ops[0], wish)}", self._repeats)
        outcome = await self._delegated(asker, wish, ops, Besides(again=watch.again, lead=lead))
        watch.learn((outcome,))
        if outcome.state == "refused":
            # Yield, so that an endless loop of refused calls can be cancelled and does not block the event loop.
            await checkpoint()
        return outcome

    async def part(self, asker: LiveTask, wish: Pass, again: Repetition = ONCE, batch: Batch | None = None) -> Outcome:
        """Delegate one part of a parallel delegation. `again` is how often the same group of parts was delegated.
        With a `batch`, no newly admitted part starts before all parts of the batch have been admitted or refused, or
        wait."""
        ticket = Ticket(batch)
        try:
            ops = asker.operations.ids("delegate", *question(wish))
            return await self._delegated(asker, wish, ops, Besides(again=again, ticket=ticket))
        finally:
            ticket.judged()

    async def _delegated(self, asker: LiveTask, wish: Pass, ops: list[str], besides: Besides = PLAIN) -> Outcome:
        asker.must_be_at_work()  # at once: on a file, a decision waits for others
        services, control, op = self._services, asker.control, ops[0]
        known = UNKNOWN if asker.operations.visited is None else await self._known_outcome(asker, ops)
        if known.outcome is not None:
            if known.origin:
                asker.operations.note_failure(op, known.origin)
            return known.outcome
        control.step_back()
        try:
            if known.open is not None:
                besides.ticket.judged()
                if control.own_line.rests:  # the child works in the line, which has released its worker slot
                    await control.own_line.hold()
                return await self._taken_up_again(asker, known.open, op)
            origin = known.origin or asker.operations.failed_before(op)
            attempt = partial(self._attempt, asker, wish, known.op or op, Edit(), besides, origin, known.origin != "")
            live, answer = await services.busy.admitted(wish, attempt, asker, besides.ticket)
            del attempt
            if not isinstance(answer, str):
                return self._noted(asker, op, live, _refused(live, answer))
            if (batch := besides.ticket.judged()) is not None:
                await services.conductor.hold_back(live, batch.wait())
            return self._noted(asker, op, live, await services.conductor.carry(live))
        finally:
            if control.step_up():  # rare: its agent has a limit, or its whole line waited
                await services.slots.take_again(asker)

    @staticmethod
    def _noted(asker: LiveTask, op: str, live: LiveTask, outcome: Outcome) -> Outcome:
        """Return the outcome. If the delegation did not complete, remember its task, so that an equal request continues
        the retry lineage."""
        if outcome.state in UNFINISHED:
            asker.operations.note_failure(op, live.attempt.origin or live.remit.id)
        return outcome

    async def _attempt(
        self, asker: LiveTask, wish: Pass, op: str, edit: Edit, besides: Besides, origin: str, retry: bool, wait: bool
    ) -> Attempted:
        """Request admission for a delegation once. `edit` is the task text as an approver changed it. If an earlier try
        did not complete, `origin` is the first task of the retry lineage. `retry` says that an earlier try of the asker
        started that lineage; `wait` says that the caller waits for a busy agent."""
        services, step = self._services, besides.step
        edited, trust = edit.applied(wish) if edit.task else None, step.trust if step is not None else None
        proposal = proposed(services.ground, asker, wish, op, edited, trust, besides.again, again=retry)
        child, live = proposal.child, self._made_alive(asker, proposal, besides)
        slots = services.slots
        position = asker.operations.position_to_keep(op) if asker.operations.has_tools else ""

        def decide(view: View) -> Decision[Json]:
            asker.must_hold(view)
            admitted = services.admission.admit(view, DELEGATE, proposal)
            if admitted.verdict is not ALLOW:
                return _no(admitted, patient=wait)
            now = proposal.now
            lineage = next_of(view, origin) if origin else None
            begun = _first_fields(besides, services.heartbeat.worker, live.expires(now), lineage, admitted)
            begun = begun._replace(position=position) if position else begun
            events = (started(child, now, begun), *(step.reads(view, child, now) if step else ()), *admitted.events)
            if not slots.concerns(asker):
                return Decision(child.id, events, None, lineage)
            passing = slots.passing_on(view, asker, now, child.id)
            return Decision(None) if passing is None else Decision(child.id, (*events, *passing), None, lineage)

        answer, aside = await services.conductor.admit(live, op, decide, asker.wants)
        if isinstance(aside, QuestionDraft):
            besides.ticket.judged()
            said = await services.questions.ask(asker, aside, op, stepped_back=True)
            if aside.kind == "hop":
                edit.note(said)
            return live, None  # request admission again: the facts may have changed meanwhile
        if aside is not None:
            live.tried_again(aside)
        if slots.concerns(asker) and isinstance(answer, str):
            slots.passed_on(asker)
        if isinstance(answer, dict):
            proposal.note_refusal()
        return live, answer

    def _made_alive(self, asker: LiveTask, proposal: Proposal, besides: Besides) -> LiveTask:
        """Return the running task of a delegation, in the asker's line, with a receipt of what is withheld from it."""
        ground, child, wish, step = self._services.ground, proposal.child, proposal.wish, besides.step
        live = _live(child, ground.directory.get(wish.to))
        live.limit_time(ground.clock, proposal.now, asker.life, wish.microseconds)
        live.control.line = asker.control.line
        live.receipt.withhold_all(kept_back(asker.sight, child.sees, wish.sees) if wish.sees else asker.keeps)
        live.lead = besides.lead
        if step is not None:
            live.team, live.spared, live.composed = step.team, step.again, True
            live.receipt.add_parts(step.slices)
        return live

    # -- reruns -----------------------------------------------------------------------------------------------

    async def _known_outcome(self, asker: LiveTask, ops: list[str]) -> Known:
        """Return the result of earlier attempts of the asker for this delegation. `ops` are its operation ids: first
        that of this try, then those of earlier tries. From an earlier try, only a completed task counts. Otherwise the
        delegation is started again, and its new task reuses the finished work."""

        def look(view: View) -> Known:
            asker.must_hold(view)
            now, done = find_answer(view, ops[0])
            if done is not None:
                return _answered(view, now, done[0])
            # An earlier task of this operation ended unheard: a new one continues its lineage.
            origin = _begun_before(view, ops[0]) if now != ops[0] else ""
            for op in ops[1:]:
                done = view.done(op)
                record = view.record(done[0]) if done is not None and isinstance(done[0], str) else None
                forked = forked_from(view, op)
                origin = origin or forked
                if record is not None and not forked:
                    origin = origin or origin_of(record)
                    # Of an earlier try only a completed task counts. Anything else is retried, under the same lineage.
                    if (finished := _finished(view, record, asker.operations)) is not None:
                        return Known(endings.of_record(view, finished), earlier=True)
            return Known(origin=origin or forked_from(view, now), op=now)

        known = await self._services.ground.store.read(look)
        if known.outcome is not None and known.earlier:
            asker.operations.give(known.outcome.id)
        return known

    async def _taken_up_again(self, asker: LiveTask, known: Record, op: str) -> Outcome:
        """Resume a delegation that an earlier attempt of the asker started."""
        services, line = self._services, asker.control.own_line
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
            proposal = Proposal(resumed.remit, asker.remit, wish, asker.card, now)
            admitted = services.admission.admit(view, RESUME, proposal)
            if not admitted.ok:
                return Decision({**admitted.refusal.data()}, admitted.events)
            until = resumed_until(ground.directory.get(record.holder), resumed.remit, now)
            passing = services.slots.passing_on(view, asker, now, record.id) or ()
            events = (claimed(place_of(record), record.holder, now, claim, until), *admitted.events, *passing)
            return Decision(None, events, aside=resumed)

        answer, aside = await ground.store.tx(ground.ids.new(), decide)
        if aside is None and line.rests:
            line.let_go()
        if isinstance(answer, dict):
            return endings.refused(asker.remit, Refused.read(answer))
        if aside is None:
            async with services.slots.idle(asker, Wait("task", known.id)):
                return await endings.awaited(services.bell, known.id)
        services.slots.passed_on(asker)
        resumed: Resumed = aside
        resumed = resumed._replace(attempt=resumed.attempt._replace(queued=False))
        agent = ground.directory.get(resumed.remit.holder)
        assert agent is not None  # the guards refuse an unknown agent
        live = resumed.live(agent).limit_time(ground.clock, now, asker.life)
        live.control.line = line
        services.conductor.alive.enter(live)
        return self._noted(asker, op, live, await services.conductor.carry(live, resumed.sends))


def _answered(view: View, op: str, answer: Json) -> Known:
    """Return the outcome of a delegation that was requested earlier in this try, or its task if the task is still
    open."""
    if isinstance(answer, dict):
        return Known(Outcome("", "", "refused", error=Refused.read(answer)))
    record = view.record(str(answer))
    if record is None:
        raise endings.pruned_before_fork(str(answer))
    outcome = endings.of_record(view, record)
    if outcome is None:
        return Known(open=record)
    return Known(outcome, origin="" if outcome.ok else forked_from(view, op) or origin_of(record))


def _begun_before(view: View, op: str) -> str:
    """Return the origin of the task that was first started for an operation, or ""."""
    done = view.done(op)
    record = view.record(str(done[0])) if done is not None else None
    return forked_from(view, op) or (origin_of(record) if record is not None else "")


def _finished(view: View, record: Record, operations: Operations) -> Record | None:
    """Return a completed task for a delegation that its asker repeats after a failure, or None. `record` is the task
    that was started before the failure; all tasks of its lineage are searched. A task whose result this attempt has
    already used is left out."""
    tried = (record, *view.lineage(origin_of(record)))
    return next((one for one in tried if one.state == "completed" and not operations.was_given(one.id)), None)


def _no(admitted: Admitted, *, patient: bool) -> Decision[Json]:
    """Return the decision if a delegation was not admitted. The refusal is recorded, except if a person must be asked
    first, or if the agent is busy and the caller waits (`patient`)."""
    if admitted.asks is not None:
        return Decision(None, aside=admitted.asks)
    if patient and admitted.verdict.rule == BUSY:
        return Decision(None)
    return Decision({**admitted.refusal.data()}, admitted.events)


def _refused(live: LiveTask, answer: Json) -> Outcome:
    return endings.refused(live.remit, Refused.read(cast("dict[str, Json]", answer)))


def _live(remit: Remit, agent: Agent | None) -> LiveTask:
    """Return a running task. If there is no such agent, admission refuses, and the placeholder agent is never
    called."""
    return LiveTask(remit, agent if agent is not None else Agent(Card(remit.holder), _nobody))


async def _nobody(_turn: object) -> object:
    raise AssertionError("the door lets nothing through to an agent that is not there")


def proposed(
    ground: Ground,
    asker: LiveTask,
    wish: Pass,
    op: str = "",
    edited: Pass | None = None,
    trust: Trust | None = None,
    repetition: Repetition = ONCE,
    *,
    again: bool = False,
) -> Proposal:
    """Return the proposal of a hop that an agent requests for a part of its own task. `edited` is the request as a
    person changed it. `trust` is the label of the task's text; by default it is the label of everything that the asker
    says."""
    asked = wish if edited is None else edited
    now, parent, own = ground.clock.now(), asker.remit, asker.rights if asked.further and asked.passes else NO_RIGHTS
    until = deadline(asked, now) if asked.further else None
    child = remits.derive(parent, asked, ground.ids.new(), own, until, trust or asker.says)
    tally = Refusable(asker.refusals)
    return Proposal(child, parent, wish, asker.agent.card, now, tally=tally, repetition=repetition, op=op, again=again)
