"""Queueing tasks: requests of people, and of agents that do not wait; and the worker of this process, which starts when
the first task is queued here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol, cast

import anyio
from anyio.lowlevel import checkpoint

from remit.core import remit as remits
from remit.core.bounds import TOP, Bounds
from remit.core.card import Card
from remit.core.events import NO_LABELS, Labels
from remit.core.guards import BEGIN_QUEUED, SPAWN, SUBMIT, Passage
from remit.core.identity import AskedFrom, UsedKey, content_of, keyed, question, unkeyed
from remit.core.kinds.tasks import Begun, Lineage, Queued, Wait, started, submitted
from remit.core.lifecycle import GONE
from remit.core.plan import Lead
from remit.core.question import QuestionDraft
from remit.core.records import NamedTuple
from remit.core.remit import LASTS, Origin, Pass, Remit, expires
from remit.core.times import SECOND, iso
from remit.core.values import Json, shown
from remit.engine.approvals import said_under
from remit.engine.asking import Submission
from remit.engine.attempt.endings import AT_ONCE, pruned_before_fork
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.replay import forked_from, next_of, origin_of
from remit.engine.delegation import proposed
from remit.engine.directory import PLANNER
from remit.engine.door import LIMIT, Admitted, Proposal, deadline, first_proposed
from remit.engine.ground import Ground
from remit.engine.presence.bell import ANYTHING
from remit.engine.services import Services
from remit.engine.settings import Serving
from remit.engine.timing import move_on_after
from remit.errors import BadInput, Conflict, NewerStore, NotFound, Refused, StoreError
from remit.ports import Decision, Dispatcher, View, Wants

if TYPE_CHECKING:
    from remit.engine.queue.worker import FiresSchedules, Worker

_log = logging.getLogger("remit")

SAME: Final = 300 * SECOND  # how long an equal request continues a task that did not complete


class Accepted(NamedTuple):
    """The id of a submitted task; `existing` if an equal request had created it before."""

    id: str
    existing: bool = False


class Request(NamedTuple):
    """A request for admission: the kind of hop, the proposal, the queue options, and its identity: its dedup key, and
    its content if the caller gave a key. `origin` is the first task of its retry lineage, if an earlier one did not
    complete; `position` is where in its asker's turn it was requested, if the operation id does not tell."""

    passage: Passage
    proposal: Proposal
    submission: Submission
    dedup_key: str
    content: str
    origin: str = ""
    position: str = ""


class TakesTasks(Protocol):
    """The worker of this process, as the queue sees it."""

    def free(self) -> bool: ...
    def taking(self) -> None:
        """Record that a task may start here; a draining worker waits until that is decided."""
        ...

    def end_taking(self) -> None:
        """Record that the submission of `taking` is decided, whether or not it has started a task."""
        ...

    def begin(self, remit: Remit, queued: Queued, now: int, lineage: Lineage | None, lead: Lead | None) -> None:
        """Run a task that is recorded as started here; `lineage` is set for a retry, `lead` for a plan or team."""
        ...


class AtOnce(NamedTuple):
    """The `aside` of a submission whose task is started in this process at once, without the queue."""

    lineage: Lineage | None


