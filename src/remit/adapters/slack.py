"""Telling people of questions in Slack, with link buttons; nothing comes back over Slack.

Serving(channels=[Slack(webhook_url, "https://ops.example.com", secret), AnswerServer(secret)])
"""

import json
from typing import Any, Final

from remit.adapters.asking.http import Http, address, address_hidden
from remit.adapters.asking.links import Links
from remit.adapters.asking.secrecy import SecretGiven, kept
from remit.core.question import Inquiry
from remit.core.times import iso
from remit.errors import BadInput

_TEXT: Final = 2_900  # characters of a block
_LABEL: Final = 75
_SAID: Final = 100


class Slack:
    """Posts each question to an incoming webhook of Slack, whose address is a secret. The buttons are the same links as
    those of `Webhook`, and `AnswerServer` answers them."""

    def __init__(self, webhook_url: SecretGiven, base_url: str, secret: SecretGiven, *, name: str = "slack") -> None:
        self.name = name
        self._url = kept(webhook_url, "the address of Slack's webhook")
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
    lines = [inquiry.text, "", f"asked by {inquiry.chain or inquiry.agent}, open until {iso(inquiry.until)}"]
    lines += [f"{name}: {_spelled(value)}" for name, value in inquiry.shows.items() if name != "chain"]
    buttons = [
        {"type": "button", "text": _plain(one.label, _LABEL), "url": url, "action_id": f"choice-{one.code}"}
        for one, url in links.all(workspace, inquiry)
    ]
    return {
        "text": _escaped(_cut(f"Question {inquiry.id}: {inquiry.text}", 300)),
        "blocks": [
            {"type": "section", "text": _plain("\n".join(lines), _TEXT)},
            {"type": "actions", "elements": buttons},
            {"type": "context", "elements": [_plain(f"question {inquiry.id}", _TEXT)]},
        ],
    }


def _plain(text: str, most: int) -> dict[str, Any]:
    """Give text in which Slack finds nothing to do: no links, no mention of everyone."""
    return {"type": "plain_text", "text": _cut(text, most), "emoji": False}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _spelled(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _why(body: bytes) -> str:
    """Give the word by which Slack says what is wrong, such as no_service."""
    word = body.decode(errors="replace")[:_SAID]
    return word if word.replace("_", "").isalnum() and word.isascii() else ""
