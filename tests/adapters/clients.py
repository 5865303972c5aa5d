"""What clients of models meet, for the tests of every framework: replies that are no answer, and what they mean."""

import socket
from typing import NamedTuple

from remit.core.recovery import ModelFailure
from remit.core.times import SECOND
from remit.testing.models import Cut, Fails, Garbage, ModelReply, Overflow, Reset, Says, Slow


class Row(NamedTuple):
    """A reply, and what the failure of it is; its status and code are the reply's unless it says otherwise."""

    reply: ModelReply
    failure: ModelFailure


ROWS = {
    "429, wait 7 s": Row(Fails(429, retry_after=7), ModelFailure("rate-limit", 429, "rate_limit_exceeded", 7 * SECOND)),
    "429, wait 1.5 s": Row(
        Fails(429, retry_after=1.5), ModelFailure("rate-limit", 429, "rate_limit_exceeded", 3 * SECOND // 2)
    ),
    "429": Row(Fails(429), ModelFailure("rate-limit", 429, "rate_limit_exceeded")),
    "429, quota": Row(Fails(429, code="insufficient_quota"), ModelFailure("billing", 429, "insufficient_quota")),
    "402": Row(Fails(402), ModelFailure("billing", 402, "insufficient_quota")),
    "401": Row(Fails(401), ModelFailure("auth", 401, "invalid_api_key")),
    "403": Row(Fails(403), ModelFailure("auth", 403)),
    "too long": Row(Overflow(), ModelFailure("overflow", 400, "context_length_exceeded")),
    "413": Row(Fails(413), ModelFailure("overflow", 413)),
    "400": Row(Fails(400), ModelFailure("rejected", 400)),
    "422": Row(Fails(422), ModelFailure("rejected", 422)),
    "404": Row(Fails(404), ModelFailure("not-found", 404, "model_not_found")),
    "408": Row(Fails(408), ModelFailure("unavailable", 408)),
    "409": Row(Fails(409), ModelFailure("unavailable", 409)),
    "500": Row(Fails(500), ModelFailure("unavailable", 500)),
    "503": Row(Fails(503), ModelFailure("unavailable", 503)),
    "529": Row(Fails(529), ModelFailure("unavailable", 529)),
    "reset": Row(Reset(), ModelFailure("connection")),
    "cut": Row(Cut(Says("half of this does not arrive")), ModelFailure("connection")),
    "slow": Row(Slow(Says("too late"), 60), ModelFailure("timeout")),
    "garbage": Row(Garbage(), ModelFailure("broken")),
    "a page": Row(Garbage(content_type="text/html"), ModelFailure("broken")),
}
IMPATIENCE = 0.3  # seconds that a client waits where the reply is slow


def closed_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