class TaskQueue:
    """Accepts submitted tasks. `hands` returns this process's worker, or None; assembly.py sets it, to avoid an import
    cycle."""

    def __init__(self, services: Services, *, spawns: int, spawn_wait: float) -> None:
        self.hands: Callable[[], TakesTasks | None]
        self._ground = services.ground
        self._admission = services.admission
        self._heartbeat = services.heartbeat
        self._slots = services.slots
        self._services = services
        self._spawns = spawns
        self._spawn_wait = spawn_wait

    async def begin(self, submission: Submission, ceiling: Bounds, session: str) -> Accepted:
        """Queue a person's task. An equal request with the same key returns the same task."""
        proposal = first_proposed(self._ground, submission.wish, ceiling, session, submission.labels)
        if submission.lead is not None and submission.lead.plan is not None:
            proposal = proposal._replace(brought=PLANNER.card)
        where = AskedFrom(session=session, ceiling=ceiling)
        return await self._accepted_at_once(_request(BEGIN_QUEUED, proposal, submission, where))

    async def begin_for(
        self,
        asker: str,
        submission: Submission,
        ceiling: Bounds,
        session: str,
        under: str = "",
        narrower: Bounds = TOP,
    ) -> Accepted:
        """Queue a task in the name of a card. With `under`, queue it as part of that task, which the card's agent
        holds, and limit it further by the bounds `narrower`. Otherwise queue it as a run within `ceiling`, with the
        agent as its asker."""
        ground = self._ground
        card = await self.card(asker)
        if under:
            proposal = await self._proposed_under(card, submission, under, narrower)
            where = AskedFrom(under, proposal.child.session, card.name, None if narrower is TOP else narrower)
        else:
            proposal = _proposed_by(ground, card, submission, ceiling, session)
            where = AskedFrom("", session, card.name, ceiling)
        return await self._accepted_at_once(_request(SUBMIT, proposal, submission, where))

    async def submit(self, asker: LiveTask, submission: Submission) -> Accepted:
        """Queue a part of the asker's task, without waiting for it."""
        asker.must_be_at_work()
        wish = submission.wish
        ops = asker.operations.ids(submission.asked_how, *question(wish), submission.key)
        known, origin = await self._submitted_before(asker, ops) if asker.attempt.is_rerun else ("", "")
        if known:
            return Accepted(known, existing=True)
        proposal = proposed(self._ground, asker, wish, ops[0], again=origin != "")
        spawns = submission.asked_how == "spawn"
        if spawns:
            await self._wait_for_spawned(asker)
        where = AskedFrom(asker.remit.id, asker.remit.session, asker.remit.holder)
        request = _request(SPAWN if spawns else SUBMIT, proposal, submission, where)
        request = request._replace(origin=origin, position=asker.operations.position_to_keep(ops[0]))
        while (accepted := await self._accepted(request, ops[0], asker)) is None:  # repeat after a person has answered
            request = await self._as_approved(asker, request, ops[0])
        return accepted

    async def _as_approved(self, asker: LiveTask, request: Request, op: str) -> Request:
        """Return the request with the task text that a person approved, if the person changed the text; otherwise the
        same request."""
        said = await self._ground.store.read(lambda view: said_under(view, op))
        wish, proposal = request.proposal.wish, request.proposal
        if said is None or not said.approved or not isinstance(said.value, str):
            return request
        again = proposed(self._ground, asker, wish.asking_for(said.value))
        return request._replace(proposal=proposal._replace(child=again.child, now=again.now))

    async def _submitted_before(self, asker: LiveTask, ops: list[str]) -> tuple[str, str]:
        """Return the id of the task that this request submitted in an earlier attempt, or "", and the origin of a
        lineage to continue, or "". If the task was submitted in an earlier try and did not complete, return no id but
        its origin. Raise `Conflict` if the task was pruned."""

        def look(view: View) -> tuple[str, str]:
            asker.must_hold(view)
            origin = ""
            for tried, op in enumerate(ops):
                done = view.done(op)
                known = str(done[0][0]) if done is not None and isinstance(done[0], list) else ""
                record = view.record(known) if known else None
                if known and record is None and tried == 0:
                    raise pruned_before_fork(known)
                if record is not None and (tried == 0 or record.state not in GONE):
                    return record.id, ""
                origin = origin or forked_from(view, op) or (origin_of(record) if record is not None else "")
            return "", origin

        return await self._ground.store.read(look)

    async def _accepted_at_once(self, request: Request) -> Accepted:
        accepted = await self._accepted(request, f"{request.proposal.child.id}/submit")
        assert accepted is not None  # only an agent's submission can wait for a person
        return accepted

    async def _accepted(self, request: Request, op: str, asker: LiveTask | None = None) -> Accepted | None:
        """Request admission. Return None if a person was asked first: then the request must be repeated."""
        proposal, lead = request.proposal, request.submission.lead
        queued, hands = queued_of(self._ground, request), self.hands()
        if hands is not None:
            hands.taking()
        try:
            answer, aside = await self._ground.store.tx(
                op, lambda view: self._decided(view, request, queued, hands, asker), _wants(request, asker)
            )
            if isinstance(aside, AtOnce) and hands is not None:
                self._heartbeat.beat_written()
                hands.begin(proposal.child, queued, proposal.now, aside.lineage, lead)
        finally:
            if hands is not None:
                hands.end_taking()
        if isinstance(aside, QuestionDraft) and asker is not None:
            await self._services.questions.ask(asker, aside, op)
            return None
        if isinstance(answer, dict):
            proposal.note_refusal()
            # Yield, so that an endless loop of refused calls can be cancelled and does not block the event loop.
            await checkpoint()
            raise Refused.read(answer)
        return Accepted(*cast("tuple[str, bool]", answer))

    def _decided(
        self, view: View, request: Request, queued: Queued, hands: TakesTasks | None, asker: LiveTask | None
    ) -> Decision[Json]:
        if asker is not None:
            asker.must_hold(view)
        proposal = request.proposal
        child, now = proposal.child, proposal.now
        admitted = self._admission.admit(view, request.passage, proposal)
        if not admitted.ok and admitted.asks is None:
            # An existing task starts nothing: a limit on tasks must not hide it from a repeated request.
            same = _same(view, request) if admitted.verdict.rule == LIMIT else None
            return Decision([same, True]) if same else Decision({**admitted.refusal.data()}, admitted.events)
        # Checked after admission: also a repeated request must be allowed.
        if (same := _same(view, request)) is not None:
            return Decision([same, True])
        if admitted.asks is not None:
            return Decision(None, aside=admitted.asks)
        lineage = _lineage(view, request, asker)
        if queued.ready_at:
            begun = begun_of(request, _expires_later(child, queued.ready_at), lineage, admitted)
            return Decision([child.id, False], (submitted(child, now, queued, begun), *admitted.events))
        until = expires(child.bounds, now, LASTS)
        if hands is not None and hands.free() and self._may_begin_now(view, request, now):
            begun = begun_of(request, until, lineage, admitted, self._heartbeat.worker)
            return self._begun_at_once(view, proposal, queued, begun, admitted)
        begun = begun_of(request, until, lineage, admitted)
        return Decision([child.id, False], (submitted(child, now, queued, begun), *admitted.events))

    def _may_begin_now(self, view: View, request: Request, now: int) -> bool:
        lead = request.submission.lead
        here = lead is None or lead.plan is None or self._ground.directory.has_all(lead.plan)
        return here and self._admission.may_begin_now(view, request.proposal.child.holder, now)

    def _begun_at_once(
        self, view: View, proposal: Proposal, queued: Queued, begun: Begun, admitted: Admitted
    ) -> Decision[Json]:
        """Start a task here: a slot is free and nothing is queued before it, so the queue would only cost time."""
        child = proposal.child
        event = started(child, proposal.now, begun, queued)
        events = (event, *admitted.events, *self._admission.probe(view, proposal))
        return Decision([child.id, False], events, self._heartbeat.first_beat(), aside=AtOnce(begun.lineage))

    async def _wait_for_spawned(self, asker: LiveTask) -> None:
        """If the asker has the maximum number of open spawned tasks, wait until one has ended, but for at most
        `spawn_wait` seconds."""
        task = asker.remit.id
        if await self._ground.store.read(lambda view: view.spawned(task)) < self._spawns:
            return
        async with self._slots.given_up(asker, Wait("task")):
            with move_on_after(self._ground.clock, self._spawn_wait):
                await self._slots.bell.until(ANYTHING, lambda view: view.spawned(task) < self._spawns or None)

    async def card(self, name: str) -> Card:
        """Return the card of an agent of this process or of any worker. Raise `NotFound` if there is none."""
        agent = self._ground.directory.get(name)
        card = agent.card if agent is not None else await self._ground.store.read(lambda view: view.card(name))
        if card is None:
            raise NotFound(f"there is no card {shown(name)} in this workspace; the worker that has it publishes it")
        return card

    async def _proposed_under(self, card: Card, submission: Submission, under: str, ceiling: Bounds) -> Proposal:
        ground, now, wish = self._ground, self._ground.clock.now(), submission.wish

        def look(view: View) -> Remit:
            record = view.record(under)
            if record is None or record.holder != card.name:
                raise NotFound(f"there is no task {shown(under)} that '{card.name}' holds")
            if record.ended is not None:
                raise Conflict(f"task {under} is {record.state}; nothing can be asked as a part of it")
            began = view.event(record.began)
            assert began is not None
            return remits.restored(began)

        parent = await ground.store.read(look)
        child = _child(ground, parent, card, wish, now)
        if ceiling is not TOP:
            child = child._replace(bounds=child.bounds & ceiling.on_board(child.session))
        return Proposal(child._replace(labels=_joined(child.labels, submission.labels)), parent, wish, card, now)


