"""Events of questions to people and their answers."""

from typing import Any, Final, NotRequired

from remit.core.events import Place, Unsealed
from remit.core.question import QuestionDraft
from remit.core.records import TypedDict
from remit.core.values import Json


class LacksMoney(TypedDict):
    """A payment that lacks money: its unit and amount, the last share of the run that it must leave, and the amount
    that is proposed."""

    unit: str
    wanted: int
    kept: int
    adds: int


class QuestionAsked(TypedDict):
    """The data of `question.asked`. `shows` is the action that an approval permits; `expires` says how the question
    ends if no one answers in time. `raises` is the payment for which more money is asked."""

    question: str
    kind: str
    text: str
    choices: list[str]
    digest: str
    until: int
    expires: str
    default: NotRequired[Json]
    shows: NotRequired[dict[str, Json]]
    raises: NotRequired[LacksMoney]


class QuestionAnswered(TypedDict):
    """The data of `question.answered`: how it ended, by whom, over which channel, and with which value."""

    question: str
    state: str
    by: str
    channel: str
    why: str
    value: NotRequired[Json]


class QuestionNamed(TypedDict):
    """The data of `question.used`: the id of the question whose approval an action has consumed."""

    question: str


class NoticeClaimed(TypedDict):
    """The data of `notice.claimed`: the worker that delivers a question to a channel. The claim is valid while that
    worker runs."""

    question: str
    channel: str
    worker: str


class NoticeSent(TypedDict):
    """The data of `notice.sent`: a channel delivered a question, or rejected it for good."""

    question: str
    channel: str
    ref: NotRequired[str]
    error: NotRequired[str]


def question_event(kind: str, at: Place, agent: str, now: int, data: dict[str, Any]) -> Unsealed:
    """Return an event about a question."""
    return Unsealed(kind, now, data, at.run, at.session, at.task, agent)


def question_asked(id_: str, draft: QuestionDraft, until: int, at: Place, agent: str, now: int) -> Unsealed:
    """Return the event of a question that is open until `until`."""
    data: dict[str, Any] = {
        "question": id_,
        "kind": draft.kind,
        "text": draft.text,
        "choices": [*draft.choices],
        "digest": draft.digest,
        "until": until,
        "expires": draft.expires,
    }
    if draft.default is not None:
        data["default"] = draft.default
    if draft.shows:
        data["shows"] = draft.shows
    if draft.raises:
        data["raises"] = {**draft.raises}
    return question_event("question.asked", at, agent, now, data)


def question_used(id_: str, at: Place, agent: str, now: int) -> Unsealed:
    """Return the event that consumes an approval."""
    return question_event("question.used", at, agent, now, {"question": id_})


SHAPES: Final[dict[str, type]] = {
    "question.asked": QuestionAsked,
    "question.answered": QuestionAnswered,
    "question.used": QuestionNamed,
    "notice.claimed": NoticeClaimed,
    "notice.sent": NoticeSent,
}
