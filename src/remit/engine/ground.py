"""Shared dependencies of the engine."""

from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, Final, Protocol

from remit.core.records import NamedTuple
from remit.core.times import SECOND
from remit.ports import Clock, Ids, Store

if TYPE_CHECKING:
    from remit.engine.directory import Directory
    from remit.ports.contents import Contents
    from remit.ports.models import TextChunk

EXPECTED: Final = 300 * SECOND  # for this long after the last listener has left, answers are still streamed


class AnswerUnderWay(Protocol):
    """An answer that is being streamed, and its text so far."""

    so_far: "TextChunk"


class Ears:
    """The listeners to streamed text of models in this process, and the answers that are being streamed.

    A listener that joins in the middle of an answer first gets the text so far. An answer is streamed if there
    is a listener when it begins, or if the last one has left shortly before, because it may come back.
    """

    __slots__ = ("_ticks", "_until", "awake", "hearing", "lock", "speeches")

    def __init__(self, ticks: Callable[[], int]) -> None:
        self.hearing: tuple[Callable[[TextChunk], None], ...] = ()
        self.speeches = dict[AnswerUnderWay, None]()
        self.lock = RLock()  # agents may run in threads
        self.awake = False  # whether anybody has listened or was expected to: until then, an answer costs nothing more
        self._until = 0  # answers are streamed until then, even without a listener
        self._ticks = ticks

    def __len__(self) -> int:
        return len(self.hearing)

    @property
    def are_open(self) -> bool:
        """Whether an answer that begins now is streamed."""
        return bool(self.hearing) or self._ticks() < self._until

    def expect(self) -> None:
        """Stream answers for a while: somebody may be about to listen."""
        self.awake = True
        self._until = self._ticks() + EXPECTED

    def add(self, hear: Callable[["TextChunk"], None]) -> None:
        with self.lock:
            if hear not in self.hearing:
                self.awake = True
                self.hearing = (*self.hearing, hear)
                self.repeat(hear)

    def remove(self, hear: Callable[["TextChunk"], None]) -> None:
        with self.lock:
            if hear in self.hearing:
                self.hearing = tuple(one for one in self.hearing if one != hear)
                self.expect()

    def repeat(self, hear: Callable[["TextChunk"], None]) -> None:
        """Send a listener the text so far of the answers that are being streamed."""
        with self.lock:
            for speech in self.speeches:
                hear(speech.so_far)


class Ground(NamedTuple):
    """The shared dependencies of the engine: the store, whose transactions include all follow-up events; the clock, the
    source of ids, the registry of agents, the storage of artifacts, and the listeners to the answers of models in this
    process."""

    store: Store
    clock: Clock
    ids: Ids
    directory: "Directory"
    contents: Callable[[], "Contents"]
    ears: Ears


class StoreAround:
    """A store that wraps another and delegates everything that it does not override."""

    __slots__ = ("_store", "browse", "listen", "read", "subscribe", "workspace")

    def __init__(self, store: Store) -> None:
        self._store = store
        self.workspace = store.workspace
        self.read = store.read
        self.browse = store.browse
        self.subscribe = store.subscribe
        self.listen = store.listen
