"""Reviews: the result of an agent is put before a person, who approves it, edits it, or sends it back."""

from __future__ import annotations

from typing import Final, NamedTuple, cast

from remit.core.events import read
from remit.core.kinds.people import QuestionAsked
from remit.core.question import Expiry, QuestionDraft
from remit.core.remit import path
from remit.core.values import Json, encode, excerpt
from remit.engine.approvals import Said
from remit.engine.attempt import endings
from remit.engine.attempt.endings import Ending
from remit.engine.attempt.handoffs import Handoffs
from remit.engine.attempt.live import LiveTask, SentBack
from remit.engine.ground import Ground
from remit.engine.people import Questions
from remit.errors import BadInput, Refused
from remit.ports import View
from remit.ports.forms import Form

_SUMMARY: Final = 300  # characters of a result in the text of its question; `shows` has all of it


class Presented(NamedTuple):
    """A result that is before a person: `misfit` says why the last edit could not be used."""

    result: Json
    misfit: str = ""


class Reviews(NamedTuple):
    """Asks people about results. The question keeps the result, so a rerun does not call the agent again."""

    ground: Ground
    questions: Questions
    handoffs: Handoffs
    most: int
    expires: Expiry

    async def review(self, live: LiveTask, ending: Ending) -> Ending | LiveTask:
        """Let a person review a result. If it is approved, return the end of the task; if it is sent back, return the
        agent's next turn. If a person has approved a result of this task before, return that result as the end."""
        approved = await self.ground.store.read(lambda view: self._approved(view, live))
        if approved is not None:
            return endings.completed(live.remit, approved.result)
        return await self._decided(live, Presented(ending.outcome.value), 1)

    async def go_on(self, live: LiveTask) -> Ending | LiveTask | None:
        """Continue the review of a result that an earlier attempt presented to a person. If there is no such result,
        return None, and the caller calls the agent."""
        approved, kept = await self.ground.store.read(
            lambda view: (self._approved(view, live), self._presented(view, live))
        )
        if approved is not None:
            return endings.completed(live.remit, approved.result)
        if kept is None:
            return None
        live.operations.leave_out_turn()
        return await self._decided(live, kept, 1)

    async def _decided(self, live: LiveTask, before: Presented, number: int) -> Ending | LiveTask:
        while True:
            op = live.operations.review(number)
            draft = self._draft(live, before)
            said = await self.questions.ask(live, draft, op)
            if not said.approved:
                return await self._sent_back(live, before.result, said)
            misfit = "" if said.value is None else _misfit(live, said.value)
            if not misfit:
                await self.questions.use(live, said, draft)
                return endings.completed(live.remit, before.result if said.value is None else said.value)
            before, number = Presented(before.result, misfit), number + 1

    async def _sent_back(self, live: LiveTask, result: Json, said: Said) -> Ending | LiveTask:
        whom = f" by {said.by}" if said.by else ""
        why = f": {said.why}" if said.why else ""
        if said.expired or said.state != "rejected":  # only a person sends a result back
            return endings.failed(live.remit, Refused(f"its result was not approved{why}", rule="review"))
        sent = live.handoff.sent_back
        times = sent.times if sent is not None else 0
        if times >= self.most:
            sentence = f"its result was sent back once more than Policy(reviews={self.most}) allows{whom}{why}"
            return endings.failed(live.remit, Refused(sentence, rule="review"))
        return await self.handoffs.send_back(live, SentBack(result, said.why, said.by, times + 1))

    def _draft(self, live: LiveTask, before: Presented) -> QuestionDraft:
        remit = live.remit
        text = before.result if isinstance(before.result, str) else encode(before.result)
        shows: dict[str, Json] = {"result": before.result, "task": remit.task, "chain": path(remit.names)}
        if before.misfit:
            shows = {"your edit does not fit": before.misfit, **shows}
        asks = f"'{remit.holder}' has a result: {excerpt(text, _SUMMARY)}"
        about = (live.operations.origin, live.operations.turn, *remit.names)
        return QuestionDraft("review", asks, expires=self.expires, shows=shows, about=about)

    def _presented(self, view: View, live: LiveTask) -> Presented | None:
        """Return the result that this try has presented to a person in the current turn, or None."""
        done = view.done(f"{live.operations.review(1)}/ask")
        return None if done is None else _before(view, str(done[0]))

    def _approved(self, view: View, live: LiveTask) -> Presented | None:
        """Return the result that a person approved in any try of this task and whose approval was used, or None."""
        for event in view.done_under(live.operations.reviews):
            question = view.question(str(event.data["question"])) if event.kind == "question.asked" else None
            if question is None or not question.used or question.agent != live.remit.holder:
                continue
            end = view.event(question.answered or 0)
            assert end is not None  # a used question has been answered
            value = end.data.get("value")
            return Presented(value) if value is not None else _before(view, question.id)
        return None


def _before(view: View, id: str) -> Presented:
    question = view.question(id)
    assert question is not None  # the operation that asked it is recorded with it
    event = view.event(question.asked)
    assert event is not None  # a row points at the event that made it
    return Presented(read(event, QuestionAsked).get("shows", {})["result"])


def _misfit(live: LiveTask, value: Json) -> str:
    """Return why an edited result does not fit the form of the agent's results, or ""."""
    form = _form(live)
    if form is None:
        return ""
    try:
        form.read(value, f"the result of '{live.remit.holder}'")
    except BadInput as no:
        return str(no)
    return ""


def _form(live: LiveTask) -> Form | None:
    answer = live.agent.answer
    form = getattr(answer, "form", None)
    if form is not None:
        return cast("Form", form)
    output = getattr(answer, "output", None)
    if output is None:
        return None
    from remit.engine.forms import form_of  # noqa: PLC0415 - only a model with a form of its own needs it

    return form_of(output, "output")
