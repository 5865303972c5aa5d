"""Questions to people: what is asked, how it may end, and what an answer is worth.

An approval is a grant for one action. It is bound to that action by its digest and is used up by it.
"""

from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from remit.core.checks import meant
from remit.core.text import plain, shown
from remit.core.times import iso
from remit.core.values import Json, encode, whole_digest
from remit.errors import BadInput

QuestionKind = Literal["ask", "hop", "tool"]
QuestionState = Literal["open", "answered", "approved", "rejected", "expired", "withdrawn"]
Expiry = Literal["reject", "approve", "default"]

TEXT_LIMIT: Final = 8_000
CHOICES: Final = 20
CHOICE_LIMIT: Final = 200
# What may come of an open question; nothing follows on that.
ENDS: Final[dict[QuestionKind, tuple[QuestionState, ...]]] = {
    "ask": ("answered", "rejected", "expired", "withdrawn"),
    "hop": ("approved", "rejected", "expired", "withdrawn"),
    "tool": ("approved", "rejected", "expired", "withdrawn"),
}


class Question(NamedTuple):
    """A question as its table has it; what is asked is in the event `asked`, what was answered in `answered`."""

    id: str
    run: str
    session: str
    task: str
    agent: str
    kind: QuestionKind
    digest: str
    asked_at: int
    until: int
    state: QuestionState
    expires: Expiry
    asked: int
    answered: int | None
    used: int

    @property
    def is_open(self) -> bool:
        return self.state == "open"


Shows: TypeAlias = dict[str, Json]


class Notice(NamedTuple):
    """What became of telling a channel of a question: `ref` is what the channel calls it; `error` says why it was
    refused for good, so that nobody was told."""

    channel: str
    at: int
    ref: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question to a person. `kind` is "ask" for one that wants an answer, "hop" for one that wants an approval of
    passing work on, "tool" of an action; `shows` is what an approval permits, `chain` who asked whom up to the agent
    that asks, `notices` whom it was told. Times are microseconds since 1970."""

    id: str
    kind: QuestionKind
    text: str
    agent: str
    task: str
    run: str
    session: str
    asked_at: int
    until: int
    state: QuestionState
    choices: tuple[str, ...] = ()
    default: Json = None
    shows: dict[str, Json] = field(default_factory=dict[str, Json])
    digest: str = ""
    by: str = ""
    channel: str = ""
    why: str = ""
    value: Json = None
    answered_at: int | None = None
    used: bool = False
    seq: int = 0
    chain: str = ""
    notices: tuple[Notice, ...] = ()


class Reply(NamedTuple):
    """What someone answers: approved, rejected or answered; who, over which channel, and why. `value` is the answer to
    a question, or the task or arguments as they were approved."""

    state: QuestionState
    by: str
    channel: str = ""
    why: str = ""
    value: Json = None


class QuestionDraft(NamedTuple):
    """What an agent wants to ask; `choices` are the answers there are, none for any text. `shows` is what an approval
    permits, `seconds` how long it waits, None for as long as the task may."""

    kind: QuestionKind
    text: str
    choices: tuple[str, ...] = ()
    default: Json = None
    expires: Expiry = "reject"
    seconds: float | None = None
    shows: Shows = {}  # noqa: RUF012 - never changed
    about: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The digest of exactly what is asked for: a whole one, because an approval counts by it."""
        return whole_digest(encode([self.kind, self.text, [*self.choices], self.shows, [*self.about]]))


def asked_by_agent(text: object, choices: object, default: object) -> QuestionDraft:
    """Check what an agent asks a person."""
    question = plain(text, "a question", TEXT_LIMIT)
    given: list[Any] = [] if choices is None else _listed(choices)
    if len(given) > CHOICES:
        raise BadInput(f"a question has at most {CHOICES} choices, got {len(given)}")
    words = tuple(plain(choice, "a choice", CHOICE_LIMIT) for choice in given)
    if len(set(words)) != len(words):
        raise BadInput("two choices of a question are the same; each has to be one of its own")
    if default is not None:
        plain(default, "the default answer", TEXT_LIMIT)
        if words and default not in words:
            raise BadInput(f"the default {shown(default)} is none of the choices{meant(default, words)}")
    return QuestionDraft(
        "ask", question, words, cast("str | None", default), "default" if default is not None else "reject"
    )


def _listed(choices: object) -> list[Any]:
    if isinstance(choices, str) or not hasattr(choices, "__iter__"):
        raise BadInput(f'choices is a list of answers, such as ["red", "blue"], not {shown(choices)}')
    return list(cast("Any", choices))


def accepted(question: Question, choices: list[str], value: object) -> Json:
    """Check an answer to what an agent asked."""
    if value is None:
        raise BadInput("an answer has to say something")
    text = plain(value, "an answer", TEXT_LIMIT)
    if choices and text not in choices:
        raise BadInput(
            f"{shown(value)} is none of the answers to {question.id}: {', '.join(choices)}{meant(text, choices)}"
        )
    return text


def decided(question: Question, by: str, channel: str, at: int) -> str:
    """Say who has answered already, and when."""
    word = {"answered": "was answered", "withdrawn": "was withdrawn", "expired": "has expired"}
    how = word.get(question.state, f"was {question.state}")
    whom = f" by {by}" if by else ""
    where = f" over {channel}" if channel else ""
    return f"question {question.id} {how}{whom}{where} at {iso(at)}; the first answer counts"
