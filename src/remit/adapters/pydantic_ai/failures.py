"""The meaning of pydantic-ai's errors, by type and status. A provider's message never decides, because its wording may
change; it is shown to people, without any key in it."""

import math
import re
from collections.abc import Iterable
from typing import Final

from pydantic_ai import exceptions as pai

from remit.adapters.bodies import unreadable
from remit.adapters.said import provider_words
from remit.core.recovery import FailureKind, ModelFailure, kind_of
from remit.core.times import SECOND
from remit.errors import BadInput

_UNSENT: Final = ("pool", "connect")  # phases before anything is sent
_CODE: Final = re.compile(r"[a-z][a-z_]{0,63}|\d{1,6}")  # a provider's error code; keys do not look like this
_LINK: Final = re.compile(r"https?://", re.IGNORECASE)
_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+")
_LONGEST: Final = 500  # characters of a framework's message

# The first match counts, so subclasses come before their base classes.
_KINDS: Final[tuple[tuple[type[Exception], FailureKind], ...]] = (
    (pai.ModelContextWindowExceededError, "overflow"),
    (pai.ModelAuthenticationError, "auth"),
    (pai.ModelNotFoundError, "not-found"),
    (pai.ModelQuotaExceededError, "billing"),
    (pai.ModelRateLimitError, "rate-limit"),
    (pai.ModelUnavailableError, "unavailable"),
    (pai.ModelServerError, "unavailable"),
    (pai.ModelRequestRejectedError, "rejected"),
    (pai.ModelRequestTimeout, "timeout"),
    (pai.ModelTimeoutError, "timeout"),
    (pai.ModelConnectionError, "connection"),
    (pai.ContentFilterError, "rejected"),
    (pai.ModelAPIError, "broken"),
    (pai.UnexpectedModelBehavior, "broken"),
)
_FORBIDDEN: Final = 403
_PLAIN: Final[frozenset[FailureKind]] = frozenset(("rate-limit", "broken"))  # status and code may be more specific


class MissingKey(BadInput):
    """A key is not set on this machine. The model is not asked with it; another model may be."""


class EmptyAnswer(pai.UnexpectedModelBehavior):
    """A model gave a valid answer without content."""


class AgentStopped(RuntimeError):
    """A framework's agent could not continue. The message has no provider's text and no links."""


def failure_of(error: Exception, secrets: Iterable[str] = ()) -> ModelFailure | None:
    """Return the meaning of a failed request, or None if it is not a model failure. `secrets` are removed from the
    provider's message."""
    if isinstance(error, MissingKey):
        return ModelFailure("no-key", sent=False, said=str(error))
    if why := unreadable(error):
        return ModelFailure("broken", said=why)
    if isinstance(error, pai.FallbackExceptionGroup):  # a model that tries several itself: the last failure counts
        last = error.exceptions[-1]
        return failure_of(last, secrets) if isinstance(last, Exception) else None
    found: FailureKind | None = next((kind for of, kind in _KINDS if isinstance(error, of)), None)
    if found is None:
        return None
    if not isinstance(error, pai.ModelAPIError):
        return ModelFailure(found)
    status = error.status_code if isinstance(error, pai.ModelHTTPError) else None
    code = _code(error)
    kind = kind_of(status, code) if status is not None and (found in _PLAIN or status == _FORBIDDEN) else found
    sent = not (isinstance(error, pai.ModelConnectionError) and error.phase in _UNSENT)
    return ModelFailure(kind, status, code, _microseconds(error.retry_after), sent, provider_words(error, secrets))


def stopped(error: Exception) -> AgentStopped:
    """Return the error that says in one sentence why a framework's agent could not continue."""
    failure = failure_of(error) if isinstance(error, pai.ModelAPIError | pai.FallbackExceptionGroup) else None
    if failure is not None:
        status = "" if failure.status is None else f" ({failure.status})"
        return AgentStopped(f"the model did not answer: {failure.kind}{status}")
    if isinstance(error, pai.ContentFilterError):
        return AgentStopped("the provider's content filter held the answer back; ask in another way")
    return AgentStopped(said(error))


def said(error: Exception) -> str:
    """Return the framework's own message, shortened, without sentences that only refer to a page."""
    text = error.message if isinstance(error, pai.AgentRunError | pai.UserError) else str(error)
    kept = [sentence for sentence in _SENTENCES.split(" ".join(text.split())) if not _LINK.search(sentence)]
    told = " ".join(kept) or type(error).__name__
    return told if len(told) <= _LONGEST else f"{told[: _LONGEST - 1]}…"


def _code(error: pai.ModelAPIError) -> str:
    for given in (error.provider_error_code, error.provider_error_type):
        if given is not None and _CODE.fullmatch(given):
            return given
    return ""


def _microseconds(seconds: float | None) -> int | None:
    return None if seconds is None or not math.isfinite(seconds) or seconds < 0 else round(seconds * SECOND)
