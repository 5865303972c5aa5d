"""The possible answers to a question, and a link for each of them.

The token of a link is a MAC over the workspace, the question, the choice, the digest of exactly what is asked, and the
expiry: it is valid for this choice of this question only. It is valid once, because only the first answer counts.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import urlencode

from remit.adapters.asking.http import address
from remit.adapters.asking.secrecy import secret_reader
from remit.core.hook import PREFIX
from remit.core.question import Inquiry, QuestionState, Reply
from remit.errors import BadInput
from remit.report.printable import visible_line

TEXT: Final = "text"  # the choice of a free text
LOOK: Final = "look"  # no answer: the link to the page with the whole question and all its answers
TOKEN_BYTES: Final = 20

_SHORTEST, _LONGEST = 24, 64  # bytes of a secret
_DECISIONS: Final[dict[str, QuestionState]] = {"approve": "approved", "reject": "rejected"}


class Option(NamedTuple):
    """One possible answer: `code` identifies it in links and buttons, `label` is the text for people."""

    code: str
    label: str


def options(inquiry: Inquiry) -> tuple[Option, ...]:
    """Return the possible answers to a question."""
    if inquiry.kind != "ask":
        return Option("approve", "Approve"), Option("reject", "Send back" if inquiry.kind == "review" else "Reject")
    if inquiry.choices:
        return tuple(Option(str(number), choice) for number, choice in enumerate(inquiry.choices))
    return (Option(TEXT, "Answer"),)


def labels(inquiry: Inquiry, most: int) -> list[tuple[Option, str]]:
    """Return the answers with button texts of at most `most` characters. If one does not fit or needs escapes, each
    begins with its number in the question's list."""
    found = options(inquiry)
    if all(visible_line(one.label) == one.label and len(one.label) <= most for one in found):
        return [(one, one.label) for one in found]
    room = most - len(f"{len(found)}: …")
    return [(one, f"{number}: {_cut(visible_line(one.label), room)}") for number, one in enumerate(found, 1)]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def option(inquiry: Inquiry, code: str) -> Option | None:
    """Return the answer of a code, or None."""
    return next((one for one in options(inquiry) if one.code == code), None)


def replied(inquiry: Inquiry, chosen: Option, by: str, channel: str, said: str = "") -> Reply:
    """Return the reply of a person who chose this option; `said` is the answer itself, another amount of money, or the
    reason."""
    if inquiry.kind == "money" and chosen.code == "approve" and said:
        return Reply("approved", by, channel, value=said)
    if inquiry.kind != "ask":
        return Reply(_DECISIONS[chosen.code], by, channel, why=said)
    return Reply("answered", by, channel, value=said if chosen.code == TEXT else chosen.label)


def signing_key(given: object, what: str = "the secret") -> Callable[[], bytes]:
    """Return a function that reveals the webhook's secret: `whsec_` and base64 of 24 to 64 bytes, or the same without
    `whsec_`. Raise `BadInput` for any other form."""
    reveal = secret_reader(given, what)

    def key() -> bytes:
        text = reveal().removeprefix(PREFIX)
        try:
            found = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        except (binascii.Error, ValueError):
            found = b""
        if not _SHORTEST <= len(found) <= _LONGEST:
            made = "python -c \"import base64, os; print('whsec_' + base64.b64encode(os.urandom(32)).decode())\""
            raise BadInput(f"{what} is base64 of {_SHORTEST} to {_LONGEST} bytes; make one with {made}")
        return found

    key()  # so that a wrong secret is refused here, not at the first use
    return key


def mac(key: bytes, workspace: str, inquiry: Inquiry, code: str, size: int = TOKEN_BYTES) -> str:
    """Return the token of one choice. Each part is prefixed with its length, so that no two inputs have the same
    bytes."""
    parts = (workspace, inquiry.id, code, inquiry.digest, str(inquiry.until))
    message = b"".join(len(part).to_bytes(8, "big") + part for part in (one.encode() for one in parts))
    return base64.urlsafe_b64encode(hmac.digest(key, message, "sha256")[:size]).decode().rstrip("=")


def same(one: str, other: str) -> bool:
    """Whether two tokens are equal, compared in constant time."""
    return hmac.compare_digest(one.encode(errors="replace"), other.encode(errors="replace"))


class Links:
    """Links below an address, signed with a key that is derived from the channel's secret for this purpose only."""

    def __init__(self, secret: object, base_url: object = "") -> None:
        secret_key = signing_key(secret)
        self._key: Callable[[], bytes] = lambda: hmac.digest(secret_key(), b"remit-link-1", hashlib.sha256)
        self.base_url = address(base_url, "base_url").rstrip("/") if base_url else ""
        if "?" in self.base_url or "#" in self.base_url:
            raise BadInput("base_url ends with the path under which the answers are; leave out what follows ? and #")

    def token(self, workspace: str, inquiry: Inquiry, code: str) -> str:
        return mac(self._key(), workspace, inquiry, code)

    def verified(self, workspace: str, inquiry: Inquiry, code: str, token: str) -> tuple[Option, ...]:
        """Return the options that a token permits: one choice, or all of them for the link that shows the question.
        Return an empty tuple if the token is invalid."""
        if not same(self.token(workspace, inquiry, code), token):
            return ()
        chosen = option(inquiry, code)
        return options(inquiry) if code == LOOK else (chosen,) if chosen is not None else ()

    def url(self, workspace: str, inquiry: Inquiry, code: str) -> str:
        says = {"w": workspace, "q": inquiry.id, "c": code, "t": self.token(workspace, inquiry, code)}
        return f"{self.base_url}/answer?{urlencode(says)}"

    def all(self, workspace: str, inquiry: Inquiry) -> list[tuple[Option, str]]:
        """Return the links of a question; empty if the channel has no address for them."""
        if not self.base_url:
            return []
        return [(one, self.url(workspace, inquiry, one.code)) for one in options(inquiry)]
