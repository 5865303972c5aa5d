"""Rerunning a task: the state that its record describes, and its finished effects."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Protocol, Self, cast

from remit.core import command as commands
from remit.core import remit as remits
from remit.core.checks import callable_
from remit.core.command import Move, Send
from remit.core.events import Event, Unsealed, read
from remit.core.identity import KEYED, arguments, question
from remit.core.kinds.money import CreditsSpent
from remit.core.kinds.sharing import EntrySet
from remit.core.kinds.tasks import FirstData, Handed, Lineage
from remit.core.kinds.workspace import EffectDone, effect_done, work_left
from remit.core.lifecycle import Outcome, Record
from remit.core.money import Unit, amount_text
from remit.core.plan import Lead, lead_restored
from remit.core.records import NamedTuple
from remit.core.remit import NOTHING_ALONG, Remit, known_pass, passing_restored, task_of
from remit.core.trust import TRUSTED, Trust, least
from remit.core.values import Json, checked, line, shown, summary, whole_digest
from remit.engine.attempt import endings
from remit.engine.attempt import live as marks
from remit.engine.attempt.handoffs import Sends, label
from remit.engine.attempt.live import NOBODY_WROTE, NOT_HANDED, Handoff, LiveTask, SentBack, Written
from remit.engine.attempt.operations import FIRST, Attempt, KeptEffects, Operations
from remit.engine.directory import Agent
from remit.engine.ground import Ground
from remit.engine.presence.insisting import Insisting
from remit.engine.timing import move_on_after, shielded
from remit.errors import Conflict, Refused
from remit.ports import Decision, Span, View
from remit.ports.models import KEY


class Joined(NamedTuple):
    """A parallel handoff whose results were handed on: its parts, the agent that sent them, and the number of the turn
    that sent them."""

    sends: Sends
    holder: str
    turns: int


class Resumed(NamedTuple):
    """The state from which a task is resumed. `sends` is a parallel handoff whose results have not been delivered yet;
    the results of `joined` have been handed on."""

    remit: Remit
    attempt: Attempt
    handoff: Handoff = NOT_HANDED
    turns: int = 0
    sends: Sends | None = None
    joined: Joined | None = None
    took: Trust = TRUSTED
    past: Mapping[str, Written] = NOBODY_WROTE
    lead: Lead | None = None

    def live(self, agent: Agent) -> LiveTask:
        """Return the task as a running one, with its present holder."""
        live = LiveTask(self.remit, agent, self.attempt, self.handoff)
        live.operations = Operations(self.remit.id, self.attempt, self.turns, self.remit.holder)
        live.take(least((self.took, *(result.trust for result in self.handoff.results))))
        live.recall(self.past)
        live.lead = self.lead
        live.spends = self.attempt.is_rerun
        return live


def origin_of(record: Record) -> str:
    """Return the id of the first task of a retry lineage."""
    return record.origin or record.id


def next_of(view: View, origin: str) -> Lineage:
    """Return the lineage for the next try of a retried task. If a fork continues a task under this origin and has not
    tried it yet, return the lineage for its first try."""
    first = view.record(origin)
    tries = [*([first] if first is not None else ()), *view.lineage(origin)]
    if not tries and (fork := _forked(view, origin)) is not None:
        return Lineage(origin, fork.failures)
    return Lineage(origin, 1 + max((one.failures for one in tries), default=0))


class _Forked(NamedTuple):
    """The task that a fork continues: how often it had failed in the original run, and its origin there."""

    failures: int
    origin: str


def _forked(view: View, origin: str) -> _Forked | None:
    done = view.done(f"{origin}/forked")
    return None if done is None else _Forked(*cast("tuple[int, str]", done[0]))


def is_fork(view: View, origin: str) -> bool:
    """Whether this origin is the new one that a fork has given to a task that it continues."""
    return _forked(view, origin) is not None


def continues(view: View, origin: str, other: str) -> bool:
    """Whether the lineage `origin` is the lineage `other`, or continues it as a fork, directly or through other
    forks."""
    while origin != other:
        fork = _forked(view, origin)
        if fork is None:
            return False
        origin = fork.origin
    return True


def forked_from(view: View, op: str) -> str:
    """Return the origin with which a fork continues a task when this operation is requested, or "". There is one if the
    operation had started a task in the original run that failed or was still open at the fork."""
    done = view.done(f"{op}/forked")
    return "" if done is None else str(done[0])


def resume(view: View, record: Record, fence: int, number: int) -> Resumed:
    """Return the state from which a claimed task is resumed."""
    began = view.event(record.began)
    assert began is not None  # a row points at the event that made it
    data = read(began, FirstData)
    attempt = Attempt(
        fence,
        number,
        record.failures,
        record.origin,
        record.asked_how,
        queued=True,
        timeout=data.get("timeout", 0),
        attempts=data.get("attempts", FIRST.attempts),
    )
    lead = lead_restored(data["lead"]) if "lead" in data else None
    fresh = Resumed(remits.restored(began), attempt, lead=lead)
    if record.holder == began.agent and not attempt.is_rerun:
        return fresh
    resumed = replay_handoffs(fresh, view.events(Span(run=record.run, task=record.id)))
    return resumed._replace(handoff=replace(resumed.handoff, results=_results(view, resumed)))


def replay_handoffs(start: Resumed, events: Iterable[Event]) -> Resumed:
    """Return the state after the task's handoffs and its holders' writes, from its events."""
    resumed = start
    past: dict[str, Written] = {}
    for event in events:
        if event.kind == "task.handed":
            resumed = _after_handoff(resumed, read(event, Handed))
        elif event.kind == "entry.set":
            data = read(event, EntrySet)
            past.setdefault(event.agent, {})[data["namespace"], data["key"]] = data["version"]
    return resumed._replace(past=past) if past else resumed


def _after_handoff(before: Resumed, data: Handed) -> Resumed:
    holder, to = before.remit.holder, data["to"]
    update, content = data["update"], data["content"]
    handoff, said = before.handoff, data.get("trust", TRUSTED)
    along = passing_restored(data["passed"]) if "passed" in data else NOTHING_ALONG
    if "sent_back" in data:  # to the same holder, and no handoff of its own
        sent = SentBack(**data["sent_back"])
        kept = replace(handoff, refused="", sent_back=sent)
        return before._replace(handoff=kept, turns=before.turns + 1, took=said)
    if isinstance(to, str):
        joins = before.sends is not None and before.sends.join == to
        trail = handoff.trail[:-1] if joins else handoff.trail  # the fan-out and its join count as one handoff
        state = handoff.state if joins else commands.merged(handoff.state, update)
        return before._replace(
            remit=remits.handed_to(before.remit, to, along),
            handoff=Handoff(holder, state, (*trail, Move(holder, to, content)), failed=data.get("failed", "")),
            turns=before.turns + 1,
            sends=None,
            joined=Joined(before.sends, holder, before.turns) if before.sends is not None else before.joined,
            took=said,
        )
    payloads = data.get("payloads", [])
    values = data.get("data", [None] * len(payloads))
    parts = tuple(Send(*part) for part in zip(to, payloads, values, strict=True))
    trail = (*handoff.trail, Move(holder, label(parts), content))
    return before._replace(
        handoff=replace(handoff, state=commands.merged(handoff.state, update), trail=trail),
        turns=before.turns + 1,
        sends=Sends(parts, data.get("join", ""), update, along),
        took=least((before.took, said)),
    )


def _results(view: View, resumed: Resumed) -> tuple[Outcome, ...]:
    """Return the results of the joined parts, found by the operations that sent them."""
    if resumed.joined is None:
        return ()
    sends, holder, turns = resumed.joined
    operations = Operations(resumed.remit.id, resumed.attempt, turns, holder)
    asked = (known_pass(part.agent, part.task, sends.along, part.value) for part in sends.parts)
    ids = [operations.ids("delegate", *question(wish)) for wish in asked]
    results = (_result(view, part, known) for part, known in zip(sends.parts, ids, strict=True))
    return tuple(outcome for outcome in results if outcome is not None)


def find_answer(view: View, op: str) -> tuple[str, tuple[Json] | None]:
    """Look up the recorded answer to a request: a task id or a refusal. If the task was stopped only because its asker
    had ended, look up the next repetition of the request instead. Return the operation id to use and its answer, or
    None if it has no answer yet."""
    first, again = op, 0
    while (done := view.done(op)) is not None:
        record = view.record(done[0]) if isinstance(done[0], str) else None
        if record is None or not endings.is_unheard(view, record):
            break
        again += 1
        op = f"{first}/again/{again}"
    return op, done


def _result(view: View, part: Send, ids: list[str]) -> Outcome | None:
    for op in ids:
        if (done := find_answer(view, op)[1]) is not None:
            return _outcome(view, part, done[0])
    return None


def _outcome(view: View, part: Send, answer: Json) -> Outcome | None:
    if isinstance(answer, dict):
        return Outcome(part.agent, "", "refused", error=Refused.read(answer))
    record = view.record(str(answer))
    return endings.of_record(view, record) if record is not None else None


async def key_of(ground: Ground, live: LiveTask, op: str) -> str:
    """Return the idempotency key of an operation. The key is the same in every attempt, and no other operation has
    it."""
    operations = live.operations
    position = operations.position_of(op)
    if operations.chain is None:
        operations.chain = await ground.store.read(lambda view: chain_of(view, live.remit.id))
    return whole_digest(f"{ground.store.workspace}\0{operations.chain}\0{position}")[:32]


def chain_of(view: View, task: str) -> str:
    """Return the path to a task: the identity of its run, then the position of each operation down to it.

    A run is identified by its idempotency key, or else by its id, which a backup contains if the run had started by
    then. A retried task has the path of the first one.
    """
    steps: list[str] = []
    record = view.record(task)
    while record is not None:
        first = view.record(origin_of(record)) or record
        parent = view.record(first.parent) if first.parent else None
        steps.append(_position(view, first, parent))
        record = parent
    return "\n".join(reversed(steps))


def _position(view: View, record: Record, parent: Record | None) -> str:
    """Return the position of a task in its parent; for a run, its identity."""
    began = view.event(record.began)
    assert began is not None  # a row points at the event that made it
    data = read(began, FirstData)
    if position := data.get("position", ""):
        return position
    if parent is not None and began.op is not None and began.op.startswith(f"{origin_of(parent)}/"):
        return began.op.removeprefix(f"{origin_of(parent)}/").partition("/")[2]
    key = data.get("dedup_key", "")
    return key if key.startswith(KEYED) else record.id


NAME_LIMIT: Final = 128
PAID: Final = "paid"
_OTHERS_COME: Final = 60.0  # seconds to wait for concurrent code that may request a recorded effect

Do = Callable[..., Awaitable[object] | object]


class Effect(NamedTuple):
    """An effect to run once: its operation, its name, and its arguments as text and as values."""

    op: str
    name: str
    told: str
    do: Do
    args: tuple[object, ...]


class Effects(NamedTuple):
    ground: Ground
    insisting: Insisting

    async def once(self, live: LiveTask, name: str, do: Do, *args: object, paid: Paid | None = None) -> Any:
        """Run the function and record its result; in a rerun, return the recorded result.

        Nothing runs for a task that no longer belongs to this process. The result is recorded exactly once. If the
        process dies between the effect and the record, the effect runs again, with the same idempotency key. A `paid`
        effect has a hold before it runs, and is charged in the transaction that records the result.
        """
        live.must_be_at_work()
        line(name, "the name of an effect", NAME_LIMIT)
        callable_(do, "once takes a function, and what to call it with")
        told = arguments(args)
        op = live.operations.effect(name, told)
        same = op.rpartition("/")[0]
        # After a crash, two concurrent effects with the same name and arguments could not be told apart.
        if same in live.doing:
            raise _twice_at_once(name)
        live.doing.add(same)
        try:
            # Check before the effect: a process whose task was taken over must not act.
            await self.ground.store.read(live.must_hold)
            if live.attempt.is_rerun and (kept := await self._recorded_effect(live, op, name)) is not None:
                return await self._result_of(kept, op)
            effect = Effect(op, name, told, do, args)
            if paid is None:
                return await self._run_effect(live, effect)
            async with paid:
                return await self._run_effect(live, effect, paid)
        finally:
            live.doing.discard(same)

    async def _run_effect(self, live: LiveTask, effect: Effect, call: Paid | None = None) -> Json:
        op, name, told, do, args = effect
        given: dict[str, Any] = {PAID: call} if call is not None and _takes(do, args, PAID) else {}
        if _takes(do, args, KEY):
            given[KEY] = await key_of(self.ground, live, op)
        then = marks.before(live)
        result = do(*args, **given)
        value = checked(await result if inspect.isawaitable(result) else result, f"the result of effect '{name}'")
        event = effect_done(live.remit, name, told, value, self.ground.clock.now(), marks.marks(live, then))
        return await self._keep(live, op, event, value, call)

    async def _keep(self, live: LiveTask, op: str, event: Unsealed, value: Json, call: Paid | None = None) -> Json:
        """Record the result of an effect and return it. Retry until the store has it: a deadline or a cancellation does
        not undo the effect."""
        store = self.ground.store

        def decide(view: View) -> Decision[Json]:
            live.must_own(view)
            return Decision(value, (event, *(call.charged(view) if call is not None else ())))

        what = f"effect '{event.data['key']}' of task {live.remit.id}"
        return (await shielded(self.insisting.insist(live.life, what, lambda: store.tx(op, decide)))).answer

    async def _recorded_effect(self, live: LiveTask, op: str, name: str) -> EffectDone | None:
        """Return the record of an earlier attempt and label the turn with it; None if the effect must run now. Raise
        `Conflict` if a recorded effect of the same name may be this one with other arguments."""
        kept = await kept_effects(self.ground, live)
        if (done := kept.take(op)) is not None:
            marks.apply(live, done.get("marks", {}))
            return done
        same_name = op.rsplit("/", 2)[0] + "/"
        while (other := kept.first_left((same_name,))) is not None:
            if not await self._someone_comes(live, kept):
                raise _changed(name, other)
            await self.ground.store.read(live.must_hold)  # the task may have been taken over meanwhile
        return None

    async def _result_of(self, kept: EffectDone, op: str) -> Json:
        """Return the result of a recorded effect; a long one is stored as the answer of its operation."""
        if "result" in kept:
            return kept["result"]
        done = await self.ground.store.read(lambda view: view.done(op))
        assert done is not None  # the record is its first event
        return done[0]

    async def _someone_comes(self, live: LiveTask, kept: KeptEffects) -> bool:
        """Wait until other concurrent code of this turn takes a recorded effect. Return whether to check again: False
        if no such code is left."""
        own = asyncio.current_task()
        main = live.control.calls[-1].task if live.control.calls else None
        if own is main and not live.elsewhere and len(live.doing) == 1:
            return False  # no other code of the turn is running
        kept.waiting.add(own)
        try:
            with move_on_after(self.ground.clock, _OTHERS_COME) as patience:
                await kept.someone_comes()
        finally:
            kept.waiting.discard(own)
        if not patience.ran_out:
            return True
        at_work = len(live.doing) - len(kept.waiting) > 1 or live.elsewhere.keys() - kept.waiting
        return bool(at_work)


async def kept_effects(ground: Ground, live: LiveTask) -> KeptEffects:
    """Return the effects that earlier attempts recorded; loaded once per run."""
    operations = live.operations
    if operations.kept is None:
        kept = KeptEffects(await ground.store.read(lambda view: view.done_under(operations.effects)))
        operations.kept = operations.kept or kept  # concurrent code may have loaded them meanwhile
    return operations.kept


async def unaccounted(ground: Ground, live: LiveTask) -> Conflict | None:
    """Return a `Conflict` for an effect that an earlier attempt recorded and this one never requested, or None."""
    kept = await kept_effects(ground, live)
    other = kept.first_left(live.operations.came_through)
    return None if other is None else _conflict_with(other)


class Paid(Protocol):
    """A paid call: a hold while it runs, and a charge with its record."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    def charged(self, view: View) -> list[Unsealed]:
        """Return the events that charge the call, for the transaction that records its result."""
        ...


