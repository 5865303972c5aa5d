"""Backoff: whether a retry can help, judged by the error's type and status and never by its text, and how long to wait
before it."""

import errno
from datetime import UTC, datetime, timedelta
from typing import Final, cast

from remit.core.checks import between
from remit.core.records import dataclass
from remit.core.recovery import kind_of
from remit.core.times import SECOND, SpanGiven, span
from remit.errors import RemitError

ATTEMPTS: Final = 4
ATTEMPTS_LIMIT: Final = 1_000
LONGEST_WAIT: Final = 600 * SECOND  # even if Retry-After says more, unless the policy itself waits longer
JITTER: Final = 0.2

_STATUSES: Final = frozenset((408, 409, 425, 429))  # and everything from 500 on
_TYPES: Final = (ConnectionError, TimeoutError)
_NUMBERS: Final = frozenset(
    getattr(errno, name)
    for name in (
        *("ECONNABORTED", "ECONNREFUSED", "ECONNRESET", "EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETRESET"),
        *("ENETUNREACH", "ENOTCONN", "EPIPE", "ESHUTDOWN", "ETIMEDOUT"),
    )
    if hasattr(errno, name)
)

# Network errors of libraries, by the public names of their classes, because importing the libraries would take time.
_NAMED: Final = frozenset(
    (
        "aiohttp.client_exceptions.ClientConnectionError",
        "aiohttp.client_exceptions.ClientPayloadError",
        "anthropic.APIConnectionError",
        "http.client.IncompleteRead",
        "http.client.RemoteDisconnected",
        "httpcore.NetworkError",
        "httpcore.ProtocolError",
        "httpcore.TimeoutException",
        "httpcore2.NetworkError",
        "httpcore2.ProtocolError",
        "httpcore2.TimeoutException",
        "httpx.TransportError",
        "httpx2.TransportError",
        "openai.APIConnectionError",
        "psycopg.OperationalError",
        "pydantic_ai.exceptions.ModelConnectionError",
        "pydantic_ai.exceptions.ModelRequestTimeout",
        "requests.exceptions.ChunkedEncodingError",
        "requests.exceptions.ConnectionError",
        "requests.exceptions.Timeout",
        "socket.gaierror",  # a name that could not be looked up
        "ssl.SSLEOFError",
        "ssl.SSLZeroReturnError",
        "urllib3.exceptions.HTTPError",
    )
)
# Never retried, whatever status they carry: neither a certificate nor an account fixes itself.
_NEVER: Final = frozenset(
    (
        "aiohttp.client_exceptions.ClientSSLError",
        "pydantic_ai.exceptions.ModelQuotaExceededError",
        "ssl.SSLCertVerificationError",
    )
)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How queued tasks of an agent are retried. `attempts` is the number of attempts in all; `attempts=1` means no
    retry. `first` is the pause in seconds after the first failure. Each further pause is twice as long, up to `cap`. A
    server that asks for a longer pause gets it, up to `cap` or ten minutes."""

    attempts: int = ATTEMPTS
    first: SpanGiven = 1.0
    cap: SpanGiven = 10.0

    def __post_init__(self) -> None:
        between(self.attempts, "attempts", 1, ATTEMPTS_LIMIT)
        span(self.first, "first")
        span(self.cap, "cap")


USUAL: Final = RetryPolicy()


def retryable(error: BaseException) -> bool:
    """Whether the same call may succeed if it is repeated a little later."""
    if isinstance(error, RemitError):
        return error.retryable
    if isinstance(error, BaseExceptionGroup):
        return all(retryable(one) for one in cast("BaseExceptionGroup[BaseException]", error).exceptions)
    paths = [_path(kind) for kind in type(error).__mro__]
    if not _NEVER.isdisjoint(paths):
        return False
    status = _status(error)
    if status is not None:
        return (status in _STATUSES or 500 <= status <= 599) and not _is_unpaid(error, status)
    if "urllib.error.URLError" in paths:  # a wrapper: its cause decides
        reason = getattr(error, "reason", None)
        return isinstance(reason, BaseException) and retryable(reason)
    return isinstance(error, _TYPES) or _passes(error) or not _NAMED.isdisjoint(paths)


def _passes(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in _NUMBERS


def _status(error: BaseException) -> int | None:
    """Return the HTTP status that an error carries, in one of the attributes where client libraries put it, or None."""
    for place in (error, _read(error, "response")):
        for name in ("status_code", "status"):
            status = _read(place, name)
            if isinstance(status, int) and not isinstance(status, bool) and 100 <= status <= 599:
                return status
    return None


def _is_unpaid(error: BaseException, status: int) -> bool:
    """Whether a model provider reports missing credit under a status that usually means something else."""
    code = _read(error, "code")
    return isinstance(code, str) and kind_of(status, code) == "billing"


def _path(kind: type) -> str:
    """Return the public name of a class: `httpx._exceptions.TransportError` is `httpx.TransportError`."""
    parts = [part for part in kind.__module__.split(".") if not part.startswith("_")]
    return ".".join((*parts, kind.__qualname__))


def _read(place: object, name: str) -> object:
    """Return an attribute of a foreign error, or None if it is missing or its property raises."""
    try:
        return getattr(place, name, None)
    except Exception:  # noqa: BLE001 - foreign code
        return None


def wanted_wait(error: BaseException, now: int, policy: RetryPolicy = USUAL) -> int:
    """Return how long a server asks clients to wait, in microseconds: `retry_after` of the error, or the Retry-After
    header of its response, in seconds or as a date. Return 0 if the server names no time. Return at most ten minutes,
    or `policy.cap` if that is longer. For a group of errors, return the longest wait."""
    if isinstance(error, BaseExceptionGroup):
        parts = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return max(wanted_wait(one, now, policy) for one in parts)
    for said in (_read(error, "retry_after"), _header(error), _header(_read(error, "response"))):
        wait = _wait(said, now)
        if wait is not None:
            return min(wait, max(LONGEST_WAIT, span(policy.cap, "cap")))
    return 0


def _header(place: object) -> object:
    headers = _read(place, "headers")
    get = _read(headers, "get")
    if not callable(get):
        return None
    try:
        return get("retry-after") or get("Retry-After")
    except Exception:  # noqa: BLE001 - a foreign mapping
        return None


def _wait(said: object, now: int) -> int | None:
    if isinstance(said, timedelta):
        said = said.total_seconds()
    if isinstance(said, str):
        return _wait_in_words(said.strip(), now)
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said < _FAR:
        return None
    return round(said * SECOND)


def _wait_in_words(said: str, now: int) -> int | None:
    """Return the wait in microseconds that a Retry-After header asks for. The header has seconds, or a date such as
    `Sun, 15 Nov 2026 15:00:00 GMT`. Return None for any other text."""
    try:
        return _wait(float(said), now)
    except ValueError:
        pass
    try:
        when = datetime.strptime(said, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
    except ValueError:
        return None
    return max(0, round(when.timestamp() * SECOND) - now)


_FAR: Final = 10**9
_DOUBLINGS: Final = 50  # of a microsecond: 35 years


def delay(tries: int, chance: float, policy: RetryPolicy = USUAL) -> int:
    """Return the pause after `tries` failures, in microseconds: 1, 2, 4, 8, 10 s by default, plus up to a fifth of
    jitter, so that tasks that failed together do not retry together. `chance` is the random part, between 0 and 1."""
    first, cap = span(policy.first, "first"), span(policy.cap, "cap")
    plain = min(cap, first << min(max(tries - 1, 0), _DOUBLINGS))
    return plain + round(plain * JITTER * chance)
