"""Questions to people: asked once, waited for without a slot, answered once and in time, and listed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, cast

from remit.core.events import Unsealed, read
from remit.core.kinds.people import NoticeSent, QuestionAnswered, QuestionAsked, question_asked, question_used
from remit.core.kinds.tasks import FirstData, Wait
from remit.core.question import (
    Inquiry,
    Notice,
    Question,
    QuestionDraft,
    Reply,
    accepted,
    decided,
    editable,
)
from remit.core.records import NamedTuple
from remit.core.remit import path
from remit.core.times import DAY, SECOND, iso
from remit.core.values import NAME_LIMIT, TASK_LIMIT, Json, checked, line, plain, shown
from remit.engine.accounts import settled_by_answer
from remit.engine.acts import ActContent, act_of
from remit.engine.approvals import Said, answered, said_in, said_under, unparked
from remit.engine.attempt.control import Control
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.slots import Slots
from remit.engine.door import purse_in
from remit.engine.ground import Ground
from remit.engine.timing import While, move_on_after
from remit.errors import BadInput, Conflict, NotFound, Refused, StoreError
from remit.ports import Decision, View

_WHY: Final = 500
_BATCH: Final = 64
_PAGE: Final = 100
_ALL: Final = 100_000


class Answers(NamedTuple):
    ground: Ground

    async def answer(self, question: str, reply: Reply, op: str = "") -> None:
        """Record an answer. If the question has been decided or has expired, raise `Conflict`, which names the person
        who was first. If the same answer was recorded with the same `op`, do nothing."""
        line(question, "a question's id", NAME_LIMIT)
        for name, word in (("by", reply.by), ("channel", reply.channel)):
            if word != "":
                line(word, name, NAME_LIMIT)
        plain(reply.why, "why", _WHY, empty=True)

        def decide(view: View) -> Decision[Json]:
            found, now = _open(view, question), self.ground.clock.now()
            if found.until <= now:  # the expiry may not be recorded, if no worker runs
                raise Conflict(f"question {question} has expired at {iso(found.until)}; it is not answered any more")
            standing = view.standing(found.task)
            if standing is not None and standing.state == "cancelling":
                raise Conflict(f"question {question} is not answered any more: its task is being cancelled")
            answer = reply._replace(value=_value(view, found, reply))
            if found.kind == "money":
                return self._decided(view, now, found, *_gives(view, found, answer, now))
            return self._decided(view, now, found, answer, _settles(view, found, answer, now))

        act = act_of(op, reply.by)
        if act.op:
            body: list[Json] = [reply.state, reply.channel, reply.why, reply.value]
            await act.perform(self.ground, ActContent("answer", question, body), decide)
        else:
            await self._first(question, decide)

    async def expire(self, question: str) -> None:
        """End a question whose time is up; do nothing if it has been answered."""

        def decide(view: View) -> Decision[Json]:
            found, now = view.question(question), self.ground.clock.now()
            if found is None or not found.is_open or found.until > now:
                return Decision(None)
            asked = view.event(found.asked)
            default = read(asked, QuestionAsked).get("default") if asked is not None else None
            return self._decided(view, now, found, Reply("expired", "", "", "nobody answered in time", default))

        await self.ground.store.tx(f"{question}/answer", decide)

    async def expire_all(self) -> None:
        """End all open questions whose time is up."""
        now = self.ground.clock.now()
        for question in await self.ground.store.read(lambda view: view.questions_expired(now, _BATCH)):
            await self.expire(question.id)

    async def _first(self, question: str, decide: Any) -> None:
        answer, first = await self.ground.store.tx(f"{question}/answer", decide)
        if first is None:
            state, by, channel, at = cast("list[Any]", answer)
            found = await self.ground.store.read(lambda view: view.question(question))
            if found is None:
                raise _missing(question)
            raise Conflict(decided(found._replace(state=state), by, channel, at))

    @staticmethod
    def _decided(
        view: View, now: int, question: Question, reply: Reply, settles: Sequence[Unsealed] = ()
    ) -> Decision[Json]:
        events = (answered(question, reply, now), *settles, *unparked(view, question.task, now))
        return Decision([reply.state, reply.by, reply.channel, now], events, aside=True)


def _open(view: View, question: str) -> Question:
    """Return an open question. Raise `NotFound` if there is none, and `Conflict` if it has been decided."""
    found = view.question(question)
    if found is None:
        raise _missing(question)
    if not found.is_open:
        end = view.event(found.answered or 0)
        assert end is not None  # a row points at the event that answered it
        said = read(end, QuestionAnswered)
        raise Conflict(decided(found, said["by"], said["channel"], end.at))
    return found


def _missing(question: str) -> NotFound:
    return NotFound(f"there is no question {shown(question)} in this workspace; `remit approvals` lists what is open")


def _value(view: View, question: Question, reply: Reply) -> Json:
    """Return the value of an answer. Raise `BadInput` if it does not fit the question."""
    event = view.event(question.asked)
    assert event is not None  # a row points at the event that made it
    asked = read(event, QuestionAsked)
    if question.kind == "ask":
        if reply.state == "rejected":
            return None
        if reply.state == "approved":
            raise BadInput(f"question {question.id} asks for an answer, not for an approval; run `remit answer`")
        return accepted(question, asked["choices"], reply.value)
    if question.kind == "money":
        return None if reply.state == "rejected" else reply.value
    if reply.state == "answered":
        raise BadInput(f"question {question.id} asks for an approval; run `remit approve` or `remit reject`")
    if reply.state == "rejected" or reply.value is None:
        return None
    return _changed(question, asked.get("shows", {}), reply.value)


def _settles(view: View, question: Question, reply: Reply, now: int) -> list[Unsealed]:
    """Return the events that follow from an answer about a call's cost."""
    if question.kind != "ask":
        return []
    event = view.event(question.asked)
    assert event is not None  # a row points at the event that made it
    return settled_by_answer(view, read(event, QuestionAsked).get("shows", {}), reply, now)


