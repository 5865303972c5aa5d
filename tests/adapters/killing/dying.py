"""Processes that die: lives that are forked, and killed with kill -9 at a chosen moment."""

import os
import signal
import sys
from collections.abc import Callable


class Doom:
    """Kills the process when a store has reached its fault hooks so often; 0 is never."""

    def __init__(self, point: int) -> None:
        self.reached = 0
        self._point = point

    def __call__(self, _hook: str) -> None:
        self.reached += 1
        if self.reached == self._point:
            die()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def forked(live: Callable[[], None]) -> int:
    """Live once, in a process of its own; tell its id."""
    child = os.fork()
    if not child:
        try:
            live()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    return child


def was_killed(child: int) -> bool:
    """Wait until a life has ended, and tell whether it was killed."""
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
