"""The meaning of model client errors, by type, status and code. The clients of OpenAI and Anthropic and similar ones
use the same names for their errors, so they are recognized by name, without an import."""

from collections.abc import Mapping
from typing import Final

from remit.adapters.bodies import unreadable
from remit.adapters.said import provider_words
from remit.core.recovery import FailureKind, ModelFailure, kind_of
from remit.core.times import SECOND

_UNSENT: Final = frozenset(("ConnectError", "ConnectTimeout", "PoolTimeout"))  # no connection, so nothing was sent
# The first match counts; None means that the HTTP status decides.
_KINDS: Final[tuple[tuple[str, FailureKind | None], ...]] = (
    ("ContextOverflowError", "overflow"),
    ("APITimeoutError", "timeout"),
    ("APIConnectionError", "connection"),
    ("APIStatusError", None),
    ("APIResponseValidationError", "broken"),
    ("APIError", "broken"),  # reported in the middle of a stream
    ("LengthFinishReasonError", "broken"),
    ("ContentFilterFinishReasonError", "broken"),
    ("ModelBehaviorError", "broken"),
    ("JSONDecodeError", "broken"),
    ("ValidationError", "broken"),  # JSON, but not an answer
    ("TimeoutException", "timeout"),  # of the transport, while reading an answer
    ("TransportError", "connection"),
)


def failure_of(error: Exception) -> ModelFailure | None:
    """Return the meaning of a client's error, or None if it is not a model failure."""
    if why := unreadable(error):
        return ModelFailure("broken", said=why)
    if isinstance(error, AttributeError) and isinstance(error.obj, str | tuple):
        return ModelFailure("broken")  # an HTML page, which clients return as text, was taken for an answer
    names = {kind.__name__ for kind in type(error).__mro__}
    row = next((row for row in _KINDS if row[0] in names), None)
    if row is None:
        return None
    status, code = _status(error), str(getattr(error, "code", None) or "")
    kind = row[1]
    if kind is None:
        kind = kind_of(status or 500, code)
    sent = status is not None or not _UNSENT & _causes(error)
    return ModelFailure(kind, status, code, _retry_after(error), sent, provider_words(error))


def _status(error: Exception) -> int | None:
    found = getattr(error, "status_code", None)
    return found if isinstance(found, int) else None


def _causes(error: BaseException) -> set[str]:
    """Return the class names of the error and its causes; a cycle of causes is handled."""
    names: set[str] = set()
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        names.update(kind.__name__ for kind in type(at).__mro__)
        at = at.__cause__ or at.__context__
    return names


def _retry_after(error: Exception) -> int | None:
    headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", None) or {}
    return _micros(headers, "retry-after-ms", SECOND // 1_000) or _micros(headers, "retry-after", SECOND)


def _micros(headers: Mapping[str, str], name: str, unit: int) -> int | None:
    try:
        return max(0, round(float(headers.get(name, "")) * unit))
    except (ValueError, OverflowError):  # a date, or nonsense
        return None
