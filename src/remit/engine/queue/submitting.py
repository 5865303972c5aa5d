"""Tasks that nobody waits for: put into the queue, looked at, waited for after all, cancelled, retried."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol, cast

import anyio

from remit.core import guards, lifecycle
from remit.core import remit as remits
from remit.core.backoff import ATTEMPTS
from remit.core.bounds import Bounds
from remit.core.breaker import CLOSED
from remit.core.events import Event, Unsealed
from remit.core.guards import Answer, Facts
from remit.core.kinds import Begun, Queued, moved, refused, started, submitted
from remit.core.outcome import Outcome
from remit.core.record import Record
from remit.core.remit import Pass, Remit
from remit.core.text import plain, shown
from remit.core.times import SECOND
from remit.core.values import Json, digest
from remit.engine.attempt.endings import AT_ONCE, over
from remit.engine.attempt.live import LiveTask
from remit.engine.delegation import Services, Wanted, at, first_wanted, outcome_of, told, wanted
from remit.engine.presence.bell import ANYTHING
from remit.engine.queue.task import Status, Task
from remit.errors import Conflict, NotFound, Refused
from remit.ports import Decision, View, Wants, Which

TIMEOUT_SECONDS: Final = 260.0  # one attempt
LASTS: Final = 24 * 3_600 * SECOND  # all of it, for what a person submits without a deadline
TWIN: Final = 300 * SECOND  # how long the same task asked for again is the same task
SPAWNED: Final = 5  # at a time, by one asker
SPAWN_SECONDS: Final = 30.0  # how long an asker waits for one of them to end
KEY_LIMIT: Final = 200
_GONE: Final = frozenset(("failed", "cancelled", "dead"))


class Submission(NamedTuple):
    """What is said about a submitted task besides the wish itself."""

    wish: Pass
    timeout: int
    attempts: int = ATTEMPTS
    key: str = ""
    asked_how: str = "submit"


class TakesTasks(Protocol):
    """Who carries tasks out in this process."""

    def free(self) -> bool: ...
    def begin(self, remit: Remit, queued: Queued, now: int, *, breaker_was_open: bool) -> None:
        """Carries out a task that is on record as begun here."""
        ...


class TaskQueue:
    """`hands` finds those of this process, if it lends any; the runtime ties that knot."""

    def __init__(self, services: Services) -> None:
        self.hands: Callable[[], TakesTasks | None] = _none
        self._services = services

    # -- putting into the queue --------------------------------------------------------------------------------

    async def begin(self, given: Submission, ceiling: Bounds, session: str) -> str:
        """A person's task. The same one asked for again is the same task."""
        services = self._services
        want = first_wanted(services, given.wish, ceiling, session, LASTS)
        dedup_key = _twin(given, session, "", "")
        queued = Queued(given.asked_how, given.timeout, given.attempts, AT_ONCE, dedup_key)
        hands = self.hands()

        def admit(view: View) -> Decision[Json]:
            if (same := _same(view, given, dedup_key, want.hop.now)) is not None:
                return Decision([same])
            verdict, facts = services.admission.judge(view, guards.FIRST_SUBMIT, want.hop)
            if verdict.answer is Answer.DENY:
                return Decision({"rule": verdict.rule, "sentence": verdict.sentence})
            return self._begun(view, want, queued, hands, facts)

        answer = await services.store.tx(f"{want.remit.id}/submit", admit, Wants((), (dedup_key,)))
        return self._started(answer, want, queued, hands)

    async def submit(self, asker: LiveTask, given: Submission) -> str:
        """A part of the asker's task that it does not wait for."""
        asker.must_be_at_work()
        services = self._services
        ops = asker.ops(given.asked_how, given.wish.to, given.wish.task, given.key)
        if asker.attempt.is_rerun and (known := await services.store.read(lambda view: _known(view, ops))) is not None:
            return known
        want = wanted(services, asker, given.wish, LASTS)
        if given.asked_how == "spawn":
            await self._slot(asker)
        return await self._admitted(asker, given, want, ops[0])

    async def _admitted(self, asker: LiveTask, given: Submission, want: Wanted, op: str) -> str:
        services, now = self._services, want.hop.now
        dedup_key = _twin(given, asker.remit.root, asker.remit.holder, asker.remit.id)
        queued = Queued(given.asked_how, given.timeout, given.attempts, AT_ONCE, dedup_key)
        hands = self.hands()

        def admit(view: View) -> Decision[Json]:
            asker.must_hold(view)
            if (same := _same(view, given, dedup_key, now)) is not None:
                return Decision([same])
            if given.asked_how == "spawn" and view.spawned(asker.remit.id) >= SPAWNED:
                return Decision({"rule": "spawn", "sentence": _too_many(asker.remit)})
            verdict, facts = services.admission.judge(view, guards.SUBMIT, want.hop)
            if verdict.answer is Answer.DENY:
                no = refused(asker.remit, given.wish, now, rule=verdict.rule, sentence=verdict.sentence)
                return Decision({"rule": verdict.rule, "sentence": verdict.sentence}, (no,))
            return self._begun(view, want, queued, hands, facts)

        answer = await services.store.tx(op, admit, Wants((asker.remit.id,), (dedup_key,)))
        return self._started(answer, want, queued, hands)

    def _begun(
        self, view: View, want: Wanted, queued: Queued, hands: TakesTasks | None, facts: Facts
    ) -> Decision[Json]:
        """Begins at once if this process has a hand free and nothing stands in the queue before it; most of the way
        through a queue is a waste then."""
        services, remit, now = self._services, want.remit, want.hop.now
        if hands is None or not hands.free() or not services.admission.goes_ahead(view, remit.holder, now):
            return Decision([remit.id], (submitted(remit, now, queued),))
        probe = services.admission.probe(facts, want.hop, remit.id) if facts.breaker is not CLOSED else ()
        begun = started(remit, now, Begun(services.presence.worker), queued)
        answer: list[Json] = [remit.id, facts.breaker is not CLOSED]
        return Decision(answer, (begun, *probe), services.presence.first_beat())

    def _started(self, answer: Json, want: Wanted, queued: Queued, hands: TakesTasks | None) -> str:
        task = _id(answer)
        if hands is not None and task == want.remit.id and isinstance(answer, list) and len(answer) > 1:
            self._services.presence.beat_written()
            hands.begin(want.remit, queued, want.hop.now, breaker_was_open=bool(answer[1]))
        return task

    async def _slot(self, asker: LiveTask) -> None:
        """Until one of those it spawned has ended, but not for ever."""
        task = asker.remit.id
        if await self._services.store.read(lambda view: view.spawned(task)) < SPAWNED:
            return
        async with self._services.slots.given_up(asker):
            with anyio.move_on_after(SPAWN_SECONDS):
                await self._services.bell.until(ANYTHING, lambda view: view.spawned(task) < SPAWNED or None)

    # -- looking ----------------------------------------------------------------------------------------------

    async def status(self, task: str) -> Status:
        def look(view: View) -> Status:
            record = self._record(view, task)
            began = view.event(record.began)
            assert began is not None
            return _status(record, str(began.data["task"]))

        return await self._services.store.read(look)

    async def listed(self, which: Which) -> list[Status]:
        found = await self._services.store.read(lambda view: view.tasks(which))
        return [_status(record, text) for record, text in found]

    async def outcome(self, task: str) -> Outcome:
        """Whoever waits lends a hand, so that a task is not waited for that nobody carries out."""
        over = await self._services.store.read(lambda view: self._over(view, task))
        if over is not None:
            return over
        self.hands()
        return await outcome_of(self._services, task)

    async def awaited(self, asker: LiveTask, task: str, seconds: float | None = None) -> Outcome:
        """The asker gives up its slot while it waits, and gets one again before it goes on."""
        asker.must_be_at_work()
        over_already = await self._services.store.read(lambda view: self._over(view, task))
        if over_already is not None:
            return over_already
        async with self._services.slots.given_up(asker):  # it has one again when it learns that it took too long
            with anyio.fail_after(seconds):
                return await outcome_of(self._services, task)

    # -- cancelling and retrying ------------------------------------------------------------------------------

    async def cancel(self, task: str, why: str, asker: LiveTask | None = None) -> int:
        """Fences the task and everything below it in one transaction; the work itself is stopped where it runs."""
        plain(why, "why", 200)
        if asker is not None:
            asker.must_be_at_work()
        services = self._services
        stopped: list[Record] = []

        def decide(view: View) -> Decision[int]:
            stopped.clear()
            if asker is not None:
                asker.must_hold(view)
            record = self._record(view, task)
            if record.state in lifecycle.TERMINAL:
                raise Conflict(f"task {task} has {_word(record.state)} already; there is nothing left to cancel")
            stopped.extend(view.below(task))
            return Decision(len(stopped), self._cancelled(view, stopped, why))

        count = await services.store.tx(services.ids.new(), decide)
        for record in stopped:
            live = services.conductor.alive.get(record.id)
            if live is not None:
                live.stop(why)
        return count

    def _cancelled(self, view: View, below: list[Record], why: str) -> list[Unsealed]:
        """What nobody carries out is cancelled at once; the rest when its process says that it has stopped."""
        now = self._services.clock.now()
        facts: list[Unsealed] = []
        waited_for: set[str] = set()
        for record in reversed(below):  # what is below comes first
            if record.id not in waited_for and self._idle(view, record):
                facts += over(view, record, "task.cancelled", why, now)
                continue
            waited_for.add(record.parent)
            if record.state != "cancelling":
                facts.append(moved("task.cancelling", at(record), record.holder, now, {"why": why}))
        return facts

    def _idle(self, view: View, record: Record) -> bool:
        """Whether nobody carries it out: it waits in the queue, or its asker was put back and has not asked again."""
        if record.asked_how != "delegate" or not record.parent:
            return not record.worker
        if record.worker == self._services.presence.worker:
            return self._services.conductor.alive.get(record.id) is None
        return all(beat.worker != record.worker for beat in view.workers())

    async def retry(self, task: str, asker: LiveTask | None = None) -> Task:
        """The same assignment once more, as a new task: what it finished before is not done again. An agent cannot give
        it more time than it has itself."""
        services = self._services
        until = asker.remit.bounds.deadline if asker is not None else None
        if asker is not None:
            asker.must_be_at_work()
        again = services.ids.new()

        def decide(view: View) -> Decision[Json]:
            if asker is not None:
                asker.must_hold(view)
            record = self._record(view, task)
            if record.state not in _GONE:
                raise Conflict(f"task {task} is {record.state}; only what failed, died or was cancelled is retried")
            if record.led_as:
                raise Conflict(f"task {task} was a {record.led_as} run by a program; start it again there")
            began = view.event(record.began)
            assert began is not None
            others = view.same_requests(_retried(began), -(2**62))
            if (other := next((one for one in others if one.state not in _GONE), None)) is not None:
                raise Conflict(f"task {task} was retried already, as {other.id}, which is {other.state}")
            failures = max(one.failures for one in (record, *others))  # what each of them did is told apart by it
            return Decision(
                again, (_once_more(began, replace(record, failures=failures), again, services.clock.now(), until),)
            )

        self.hands()
        await services.store.tx(f"{again}/submit", decide)
        return Task(self, again)

    # -- inside -----------------------------------------------------------------------------------------------

    @staticmethod
    def _record(view: View, task: str) -> Record:
        record = view.record(task)
        if record is None:
            raise NotFound(f"there is no task {shown(task)} in this workspace")
        return record

    def _over(self, view: View, task: str) -> Outcome | None:
        record = self._record(view, task)
        return told(view, record) if record.state in lifecycle.TERMINAL else None


