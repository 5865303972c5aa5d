"""A question of an agent as a form of the client, and the person's answer.

Only the form decides: no tool approves anything, because a model uses the tools.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from remit.adapters.asking.links import Option, options, replied
from remit.core.question import Inquiry, Reply
from remit.core.values import Json
from remit.errors import BadInput
from remit.report.questions import asked_by, shown_question

CHANNEL: Final = "mcp"  # of an answer that a person gives in the client
_SIZE: Final = 12_000  # characters of a question in the form
_ANSWER, _WHY, _AMOUNT = "answer", "why", "amount"
_DECLINED: Final = "declined in the MCP client"


class QuestionForm(NamedTuple):
    """The text and the JSON Schema of a form."""

    message: str
    schema: dict[str, Any]


def form_of(inquiry: Inquiry, wrong: str = "") -> QuestionForm | None:
    """Return the form of a question, or None if it is too long to be shown whole: then nothing may be approved here.
    `wrong` says what was wrong with the answer before."""
    shown = shown_question(inquiry, _SIZE, choices=False)
    if not shown.whole:
        return None
    lines = [*([f"{wrong}\n"] if wrong else []), asked_by(inquiry)]
    properties: dict[str, Any] = {_ANSWER: _answer_schema(inquiry)}
    if inquiry.kind != "ask":
        properties[_WHY] = {"type": "string", "description": "The reason; the agent gets it."}
    if inquiry.kind == "money":
        properties[_AMOUNT] = {"type": "string", "description": "Another amount, such as 0.50USD."}
    message = "\n".join([*lines, *map(str, shown.lines)])
    return QuestionForm(message, {"type": "object", "properties": properties, "required": [_ANSWER]})


def _answer_schema(inquiry: Inquiry) -> dict[str, Any]:
    if inquiry.kind == "ask" and not inquiry.choices:
        return {"type": "string", "description": "Your answer."}
    return {"type": "string", "enum": [_word(inquiry, one) for one in options(inquiry)]}


def _word(inquiry: Inquiry, option: Option) -> str:
    """Return the word for an option in the form: a choice as the agent wrote it."""
    return option.label if inquiry.kind == "ask" else option.label.lower()


def reply_of(inquiry: Inquiry, action: str, content: Mapping[str, Any] | None, by: str) -> Reply | None:
    """Return the person's reply, or None if the form was left without one. Declining an approval rejects it. Raise
    `BadInput` for an answer that the form does not have."""
    if action != "accept":
        if action == "decline" and inquiry.kind != "ask":
            return Reply("rejected", by, CHANNEL, _DECLINED)
        return None
    given = content or {}
    answer, said = given.get(_ANSWER), ""
    offered = options(inquiry)
    if inquiry.kind == "ask" and not inquiry.choices:
        chosen, said = offered[0], _text(answer)
    else:
        chosen = next((one for one in offered if _word(inquiry, one) == answer), None)
        if chosen is None:
            raise BadInput(f"the answer is one of: {', '.join(_word(inquiry, one) for one in offered)}")
    if inquiry.kind != "ask":
        said = _text(given.get(_WHY))
        if inquiry.kind == "money" and chosen.code == "approve":
            said = _text(given.get(_AMOUNT))
    return replied(inquiry, chosen, by, CHANNEL, said)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def question_data(inquiry: Inquiry) -> dict[str, Json]:
    """Return an open question as data for a model: its id, its text and choices, and the agent and the run that it
    belongs to."""
    return {
        "question": inquiry.id,
        "kind": inquiry.kind,
        "agent": inquiry.agent,
        "task": inquiry.run,
        "text": inquiry.text,
        "choices": [*inquiry.choices],
    }
