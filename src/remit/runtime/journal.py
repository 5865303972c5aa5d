"""`ws.journal`: past events of a workspace, and new ones as any process writes them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import replace
from typing import Final, Self, TypeVar, Unpack

from remit.core import checks
from remit.core.checks import keywords
from remit.core.events import Event, apart
from remit.ports import Clock, Sink, Span, Store, View
from remit.runtime.filters import EventFilter, HistoryFilter, which_events
from remit.runtime.opening import Opening

T = TypeVar("T")

PAGE: Final = 200
LOOK_SECONDS: Final = 0.5  # poll interval, in case a notification is missed


class WorkspaceJournal:
    """The journal of a workspace: read it, and follow what is appended to it."""

    __slots__ = ("_opening",)

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    @keywords(HistoryFilter)
    async def history(self, **which: Unpack[HistoryFilter]) -> list[Event]:
        """Return the events that match all conditions, in order: all of them, or the first `limit`; with `latest=True`,
        the last."""
        span = which_events("history", which, HistoryFilter)
        return await self._opening.records.browse(lambda view: view.events(span))

    @keywords(EventFilter)
    def follow(self, *, live: bool = True, **which: Unpack[EventFilter]) -> "Follow":
        """Follow the events that match all conditions, written by any process, in lists of at most `limit` [default:
        200].

        `async for events in ws.journal.follow()` waits for new events, until the caller leaves the loop. It starts with
        the next event, or after event number `after`. With `live=False` it reads the existing events, from the first
        one, and ends. `async with ws.journal.follow() as follow` has `await follow.next(timeout)` instead.
        """
        checks.yes_or_no(live, "live")
        wanted = which_events("follow", which)
        opening = self._opening
        return Follow(opening.records, opening.clock, wanted, live=live, from_now=live and "after" not in which)

    async def read(self, look: Callable[[View], T], *, long: bool = False) -> T:
        """Call `look` with a view of the store, and return its result. All reads of the view are from one snapshot.

        Pass `long=True` if `look` reads much: other work of this process then continues meanwhile.
        """
        checks.callable_(look, "read takes a function that is given a view")
        checks.yes_or_no(long, "long")
        store = self._opening.records
        return await (store.browse(look) if long else store.read(look))


class Follow:
    """The events that `ws.journal.follow` selects: iterate over it, or enter it and call `next`."""

    def __init__(self, store: Store, clock: Clock, span: Span, *, live: bool = True, from_now: bool = False) -> None:
        self._store = store
        self._clock = clock
        self._span = span
        self._live = live
        self._from_now = from_now
        self._is_up_to_date = False
        self._stops: tuple[Callable[[], None], ...] = ()
        self.changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        if self._from_now:
            head = await self._store.read(lambda view: view.head().seq)
            self._span, self._from_now = replace(self._span, after=head), False
        self._stops = (self._store.listen(self.changed.set), self._store.subscribe(lambda _: self.changed.set()))
        return self

    async def __aexit__(self, *_: object) -> None:
        for stop in self._stops:
            stop()
        self._stops = ()

    async def aclose(self) -> None:
        """Stop following, as leaving `async with` does."""
        await self.__aexit__()

    def __aiter__(self) -> AsyncIterator[list[Event]]:
        return self._events() if self._live else self._pages()

    async def next(self, timeout: float = LOOK_SECONDS) -> list[Event]:  # noqa: ASYNC109 - an empty list, no error
        """Wait for events since the last call. Return an empty list if there are none for `timeout` seconds."""
        if events := await self._look():
            return events
        is_late = False

        def end() -> None:
            nonlocal is_late
            is_late = True
            self.changed.set()

        timer = self._clock.call_later(timeout, end)
        try:
            while not events and not is_late:  # events that do not match wake it too
                await self.changed.wait()
                events = await self._look()
        finally:
            timer.cancel()
        return events

    async def _events(self) -> AsyncGenerator[list[Event]]:
        self._span = replace(self._span, limit=self._span.limit or PAGE)
        async with self:
            while True:
                if events := await self.next():
                    yield events

    async def _pages(self) -> AsyncGenerator[list[Event]]:
        store = self._store
        before = await store.read(lambda view: view.head().seq) + 1
        span = replace(self._span, before=before, limit=self._span.limit or PAGE)
        while events := await store.browse(lambda view, span=span: view.events(span)):
            yield events
            span = replace(span, after=events[-1].seq)

    async def _look(self) -> list[Event]:
        """Read on from the last position, even if nothing was found there, so that a read costs only what is new. The
        first reads may have a long way to go."""
        self.changed.clear()
        span, read = self._span, self._store.read if self._is_up_to_date else self._store.browse
        events, head = await read(lambda view: (view.events(span), view.head().seq))
        self._is_up_to_date = span.limit is None or len(events) < span.limit
        seen = head if self._is_up_to_date else events[-1].seq
        self._span = replace(span, after=max(span.after, seen))
        return events


def subscribe_sink(store: Store, sink: Sink) -> Callable[[], None]:
    """Pass every event that this process commits to `sink`. Return a function that stops it. Each sink gets its own
    copies: changing them affects neither the record nor other sinks."""
    checks.callable_(sink, "subscribe takes a function that is given a list of events")
    return store.subscribe(lambda events: sink(tuple(apart(event) for event in events)))