def _gives(view: View, question: Question, reply: Reply, now: int) -> tuple[Reply, list[Unsealed]]:
    """Return the reply to a question for more money, with the amount that is given, and the events that give it. A
    reply with an amount counts as approved."""
    if reply.state == "rejected":
        return reply, []
    from remit.engine.raising import given_by  # noqa: PLC0415 - most workspaces never ask for money

    event = view.event(question.asked)
    assert event is not None  # a row points at the event that made it
    asked, purse = read(event, QuestionAsked), purse_in(view, question.task)
    given = given_by(view, purse, question, asked, reply, now)
    return reply._replace(state="approved", value=given.value), given.events


def _changed(question: Question, shows: dict[str, Json], value: Json) -> Json:
    """Return the changed task, arguments or result of an approval. Raise `BadInput` if they must not be changed."""
    changes = editable(question.kind, shows)
    if not changes:
        about = "handing a task over" if shows.get("action") == "handoff" else "a step of a plan"
        raise BadInput(
            f"question {question.id} is about {about}, which stays as it is; "
            "approve it without a value, or reject it and say why"
        )
    if changes == "task":
        return plain(value, "a task", TASK_LIMIT)
    if changes == "result":
        return checked(value, "the result")
    if not isinstance(value, dict):
        raise BadInput("the arguments of a tool, as they are approved, are a JSON object")
    return checked(value, "the arguments of a tool")


ANSWER_WITHIN: Final = 7 * DAY  # default expiry of a question


class Questions(NamedTuple):
    ground: Ground
    slots: Slots
    answers: Answers
    within: int = ANSWER_WITHIN

    async def ask_once(self, live: LiveTask, draft: QuestionDraft, ops: list[str]) -> Said:
        """Ask a person and return the answer. If this try has asked before, or an earlier try got a positive answer,
        return that answer instead. After a rejection in an earlier try, ask again."""
        if len(ops) > 1:
            said = await self.ground.store.read(lambda view: _said_before(view, ops, draft.digest))
            if said is not None:
                return said
        return await self.ask(live, draft, ops[0])

    async def ask(self, live: LiveTask, draft: QuestionDraft, op: str, *, stepped_back: bool = False) -> Said:
        """Ask a person, and wait for the answer. If the question was asked before under the same operation id, return
        its answer or wait for it.

        `stepped_back` says that the task is already counted as waiting, as during a delegation."""
        live.must_be_at_work()
        question = await self._record_question(live, draft, f"{op}{draft.suffix}")
        said = await self.ground.store.read(lambda view: said_in(view, question))
        if said is not None:
            return said
        wait = Wait("person", question)
        waiting: AbstractAsyncContextManager[None] = (
            self.slots.idle(live, wait) if stepped_back else self.slots.given_up(live, wait)
        )
        with clocks_stand_still(live.control):
            async with waiting:
                return await self._answered(live, question)

    async def use(self, live: LiveTask, said: Said, draft: QuestionDraft) -> None:
        """Consume an approval. It is valid for exactly the action that was asked about. In a rerun, an action that has
        consumed its approval before may proceed."""
        question = said.question
        if said.digest != draft.digest:
            raise Refused(f"approval {question} was for something else; ask again", rule="approval")

        def decide(view: View) -> Decision[bool]:
            live.must_hold(view)
            found = view.question(question)
            if found is None or found.used:
                raise Refused(f"approval {question} was used already; ask again", rule="approval")
            now = self.ground.clock.now()
            return Decision(True, (question_used(question, live.place, live.remit.holder, now),), aside=True)

        _, first = await self.ground.store.tx(f"{question}/use", decide, live.wants)
        # Consumed by an earlier attempt of this task; a process that has lost the task must not act on it.
        if first is None:
            await self.ground.store.read(live.must_hold)

    async def _record_question(self, live: LiveTask, draft: QuestionDraft, op: str) -> str:
        new = f"q{self.ground.ids.new()}"

        def decide(view: View) -> Decision[str]:
            live.must_hold(view)
            now = self.ground.clock.now()
            until = self._until(live, draft, now)
            return Decision(new, (question_asked(new, draft, until, live.place, live.remit.holder, now),))

        return (await self.ground.store.tx(f"{op}/ask", decide, live.wants)).answer

    def _until(self, live: LiveTask, draft: QuestionDraft, now: int) -> int:
        until = now + (self.within if draft.seconds is None else round(draft.seconds * SECOND))
        deadline = live.remit.bounds.deadline
        return until if deadline is None else min(until, deadline)

    async def _answered(self, live: LiveTask, question: str) -> Said:
        def look(view: View) -> Said | None:
            live.must_own(view)
            return said_in(view, question)

        while True:
            until = await self.ground.store.read(lambda view: _until_of(view, question))
            left = (until - self.ground.clock.now()) / SECOND
            if left > 0:
                with move_on_after(self.ground.clock, left) as patience:
                    return await self.slots.bell.until(live.remit.id, look)
                assert patience.ran_out
            await self.answers.expire(question)
            # Not under the timeout: with an expired timeout a read would never succeed.
            said = await self.ground.store.read(look)
            if said is not None:
                return said