def _joined(above: Labels, own: Labels) -> Labels:
    """Return the labels of a task that is requested under another one: its own come first."""
    return Labels(own.by or above.by, own.tags or above.tags, own.meta or above.meta, own.trace or above.trace)


def _proposed_by(ground: Ground, card: Card, submission: Submission, ceiling: Bounds, session: str) -> Proposal:
    """Return the proposal of a run that an outside agent's card starts: the card is the asker, but holds no task."""
    now, wish = ground.clock.now(), submission.wish
    origin = Origin("", ground.store.workspace, session or ground.ids.new(), submission.labels)
    outside = remits.begin(origin, Pass(card.name, wish.task), ceiling)
    child = _child(ground, outside, card, wish, now)
    return Proposal(child._replace(root=child.id), outside, wish, card, now)


def _child(ground: Ground, parent: Remit, card: Card, wish: Pass, now: int) -> Remit:
    until = deadline(wish, now)
    return remits.derive(parent, wish, ground.ids.new(), remits.rights(parent, card), until, parent.trust)


def _request(passage: Passage, proposal: Proposal, submission: Submission, where: AskedFrom) -> Request:
    """Return a request with its identity. If the caller gave a key, it is the key. Otherwise it is the content and the
    asker if the caller set `same_within` or a task submits it: then a task that did not complete is continued. All
    other requests, and spawned tasks without a key, have no identity."""
    if not submission.key and not submission.same_within and (submission.asked_how == "spawn" or not where.task):
        return Request(passage, proposal, submission, "", "")
    wish, asked_how, key = submission.wish, submission.asked_how, submission.key
    how: dict[str, Json] = {"led": submission.written} if submission.written else {}
    how |= {"asked_how": asked_how, "timeout": submission.timeout, "attempts": submission.attempts}
    if submission.labels is not NO_LABELS:
        how |= submission.labels._replace(trace="").data  # a repeated request has a trace of its own
    if submission.priority:
        how["priority"] = submission.priority
    if submission.delay is not None:
        how |= {name: value for name, value in submission.delay._asdict().items() if value}
    content = content_of(wish, where, **how)
    if key:
        return Request(passage, proposal, submission, keyed(key, where), content)
    return Request(passage, proposal, submission, unkeyed(content), "")