def _takes(do: Do, args: tuple[object, ...], name: str) -> bool:
    """Whether a function accepts a keyword argument `name` that `args` do not already fill by position."""
    try:
        takes = inspect.signature(do).parameters
    except (TypeError, ValueError):  # some built-in functions have no signature
        return False
    known = takes.get(name)
    if known is None or known.kind in (known.POSITIONAL_ONLY, known.VAR_POSITIONAL, known.VAR_KEYWORD):
        return False
    return not (known.kind is known.POSITIONAL_OR_KEYWORD and list(takes).index(name) < len(args))


def _final(sentence: str) -> Conflict:
    error = Conflict(sentence)
    error.retryable = False  # a rerun would fail in the same way
    return error


def _result_shown(other: EffectDone) -> str:
    return shown(other["result"]) if "result" in other else "a long result"


def _changed(name: str, other: EffectDone) -> Conflict:
    return _final(
        f"effect '{name}' already ran in an earlier attempt with other arguments (result: {_result_shown(other)}), so "
        "it was not run again. Pass the same arguments on every attempt; give effects whose order may vary different "
        "names"
    )


def _twice_at_once(name: str) -> Conflict:
    return _final(
        f"effect '{name}' is under way with the same arguments; after a crash the two could not be told apart: "
        "give each a name of its own"
    )


