"""Putting tasks into the queue: what a person asks for, and what an agent does not wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, cast

from anyio.lowlevel import checkpoint

from remit.core import remit as remits
from remit.core.bounds import Bounds
from remit.core.card import Card
from remit.core.guards import BEGIN_QUEUED, SPAWN, SUBMIT, Passage
from remit.core.identity import AskedFrom, UsedKey, content_of, keyed, question, unkeyed
from remit.core.kinds import Begun, Lineage, Queued, started, submitted
from remit.core.lifecycle import GONE
from remit.core.plan import Lead
from remit.core.question import QuestionDraft
from remit.core.remit import LASTS, Origin, Pass, Remit, expires
from remit.core.times import SECOND
from remit.core.values import Json, shown
from remit.engine.approvals import said_under
from remit.engine.attempt.endings import AT_ONCE
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.replay import next_of, origin_of
from remit.engine.delegation import proposed
from remit.engine.directory import PLANNER
from remit.engine.door import LIMIT, Admitted, Proposal, deadline, first_proposed
from remit.engine.ground import Ground
from remit.engine.presence.bell import ANYTHING
from remit.engine.queue.claiming import has_members
from remit.engine.services import Services
from remit.engine.timing import move_on_after
from remit.errors import Conflict, NotFound, Refused
from remit.ports import Decision, View, Wants

SAME: Final = 300 * SECOND  # how long a task that did not complete is taken up when its asker asks for the same
KEY_LIMIT: Final = 200


class Submission(NamedTuple):
    """What is said about a submitted task besides the wish itself."""

    wish: Pass
    timeout: int
    attempts: int = 0  # as its agent's policy says
    key: str = ""
    same_within: int = 0  # how long the same request is the same task without a key; never unless it is said
    asked_how: str = "submit"
    by: str = ""
    lead: Lead | None = None  # what is led in its holder's place
    written: str = ""  # the digest of what is led, as the caller wrote it


class Accepted(NamedTuple):
    """The id of a submitted task; `existing` if the same request had made it before."""

    id: str
    existing: bool = False


class Request(NamedTuple):
    """What is brought to the door: which way, what is wanted, how it is queued, and what makes it the same request as
    another: its dedup key, and its content if the caller gave a key. `origin` is the first task of those that were
    tried for it before and did not complete, `position` where in its asker it is asked for, if its operation does not
    tell."""

    passage: Passage
    proposal: Proposal
    submission: Submission
    dedup_key: str
    content: str
    origin: str = ""
    position: str = ""


class TakesTasks(Protocol):
    """Who runs tasks from the queue in this process."""

    def free(self) -> bool: ...
    def taking(self) -> None:
        """Note that a task may be begun here; whoever drains waits until it was, or was not."""
        ...

    def taken(self) -> None:
        """Note that this is settled."""
        ...

    def begin(self, remit: Remit, queued: Queued, now: int, lineage: Lineage | None, lead: Lead | None) -> None:
        """Run a task that is on record as begun here; `lineage` is there if it is tried again for another, `lead` if
        something is led in its holder's place."""
        ...


class AtOnce(NamedTuple):
    """A task was begun here and now."""

    lineage: Lineage | None


