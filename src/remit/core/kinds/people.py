"""Events of what people are asked, and what they answer."""

from typing import Any, NotRequired, TypedDict

from remit.core.events import Unsealed
from remit.core.kinds.place import Place
from remit.core.question import QuestionDraft
from remit.core.values import Json


class QuestionAsked(TypedDict):
    """The data of `question.asked`. `shows` is what an approval permits; `expires` is what its expiry means."""

    question: str
    kind: str
    text: str
    choices: list[str]
    digest: str
    until: int
    expires: str
    default: NotRequired[Json]
    shows: NotRequired[dict[str, Json]]


class QuestionAnswered(TypedDict):
    """The data of `question.answered`: how it ended, by whom, over which channel, and with which value."""

    question: str
    state: str
    by: str
    channel: str
    why: str
    value: NotRequired[Json]


class QuestionNamed(TypedDict):
    """The data of `question.used`."""

    question: str


class NoticeClaimed(TypedDict):
    """The data of `notice.claimed`: which worker tells a channel of a question. It counts while that worker serves."""

    question: str
    channel: str
    worker: str


class NoticeSent(TypedDict):
    """The data of `notice.sent`: a channel has told someone of a question, or was refused for good."""

    question: str
    channel: str
    ref: NotRequired[str]
    error: NotRequired[str]


def question_event(kind: str, at: Place, agent: str, now: int, data: dict[str, Any]) -> Unsealed:
    """Make an event about a question."""
    return Unsealed(kind, now, data, at.run, at.session, at.task, agent)


def question_asked(id_: str, draft: QuestionDraft, until: int, at: Place, agent: str, now: int) -> Unsealed:
    """Make the event of a question that waits for its answer until then."""
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
    return question_event("question.asked", at, agent, now, data)


def question_used(id_: str, at: Place, agent: str, now: int) -> Unsealed:
    """Make the event of an approval that is used up."""
    return question_event("question.used", at, agent, now, {"question": id_})
