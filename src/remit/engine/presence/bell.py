"""Waiting for a change in the store, made by any process."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Self, TypeVar

from remit.core.events import Event, Head
from remit.core.lifecycle import ENDS, QUEUES
from remit.errors import StoreError
from remit.ports import Clock, Store, View

T = TypeVar("T")

ANYTHING = ""  # wakes on every task
MONEY: Final = "$"  # wakes when money is released
_MOVES: Final = ("task.", "question.")  # prefixes of event kinds that callers may wait for
_FREES: Final = frozenset(
    ("hold.settled", "hold.released", "hold.reconciled", "account.granted", "account.set", "lease.raised")
)
_BEHIND: Final = 1_000  # events read at once; after more, every caller checks itself


class Bell:
    """Wakes waiting callers when an event about their task is recorded, here or in another process."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: dict[str, list[asyncio.Event]] = {}
        self._listeners: list[Listener] = []
        self._unsubscribe: list[Callable[[], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._known: Head | None = None  # the last position that waiting callers know
        self._looking: asyncio.Task[None] | None = None
        self._look_again = False

    async def until(self, about: str, look: Callable[[View], T | None]) -> T:
        """Call `look` until it returns something other than None, and return that. Between the calls, wait for an event
        about `about`: a task, `ANYTHING` or `MONEY`."""
        event = asyncio.Event()
        self._open()
        self._waiting.setdefault(about, []).append(event)
        try:
            while True:
                # Clear before the read: an event during the read must wake us again.
                event.clear()
                if (seen := await self._store.read(look)) is not None:
                    return seen
                await event.wait()
        finally:
            self._forget(about, event)

    def listen(self, heeds: frozenset[str] = QUEUES) -> "Listener":
        """Return a listener for a loop that also has other reasons to wake up."""
        return Listener(self, self._clock, heeds)

    def enter(self, listener: "Listener") -> None:
        self._open()
        self._listeners.append(listener)

    def leave(self, listener: "Listener") -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)
        self._close_if_idle()

    def ring(self) -> None:
        """Wake every listener and every caller that waits for `ANYTHING`: another process may have changed the
        store. For the callers that wait for one task, read once which tasks have changed, instead of one read for
        each caller."""
        self._wake(ANYTHING)
        for listener in self._listeners:
            listener.wake()
        if len(self._waiting) > (ANYTHING in self._waiting) and self._loop is not None:
            self._look_again = True
            if self._looking is None or self._looking.done():
                self._looking = self._loop.create_task(self._look())

    async def _look(self) -> None:
        while self._look_again:
            # Reset before the read: what happens during the read needs another one.
            self._look_again = False
            try:
                self._known, moved = await self._store.read(self._since)
            except StoreError:
                self._known, moved = None, None  # every caller checks itself
            for task in tuple(self._waiting) if moved is None else moved:
                self._wake(task)

    def _since(self, view: View) -> tuple[Head, set[str] | None]:
        """Return the end of the journal, and the tasks that have changed since the known position. Return None in place
        of the tasks if any task may have changed: no position is known, too many events have followed, or the journal
        was replaced."""
        known, head = self._known, view.head()
        if known is None or head.seq - known.seq > _BEHIND:
            return head, None
        if head == known:
            return head, set()
        marks = view.marks(known.seq, _BEHIND + 1)
        if not marks or (marks[0].seq, marks[0].hash) != known:
            return head, None
        moved = {mark.task for mark in marks[1:] if mark.kind.startswith(_MOVES)}
        frees = any(mark.kind in _FREES or mark.kind in ENDS for mark in marks[1:])
        return head, {*moved, MONEY} if frees else moved

    def _wake(self, about: str) -> None:
        for event in self._waiting.get(about, ()):
            event.set()

    def _open(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # a store outlives an event loop; waiters of the old loop are gone
            self._stop_listening()
            self._waiting.clear()
            self._listeners.clear()
            self._loop, self._looking = loop, None
        if not self._waiting and not self._listeners:
            self._unsubscribe = [self._store.subscribe(self._on_events), self._store.listen(self.ring)]

    def _forget(self, about: str, event: asyncio.Event) -> None:
        events = self._waiting.get(about, [])
        if event in events:
            events.remove(event)
        if not events:
            self._waiting.pop(about, None)
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        if not self._waiting and not self._listeners:
            self._stop_listening()

    def _stop_listening(self) -> None:
        for stop in self._unsubscribe:
            stop()
        self._unsubscribe = []
        self._known = None

    def _on_events(self, events: Sequence[Event]) -> None:
        if self._known is not None and events[0].seq == self._known.seq + 1:  # no other process has written in between
            self._known = Head(events[-1].seq, events[-1].hash)
        for event in events:
            if MONEY in self._waiting and (event.kind in _FREES or event.kind in ENDS):
                self._wake(MONEY)
            if not event.kind.startswith(_MOVES):
                continue
            self._wake(event.task)
            self._wake(ANYTHING)
            for listener in self._listeners:
                if listener.heeds_all or event.kind in listener.heeds:
                    listener.wake()


class Listener:
    """Wakes a waiting loop: `async with bell.listen() as listener`, then `await listener.wait(seconds)`. If `heeds_all`
    is true, every change of a task or a question wakes the loop. Otherwise only events of the kinds in `heeds` do. A
    change by another process always wakes it."""

    def __init__(self, bell: Bell, clock: Clock, heeds: frozenset[str]) -> None:
        self.heeds_all = True
        self.heeds = heeds
        self._bell = bell
        self._clock = clock
        self._event = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._bell.enter(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._bell.leave(self)

    def wake(self) -> None:
        self._event.set()

    async def wait(self, seconds: float) -> None:
        """Wait until the bell rings, or at most this long."""
        timer = self._clock.call_later(seconds, self._event.set)
        try:
            await self._event.wait()
        finally:
            timer.cancel()
            self._event.clear()
