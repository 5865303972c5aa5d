"""A server that neither answers nor hangs up is not waited for without end."""

import time
from collections.abc import Generator
from typing import Any, Final, TypeVar

import psycopg

T = TypeVar("T")

_PIPELINE: Final = "pipeline mode"


class PatientConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is given up when the server has not answered for `patience` seconds; 0 waits without end.

    A network that swallows everything looks like a server that thinks. Whoever waits is told, and the next try makes a
    new connection.
    """

    patience: float = 0.0

    def wait(self, gen: Generator[Any, Any, T], *how: Any, **named: Any) -> T:
        if not self.patience:
            return super().wait(gen, *how, **named)
        try:
            return super().wait(_limited(gen, self.patience), *how, **named)
        except TimeoutError:
            self.close()
            sentence = f"it has not answered for {self.patience:g} s, so the connection was given up"
            raise psycopg.OperationalError(sentence) from None


def _limited(gen: Generator[Any, Any, T], seconds: float) -> Generator[Any, Any, T]:
    """Pass on what a conversation waits for; raises TimeoutError when nothing came for so long. Several times a second
    psycopg asks although nothing has come."""
    try:
        wanted = next(gen)
        until = time.monotonic() + seconds
        while True:
            ready = yield wanted
            now = time.monotonic()
            if ready:
                until = now + seconds
            elif now >= until:
                raise TimeoutError
            wanted = gen.send(ready)
    except StopIteration as end:
        return end.value


def broke(error: psycopg.Error) -> bool:
    """Whether the error only says that the pipeline could not be closed after its connection broke."""
    return _PIPELINE in str(error)


def reason(error: psycopg.Error) -> psycopg.Error:
    """Return the error that broke the pipeline."""
    before = error
    while broke(before) and isinstance(before.__context__, psycopg.Error):
        before = before.__context__
    return psycopg.OperationalError("the connection broke") if broke(before) else before
