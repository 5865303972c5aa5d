"""Waiting for something to happen in the store, whoever makes it happen."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Self, TypeVar

from remit.core.events import Event
from remit.core.record import Standing
from remit.errors import StoreError
from remit.ports import Store, View

T = TypeVar("T")

ANYTHING = ""  # whoever waits for this is woken by every task


class Bell:
    """Rings for whoever waits for a task when something is recorded about it, here or in another process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, list[asyncio.Event]] = {}
        self._unsubscribe: list[Callable[[], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._seen: dict[str, Standing | None] = {}  # what was found when another process had changed something
        self._looking: asyncio.Task[None] | None = None
        self._again = False

    async def until(self, about: str, look: Callable[[View], T | None]) -> T:
        """What `look` finds, as soon as it finds something."""
        event = asyncio.Event()
        self.enter(about, event)
        try:
            while True:
                event.clear()
                if (found := await self._store.read(look)) is not None:
                    return found
                await event.wait()
        finally:
            self.leave(about, event)

    def listen(self, about: str = ANYTHING) -> "Listener":
        """For a loop that has other reasons to wake up too."""
        return Listener(self, about)

    def ring(self) -> None:
        """Something may have happened, nobody knows what: wakes those who wait for anything, and looks for the others
        which of their tasks has moved; a thousand who wait are not to look a thousand times."""
        self._wake(ANYTHING)
        if len(self._waiting) > (ANYTHING in self._waiting) and self._loop is not None:
            self._again = True
            if self._looking is None or self._looking.done():
                self._looking = self._loop.create_task(self._look())

    async def _look(self) -> None:
        while self._again:
            self._again = False
            tasks = [about for about in self._waiting if about != ANYTHING]
            try:
                found = await self._store.read(lambda view, tasks=tasks: {task: view.standing(task) for task in tasks})
            except StoreError:
                for task in tasks:  # each looks for itself, and is told
                    self._wake(task)
                return
            for task, standing in found.items():
                if task in self._waiting and self._seen.get(task) != standing:
                    self._seen[task] = standing
                    self._wake(task)

    def _wake(self, about: str) -> None:
        for event in self._waiting.get(about, ()):
            event.set()

    def enter(self, about: str, event: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # a store outlives an event loop; what waited in the last one is gone with it
            self._silence()
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
            self._silence()

    def _silence(self) -> None:
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
    """A bell within reach: `async with bell.listen() as pull`, then `await pull.wait(seconds)`."""

    def __init__(self, bell: Bell, about: str) -> None:
        self._bell = bell
        self._about = about
        self._event = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._bell.enter(self._about, self._event)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._bell.leave(self._about, self._event)

    def set(self) -> None:
        self._event.set()

    async def wait(self, seconds: float) -> None:
        """Until it rings, or that long."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return
        finally:
            self._event.clear()
