"""Trying again: whether it can help, decided by type and status and never by words, and how long to wait before."""

from typing import Final

from remit.core.times import SECOND
from remit.errors import RemitError

ATTEMPTS: Final = 4
FIRST: Final = SECOND
MOST: Final = 10 * SECOND
JITTER: Final = 0.2

_STATUSES: Final = frozenset((408, 409, 425, 429))  # and everything from 500 on
_TYPES: Final = (ConnectionError, TimeoutError)

# Network errors of client libraries that are no OSError, by where they are defined: naming them costs no import.
_NAMED: Final = frozenset(
    (
        "aiohttp.client_exceptions.ClientConnectionError",
        "anthropic.APIConnectionError",
        "httpcore.NetworkError",
        "httpcore.ProtocolError",
        "httpcore.TimeoutException",
        "httpx.TransportError",
        "openai.APIConnectionError",
        "psycopg.OperationalError",
        "requests.exceptions.ConnectionError",
        "requests.exceptions.Timeout",
        "urllib3.exceptions.HTTPError",
    )
)


def retryable(error: BaseException) -> bool:
    """Whether the same thing, done again a little later, may go well."""
    if isinstance(error, RemitError):
        return error.retryable
    status = _status(error)
    if status is not None:
        return status in _STATUSES or 500 <= status <= 599
    return isinstance(error, _TYPES) or any(_path(kind) in _NAMED for kind in type(error).__mro__)


def _status(error: BaseException) -> int | None:
    """The HTTP status an error carries, in one of the places where client libraries put it."""
    places = (error, getattr(error, "response", None))
    for place in places:
        for name in ("status_code", "status"):
            found = getattr(place, name, None)
            if isinstance(found, int) and not isinstance(found, bool) and 100 <= found <= 599:
                return found
    return None


def _path(kind: type) -> str:
    """`httpx._exceptions.TransportError` is public as `httpx.TransportError`: private modules are left out."""
    parts = [part for part in kind.__module__.split(".") if not part.startswith("_")]
    return ".".join((*parts, kind.__qualname__))


def delay(tries: int, chance: float) -> int:
    """How long to wait after so many failures: 1, 2, 4, 8, 10 s, and up to a fifth more so that not all come back at
    once. `chance` is between 0 and 1."""
    plain = min(MOST, FIRST << min(max(tries - 1, 0), 10))
    return plain + round(plain * JITTER * chance)
