"""A channel that posts questions to a webhook, signed according to standardwebhooks.com.

Serving(channels=[Webhook("https://example.com/hook", secret, "https://ops.example.com"), AnswerServer(secret)])
"""

import json
from collections.abc import Callable
from time import time_ns
from typing import Any, Final

from remit.adapters.asking.http import Http, address, address_hidden
from remit.adapters.asking.links import Links, signing_key
from remit.adapters.asking.secrecy import SecretGiven, secret_reader
from remit.adapters.asking.server import AnswerServer
from remit.core.hook import signed_headers
from remit.core.question import Inquiry
from remit.core.times import iso

__all__ = ["AnswerServer", "Webhook"]

_NANO: Final = 1_000_000_000


class Webhook:
    """Posts each question to an address, with links to answer it if there is a `base_url` that serves them.

    The secret signs the posts and the links. `webhook-id` is the id of the question, the same at every try.
    """

    def __init__(
        self,
        url: SecretGiven,
        secret: SecretGiven,
        base_url: str = "",
        *,
        name: str = "webhook",
        now: Callable[[], int] = time_ns,
    ) -> None:
        self.name = name
        self._url = secret_reader(url, "the address of a webhook")
        address(self._url(), "the address of a webhook")
        self._key = signing_key(secret)
        self._links = Links(secret, base_url)
        self._http = Http(address_hidden(self._url))
        self._now = now

    def __repr__(self) -> str:
        return f"<Webhook '{self.name}'>"

    async def tell(self, workspace: str, inquiry: Inquiry) -> str:
        body = json.dumps(_payload(workspace, inquiry, self._links)).encode()
        headers = signed_headers([self._key()], inquiry.id, self._now() // _NANO, body)
        (await self._http.post(self._url, body, headers)).judge()
        return inquiry.id


def _payload(workspace: str, inquiry: Inquiry, links: Links) -> dict[str, Any]:
    """Return everything that a person needs to decide."""
    return {
        "type": "question.asked",
        "timestamp": iso(inquiry.asked_at),
        "data": {
            "workspace": workspace,
            "question": inquiry.id,
            "kind": inquiry.kind,
            "text": inquiry.text,
            "agent": inquiry.agent,
            "chain": inquiry.chain,
            "run": inquiry.run,
            "session": inquiry.session,
            "task": inquiry.task,
            "shows": inquiry.shows,
            "choices": [*inquiry.choices],
            "default": inquiry.default,
            "until": iso(inquiry.until),
            "links": [
                {"choice": one.code, "label": one.label, "url": url} for one, url in links.all(workspace, inquiry)
            ],
        },
    }