def _conflict_with(other: EffectDone) -> Conflict:
    return _final(
        f"effect '{other['key']}' took place when this task was run before, and gave {_result_shown(other)}; "
        "this time it never came to it, so its answer does not account for it: see what was done, "
        "and ask for what is left as a new task"
    )


_BEGINS = ("task.started", "task.submitted")


async def tell_left_over(ground: Ground, live: LiveTask) -> None:
    """Record the finished delegations and payments of this turn that earlier attempts made and this attempt did not
    request. Record nothing for a led plan, because it follows its record."""
    if live.lead is not None:  # a led plan follows its record, so it leaves nothing over
        return

    def decide(view: View) -> Decision[None]:
        live.must_own(view)
        left = _left_over(view, live)
        return Decision(None, (work_left(live.remit, left, ground.clock.now()),) if left else ())

    if await ground.store.read(lambda view: _left_over(view, live)):
        await ground.store.tx(live.operations.left_over, decide)


def _left_over(view: View, live: LiveTask) -> list[str]:
    operations = live.operations
    events = [event for prefix in operations.of_turn for event in view.done_under(prefix)]
    fresh = (one for one in events if not (operations.was_asked(one.op or "") or operations.was_given(one.task)))
    return [said for event in fresh if (said := _work_text(view, event))]


