"""Backoff: whether trying again can help, judged by type and status and never by words, and how long to wait."""

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
    """Tell whether the same thing, done again a little later, may go well."""
    if isinstance(error, RemitError):
        return error.retryable
    status = _status(error)
    if status is not None:
        return status in _STATUSES or 500 <= status <= 599
    return isinstance(error, _TYPES) or any(_path(kind) in _NAMED for kind in type(error).__mro__)


def _status(error: BaseException) -> int | None:
    """Find the HTTP status that an error carries, in one of the places where client libraries put it."""
    places = (error, getattr(error, "response", None))
    for place in places:
        for name in ("status_code", "status"):
            status = getattr(place, name, None)
            if isinstance(status, int) and not isinstance(status, bool) and 100 <= status <= 599:
                return status
    return None


def _path(kind: type) -> str:
    """Name a class as it is public: `httpx._exceptions.TransportError` is `httpx.TransportError`."""
    parts = [part for part in kind.__module__.split(".") if not part.startswith("_")]
    return ".".join((*parts, kind.__qualname__))


def delay(tries: int, chance: float) -> int:
    """Choose how long to wait after so many failures: 1, 2, 4, 8, 10 s, and up to a fifth more so that not all come
    back at once. `chance` is between 0 and 1."""
    plain = min(MOST, FIRST << min(max(tries - 1, 0), 10))
    return plain + round(plain * JITTER * chance)
