"""Keeping secrets out of sight: tokens and addresses are in closures, and not in the logs of the HTTP client.

That client logs the address of every request, and in the address is the token. A filter on its loggers takes it out,
also for whoever turns on all logs.
"""

import logging
import weakref
from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeAlias, cast

from remit.core.redaction import REDACTED
from remit.errors import BadInput


class Revealing(Protocol):
    """A secret that shows itself only when asked to."""

    def reveal(self) -> str: ...


SecretGiven: TypeAlias = str | Revealing

# Filters of a logger do not see what those below it log, so each of them is named.
_LOGGERS: Final = (
    "httpx",
    "httpcore",
    *(f"httpcore.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")),
    "mcp.client.streamable_http",
)


def kept(given: object, what: str) -> Callable[[], str]:
    """Take a secret, as text or as what reveals it, and give back the one way to see it."""
    if isinstance(given, str):
        text = given
        if not text:
            raise BadInput(f"{what} must not be empty")
        return lambda: text
    reveal = getattr(given, "reveal", None)
    if not callable(reveal):
        raise BadInput(f"{what} is text or a secret, not a value of type {type(given).__name__}")
    return cast("Callable[[], str]", reveal)


class Hidden:
    """Texts that are not to be logged, and what is logged instead, for as long as someone keeps this."""

    def __init__(self, texts: Callable[[], Iterable[tuple[str, str]]]) -> None:
        self.texts = texts
        _hidden.add(self)
        _put_filters()


class _Redacting(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        clean = _redacted(said)
        if clean != said:
            record.msg, record.args = clean, ()
        if record.exc_info:
            record.exc_text = _redacted(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True


_hidden: weakref.WeakSet[Hidden] = weakref.WeakSet()
_filter: Final = _Redacting()


def _redacted(text: str) -> str:
    for hidden in tuple(_hidden):
        for secret, instead in hidden.texts():
            text = text.replace(secret, instead)
    return text


def _put_filters() -> None:
    """Put the filter on every logger of the client there is; adding it twice is adding it once."""
    known = (name for name in tuple(logging.root.manager.loggerDict) if name.startswith(("httpx", "httpcore")))
    for name in {*_LOGGERS, *known}:
        logging.getLogger(name).addFilter(_filter)


def token_hidden(reveal: Callable[[], str]) -> Hidden:
    """Hide a token wherever it stands."""
    return Hidden(lambda: [(reveal(), REDACTED)])
