"""Threads and event loops of a store: one loop at a time, and threads next to a busy loop."""

import asyncio
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from remit.errors import StoreError

_TWO = (
    "this store is in use by another event loop, in another thread; it serves one loop at a time. Wait until that one "
    "has ended, ask there (asyncio.run_coroutine_threadsafe), or open the store once per loop (runtime.at(...))"
)


class OneLoop:
    """Records which event loop uses a store. Another may follow when that one does not run any more.

    A loop runs in one thread, so this also keeps a second thread out: SQLite's connections and the tables of live tasks
    are not thread-safe.
    """

    __slots__ = ("_lock", "loop")

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def enter(self) -> asyncio.AbstractEventLoop:
        """Return the running loop. Raise `StoreError` if another loop uses the store."""
        loop = asyncio.get_running_loop()
        if loop is not self.loop:
            self._take(loop)
        return loop

    def _take(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            before, self.loop = self.loop, loop
            # Check after ours is set: a loop that restarts at this moment then finds ours.
            if before is not None and before.is_running():
                self.loop = before
                raise StoreError(_TWO)


_SHORT: Final = 0.0005

_lock = threading.Lock()
_users = 0
_before = 0.0


@contextmanager
def quick_switching() -> Generator[None]:
    """Switch between threads ten times as often as the interpreter does by default.

    A busy thread may hold the interpreter for 5 ms, and each round trip to a server needs it several times. With a
    switch interval of 0.5 ms we make 500 transactions a second next to a busy event loop; with the default, 24.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _users, _before  # noqa: PLW0603 - the interpreter has only one such setting
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


def _reset() -> None:
    """Reset the lock in a forked process: its holders and users are threads of the parent."""
    global _lock, _users  # noqa: PLW0603
    _lock = threading.Lock()
    if _users:
        _users = 0
        sys.setswitchinterval(_before)


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has no forks
    os.register_at_fork(after_in_child=_reset)