def _wants(request: Request, asker: LiveTask | None) -> Wants:
    key, standings = request.dedup_key, (asker.remit.id,) if asker is not None else ()
    return Wants(standings, used_keys=(key,)) if request.content else Wants(standings, (key,) if key else ())


def queued_of(ground: Ground, request: Request) -> Queued:
    """Return the queue's options of a request."""
    submission = request.submission
    agent = ground.directory.holder(request.proposal.child.holder)
    attempts = submission.attempts or (agent.retry.attempts if agent is not None else 0)
    ready_at = AT_ONCE if submission.delay is None else submission.delay.due(request.proposal.now)
    return Queued(submission.asked_how, submission.timeout, attempts, ready_at, request.dedup_key, request.content)


def begun_of(request: Request, until: int, lineage: Lineage | None, admitted: Admitted, worker: str = "") -> Begun:
    """Return the facts of an admitted task for its first event. `worker` is the process that runs it at once; "" if it
    is queued."""
    submission = request.submission
    lead = submission.lead
    begun = Begun(
        worker=worker,
        joins=admitted.joins,
        until=until,
        lineage=lineage,
        funds=admitted.funds,
        position=request.position,
        priority=submission.priority,
    )
    return begun if lead is None else begun._replace(led_as=lead.led_as, lead=lead.data)


def _expires_later(child: Remit, due: int) -> int:
    """Return when a delayed task expires: its time in the queue starts when it is due. Raise `BadInput` if its deadline
    is before that."""
    deadline = child.bounds.deadline
    if deadline is not None and deadline <= due:
        raise BadInput(
            f"the task would be due at {iso(due)} and its deadline is {iso(deadline)}, so it could never start; "
            "make it due earlier, or set a later Bounds(deadline=...)"
        )
    return expires(child.bounds, due, LASTS)


def _same(view: View, request: Request) -> str | None:
    """Return the task of an equal earlier request, or None: with a key, forever; without one, for `same_within`. Raise
    `Conflict` if the key was used for another request."""
    key, content, within = request.dedup_key, request.content, request.submission.same_within
    if not content:
        same = view.same_requests(key, request.proposal.now - within) if within else ()
        return next((record.id for record in same if record.state not in GONE), None)
    used = view.used_key(key)
    if used is not None and used.content != content:
        raise _used_for_another(request.submission.key, used)
    return used.task if used is not None else None


def _lineage(view: View, request: Request, asker: LiveTask | None) -> Lineage | None:
    """Return the lineage that the new task continues, or None. It continues the task that an earlier try of the asker
    submitted with the same request, or that the asker submitted with an equal request within the last `SAME`, if that
    task did not complete."""
    origin, key = request.origin, request.dedup_key
    if asker is not None and not origin and key and not request.content:
        same = view.same_requests(key, request.proposal.now - SAME)
        origin = origin_of(same[0]) if same and same[0].state in GONE else ""
    return next_of(view, origin) if origin else None