class TaskQueue:
    """`hands` gives who runs tasks in this process, if anyone does; that knot is tied where the engine is put
    together."""

    def __init__(self, services: Services, *, spawns: int, spawn_wait: float) -> None:
        self.hands: Callable[[], TakesTasks | None]
        self._ground = services.ground
        self._admission = services.admission
        self._heartbeat = services.heartbeat
        self._slots = services.slots
        self._questions = services.questions
        self._spawns = spawns
        self._spawn_wait = spawn_wait

    async def begin(self, submission: Submission, ceiling: Bounds, session: str) -> Accepted:
        """Queue a person's task. The same one asked for again under the same key is the same task."""
        proposal = first_proposed(self._ground, submission.wish, ceiling, session)
        if submission.lead is not None and submission.lead.plan is not None:
            proposal = proposal._replace(brought=PLANNER.card)
        where = AskedFrom(session=session, ceiling=ceiling)
        return await self._accepted_at_once(_request(BEGIN_QUEUED, proposal, submission, where))

    async def begin_for(
        self, asker: str, submission: Submission, ceiling: Bounds, session: str, under: str = ""
    ) -> Accepted:
        """Queue a task in the name of a card: as a part of the task `under` that its agent holds, or as a run of its
        own in which that agent is the asker."""
        ground = self._ground
        card = await self._card(asker)
        if under:
            proposal = await self._proposed_under(card, submission.wish, under)
            where = AskedFrom(under, proposal.child.session, card.name)
        else:
            proposal = _proposed_by(ground, card, submission.wish, ceiling, session)
            where = AskedFrom("", session, card.name, ceiling)
        return await self._accepted_at_once(_request(SUBMIT, proposal, submission, where))

    async def submit(self, asker: LiveTask, submission: Submission) -> Accepted:
        """Queue a part of the asker's task that it does not wait for."""
        asker.must_be_at_work()
        wish = submission.wish
        ops = asker.operations.ids(submission.asked_how, *question(wish), submission.key)
        known, origin = await self._known(asker, ops) if asker.attempt.is_rerun else ("", "")
        if known:
            return Accepted(known, existing=True)
        proposal = proposed(self._ground, asker, wish)
        spawns = submission.asked_how == "spawn"
        if spawns:
            await self._wait_for_spawned(asker)
        where = AskedFrom(asker.remit.id, asker.remit.session, asker.remit.holder)
        request = _request(SPAWN if spawns else SUBMIT, proposal, submission, where)
        request = request._replace(
            origin=origin,
            position=asker.operations.position_to_keep(ops[0]),
            proposal=proposal._replace(op=ops[0], again=origin != ""),
        )
        while (accepted := await self._accepted(request, ops[0], asker)) is None:  # a person has said something
            request = await self._as_approved(asker, request, ops[0])
        return accepted

    async def _as_approved(self, asker: LiveTask, request: Request, op: str) -> Request:
        """Propose the same again, with the text that was approved."""
        said = await self._ground.store.read(lambda view: said_under(view, op))
        wish, proposal = request.proposal.wish, request.proposal
        if said is None or not said.approved or not isinstance(said.value, str):
            return request
        again = proposed(self._ground, asker, wish.asking_for(said.value))
        return request._replace(proposal=proposal._replace(child=again.child, now=again.now))

    async def _known(self, asker: LiveTask, ops: list[str]) -> tuple[str, str]:
        """Find the task that was submitted when the asker was run before; or of one that did not complete in an
        earlier try, the first of those that were tried for it."""

        def look(view: View) -> tuple[str, str]:
            asker.must_hold(view)
            origin = ""
            for tried, op in enumerate(ops):
                done = view.done(op)
                record = view.record(str(done[0][0])) if done is not None and isinstance(done[0], list) else None
                if record is not None and (tried == 0 or record.state not in GONE):
                    return record.id, ""
                if record is not None:
                    origin = origin or origin_of(record)
            return "", origin

        return await self._ground.store.read(look)

    async def _accepted_at_once(self, request: Request) -> Accepted:
        accepted = await self._accepted(request, f"{request.proposal.child.id}/submit")
        assert accepted is not None  # nobody is asked where no task could wait
        return accepted

    async def _accepted(self, request: Request, op: str, asker: LiveTask | None = None) -> Accepted | None:
        """Bring a request to the door; None if a person was asked first: then it is to be brought again."""
        proposal, lead = request.proposal, request.submission.lead
        queued, hands = self._queued(request), self.hands()
        if hands is not None:
            hands.taking()
        try:
            answer, aside = await self._ground.store.transact(
                op, lambda view: self._decided(view, request, queued, hands, asker), _wants(request, asker)
            )
            if isinstance(aside, AtOnce) and hands is not None:
                self._heartbeat.beat_written()
                hands.begin(proposal.child, queued, proposal.now, aside.lineage, lead)
        finally:
            if hands is not None:
                hands.taken()
        if isinstance(aside, QuestionDraft) and asker is not None:
            await self._questions.ask(asker, aside, op)
            return None
        if isinstance(answer, dict):
            proposal.note_refusal()
            await checkpoint()  # whoever asks in vain for ever can be stopped, and holds up nobody else
            raise Refused.read(answer)
        return Accepted(*cast("tuple[str, bool]", answer))

    def _queued(self, request: Request) -> Queued:
        submission = request.submission
        agent = self._ground.directory.holder(request.proposal.child.holder)
        attempts = submission.attempts or (agent.retry.attempts if agent is not None else 0)
        how, timeout = submission.asked_how, submission.timeout
        return Queued(how, timeout, attempts, AT_ONCE, request.dedup_key, request.content)

    def _decided(
        self, view: View, request: Request, queued: Queued, hands: TakesTasks | None, asker: LiveTask | None
    ) -> Decision[Json]:
        if asker is not None:
            asker.must_hold(view)
        proposal, submission = request.proposal, request.submission
        child, now = proposal.child, proposal.now
        admitted = self._admission.admit(view, request.passage, proposal)
        if not admitted.ok and admitted.asks is None:
            # What exists already begins nothing: a limit on tasks does not keep it from whoever asks again.
            same = _same(view, request) if admitted.verdict.rule == LIMIT else None
            return Decision([same, True]) if same else Decision({**admitted.refusal.data()}, admitted.events)
        if (same := _same(view, request)) is not None:  # whoever asked before, this one had to be allowed to ask
            return Decision([same, True])
        if admitted.asks is not None:
            return Decision(None, aside=admitted.asks)
        begun = _begun(request, expires(child.bounds, now, LASTS), _lineage(view, request, asker), admitted)
        if hands is not None and hands.free() and self._may_begin_now(view, child.holder, now, submission.lead):
            return self._begun_at_once(view, proposal, queued, begun, admitted)
        return Decision([child.id, False], (submitted(child, now, queued, begun), *admitted.events))

    def _may_begin_now(self, view: View, holder: str, now: int, lead: Lead | None) -> bool:
        here = lead is None or lead.plan is None or has_members(self._ground.directory, lead.plan)
        return here and self._admission.may_begin_now(view, holder, now)

    def _begun_at_once(
        self, view: View, proposal: Proposal, queued: Queued, begun: Begun, admitted: Admitted
    ) -> Decision[Json]:
        """Begin a task here: a hand is free and nothing is queued before it, so going through the queue is a waste."""
        child, now = proposal.child, proposal.now
        event = started(child, now, begun._replace(worker=self._heartbeat.worker), queued)
        events = (event, *admitted.events, *self._admission.probe(view, proposal))
        return Decision([child.id, False], events, self._heartbeat.first_beat(), aside=AtOnce(begun.lineage))

    async def _wait_for_spawned(self, asker: LiveTask) -> None:
        """Wait until one of those it spawned has ended, but not for ever."""
        task = asker.remit.id
        if await self._ground.store.read(lambda view: view.spawned(task)) < self._spawns:
            return
        async with self._slots.given_up(asker):
            with move_on_after(self._ground.clock, self._spawn_wait):
                await self._slots.bell.until(ANYTHING, lambda view: view.spawned(task) < self._spawns or None)

    async def _card(self, name: str) -> Card:
        agent = self._ground.directory.get(name)
        card = agent.card if agent is not None else await self._ground.store.read(lambda view: view.card(name))
        if card is None:
            raise NotFound(f"there is no card {shown(name)} in this workspace; the worker that has it publishes it")
        return card

    async def _proposed_under(self, card: Card, wish: Pass, under: str) -> Proposal:
        ground, now = self._ground, self._ground.clock.now()

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
        return Proposal(_child(ground, parent, card, wish, now), parent, wish, card, now)


