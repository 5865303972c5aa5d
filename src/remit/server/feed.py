"""New events of a workspace for any number of readers: read once, encoded once, and kept for those that are behind.

A reader that is further behind than what is kept reads from the store, on a reader thread and two at a time, until it
has caught up. No reader waits for another, and a reader that does not read costs nothing.
"""

import asyncio
import logging
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple, cast

import orjson

from remit.core.events import Event
from remit.errors import Conflict, StoreError, TooMany
from remit.ports import Clock, Span, Timer, View
from remit.ports.models import TextChunk
from remit.report import wire
from remit.runtime.workspace import Workspace, opening_of

_log = logging.getLogger("remit")

PAGE: Final = 100  # events of one read of a reader that is behind
PAGE_BYTES: Final = 32 << 10  # of one write to a reader
AT_ONCE: Final = 25  # readers that are woken together
BETWEEN: Final = 0.002  # seconds between two groups, in which requests are answered
_GAPS: Final = 1_000  # that one read can tell of
WORDS_EVERY: Final = 0.1  # seconds between two pieces of an answer
_ANSWERS: Final = 1_000  # tasks whose last answer is known, so that none of it is streamed again
WORDS_KEPT: Final = 65_536  # characters of an answer for a reader that does not read


class FeedLimits(NamedTuple):
    """Limits of a feed. At most `kept` frames with `kept_bytes` are in memory. A reader gets a cursor after its filter
    has dropped `skipped` events. A workspace has at most `streams` readers."""

    kept: int = 2_000
    kept_bytes: int = 8 << 20
    skipped: int = 1_000
    streams: int = 1_000


class StreamFilter(NamedTuple):
    """Which events a reader wants: all conditions must hold."""

    run: str | None = None
    session: str | None = None
    agent: str | None = None
    task: str | None = None
    kinds: frozenset[str] | None = None

    def takes(self, event: Event) -> bool:
        return (
            (self.run is None or event.run == self.run)
            and (self.session is None or event.session == self.session)
            and (self.agent is None or event.agent == self.agent)
            and (self.task is None or event.task == self.task)
            and (self.kinds is None or event.kind in self.kinds)
        )

    def takes_words(self, chunk: TextChunk) -> bool:
        return (
            (self.run is None or chunk.run == self.run)
            and (self.session is None or chunk.session == self.session)
            and (self.agent is None or chunk.agent == self.agent)
            and (self.task is None or chunk.task == self.task)
        )

    def after(self, seq: int) -> Span:
        """Return the query for the next `PAGE` of these events, after event number `seq`."""
        return Span(**self._asdict(), after=seq, limit=PAGE)


ALL: Final = StreamFilter()


class SseFrame(NamedTuple):
    """A server-sent event: an event of the journal, or a gap or a cursor, which have none. A reader that has the frame
    has every event up to `seq`."""

    seq: int
    event: Event | None
    text: bytes


def event_frame(event: Event) -> SseFrame:
    data = orjson.dumps(wire.event(event))
    return SseFrame(event.seq, event, b"id: %d\nevent: %b\ndata: %b\n\n" % (event.seq, event.kind.encode(), data))


def gap_frame(first: int, last: int) -> SseFrame:
    """Return the frame that reports events that were removed before the reader got to them."""
    data = orjson.dumps({"first": first, "last": last})
    return SseFrame(last, None, b"id: %d\nevent: gap\ndata: %b\n\n" % (last, data))


def cursor_frame(seq: int) -> SseFrame:
    """Return the frame that reports the number of the last event read to a reader whose filter dropped all recent
    events."""
    return SseFrame(seq, None, b"id: %d\nevent: cursor\ndata: {}\n\n" % seq)