def _used_for_another(key: str, used: UsedKey) -> Conflict:
    no = Conflict(
        f"the key {shown(key)} was used for another request, task {used.task}; "
        "ask for exactly the same again to get that task, or use another key for this one"
    )
    no.retryable = False  # the same request would fail again
    return no


class ResidentWorker:
    """Starts the process's worker when it is first needed, and stops it."""

    def __init__(
        self,
        services: Services,
        serving: Serving,
        dispatcher: Callable[[], Dispatcher | None],
        scheduler: Callable[[], FiresSchedules],
    ) -> None:
        self.worker: Worker | None = None
        self._draining = 0  # number of `drain` calls in progress
        self._serving: asyncio.Task[None] | None = None
        self._services = services
        self._settings = serving
        self._dispatcher = dispatcher
        self._scheduler = scheduler

    def lend(self) -> Worker | None:
        """Return this process's worker; start it if it has slots and is not draining."""
        return self._start() if self._settings.concurrency and not self._draining else self._current()

    async def serve(self) -> None:
        """Serve until cancelled. Callers that serve at the same time share one worker."""
        async with self.serving():
            assert self._serving is not None
            await asyncio.shield(self._serving)

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        """Serve while the body runs. Nested calls share one worker, which may have been started before; it stops with
        the last of them."""
        worker = self._start()
        worker.served += 1
        try:
            await self.announce()
            yield
        finally:
            worker.served -= 1
            if not worker.served and worker is self._current():
                with anyio.CancelScope(shield=True):
                    await self._stop()

    async def announce(self) -> None:
        """Publish the cards of this process's agents, so that other processes can submit to them at once. If the store
        cannot be reached, only log it: the worker tries again before it claims a task."""
        if self._services.heartbeat.lasting:  # in memory there are no other processes
            try:
                await self._services.heartbeat.publish()
            except NewerStore:
                pass  # reported by the worker
            except StoreError as error:
                _log.warning("the cards of agents could not be published, trying again: %s", error)

    async def drain(self, seconds: float) -> int:
        """Stop claiming, wait up to `seconds` for running tasks, and requeue the rest. Return the number of requeued
        tasks."""
        worker = self._current()
        left = kept = 0
        self._draining += 1
        try:
            if worker is not None:
                left, kept = await worker.drain(seconds), worker.unreturned
            if self._serving is not None:
                await asyncio.wait([self._serving])
                self._serving = None
            if not kept and not len(self._services.conductor.alive):
                await self._services.heartbeat.leave()
        finally:
            self._draining -= 1
        return left

    def let_go(self) -> None:
        """Cancel the worker at once. Its running tasks are requeued only if the event loop continues to run for a
        moment."""
        if self._serving is not None and not self._serving.get_loop().is_closed():
            self._serving.cancel()

    @property
    def closing(self) -> bool:
        """Whether tasks that are cancelled now should be requeued for another worker."""
        return self.worker is not None and self.worker.closing

    async def _stop(self) -> None:
        serving = self._serving
        if serving is not None:
            serving.cancel()
            await asyncio.wait([serving])

    def _current(self) -> Worker | None:
        """Return the worker of the current event loop, or None. Drop a worker that has ended or belongs to an earlier
        loop."""
        serving = self._serving
        if serving is not None and (serving.done() or serving.get_loop() is not asyncio.get_running_loop()):
            self.worker = self._serving = None
        return self.worker

    def _start(self) -> Worker:
        worker = self._current()
        if worker is None:
            from remit.engine.queue.worker import Worker  # noqa: PLC0415 - a process without queued tasks needs none

            worker = self.worker = Worker(self._services, self._settings, self._dispatcher(), self._scheduler)
            self._serving = asyncio.get_running_loop().create_task(self._serve(worker))
            self._serving.add_done_callback(_log_end)
        return worker

    async def _serve(self, worker: Worker) -> None:
        try:
            await worker.serve()
        except BaseExceptionGroup as group:
            newer = _newer(group)
            if newer is None:
                raise
            raise newer from None
        finally:
            self.worker = None


def _newer(group: BaseExceptionGroup) -> BaseException | None:
    """Return the `NewerStore` error of a group, so that callers can catch it by its type, or None if there is none."""
    found = group.subgroup(NewerStore)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


def _log_end(serving: asyncio.Task[None]) -> None:
    if serving.cancelled() or (error := serving.exception()) is None:
        return
    if isinstance(error, NewerStore):  # a message for the operator, not a bug
        _log.error("this process has stopped carrying out tasks: %s", error)
    else:
        _log.error("this process has stopped carrying out tasks: %r", error, exc_info=error)
