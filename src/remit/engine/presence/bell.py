"""Waiting for something to happen in the store, whoever makes it happen."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Self, TypeVar

from remit.core.events import Event
from remit.core.record import Standing
from remit.errors import StoreError
from remit.ports import Clock, Store, View

T = TypeVar("T")

ANYTHING = ""  # whoever waits for this is woken by every task


class Bell:
    """Rings for whoever waits for a task when something is recorded about it, here or in another process."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: dict[str, list[asyncio.Event]] = {}
        self._unsubscribe: list[Callable[[], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._seen: dict[str, Standing | None] = {}  # as it was when another process had last changed something
        self._looking: asyncio.Task[None] | None = None
        self._look_again = False

    async def until(self, about: str, look: Callable[[View], T | None]) -> T:
        """Wait until `look` finds something, and give that back."""
        event = asyncio.Event()
        self.enter(about, event)
        try:
            while True:
                event.clear()
                if (seen := await self._store.read(look)) is not None:
                    return seen
                await event.wait()
        finally:
            self.leave(about, event)

    def listen(self, about: str = ANYTHING) -> "Listener":
        """Make a listener for a loop that has other reasons to wake up too."""
        return Listener(self, self._clock, about)

    def ring(self) -> None:
        """Wake those who wait for anything, and look for the others which of their tasks has moved: something may have
        happened in another process, and a thousand who wait must not look a thousand times."""
        self._wake(ANYTHING)
        if len(self._waiting) > (ANYTHING in self._waiting) and self._loop is not None:
            self._look_again = True
            if self._looking is None or self._looking.done():
                self._looking = self._loop.create_task(self._look())

    async def _look(self) -> None:
        while self._look_again:
            self._look_again = False
            tasks = [about for about in self._waiting if about != ANYTHING]
            try:
                now = await self._store.read(lambda view, tasks=tasks: {task: view.standing(task) for task in tasks})
            except StoreError:
                for task in tasks:  # each looks for itself, and is told
                    self._wake(task)
                return
            for task, standing in now.items():
                if task in self._waiting and self._seen.get(task) != standing:
                    self._seen[task] = standing
                    self._wake(task)

    def _wake(self, about: str) -> None:
        for event in self._waiting.get(about, ()):
            event.set()

    def enter(self, about: str, event: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # a store outlives an event loop; what waited in the last one is gone with it
            self._stop_listening()
            self._waiting.clear()
            self._seen.clear()
            self._loop, self._looking = loop, None
        if not self._waiting:
            self._unsubscribe = [self._store.subscribe(self._heard), self._store.listen(self.ring)]
        self._waiting.setdefault(about, []).append(event)

    def leave(self, about: str, event: asyncio.Event) -> None:
        events = self._waiting.get(about, [])
        if event in events:
            events.remove(event)
        if not events:
            self._waiting.pop(about, None)
            self._seen.pop(about, None)
        if not self._waiting:
            self._stop_listening()

    def _stop_listening(self) -> None:
        for stop in self._unsubscribe:
            stop()
        self._unsubscribe = []

    def _heard(self, events: Sequence[Event]) -> None:
        for event in events:
            if not event.kind.startswith("task."):
                continue
            self._wake(event.task)
            self._wake(ANYTHING)


class Listener:
    """Someone the bell wakes: `async with bell.listen() as listener`, then `await listener.wait(seconds)`."""

    def __init__(self, bell: Bell, clock: Clock, about: str) -> None:
        self._bell = bell
        self._clock = clock
        self._about = about
        self._event = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._bell.enter(self._about, self._event)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._bell.leave(self._about, self._event)

    def wake(self) -> None:
        self._event.set()

    async def wait(self, seconds: float) -> None:
        """Wait until the bell rings, or that long."""
        timer = self._clock.call_later(seconds, self._event.set)
        try:
            await self._event.wait()
        finally:
            timer.cancel()
            self._event.clear()
