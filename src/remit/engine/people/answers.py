"""Answering questions: once, and in time. Whoever comes second is told who was first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

from remit.core.events import Unsealed
from remit.core.kinds import QuestionAnswered, QuestionAsked, read
from remit.core.question import Question, Reply, accepted, decided
from remit.core.text import NAME_LIMIT, TASK_LIMIT, line, plain, shown
from remit.core.times import iso
from remit.core.values import Json, checked
from remit.engine.acts import ActContent, act_of
from remit.engine.door.parking import unparked
from remit.engine.door.said import answered
from remit.engine.ground import Ground
from remit.engine.money.bills import settled_by_answer
from remit.errors import BadInput, Conflict, NotFound
from remit.ports import Decision, View

_WHY: Final = 500
_BATCH: Final = 64


class Answers(NamedTuple):
    ground: Ground

    async def answer(self, question: str, reply: Reply, op: str = "") -> None:
        """Record an answer. Raises Conflict with who was first if it is not the first one, or if its time is up; the
        same answer under the same `op` is the first one again."""
        line(question, "a question's id", NAME_LIMIT)
        for name, word in (("by", reply.by), ("channel", reply.channel)):
            if word != "":
                line(word, name, NAME_LIMIT)
        plain(reply.why, "why", _WHY, empty=True)

        def decide(view: View) -> Decision[Json]:
            found = _open(view, question)
            if found.until <= self.ground.clock.now():  # its expiry may not be on record: there may be no worker
                raise Conflict(f"question {question} has expired at {iso(found.until)}; it is not answered any more")
            standing = view.standing(found.task)
            if standing is not None and standing.state == "cancelling":
                raise Conflict(f"question {question} is not answered any more: its task is being cancelled")
            answer = reply._replace(value=_value(view, found, reply))
            return self._decided(view, found, answer, _settles(view, found, answer, self.ground.clock.now()))

        act = act_of(op, reply.by)
        if act.op:
            body: list[Json] = [reply.state, reply.channel, reply.why, reply.value]
            await act.perform(self.ground, ActContent("answer", question, body), decide)
        else:
            await self._first(question, decide)

    async def expire(self, question: str) -> None:
        """End a question whose time is up; nothing if someone has answered it."""

        def decide(view: View) -> Decision[Json]:
            found = view.question(question)
            if found is None or not found.is_open or found.until > self.ground.clock.now():
                return Decision(None)
            asked = view.event(found.asked)
            default = read(asked, QuestionAsked).get("default") if asked is not None else None
            return self._decided(view, found, Reply("expired", "", "", "nobody answered in time", default))

        await self.ground.store.transact(f"{question}/answer", decide)

    async def expire_all(self) -> None:
        """End what is open although its time is up, whoever waited for it."""
        now = self.ground.clock.now()
        for question in await self.ground.store.read(lambda view: view.questions_expired(now, _BATCH)):
            await self.expire(question.id)

    async def _first(self, question: str, decide: Any) -> None:
        answer, first = await self.ground.store.transact(f"{question}/answer", decide)
        if first is None:
            state, by, channel, at = cast("list[Any]", answer)
            found = await self.ground.store.read(lambda view: view.question(question))
            if found is None:
                raise _missing(question)
            raise Conflict(decided(found._replace(state=state), by, channel, at))

    def _decided(
        self, view: View, question: Question, reply: Reply, settles: Sequence[Unsealed] = ()
    ) -> Decision[Json]:
        now = self.ground.clock.now()
        events = (answered(question, reply, now), *settles, *unparked(view, question.task, now))
        return Decision([reply.state, reply.by, reply.channel, now], events, aside=True)


def _open(view: View, question: str) -> Question:
    """Find a question that is open. If it was answered, its operation says so; otherwise it ended without one."""
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
    """Check that an answer fits its question, and give its value."""
    event = view.event(question.asked)
    assert event is not None  # a row points at the event that made it
    asked = read(event, QuestionAsked)
    if question.kind == "ask":
        if reply.state == "rejected":
            return None
        if reply.state == "approved":
            raise BadInput(f"question {question.id} asks for an answer, not for an approval; say `remit answer`")
        return accepted(question, asked["choices"], reply.value)
    if reply.state == "answered":
        raise BadInput(f"question {question.id} asks for an approval; say `remit approve` or `remit reject`")
    if reply.state == "rejected" or reply.value is None:
        return None
    return _changed(question, asked.get("shows", {}), reply.value)


def _settles(view: View, question: Question, reply: Reply, now: int) -> list[Unsealed]:
    """Give the events that follow from an answer about what a call cost."""
    if question.kind != "ask":
        return []
    event = view.event(question.asked)
    assert event is not None  # a row points at the event that made it
    return settled_by_answer(view, read(event, QuestionAsked).get("shows", {}), reply, now)


def _changed(question: Question, shows: dict[str, Json], value: Json) -> Json:
    """Check what is approved in other words than it was asked."""
    handing = question.kind == "hop" and shows.get("action") == "handoff"
    if handing or "step" in shows:  # nothing may be approved in other words and done in the old ones
        about = "handing a task over" if handing else "a step of a plan"
        raise BadInput(
            f"question {question.id} is about {about}, which stays as it is; "
            "approve it without a value, or reject it and say why"
        )
    if question.kind == "hop":
        return plain(value, "a task", TASK_LIMIT)
    if not isinstance(value, dict):
        raise BadInput("the arguments of a tool, as they are approved, are a JSON object")
    return checked(value, "the arguments of a tool")
