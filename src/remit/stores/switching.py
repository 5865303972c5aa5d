"""Threads that talk to a server, beside an event loop that is busy."""

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_SHORT: Final = 0.0005

_lock = threading.Lock()
_users = 0
_before = 0.0


@contextmanager
def quick_switching() -> Generator[None]:
    """Switch between threads ten times as often as the interpreter does by itself.

    A busy thread may hold the interpreter for 5 ms, and each round trip to a server needs it several times. With a
    switch interval of 0.5 ms we make 500 transactions a second beside a busy event loop; with the default, 24.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _users, _before  # noqa: PLW0603 - the interpreter has one such setting
    with _lock:
        _users += 1
        if _users == 1:
            _before = sys.getswitchinterval()
            sys.setswitchinterval(min(_SHORT, _before))


def _leave() -> None:
    global _users  # noqa: PLW0603
    with _lock:
        _users -= 1
        if _users == 0:
            sys.setswitchinterval(_before)


def _begin_anew() -> None:
    """In a forked process: whoever held the lock or counted as a user is a thread of the parent."""
    global _lock, _users  # noqa: PLW0603
    _lock = threading.Lock()
    if _users:
        _users = 0
        sys.setswitchinterval(_before)


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has no forks
    os.register_at_fork(after_in_child=_begin_anew)
