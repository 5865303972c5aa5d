"""What events do to the table of questions."""

from typing import cast

from remit.core.events import Event
from remit.core.kinds import QuestionAnswered, QuestionAsked, read
from remit.core.projection.change import Change, Row


def asked(event: Event) -> list[Change]:
    data = read(event, QuestionAsked)
    row: Row = {
        "id": data["question"],
        "run": event.run,
        "session": event.session,
        "task": event.task,
        "agent": event.agent,
        "kind": data["kind"],
        "digest": data["digest"],
        "asked_at": event.at,
        "until": data["until"],
        "state": "open",
        "expires": data["expires"],
        "asked": event.seq,
        "answered": None,
        "used": 0,
    }
    return [Change("question", "add", (data["question"],), row)]


def answered(event: Event) -> list[Change]:
    data = read(event, QuestionAnswered)
    row: Row = {"id": data["question"], "state": data["state"], "answered": event.seq, "task": event.task}
    return [Change("question", "answer", (data["question"],), row)]


def used(event: Event) -> list[Change]:
    question = cast("str", event.data["question"])
    return [Change("question", "use", (question,), {"id": question, "used": 1})]
