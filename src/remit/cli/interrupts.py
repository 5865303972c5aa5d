"""Ctrl-C and SIGTERM: the first asks politely, the second stops.

Python's own handlers are used and not the loop's: an agent may block the loop, and then nothing is called that the loop
would call.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

INTERRUPTED: Final = 130
LAST_SECONDS: Final = 3.0  # from the second signal until the process ends, whatever its agents do
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """`first` is set by the first signal; the second cancels the task that listens, and all it has begun."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.count = 0
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()

    def heard(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count == 1:
            self._soon(self.first.set)
        elif self.count == 2:
            assert self._task is not None
            self._soon(self._task.cancel)
            last = threading.Timer(LAST_SECONDS, os._exit, (INTERRUPTED,))
            last.daemon = True
            last.start()
        else:
            os._exit(INTERRUPTED)

    def again(self) -> None:
        """From here on a first signal asks for something else."""
        self.count = 0
        self.first.clear()

    def _soon(self, do: Callable[[], object]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(do)


@contextmanager
def interrupts() -> Generator[Interrupts]:
    """Listen for signals while the body runs; elsewhere than in the main thread there are none to hear.

    After a second signal it goes on listening, because what is left of the process may need a third.
    """
    heard = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    before = {number: signal.signal(number, heard.heard) for number in _SIGNALS}
    try:
        yield heard
    finally:
        if heard.count < 2:
            for number, handler in before.items():
                signal.signal(number, handler)
