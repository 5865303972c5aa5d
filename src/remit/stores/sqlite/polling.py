"""Noticing what other processes have written to a file."""

import asyncio
from collections.abc import Callable
from typing import Final

from remit.errors import StoreError

POLL_SECONDS: Final = 0.2


class Poll:
    """Looks a few times a second whether a file was changed, and rings if so; our own writes ring too, which does no
    harm."""

    def __init__(self, version: Callable[[], int], ring: Callable[[], None]) -> None:
        self._version = version
        self._ring = ring
        self._seen = version()
        self._loop = asyncio.get_running_loop()
        self._next = self._loop.call_later(POLL_SECONDS, self._look)

    def _look(self) -> None:
        try:
            version = self._version()
        except StoreError:  # whoever reads next is told; looking goes on, because files come back
            version = self._seen - 1
        self._next = self._loop.call_later(POLL_SECONDS, self._look)
        if version != self._seen:
            self._seen = version
            self._ring()

    def stop(self) -> None:
        self._next.cancel()