def amounts(data: CreditsSpent) -> str:
    return " and ".join(amount_text(cast("Unit", unit), cost) for unit, cost in data["costs"].items())


async def must_not_differ(ground: Ground, live: LiveTask, op: str, why: str) -> None:
    """Raise `Conflict` if this payment is not recorded, but an earlier attempt recorded one for the same reason that
    this attempt has not requested: it may be the same payment with another amount. While other code of the turn runs
    concurrently, do not check; the end of the turn reports such payments."""
    call = live.control.calls[-1].task if live.control.calls else None
    if live.elsewhere or live.doing or asyncio.current_task() is not call:
        return

    def look(view: View) -> CreditsSpent | None:
        if view.done(op) is not None:
            return None
        paid = [event for event in view.done_under(live.operations.of_turn[-1]) if event.kind == "credits.spent"]
        left = [read(event, CreditsSpent) for event in paid if not live.operations.was_asked(event.op or "")]
        return next((data for data in left if data["why"] == why), None)

    if (other := await ground.store.read(look)) is not None:
        error = Conflict(
            f"{amounts(other)} was paid for {shown(why)} when this task was run before; it is neither paid again nor "
            "taken for this payment: give the same amount each time the task is run, or payments a reason each"
        )
        error.retryable = False  # a rerun would fail in the same way
        raise error


def _work_text(view: View, event: Event) -> str:
    """Return a description of the finished work that an event records: a payment, or a task that completed. Return ""
    for any other event."""
    if event.kind == "credits.spent":
        data = read(event, CreditsSpent)
        return f"{amounts(data)} paid" + (f" for {data['why']}" if data["why"] else "")
    if event.kind not in _BEGINS:
        return ""
    standing = view.standing(event.task)
    done = standing is not None and standing.state == "completed"
    return f"'{event.agent}' completed task {event.task}: {summary(task_of(read(event, FirstData)))}" if done else ""
