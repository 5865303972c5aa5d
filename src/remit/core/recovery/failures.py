"""How a request to a model fails: of what kind it is, judged by status and code and never by words, and what of the
money that was put by for it is lost."""

from typing import Final, Literal, NamedTuple

FailureKind = Literal[
    "rate-limit",
    "billing",
    "auth",
    "forbidden",
    "no-key",
    "overflow",
    "rejected",
    "not-found",
    "unavailable",
    "connection",
    "timeout",
    "broken",
]

# What the key did wrong, or has used up: another key may do better.
KEY_KINDS: Final[frozenset[FailureKind]] = frozenset(("rate-limit", "billing", "auth", "forbidden", "no-key"))
# A pause mends none of them: the owner of the key has to do something.
LASTING: Final[frozenset[FailureKind]] = frozenset(("billing", "auth", "forbidden", "no-key"))
# What nobody gets an answer of, although the request may have arrived and the model may have been at work.
_UNANSWERED: Final[frozenset[FailureKind]] = frozenset(("timeout", "connection", "broken"))

# A code says more than its status does.
_CODES: Final[dict[tuple[int, str], FailureKind]] = {
    (400, "context_length_exceeded"): "overflow",
    (403, "insufficient_quota"): "billing",
    (429, "insufficient_quota"): "billing",
}
_STATUSES: Final[dict[int, FailureKind]] = {
    401: "auth",
    402: "billing",
    403: "forbidden",
    404: "not-found",
    408: "unavailable",
    409: "unavailable",
    413: "overflow",
    425: "unavailable",
    429: "rate-limit",
}


class ModelFailure(NamedTuple):
    """What one request to a model failed of. `status` is the HTTP status that was answered, `code` the provider's own
    word for it, `retry_after` for how many microseconds the provider wants to be left alone. `sent` is false if the
    request never left. `said` is what the provider wrote, or the address that did not answer: for people to read, never
    to judge by."""

    kind: FailureKind
    status: int | None = None
    code: str = ""
    retry_after: int | None = None
    sent: bool = True
    said: str = ""


def kind_of(status: int, code: str = "") -> FailureKind:
    """Tell what kind of failure an HTTP answer is. One that is no error by its status was broken in another way."""
    if status < 400:
        return "broken"
    found = _CODES.get((status, code)) or _STATUSES.get(status)
    if found is not None:
        return found
    return "unavailable" if status >= 500 else "rejected"


def charged(failure: ModelFailure) -> Literal["nothing", "whole"]:
    """Tell what is charged of the hold: nothing if the request never left or an error was answered; all of it if it
    left and nobody says what it cost."""
    return "whole" if failure.sent and failure.kind in _UNANSWERED else "nothing"