def _none() -> None:
    """Nobody lends a hand."""


def _known(view: View, ops: list[str]) -> str | None:
    """The task that was submitted when the asker was carried out before; one that failed in an earlier try is not."""
    for tried, op in enumerate(ops):
        done = view.done(op)
        if done is not None and isinstance(done[0], list):
            task = _id(done[0])
            standing = view.standing(task)
            if tried == 0 or (standing is not None and standing.state not in _GONE):
                return task
    return None


def _twin(given: Submission, where: str, asker: str, task: str) -> str:
    """What the same thing asked for again has in common with this: its key, or who asks whom for what, and where."""
    if given.key:  # a person's holds in the workspace, an agent's in its run
        return f"key/{digest(chr(0).join((where, given.key)) if task else given.key)}"
    if given.asked_how == "spawn":  # several of the same kind at once is what spawning is for
        return ""
    wish = given.wish
    return f"same/{digest(chr(0).join((where, asker, wish.to, wish.task)))}" if where or not task else ""


def _same(view: View, given: Submission, dedup_key: str, now: int) -> str | None:
    if not dedup_key:
        return None
    if given.key:
        found = view.same_requests(dedup_key, -(2**62))
        return found[0].id if found else None
    return next((one.id for one in view.same_requests(dedup_key, now - TWIN) if one.state not in _GONE), None)


