"""The questions of a task to people, and the answers."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from remit.core import kinds
from remit.core.events import Event
from remit.core.kinds import read
from remit.core.values import Json

ASKING: Final = frozenset(("question.asked", "question.answered", "question.used"))


@dataclass(slots=True)
class AskedPerson:
    """A question to a person, from the journal. `kind` is "ask", "hop" or "tool"; `shows` is the action that an
    approval permits. `state` is open until it is answered."""

    id: str
    kind: str
    text: str
    agent: str
    asked_at: int
    until: int
    choices: tuple[str, ...] = ()
    shows: dict[str, Json] = field(default_factory=dict[str, Json])
    state: str = "open"
    by: str = ""
    channel: str = ""
    why: str = ""
    value: Json = None
    answered_at: int | None = None
    used: bool = False

    @property
    def is_open(self) -> bool:
        return self.state == "open"


def take(questions: list[AskedPerson], event: Event) -> None:
    """Apply an event of `ASKING` to a task's questions."""
    if event.kind == "question.asked":
        questions.append(_asked(event))
        return
    for question in questions:
        if question.id == event.data["question"]:
            if event.kind == "question.used":
                question.used = True
            else:
                _answer(question, event)


def asked_in(events: Iterable[Event]) -> list[AskedPerson]:
    """Return the questions in the events of a task, in order."""
    questions: list[AskedPerson] = []
    for event in events:
        if event.kind in ASKING:
            take(questions, event)
    return questions


def _asked(event: Event) -> AskedPerson:
    data = read(event, kinds.QuestionAsked)
    return AskedPerson(
        id=data["question"],
        kind=data["kind"],
        text=data["text"],
        agent=event.agent,
        asked_at=event.at,
        until=data["until"],
        choices=tuple(data["choices"]),
        shows=data.get("shows", {}),
    )


def _answer(question: AskedPerson, event: Event) -> None:
    data = read(event, kinds.QuestionAnswered)
    question.state, question.by, question.channel = data["state"], data["by"], data["channel"]
    question.why, question.value, question.answered_at = data["why"], data.get("value"), event.at
