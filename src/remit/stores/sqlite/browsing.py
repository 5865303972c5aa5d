"""Long looks at a file: on threads of their own, each with a connection of its own and so as of a moment of its own.

A short look is answered on the event loop's thread, where it costs least. One that reads much would hold up everything
else there.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Generic, TypeVar

from remit.errors import StoreError
from remit.ports import View
from remit.stores import forks
from remit.stores.journal import Rows
from remit.stores.newer import KnownSchema
from remit.stores.sqlite.connection import ReadingConnection, connect
from remit.stores.sqlite.files import translated
from remit.stores.sqlite.whereabouts import Whereabouts
from remit.stores.switching import quick_switching
from remit.stores.views import SqlView

T = TypeVar("T")

_AT_ONCE: Final = 4  # looks; the next one waits


class _Stopped(Exception):
    """A look was told to stop."""


class _Browse(Generic[T]):
    """One look. It can be stopped from another thread: at its next question, or in the middle of one."""

    def __init__(self, use: Callable[["_Browse[T]", ReadingConnection], T]) -> None:
        self._use = use
        self._reader: ReadingConnection | None = None
        self.stopped = False
        self.abandoned = False  # nobody waits for it any more

    def on(self, reader: ReadingConnection) -> T:
        answer = self._use(self, reader)
        if self.stopped:  # it may have taken the interruption for damage
            raise _Stopped
        return answer

    def begin(self, reader: ReadingConnection) -> None:
        self._reader, self.stopped = reader, self.abandoned

    def ask(self, name: str, row: Sequence[Any]) -> Rows:
        if self.stopped or self._reader is None:
            raise _Stopped
        return self._reader.query(name, row)

    def stop(self) -> None:
        self.stopped = True
        if self._reader is not None:
            self._reader.connection.interrupt()

    def abandon(self) -> None:
        self.abandoned = True
        self.stop()

    def end(self) -> None:
        self._reader = None


class Browser:
    """Owns the threads and the connections for long looks. The first look makes them."""

    def __init__(self, where: str, place: Whereabouts, known: KnownSchema, busy_seconds: float) -> None:
        self._where = where
        self._place = place
        self._known = known
        self._seconds = busy_seconds
        self._threads: ThreadPoolExecutor | None = None
        self._state = threading.Condition()  # for all below
        self._free: list[ReadingConnection] = []
        self._under_way: set[_Browse[Any]] = set()
        self._resting = False
        self._closed = ""  # why, if it is

    async def look(self, workspace: str, look: Callable[[View], T]) -> T:
        """Answer all that `look` asks as of one moment, on another thread."""
        self._known.check()
        if self._closed:
            raise StoreError(self._closed)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="remit-browse")
        browse = _Browse[T](lambda browse, reader: reader.look(SqlView(workspace, browse.ask), look))
        answer = self._threads.submit(self._answer, browse)
        try:
            return await asyncio.wrap_future(answer)
        except asyncio.CancelledError:
            with self._state:  # its connection may be another look's by now
                browse.abandon()
            raise

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement that is about the file, on this thread."""
        return self._answer(_Browse[list[tuple[Any, ...]]](lambda _, reader: reader.rows(sql)))

    def _answer(self, browse: _Browse[T]) -> T:
        while True:
            reader = self._take(browse)
            try:
                with quick_switching():
                    return browse.on(reader)
            except (_Stopped, StoreError):
                if not browse.stopped:
                    raise
            finally:
                self._give_back(browse, reader)
            if browse.abandoned:
                raise StoreError("nobody waits for this look any more")  # and so nobody reads this

    def _take(self, browse: _Browse[Any]) -> ReadingConnection:
        with forks.opening(), self._state:  # while a process forks, no look begins
            if self._closed:
                raise StoreError(self._closed)
            reader = self._free.pop() if self._free else self._open()
            browse.begin(reader)
            self._under_way.add(browse)
            return reader

    def _open(self) -> ReadingConnection:
        self._place.check_file()
        connection = connect(self._where)
        try:
            connection.execute(f"PRAGMA busy_timeout = {int(self._seconds * 1000)}")
            connection.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            connection.close()
            raise translated(error, self._where) from error
        return ReadingConnection(self._where, connection, self._known)

    def _give_back(self, browse: _Browse[Any], reader: ReadingConnection) -> None:
        with self._state:
            browse.end()
            self._under_way.discard(browse)
            if self._closed or self._resting or browse.stopped:
                reader.connection.close()
            else:
                self._free.append(reader)
            self._state.notify_all()

    def close(self) -> None:
        """Stop the looks that are under way and let go of the file. A look that does not ask anything now cannot be
        stopped; it is left after a while, and lets go of the file when it does."""
        with self._state:
            self._closed = self._closed or "the store is closed"
            self._let_go()
        if self._threads is not None:
            self._threads.shutdown(wait=False)

    def _let_go(self) -> bool:
        for browse in self._under_way:
            browse.stop()
        done = self._state.wait_for(lambda: not self._under_way, self._seconds)
        while self._free:
            self._free.pop().connection.close()
        return done

    # -- forks ----------------------------------------------------------------------------------------

    def rest(self) -> bool:
        """Let go of the file, before a fork: looks that are under way begin anew afterwards. False if one of them does
        not stop."""
        with self._state:
            self._resting = True
            return self._let_go()

    def go_on(self) -> None:
        """Let looks begin again."""
        with self._state:
            self._resting = False

    def leave(self, why: str) -> None:
        """Refuse what comes, in a child process: looks, threads and connections are the parent's."""
        forks.keep((self._threads, self._under_way))
        self._closed = why
        self._threads = None
        self._state = threading.Condition()
        self._under_way = set()