def _id(answer: Json) -> str:
    if isinstance(answer, dict):
        raise Refused(str(answer["sentence"]), rule=str(answer["rule"]))
    return cast("list[str]", answer)[0]


def _too_many(remit: Remit) -> str:
    return (
        f"'{remit.holder}' has {SPAWNED} tasks running beside it already and none ended within "
        f"{SPAWN_SECONDS:g} s; wait for one of them, or do this part yourself"
    )


def _status(record: Record, text: str) -> Status:
    return Status(
        record.id,
        record.state,
        record.holder,
        text,
        record.session,
        record.run,
        record.parent,
        record.asked_how,
        record.attempt,
        record.asked_at,
        record.ended_at,
        record.until,
    )


def _word(status: str) -> str:
    return {"dead": "died", "cancelled": "been cancelled"}.get(status, status)


def _retried(began: Event) -> str:
    """What all the retries of one task have in common."""
    return f"again/{began.data.get('origin') or began.task}"


def _once_more(began: Event, record: Record, again: str, now: int, until: int | None) -> Unsealed:
    """The first event of a retried task: the same bounds, with as much time as there was."""
    data: dict[str, Any] = dict(began.data)
    remit = remits.restored(began)
    lasts = (remit.bounds.deadline or now) - record.asked_at
    bounds = {**data["bounds"], "deadline": now + lasts if until is None else min(now + lasts, until)}
    data |= {
        "bounds": bounds,
        "asked_how": "submit",
        "dedup_key": _retried(began),
        "ready_at": AT_ONCE,
        "timeout": data.get("timeout", round(TIMEOUT_SECONDS * SECOND)),
        "attempts": data.get("attempts", ATTEMPTS),
        "origin": data.get("origin") or record.id,
        "failures": record.failures + 1,
    }
    run = record.run if record.parent else again
    return Unsealed("task.submitted", now, data, run, record.session, again, began.agent)
