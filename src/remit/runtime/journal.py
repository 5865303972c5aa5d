"""`ws.journal`: past events of a workspace, and new ones as any process writes them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, Final, Generic, Literal, Self, TypeAlias, TypeVar, Unpack, cast, overload

from remit.core import checks
from remit.core.checks import keywords
from remit.core.events import Event, Gap, apart
from remit.ports import Clock, Sink, Span, Store, View
from remit.runtime.filters import EventFilter, HistoryFilter, which_events
from remit.runtime.opening import Opening

T = TypeVar("T")
Item = TypeVar("Item")
Found: TypeAlias = tuple[list[Event], list[Gap], int, bool]  # up to which event, and whether these are all
Look: TypeAlias = Callable[[View], Found]
ReadGaps: TypeAlias = Callable[[View, int, int], list[Gap]]  # gaps between two event numbers

PAGE: Final = 200
GAPS: Final = 1_000  # read at once
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

    @property
    def _gaps(self) -> ReadGaps:
        return stated_gaps if self._opening.database.lasting else missing_numbers

    async def gaps(self, after: int = 0, before: int | None = None) -> list[Gap]:
        """Return the removed events with numbers above `after` and below `before`, as ranges, in order: numbers that
        `prune` deleted, or that a store in memory did not keep. Every other number up to the last is in the journal."""
        first, last = checks.whole(after, "after"), checks.whole(before, "before")
        read = self._gaps
        return await self._opening.records.browse(
            lambda view: read(view, first or 0, view.head().seq + 1 if last is None else last)
        )

    @overload
    def follow(
        self, *, live: bool = True, gaps: Literal[False] = False, **which: Unpack[EventFilter]
    ) -> "Follow[Event]": ...
    @overload
    def follow(self, *, live: bool = True, gaps: bool, **which: Unpack[EventFilter]) -> "Follow[Event | Gap]": ...
    @keywords(EventFilter)
    def follow(self, *, live: bool = True, gaps: bool = False, **which: Unpack[EventFilter]) -> "Follow[Any]":
        """Follow the events that match all conditions, written by any process, in lists of at most `limit` [default:
        200].

        `async for events in ws.journal.follow()` waits for new events, until the caller leaves the loop. It starts with
        the next event, or after event number `after`. With `live=False` it reads the existing events, from the first
        one, and ends. `async with ws.journal.follow() as follow` has `await follow.next(timeout)` instead, without a
        default `limit`.

        With `gaps=True` a `Gap` stands among the events for numbers that were removed before they could be read, for
        example by `prune`. Whether they matched the conditions is not known.
        """
        checks.yes_or_no(live, "live")
        checks.yes_or_no(gaps, "gaps")
        wanted = which_events("follow", which)
        opening = self._opening
        store, from_now = opening.records, live and "after" not in which
        read = self._gaps if gaps else None
        return Follow[Any](store, opening.clock, wanted, live=live, from_now=from_now, gaps=read)

    async def read(self, look: Callable[[View], T], *, long: bool = False) -> T:
        """Call `look` with a view of the store, and return its result. All reads of the view are from one snapshot.

        Pass `long=True` if `look` reads much: other work of this process then continues meanwhile.
        """
        checks.callable_(look, "read takes a function that is given a view")
        checks.yes_or_no(long, "long")
        store = self._opening.records
        return await (store.browse(look) if long else store.read(look))


class Follow(Generic[Item]):
    """The events that `ws.journal.follow` selects, with `Gap` values among them if these are wanted: iterate over it,
    or enter it and call `next`."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        span: Span,
        *,
        live: bool = True,
        from_now: bool = False,
        gaps: ReadGaps | None = None,
    ) -> None:
        self._store = store
        self._gaps = gaps
        self._clock = clock
        self._span = self._start = span
        self._live = live
        self._from_now = from_now
        self._is_up_to_date = False
        self._stops: tuple[Callable[[], None], ...] = ()
        self.changed = asyncio.Event()

    @property
    def position(self) -> int:
        """The number of the last event that was read: pass it as `after` to continue there."""
        return self._span.after

    async def __aenter__(self) -> Self:
        if self._from_now:
            head = await self._store.read(lambda view: view.head().seq)
            self._span, self._from_now = self._span._replace(after=head), False
        self._stops = (self._store.listen(self.changed.set), self._store.subscribe(lambda _: self.changed.set()))
        return self

    async def __aexit__(self, *_: object) -> None:
        for stop in self._stops:
            stop()
        self._stops = ()

    async def aclose(self) -> None:
        """Stop following, as leaving `async with` does."""
        await self.__aexit__()

    def __aiter__(self) -> AsyncIterator[list[Item]]:
        return self._events() if self._live else self._pages()

    async def next(self, timeout: float = LOOK_SECONDS) -> list[Item]:  # noqa: ASYNC109 - an empty list, no error
        """Wait for events since the last call, and return them. Return an empty list if there are none for `timeout`
        seconds."""
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

    async def _events(self) -> AsyncGenerator[list[Item]]:
        self._span = self._span._replace(limit=self._span.limit or PAGE)
        async with self:
            while True:
                if events := await self.next():
                    yield events

    async def _pages(self) -> AsyncGenerator[list[Item]]:
        store = self._store
        before = await store.read(lambda view: view.head().seq) + 1
        start = self._start
        self._span, self._is_up_to_date = start._replace(before=before, limit=start.limit or PAGE), False
        while not self._is_up_to_date:
            if found := await self._read(store.browse, before - 1):
                yield found

    async def _look(self) -> list[Item]:
        """Return what was written since the last read. The position moves on even if nothing was found, so that a read
        costs only what is new. The first reads may have a long way to go."""
        self.changed.clear()
        return await self._read(self._store.read if self._is_up_to_date else self._store.browse)

    async def _read(self, read: Callable[[Look], Awaitable[Found]], upto: int | None = None) -> list[Item]:
        """Return the items from the last position up to this event, or to the last one."""
        span, gaps = self._span, self._gaps

        def look(view: View) -> Found:
            events, head = view.events(span), view.head().seq if upto is None else upto
            is_all = span.limit is None or len(events) < span.limit
            seen = max(span.after, head if is_all else events[-1].seq)
            told = gaps(view, span.after, seen + 1) if gaps is not None and seen > span.after else []
            return events, told, seen, is_all

        events, told, seen, self._is_up_to_date = await read(look)
        self._span = span._replace(after=seen)
        if not told:
            return cast("list[Item]", events)
        return cast("list[Item]", sorted([*events, *told], key=_number))


