"""Commands that wait go on during an outage of their store."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from rich.text import Text

from remit.cli.options import aside
from remit.errors import StoreError
from remit.report.printable import escaped

T = TypeVar("T")

_PAUSE: Final = 1.0  # seconds between two tries


class Outages:
    """Repeats a read every second until the store can be reached, for commands that wait. Prints one line when an
    outage begins, and one when the store answers again. During an outage, `is_away` is True."""

    def __init__(self) -> None:
        self.is_away = False

    async def read(self, look: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `look`, as soon as the store answers. Raise errors that waiting does not fix."""
        while True:
            try:
                found = await look()
            except StoreError as error:
                if not error.retryable:
                    raise
                self._tell_away(error)
                await asyncio.sleep(_PAUSE)
            else:
                self._tell_back()
                return found

    def _tell_away(self, error: StoreError) -> None:
        if not self.is_away:
            self.is_away = True
            aside().print(Text(f"still waiting: {escaped(str(error), 300)}", "yellow"))

    def _tell_back(self) -> None:
        if self.is_away:
            self.is_away = False
            aside().print(Text("the store answers again", "yellow"))
