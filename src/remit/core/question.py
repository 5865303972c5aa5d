"""Questions to people: their content, their possible ends, and the check of an answer.

An approval is the permission for one action. Its digest binds it to exactly that action, which consumes it.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, Literal, TypeAlias, cast

from remit.core.checks import meant
from remit.core.records import NamedTuple, dataclass
from remit.core.times import iso
from remit.core.values import Json, encode, plain, shown, whole_digest
from remit.errors import BadInput

QuestionKind = Literal["ask", "hop", "tool", "review", "money"]
QuestionState = Literal["open", "answered", "approved", "rejected", "expired", "withdrawn"]
Expiry = Literal["reject", "approve", "default"]
Editable = Literal["task", "arguments", "result", "amount", ""]

TEXT_LIMIT: Final = 8_000
CHOICES: Final = 20
CHOICE_LIMIT: Final = 200
_EDITABLE: Final[dict[QuestionKind, Editable]] = {
    "ask": "",
    "hop": "task",
    "tool": "arguments",
    "review": "result",
    "money": "amount",
}
# The possible ends of an open question; each is final.
ENDS: Final[dict[QuestionKind, tuple[QuestionState, ...]]] = {
    "ask": ("answered", "rejected", "expired", "withdrawn"),
    "hop": ("approved", "rejected", "expired", "withdrawn"),
    "tool": ("approved", "rejected", "expired", "withdrawn"),
    "review": ("approved", "rejected", "expired", "withdrawn"),
    "money": ("approved", "rejected", "expired", "withdrawn"),
}


class Question(NamedTuple):
    """A row of the question table. The question's text is in event number `asked`, the answer in event number
    `answered`."""

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
    """The delivery of a question to a channel: `ref` is the channel's own id for it; `error` says why the channel
    rejected it for good."""

    channel: str
    at: int
    ref: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question to a person. `kind` is "ask" for a question that wants an answer, "hop" for the approval of a
    delegation or handoff, "tool" for the approval of an action, "review" for a result that a person approves, edits or
    sends back, "money" for more money. `shows` is the action that an approval permits, or the result; `chain` are
    the agents that asked each other up to the asking one, `notices` the deliveries. `editable` is what the person may
    change with an approval, or "". Times are microseconds since 1970.
    """

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
    editable: Editable = ""


class Reply(NamedTuple):
    """A person's answer: approved, rejected or answered; by whom, over which channel, and why. `value` is the answer,
    or the task or arguments as the person changed them."""

    state: QuestionState
    by: str
    channel: str = ""
    why: str = ""
    value: Json = None


class QuestionDraft(NamedTuple):
    """A question that is to be asked. `choices` are the possible answers; none means any text. `shows` is the action
    that an approval permits. `seconds` is how long it stays open; None means as long as the task may run. `about` has
    further texts that the digest covers, such as the task. `raises` is the payment that lacks money; `suffix`
    distinguishes the operation of this question from others of the same action."""

    kind: QuestionKind
    text: str
    choices: tuple[str, ...] = ()
    default: Json = None
    expires: Expiry = "reject"
    seconds: float | None = None
    shows: Shows = {}  # noqa: RUF012 - never changed
    about: tuple[str, ...] = ()
    raises: Mapping[str, Json] = {}
    suffix: str = ""

    @property
    def digest(self) -> str:
        """The digest of everything that is asked. It is a full digest, because an approval is bound to it."""
        return whole_digest(encode([self.kind, self.text, [*self.choices], self.shows, [*self.about]]))


def asked_by_agent(text: object, choices: object, default: object) -> QuestionDraft:
    """Return an agent's question to a person as a draft. Raise `BadInput` if it is invalid."""
    question = plain(text, "a question", TEXT_LIMIT)
    given: list[Any] = [] if choices is None else _choice_list(choices)
    if len(given) > CHOICES:
        raise BadInput(f"a question has at most {CHOICES} choices, got {len(given)}")
    words = tuple(plain(choice, "a choice", CHOICE_LIMIT) for choice in given)
    if len(set(words)) != len(words):
        raise BadInput("two choices of a question are the same; each must be different")
    if default is not None:
        plain(default, "the default answer", TEXT_LIMIT)
        if words and default not in words:
            raise BadInput(f"the default {shown(default)} is none of the choices{meant(default, words)}")
    return QuestionDraft(
        "ask", question, words, cast("str | None", default), "default" if default is not None else "reject"
    )


def _choice_list(choices: object) -> list[Any]:
    if isinstance(choices, str) or not hasattr(choices, "__iter__"):
        raise BadInput(f'choices is a list of answers, such as ["red", "blue"], not {shown(choices)}')
    return list(cast("Any", choices))


def accepted(question: Question, choices: list[str], value: object) -> Json:
    """Return a person's answer. Raise `BadInput` if it is empty, too long, or none of the choices."""
    if value is None:
        raise BadInput("an answer must not be empty")
    text = plain(value, "an answer", TEXT_LIMIT)
    if choices and text not in choices:
        raise BadInput(
            f"{shown(value)} is none of the answers to {question.id}: {', '.join(choices)}{meant(text, choices)}"
        )
    return text


def editable(kind: QuestionKind, shows: Shows) -> Editable:
    """Return what a person may change with an approval: the task of a delegation, the arguments of an action, a result,
    or an amount of money. Handoffs and plan steps stay as they are: a changed text would not be used there."""
    if "step" in shows or (kind == "hop" and shows.get("action") == "handoff"):
        return ""
    return _EDITABLE[kind]


def decided(question: Question, by: str, channel: str, at: int) -> str:
    """Return the sentence that says who has answered already, and when."""
    word = {"answered": "was answered", "withdrawn": "was withdrawn", "expired": "has expired"}
    how = word.get(question.state, f"was {question.state}")
    whom = f" by {by}" if by else ""
    where = f" over {channel}" if channel else ""
    return f"question {question.id} {how}{whom}{where} at {iso(at)}; the first answer counts"
