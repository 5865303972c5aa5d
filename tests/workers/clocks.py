"""A time of day that a test sets for several processes."""

import os
from collections.abc import Callable
from pathlib import Path

from remit.engine.system import SystemClock
from remit.ports import Timer


class SharedClock:
    """The real time, plus the microseconds in a file. Timers and ticks are real."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._real = SystemClock()
        self.ticks = self._real.ticks
        if not file.exists():
            self._put(0)

    def now(self) -> int:
        return self._real.now() + int(self._file.read_text())

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        return self._real.call_later(seconds, call)

    def jump_to(self, now: int) -> None:
        """Set the time for every process that has this file."""
        self._put(now - self._real.now())

    def _put(self, offset: int) -> None:
        draft = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        draft.write_text(str(offset))
        draft.replace(self._file)
