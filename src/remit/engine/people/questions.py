"""Asking people, and waiting for what they say: without a slot, with the clocks of the whole line standing still."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple

from remit.core.kinds import question_asked, question_used
from remit.core.question import QuestionDraft
from remit.core.times import DAY, SECOND
from remit.engine.attempt.control import Control
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.slots import Slots
from remit.engine.door.said import Said, said_in, said_under
from remit.engine.ground import Ground
from remit.engine.people.answers import Answers
from remit.engine.timing import While, move_on_after
from remit.errors import Refused, StoreError
from remit.ports import Decision, View

ANSWER_WITHIN: Final = 7 * DAY  # unless someone says otherwise: nothing is open for ever


class Questions(NamedTuple):
    ground: Ground
    slots: Slots
    answers: Answers
    within: int = ANSWER_WITHIN

    async def ask_once(self, live: LiveTask, draft: QuestionDraft, ops: list[str]) -> Said:
        """Ask a person unless that was done: in this try, or with a good answer in an earlier one. A no in an earlier
        try is not held against this one."""
        if len(ops) > 1:
            said = await self.ground.store.read(lambda view: _said_before(view, ops, draft.digest))
            if said is not None:
                return said
        return await self.ask(live, draft, ops[0])

    async def ask(self, live: LiveTask, draft: QuestionDraft, op: str, *, stepped_back: bool = False) -> Said:
        """Ask a person, and wait for the answer. Asked again under the same operation, the answer is found.

        `stepped_back` says that the task waits for this anyway, as for a task that it delegates."""
        live.must_be_at_work()
        question = await self._asked(live, draft, op)
        said = await self.ground.store.read(lambda view: said_in(view, question))
        if said is not None:
            return said
        waiting: AbstractAsyncContextManager[None] = (
            self.slots.idle(live) if stepped_back else self.slots.given_up(live)
        )
        with clocks_stand_still(live.control):
            async with waiting:
                return await self._answered(live, question)

    async def use(self, live: LiveTask, said: Said, draft: QuestionDraft) -> None:
        """Use an approval up, for exactly what was asked. When the task is run again, this action has used it."""
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

        _, first = await self.ground.store.transact(f"{question}/use", decide, live.wants)
        if first is None:  # by an earlier run of this task: whoever has lost the task since must not act on it too
            await self.ground.store.read(live.must_hold)

    async def _asked(self, live: LiveTask, draft: QuestionDraft, op: str) -> str:
        new = f"q{self.ground.ids.new()}"

        def decide(view: View) -> Decision[str]:
            live.must_hold(view)
            now = self.ground.clock.now()
            until = self._until(live, draft, now)
            return Decision(new, (question_asked(new, draft, until, live.place, live.remit.holder, now),))

        return await self.ground.store.tx(f"{op}/ask", decide, live.wants)

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
            said = await self.ground.store.read(look)  # directly: a read whose time is up already never succeeds
            if said is not None:
                return said


def clocks_stand_still(control: Control[LiveTask]) -> While:
    """Let no time pass for a task and for all who wait for it. A deadline that someone said comes all the same."""
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
    """Find what people said yes to in an earlier try, if that was exactly this and nobody was asked in this try."""
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
