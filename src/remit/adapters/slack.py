"""A channel that posts questions to Slack, with link buttons; answers come through the links.

Serving(channels=[Slack(webhook_url, "https://ops.example.com", secret), AnswerServer(secret)])
"""

import json
from typing import Any, Final

from remit.adapters.asking.http import Http, address, address_hidden
from remit.adapters.asking.links import LOOK, Links, Option, labels
from remit.adapters.asking.secrecy import SecretGiven, secret_reader
from remit.core.question import Inquiry
from remit.errors import BadInput
from remit.report.printable import picture_line, visible_line
from remit.report.questions import asked_by, shown_question

_TEXT: Final = 2_900  # characters of a block
_LABEL: Final = 75
_NOTICE: Final = 300  # of the notification on a phone
_READ: Final = "Read it whole"
_SAID: Final = 100


class Slack:
    """Posts each question to an incoming webhook of Slack, whose address is a secret. The buttons are the same links as
    those of `Webhook`; `AnswerServer` serves them."""

    def __init__(self, webhook_url: SecretGiven, base_url: str, secret: SecretGiven, *, name: str = "slack") -> None:
        self.name = name
        self._url = secret_reader(webhook_url, "the address of Slack's webhook")
        address(self._url(), "the address of Slack's webhook")
        if not base_url:
            raise BadInput("Slack needs the base_url under which links are answered; nothing comes back over Slack")
        self._links = Links(secret, base_url)
        self._http = Http(address_hidden(self._url))

    def __repr__(self) -> str:
        return f"<Slack '{self.name}'>"

    async def tell(self, workspace: str, inquiry: Inquiry) -> str:
        body = json.dumps(_message(workspace, inquiry, self._links)).encode()
        answered = await self._http.post(self._url, body, {"content-type": "application/json"})
        answered.judge(_why(answered.body))
        return inquiry.id


def _message(workspace: str, inquiry: Inquiry, links: Links) -> dict[str, Any]:
    head = f"{asked_by(inquiry)}\n"
    shown = shown_question(inquiry, _TEXT - len(head))
    if shown.whole:
        buttons = [_button(label, links.url(workspace, inquiry, one.code), one.code) for one, label in _labels(inquiry)]
        note = f"question {inquiry.id}"
    else:  # no buttons: a person must not approve what they cannot see
        buttons = [_button(_READ, links.url(workspace, inquiry, LOOK), LOOK)]
        note = f"question {inquiry.id}: not all of it is shown here; read it whole to answer"
    return {
        "text": _escaped(picture_line(visible_line(f"Question {inquiry.id}: {inquiry.text[:_NOTICE]}"), _NOTICE)),
        "blocks": [
            *([_section(head.rstrip()), _code(shown.text)] if shown.has_quotes else [_section(f"{head}{shown.text}")]),
            {"type": "actions", "elements": buttons},
            {"type": "context", "elements": [_plain(note)]},
        ],
    }


def _labels(inquiry: Inquiry) -> list[tuple[Option, str]]:
    return labels(inquiry, _LABEL)


def _button(label: str, url: str, code: str) -> dict[str, Any]:
    return {"type": "button", "text": _plain(label), "url": url, "action_id": f"choice-{code}"}


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": _plain(text)}


def _code(text: str) -> dict[str, Any]:
    """Return a code block. Slack takes the text of this element as it is, so backticks cannot end the block."""
    code = {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text}]}
    return {"type": "rich_text", "elements": [code]}


def _plain(text: str) -> dict[str, Any]:
    """Return text that Slack shows as it is: without links, and without mentioning everyone."""
    return {"type": "plain_text", "text": text, "emoji": False}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _why(body: bytes) -> str:
    """Return Slack's error word, such as no_service, or ""."""
    word = body.decode(errors="replace")[:_SAID]
    return word if word.replace("_", "").isalnum() and word.isascii() else ""
