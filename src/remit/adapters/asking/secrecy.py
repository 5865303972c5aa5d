"""Hiding secrets: tokens and addresses are kept in closures and out of the HTTP client's logs.

The client logs the address of every request, and the address may contain the token. A filter on its loggers removes it,
at every log level.
"""

import logging
import weakref
from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeAlias, cast

from remit.core.secret import REDACTED
from remit.errors import BadInput


class Revealing(Protocol):
    """A secret with a `reveal` method."""

    def reveal(self) -> str: ...


SecretGiven: TypeAlias = str | Revealing

# A logger's filters do not apply to its child loggers, so each one is listed.
_LOGGERS: Final = (
    "httpx",
    "httpcore",
    *(f"httpcore.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")),
    "mcp.client.streamable_http",
)


def secret_reader(given: object, what: str) -> Callable[[], str]:
    """Return a function that reveals the secret, given as text or as an object with `reveal`. Raise `BadInput` if it is
    neither, or empty."""
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
    """Texts that are kept out of the logs, with their replacements, as long as this object is referenced."""

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
    """Add the filter to every existing logger of the client; adding it twice has no effect."""
    known = (name for name in tuple(logging.root.manager.loggerDict) if name.startswith(("httpx", "httpcore")))
    for name in {*_LOGGERS, *known}:
        logging.getLogger(name).addFilter(_filter)


def token_hidden(reveal: Callable[[], str]) -> Hidden:
    """Hide a token from the logs, as long as the result is referenced."""
    return Hidden(lambda: [(reveal(), REDACTED)])