def clocks_stand_still(control: Control[LiveTask]) -> While:
    """Stop the clocks of a task and of all tasks that wait for it, while the body runs. Deadlines that a caller set
    still apply."""
    for member in control.own_line.members.values():
        member.control.arm()
    life = control.life
    members = control.own_line.members.values()
    line = [member.control for member in members if member.life is life or life.is_under(member.life)]

    def stop() -> None:
        for one in line:
            one.pause()

    def go_on() -> None:
        for one in line:
            one.go_on()

    return While(stop, go_on)


def _said_before(view: View, ops: list[str], digest: str) -> Said | None:
    """Return the approval of, or the answer to, exactly this question from an earlier try of the task. Return None if
    there is none, or if this try has asked already."""
    if view.done(f"{ops[0]}/ask") is not None:
        return None
    said = (said_under(view, op) for op in ops[1:])
    yes = (one for one in said if one is not None and one.state in ("approved", "answered"))
    return next((one for one in yes if one.digest == digest), None)


def _until_of(view: View, question: str) -> int:
    found = view.question(question)
    if found is None:
        raise StoreError(f"question {question} is not in the store any more; run `remit doctor`")
    return found.until


def inquiry(view: View, question: Question) -> Inquiry:
    """Return a question from its row and its events."""
    event = view.event(question.asked)
    assert event is not None  # a row points at the event that made it
    asked = read(event, QuestionAsked)
    end = view.event(question.answered) if question.answered is not None else None
    said = read(end, QuestionAnswered) if end is not None else None
    return Inquiry(
        id=question.id,
        kind=question.kind,
        text=asked["text"],
        agent=question.agent,
        task=question.task,
        run=question.run,
        session=question.session,
        asked_at=question.asked_at,
        until=question.until,
        state=question.state,
        choices=tuple(asked["choices"]),
        default=asked.get("default"),
        shows=asked.get("shows", {}),
        digest=question.digest,
        by=said["by"] if said is not None else "",
        channel=said["channel"] if said is not None else "",
        why=said["why"] if said is not None else "",
        value=said.get("value") if said is not None else None,
        answered_at=end.at if end is not None else None,
        used=bool(question.used),
        seq=question.asked,
        chain=_chain(view, question),
        notices=_notices(view, question.id),
        editable=editable(question.kind, asked.get("shows", {})) if question.is_open else "",
    )


def open_questions(view: View) -> tuple[int, list[Question]]:
    """Return the number of the latest question's event, and all open questions."""
    latest = view.questions(1)
    return (latest[0].asked if latest else 0), view.questions_open(_ALL)


def asked_since(view: View, seen: int) -> tuple[int, list[Question]]:
    """Return the number of the latest question's event, and the open questions that were asked after event `seen`."""
    found: list[Question] = []
    before: int | None = None
    while page := view.questions(_PAGE, before):
        found += [question for question in page if question.asked > seen]
        before = page[-1].asked
        if before <= seen or len(page) < _PAGE:
            break
    return max((question.asked for question in found), default=seen), [one for one in found if one.is_open]


def notice_op(question: str, channel: str) -> str:
    """Return the operation id that records the delivery to a channel."""
    return f"{question}/notice/{channel}"


def _notices(view: View, question: str) -> tuple[Notice, ...]:
    sent = [event for event in view.done_under(notice_op(question, "")) if event.kind == "notice.sent"]
    told = [(event.at, read(event, NoticeSent)) for event in sent]
    return tuple(Notice(data["channel"], at, data.get("ref", ""), data.get("error", "")) for at, data in told)


def _chain(view: View, question: Question) -> str:
    record = view.record(question.task)
    began = view.event(record.began) if record is not None else None
    names = tuple(read(began, FirstData)["chain"][:-1]) if began is not None else ()
    return path((*names, question.agent))