def _number(item: Event | Gap) -> int:
    return item.first if isinstance(item, Gap) else item.seq


def stated_gaps(view: View, after: int, before: int) -> list[Gap]:
    """Return the gaps between two event numbers, from a journal that records each gap."""
    found: list[Gap] = []
    page = view.gaps_after(after, GAPS)
    while page:
        found += (Gap(max(gap.first, after + 1), min(gap.last, before - 1)) for gap in page if gap.first < before)
        page = view.gaps_after(page[-1].last, GAPS) if len(page) == GAPS and page[-1].last < before else []
    return found


def missing_numbers(view: View, after: int, before: int) -> list[Gap]:
    """Return the gaps between two event numbers, from a journal in memory, which drops old events and records no
    gap."""
    found: list[Gap] = []
    while after + 1 < before:
        marks = view.marks(after + 1, GAPS)
        for mark in marks:
            upto = min(mark.seq, before)
            if upto > after + 1:
                found.append(Gap(after + 1, upto - 1))
            after = max(after, upto)
        if len(marks) < GAPS:
            break
    return found


def subscribe_sink(store: Store, sink: Sink) -> Callable[[], None]:
    """Pass every event that this process commits to `sink`. Return a function that stops it. Each sink gets its own
    copies: changing them affects neither the record nor other sinks."""
    checks.callable_(sink, "subscribe takes a function that is given a list of events")
    return store.subscribe(lambda events: sink(tuple(apart(event) for event in events)))