class Feed:
    """The new events of one workspace. `Feeds` starts it for its first reader, and stops it after its last one."""

    def __init__(self, workspace: Workspace, limits: FeedLimits, catching_up: asyncio.Semaphore) -> None:
        self.workspace = workspace
        self.limits = limits
        self.head = 0
        self.revoked = set[str]()  # ids of access that was revoked since the feed began
        self.is_over = False  # it has failed, or the server stops; its readers end and come back
        self._frames: list[SseFrame] = []
        self._bytes = 0
        self._begin = 0  # frames after this number are kept
        self._readers = set["StreamReader"]()
        self._catching_up = catching_up
        self._work: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.head = self._begin = await self.workspace.journal.read(lambda view: view.head().seq)
        self._work = asyncio.create_task(self._follow(), name=f"events of {self.workspace.name}")

    async def stop(self) -> None:
        if self._work is not None:
            self._work.cancel()
            with suppress(asyncio.CancelledError):
                await self._work

    def enter(self, reader: "StreamReader") -> None:
        if len(self._readers) >= self.limits.streams:
            raise TooMany(f"this workspace has {self.limits.streams} open streams, the most it may have; close some")
        self._readers.add(reader)

    def leave(self, reader: "StreamReader") -> None:
        self._readers.discard(reader)

    @property
    def is_empty(self) -> bool:
        return not self._readers

    def kept_after(self, seq: int) -> Sequence[SseFrame] | None:
        """Return the frames after this number, or None if some of them are not in memory any more."""
        if seq < self._begin:
            return None
        return self._frames[bisect_right(self._frames, seq, key=lambda frame: frame.seq) :]

    async def stored_after(self, seq: int, wanted: StreamFilter) -> tuple[list[SseFrame], int]:
        """Return the frames after this number from the store, and the number up to which they are complete."""
        span = wanted.after(seq)

        def look(view: View) -> tuple[list[SseFrame], int]:
            events = view.events(span)
            upto = events[-1].seq if len(events) == PAGE else view.head().seq
            gaps = [gap for gap in view.gaps_after(seq, _GAPS) if gap.first <= upto]
            if len(gaps) == _GAPS:  # there are more: this page ends at the last of them
                upto = min(upto, gaps[-1].last)
            frames = [gap_frame(max(gap.first, seq + 1), gap.last) for gap in gaps]
            frames += [event_frame(event) for event in events if event.seq <= upto]
            return sorted(frames, key=lambda frame: frame.seq), upto

        async with self._catching_up:
            return await self.workspace.journal.read(look, long=True)

    async def _follow(self) -> None:
        try:
            async with self.workspace.journal.follow(after=self.head, limit=PAGE) as follow:
                while True:
                    if events := await follow.next():
                        self._keep(events)
                        await self._wake()
        except StoreError as error:
            _log.warning("the events of workspace %s cannot be followed: %s", self.workspace.name, error)
            self.end()

    def end(self) -> None:
        """Close the streams of all readers."""
        self.is_over = True
        for reader in self._readers:
            reader.changed.set()

    def _keep(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.seq > self.head + 1:
                self._add(gap_frame(self.head + 1, event.seq - 1))
            self._add(event_frame(event))
            self.head = event.seq
            if event.kind == "access.revoked":
                self.revoked.add(str(event.data.get("id", "")))
        drop, most = 0, self.limits
        while drop < len(self._frames) and (len(self._frames) - drop > most.kept or self._bytes > most.kept_bytes):
            self._bytes -= len(self._frames[drop].text)
            self._begin = self._frames[drop].seq
            drop += 1
        del self._frames[:drop]

    def _add(self, frame: SseFrame) -> None:
        self._frames.append(frame)
        self._bytes += len(frame.text)

    async def _wake(self) -> None:
        """Wake the readers group by group, so that five hundred of them do not hold up everybody else's requests."""
        readers = [reader for reader in self._readers if not reader.changed.is_set()]
        for start in range(0, len(readers), AT_ONCE):
            if start:
                await asyncio.sleep(BETWEEN)
            for reader in readers[start : start + AT_ONCE]:
                reader.changed.set()


class UnsentWords:
    """Streamed text of models that a reader has not been sent yet: one piece for each task, ten times a second at most.
    It is not in the journal: a slow reader loses some of it, and gets the whole answer as an event."""

    def __init__(self, wanted: StreamFilter, clock: Clock, wake: Callable[[], None]) -> None:
        self._wanted = wanted
        self._clock = clock
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._pieces = dict[str, TextChunk]()
        self._over = OrderedDict[str, int]()  # when the request of the last whole answer of a task began
        self._timer: Timer | None = None

    def hear(self, chunk: TextChunk) -> None:
        """Add a piece of an answer if the reader wants it. Any thread may call this."""
        if self._wanted.takes_words(chunk):
            self._loop.call_soon_threadsafe(self._add, chunk)

    def take(self) -> Iterable[TextChunk]:
        """Return the text to send, and clear it. Return nothing while pieces are still being collected."""
        if self._timer is not None:
            return ()
        pieces, self._pieces = self._pieces, {}
        return pieces.values()

    def drop_answered(self, event: Event) -> None:
        """If the event has the whole answer of a model, drop the words of this answer, also those that arrive later
        from another process. Ignore other events."""
        if event.kind != "model.answered":
            return
        began = event.at - cast("int", event.data.get("elapsed", 0))
        self._over[event.task] = began
        self._over.move_to_end(event.task)
        if len(self._over) > _ANSWERS:
            self._over.popitem(last=False)
        if event.task in self._pieces and self._pieces[event.task].began <= began:
            del self._pieces[event.task]

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _add(self, chunk: TextChunk) -> None:
        if chunk.began and chunk.began <= self._over.get(chunk.task, 0):
            return
        before = self._pieces.get(chunk.task)
        if before is not None and not chunk.begins:
            chunk = before._replace(text=(before.text + chunk.text)[-WORDS_KEPT:])
        self._pieces[chunk.task] = chunk
        if self._timer is None:
            self._timer = self._clock.call_later(WORDS_EVERY, self._due)

    def _due(self) -> None:
        self._timer = None
        self._wake()


def words_frame(chunk: TextChunk) -> bytes:
    """Return a piece of an answer as it goes over the wire: without an id, because nothing resumes after it."""
    return b"event: words\ndata: %b\n\n" % orjson.dumps(chunk._asdict())


class StreamForm:
    """The format of a stream: remit's own. A subclass writes events and words in the format of another protocol, and
    sets `is_over` when the stream is to end. `revoked` is sent if the reader's access key is revoked."""

    is_over = False
    revoked = b"event: revoked\ndata: {}\n\n"

    def frame(self, frame: SseFrame) -> bytes:
        return frame.text

    def words(self, chunk: TextChunk) -> bytes:
        return words_frame(chunk)


_OWN: Final = StreamForm()


@dataclass(slots=True, eq=False)
class StreamReader:
    """One reader's place in a feed. `access` is the id of its key: its stream ends when that is revoked."""

    feed: Feed
    seq: int
    wanted: StreamFilter = ALL
    access: str = ""
    words: UnsentWords | None = None  # of models, if it wants them
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    skipped: int = 0
    form: StreamForm = _OWN

    @property
    def is_over(self) -> bool:
        return self.feed.is_over or self.form.is_over

    @property
    def is_revoked(self) -> bool:
        return self.access != "" and self.access in self.feed.revoked

    async def page(self) -> bytes:
        """Return the next frames, at most about `PAGE_BYTES`; b"" if there is nothing to send."""
        self.changed.clear()
        frames, upto = self.feed.kept_after(self.seq), None
        if frames is None:
            frames, upto = await self.feed.stored_after(self.seq, self.wanted)
        # Words go before the events, which may have the whole answer.
        words = [] if self.words is None else [self.form.words(piece) for piece in self.words.take()]
        taken, is_whole = self._page_of(frames)
        if is_whole and upto is not None:
            self.seq = upto
        return b"".join(words + taken)

    def _page_of(self, frames: Sequence[SseFrame]) -> tuple[list[bytes], bool]:
        taken, size = list[bytes](), 0
        for frame in frames:
            if size >= PAGE_BYTES:
                return taken, False
            self.seq = frame.seq
            if self.words is not None and frame.event is not None:
                self.words.drop_answered(frame.event)
            if frame.event is None or self.wanted.takes(frame.event):
                taken.append(self.form.frame(frame))
                size += len(frame.text)
                self.skipped = 0
            else:
                self.skipped += 1
                if self.skipped == self.feed.limits.skipped:
                    taken.append(self.form.frame(cursor_frame(frame.seq)))
                    self.skipped = 0
        return taken, True


class Feeds:
    """The feeds of a server's workspaces: one for each that somebody reads."""

    def __init__(self, limits: FeedLimits = FeedLimits()) -> None:  # noqa: B008 - it cannot be changed
        self._limits = limits
        self._feeds = dict[str, Feed]()
        self._starting = asyncio.Lock()
        self._catching_up = asyncio.Semaphore(2)

    def end(self) -> None:
        """Close the streams of all readers, because the server stops."""
        for feed in self._feeds.values():
            feed.end()

    @asynccontextmanager
    async def reader(
        self,
        workspace: Workspace,
        wanted: StreamFilter = ALL,
        *,
        after: int | None = None,
        access: str = "",
        words: bool = False,
    ) -> AsyncGenerator[StreamReader]:
        """Yield a reader of the events after event number `after`, or from now on; with `words`, also of the streamed
        text of models: in this process, and on PostgreSQL also in others. Its stream ends if the key with the id
        `access` is revoked. Raise `Conflict` if there is no such event yet, and `TooMany` if the workspace has too many
        readers."""
        async with self._starting:
            feed = await self._feed(workspace)
            reader = StreamReader(feed, feed.head if after is None else after, wanted, access)
            feed.enter(reader)
        stop = _hear_words(workspace, reader) if words else None
        try:
            if reader.seq > feed.head:
                await _must_exist(workspace, reader.seq)
            yield reader
        finally:
            if stop is not None:
                stop()
            feed.leave(reader)
            if feed.is_empty and self._feeds.get(workspace.name) is feed:
                del self._feeds[workspace.name]
                await feed.stop()

    async def _feed(self, workspace: Workspace) -> Feed:
        feed = self._feeds.get(workspace.name)
        if feed is None or feed.is_over:
            feed = Feed(workspace, self._limits, self._catching_up)
            await feed.start()
            self._feeds[workspace.name] = feed
        return feed


def _hear_words(workspace: Workspace, reader: StreamReader) -> Callable[[], None]:
    """Pass what models say to a reader. Return a function that stops it."""
    reader.words = words = UnsentWords(reader.wanted, opening_of(workspace).clock, reader.changed.set)
    unheard = workspace.tasks.words(words.hear)

    def stop() -> None:
        unheard()
        words.stop()

    return stop


async def _must_exist(workspace: Workspace, seq: int) -> None:
    head: Callable[[View], int] = lambda view: view.head().seq  # noqa: E731 - named for its type
    last = await workspace.journal.read(head)
    if seq > last:
        raise Conflict(
            f"there is no event {seq} yet: the journal ends at {last}; was the store restored from a backup? "
            "Read on without Last-Event-ID, or from an event that exists"
        )