def _proposed_by(ground: Ground, card: Card, wish: Pass, ceiling: Bounds, session: str) -> Proposal:
    """Propose a run that an outsider's card starts: the card is the asker, but there is no task that it holds."""
    now = ground.clock.now()
    origin = Origin("", ground.store.workspace, session or ground.ids.new())
    outside = remits.begin(origin, Pass(card.name, wish.task), ceiling)
    child = _child(ground, outside, card, wish, now)
    return Proposal(child._replace(root=child.id), outside, wish, card, now)


def _child(ground: Ground, parent: Remit, card: Card, wish: Pass, now: int) -> Remit:
    until = deadline(wish, now)
    return remits.derive(parent, wish, ground.ids.new(), remits.rights(parent, card), until, parent.trust)


def _request(passage: Passage, proposal: Proposal, submission: Submission, where: AskedFrom) -> Request:
    """Put a request together with what makes it the same as another: the caller's key, or all that is asked, and by
    whom. In code two requests are the same only if the caller says so; what an agent submits is known by its content,
    too, so that it is taken up if it did not complete."""
    wish, asked_how, key = submission.wish, submission.asked_how, submission.key
    if not key and not submission.same_within and (asked_how == "spawn" or not where.task):
        return Request(passage, proposal, submission, "", "")
    how: dict[str, Json] = {"led": submission.written} if submission.written else {}
    how |= {"asked_how": asked_how, "timeout": submission.timeout, "attempts": submission.attempts}
    if submission.by:
        how["by"] = submission.by
    content = content_of(wish, where, **how)
    if key:
        return Request(passage, proposal, submission, keyed(key, where), content)
    return Request(passage, proposal, submission, unkeyed(content), "")


def _wants(request: Request, asker: LiveTask | None) -> Wants:
    key, standings = request.dedup_key, (asker.remit.id,) if asker is not None else ()
    return Wants(standings, used_keys=(key,)) if request.content else Wants(standings, (key,) if key else ())


def _begun(request: Request, until: int, lineage: Lineage | None, admitted: Admitted) -> Begun:
    lead, by = request.submission.lead, request.submission.by
    joins, funds = admitted.joins, admitted.funds
    begun = Begun(by=by, joins=joins, until=until, lineage=lineage, funds=funds, position=request.position)
    return begun if lead is None else begun._replace(led_as=lead.led_as, lead=lead.data)


def _same(view: View, request: Request) -> str | None:
    """Find the task that the same request made before: under a key for ever, without one for as long as is said."""
    key, content, within = request.dedup_key, request.content, request.submission.same_within
    if not content:
        same = view.same_requests(key, request.proposal.now - within) if within else ()
        return next((record.id for record in same if record.state not in GONE), None)
    used = view.used_key(key)
    if used is not None and used.content != content:
        raise _used_for_another(request.submission.key, used)
    return used.task if used is not None else None


def _lineage(view: View, request: Request, asker: LiveTask | None) -> Lineage | None:
    """Tell for which task this one is tried again: that an earlier try of the asker submitted, or that it asked for in
    the same words a moment ago, and that did not complete."""
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
    no.retryable = False  # asking once more for the same is the same mistake
    return no
