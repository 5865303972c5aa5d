"""Ctrl-C and SIGTERM: the first requests a clean stop, the second stops at once.

Python's own signal handlers are used, not the loop's: if an agent blocks the loop, the loop's handlers are not called.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from remit.cli.above import leave_terminal
from remit.cli.options import completed, is_kept

INTERRUPTED: Final = 130
LAST_SECONDS: Final = 3.0  # from the second signal until the process ends, whatever its agents do
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """The received signals. The first signal sets `first`. The second cancels the asyncio task that created this
    object, and the process ends at once 3 seconds later or at a third signal."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.count = 0
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()

    def on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count == 1:
            self._soon(self.first.set)
        elif self.count == 2:
            assert self._task is not None
            self._soon(self._task.cancel)
            last = threading.Timer(LAST_SECONDS, _end_at_once)
            last.daemon = True
            last.start()
        else:
            _end_at_once()

    def again(self) -> None:
        """Start again: the next signal counts as a first one."""
        self.count = 0
        self.first.clear()

    def _soon(self, do: Callable[[], object]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(do)


def _end_at_once() -> None:
    leave_terminal()
    if is_kept():
        left = "remit: stopped at once; tasks that were running here are still open: `remit ps` lists them"
        os.write(2, completed(f"{left}, a worker runs them again, `remit cancel` ends them\n").encode())
    os._exit(INTERRUPTED)


@contextmanager
def interrupts() -> Generator[Interrupts]:
    """Handle SIGINT and SIGTERM while the body runs, and yield the received signals. In a thread other than the main
    one, no signal is received.

    After a second signal, the handlers stay installed, because a third may be needed to end the process.
    """
    heard = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    before = {number: signal.signal(number, heard.on_signal) for number in _SIGNALS}
    try:
        yield heard
    finally:
        if heard.count < 2:
            for number, handler in before.items():
                signal.signal(number, handler)
