"""Questions as people see them: what is asked, what an approval permits, whom it was told, and what became of it."""

from __future__ import annotations

from remit.core.chain import path
from remit.core.kinds import FirstData, NoticeSent, QuestionAnswered, QuestionAsked, read
from remit.core.question import Inquiry, Notice, Question
from remit.ports import View


def inquiry(view: View, question: Question) -> Inquiry:
    """Put together a question's row and what its events say."""
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
    )


def notice_op(question: str, channel: str) -> str:
    """Name the operation that records what became of telling a channel."""
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
