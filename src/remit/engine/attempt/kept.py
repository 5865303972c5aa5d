"""The effects that earlier runs of a task have kept, for the run that comes to them again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from remit.core.events import Event
from remit.core.kinds import EffectDone, read
from remit.core.values import Json


class KeptEffects:
    """Each is given to whoever comes to it: the same effect, by name, arguments and place among its equals."""

    __slots__ = ("_left", "_taken", "waiting")

    def __init__(self, events: Iterable[Event]) -> None:
        self._left = {event.op: event for event in events if event.op is not None and event.text}
        self._taken: asyncio.Event | None = None
        self.waiting: set[asyncio.Task[object] | None] = set()  # who waits for others to come to theirs

    def take(self, op: str) -> tuple[Json] | None:
        """Give the result of an effect that was kept; None if it was not."""
        event = self._left.pop(op, None)
        if event is None:
            return None
        if self._taken is not None:
            self._taken.set()
            self._taken = None
        return (read(event, EffectDone)["result"],)

    def left(self, prefixes: Iterable[str]) -> EffectDone | None:
        """Give the first that nobody has come to, of those whose ids begin with one of these."""
        begins = tuple(prefixes)
        event = next((event for op, event in self._left.items() if op.startswith(begins)), None)
        return None if event is None else read(event, EffectDone)

    async def someone_comes(self) -> None:
        """Wait until someone comes to one of them."""
        if self._taken is None:
            self._taken = asyncio.Event()
        await self._taken.wait()
