"""The connections to a SQLite database: one that writes, on a file another that reads, and those of long reads."""

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import starmap
from pathlib import Path
from typing import Any, Final, Generic, Never, Self, TypeVar

from remit.core.events import Event, Head
from remit.errors import StoreError
from remit.ports import Decide, Fault, View
from remit.stores import forks
from remit.stores.journal import Applied, Journal, Recorded, Rows
from remit.stores.queries import KnownSchema, query, tables_read
from remit.stores.sqlite.files import MEMORY, Whereabouts, is_busy, translated
from remit.stores.sqlite.schema import add_late_indexes
from remit.stores.threads import quick_switching
from remit.stores.views import SqlView

T = TypeVar("T")

_APPEND: Final = query("append").sql


class _Connection(sqlite3.Connection):
    """A connection that is closed when its runtime is dropped. A program need not close a runtime in memory, and from
    Python 3.13 on sqlite3 would warn of an open connection."""

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # it could not be opened
            self.close()


def connect(where: str, looks: str = "") -> sqlite3.Connection:
    """Open a connection that begins and commits only explicitly. `looks` are the parameters of SQLite's URI for a
    read-only store; with them, `where` must be an absolute path."""
    address = f"{Path(where).as_uri()}?{looks}" if looks else where
    try:
        # Two threads use the writing connection, never at the same time: the loop's for SQL, the committer's for
        # COMMIT.
        return sqlite3.connect(
            address,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            timeout=0,
            uri=bool(looks),
            factory=_Connection,
        )
    except sqlite3.Error as error:
        raise translated(error, where) from error


class WritingConnection:
    """Begins, applies operations, commits or rolls back. It implements the journal's `Sql`."""

    def __init__(
        self,
        where: str,
        path: str,
        connection: sqlite3.Connection,
        fault: Fault,
        known: KnownSchema,
        looks: str = "",
    ) -> None:
        self._where = where
        self._journal = Journal(self, fault)
        self._lasting = where != MEMORY
        self._known = known
        self.place = Whereabouts(where, path, lasting=self._lasting, looks=looks)
        self._transaction = threading.Lock()  # held during a transaction on a file, so that a fork can wait for its end
        self._holds = False  # whether a transaction holds the lock above
        self._changes = 0  # rows changed before the open transaction began
        self._seen = 0  # the last data_version without changes by others
        self._erased = False  # something was erased, and the write-ahead log may still have it
        self._living: set[str] = set()  # workspaces that are known to live here, and not to be on their way elsewhere
        self.use(connection)

    def use(self, connection: sqlite3.Connection) -> None:
        """Use this prepared connection from now on; drop the caches."""
        self.place.settle()
        self.connection = connection
        # One cursor for all statements, because each result is read completely at once.
        self._execute = connection.cursor().execute
        self._journal.forget()
        self._living.clear()

    def rest(self, seconds: float) -> bool:
        """Wait until no transaction is open and let none begin. Return False if one takes longer than that."""
        return self._transaction.acquire(timeout=seconds)

    def go_on(self) -> None:
        """Allow transactions again, after they were stopped."""
        self._transaction.release()

    # -- transactions -------------------------------------------------------------------------------

    def begin(self) -> bool:
        """Start a write transaction. Return False if another process is writing."""
        if self._lasting:
            self._transaction.acquire()  # first: around a fork the files are reopened
            self._holds = True
        self._changes = self.connection.total_changes
        try:
            self.place.check(self.connection)
            self.connection.execute("BEGIN IMMEDIATE")
            if self._lasting:
                self._notice_others()
        except sqlite3.Error as error:
            self._ended()
            if is_busy(error):
                return False
            raise translated(error, self._where) from error
        except StoreError:
            self.rollback()
            raise
        return True

    def _notice_others(self) -> None:
        """Drop the caches if another connection has written, which SQLite counts in `data_version`. It may also have
        migrated the file to a schema that we do not know."""
        version = self._execute("PRAGMA data_version").fetchone()[0]
        if version != self._seen:
            self._known.saw(self._execute("PRAGMA user_version").fetchone()[0])
            self._seen = version
            self._journal.forget()
            self._living.clear()

    def changed(self) -> bool:
        """Whether there is anything to commit."""
        return self.connection.total_changes != self._changes

    def apply(self, workspace: str, op: str, decide: Decide[Any]) -> Applied:
        """Apply an operation. Raise `StoreError` if the database fails, or the workspace lives elsewhere; any other
        error is the operation's own."""
        try:
            if workspace not in self._living:
                self._must_live_here(workspace)
            return self._journal.apply(workspace, op, decide)
        except sqlite3.Error as error:
            raise translated(error, self._where) from error

    def _must_live_here(self, workspace: str) -> None:
        """Raise `Moved` if the workspace may not be written here. It is looked up once, and again after another
        connection has written: so each transaction knows all marks that were set before it."""
        if marks := self.query("moving_of", (workspace,)):
            from remit.core.placement import MoveMark, moved  # noqa: PLC0415 - hardly any workspace is moved

            raise moved(workspace, MoveMark(*marks[0]))
        self._living.add(workspace)

    def restore(self, events: list[Event]) -> None:
        """Write events again that a rollback removed."""
        try:
            self._journal.restore(events)
        except sqlite3.Error as error:
            raise translated(error, self._where) from error

    @property
    def journal(self) -> Journal:
        return self._journal

    def carry_out(self) -> None:
        """Carry out delayed statements; on a file there are none."""

    def commit(self) -> None:
        """Commit. Raise `StoreError` also if the file was moved or removed meanwhile."""
        try:
            self._journal.flush()
            self.carry_out()
            self.connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise translated(error, self._where) from error
        self.place.check(self.connection)
        if self._erased:
            self._wipe()
        self._ended()

    def _wipe(self) -> None:
        """Move the write-ahead log, which still has the old pages, into the file. That fails while others read; then it
        is retried after the next commit, and SQLite does it at the latest when all have closed."""
        try:
            busy = self._execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.Error:
            return
        self._erased = bool(busy)

    def rollback(self) -> None:
        self._journal.forget()
        if self._lasting and not self._holds:
            return
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            if self.connection.in_transaction:  # otherwise SQLite has rolled back itself
                raise translated(error, self._where) from error
        finally:
            self._ended()

    def _ended(self) -> None:
        if self._holds:
            self._holds = False
            self._transaction.release()

    # -- `Sql` for the journal ----------------------------------------------------------------------

    def head(self, workspace: str) -> Head:
        rows = self.query("head", (workspace,))
        return Head(*rows[0]) if rows else Head()

    def done(self, workspace: str, op: str) -> Recorded | None:
        rows = self.query("done", (workspace, op))
        return Recorded(*rows[0]) if rows else None

    def append(self, event: Event) -> bool:
        return self._execute(_APPEND, event[:-1]).rowcount > 0  # columns are the event's fields except `data`

    def query(self, name: str, row: Sequence[Any]) -> Rows:
        return self._execute(query(name).sql, row).fetchall()

    def write(self, name: str, row: tuple[Any, ...]) -> None:
        self._execute(query(name).sql, row)

    def erase(self, name: str, row: tuple[Any, ...]) -> None:
        """Run a writing statement; SQLite overwrites the data that it removes with zeros."""
        self._execute("PRAGMA secure_delete = ON").fetchall()
        self.write(name, row)
        self._execute("PRAGMA secure_delete = OFF").fetchall()
        self._erased = self._lasting


# Statements that SQLite never refuses, so that they can wait and be carried out together. A new event and a new task
# can wait too, if their ids are new.
_OF_TASKS: Final = frozenset(("task_claim", "task_requeue", "task_hand", "task_end"))
_DELAYED: Final = frozenset(("run_count", "entry_put", "entry_touch"))
_SLOTS: Final = 1 << 20
_MORE_SLOTS: Final = 1 << 23  # for a database that has so many ids that old ones are removed
# Queries that find events and tasks by their ids and numbers alone. Other queries of these tables need late indexes.
_BY_ID: Final = frozenset(("chapter_facts", "chapter_firsts", "done", "event", "head", "record", "standing"))


def _needs_late_indexes(name: str) -> bool:
    return name not in _BY_ID and not tables_read(name).isdisjoint(("event", "task"))


@cache
def _changed_columns(name: str) -> tuple[int, ...]:
    """Return which columns of a new task's row a statement of `_OF_TASKS` sets, in the order of its values. The two
    values after those are the workspace and the id of the task."""
    return tuple(query("task_add").names.index(column) for column in query(name).names[:-2])


class MemoryConnection(WritingConnection):
    """The connection to a database in memory. It carries out the commonest statements some hundred at a time, because
    SQLite needs about half the time for a statement that follows another one directly."""

    def __init__(self, connection: sqlite3.Connection, fault: Fault, known: KnownSchema) -> None:
        self._waiting: list[tuple[str, Sequence[Any]]] = []
        # The rows of `_waiting` that add tasks, by workspace and id. A task often ends before its row is written: then
        # one statement adds it as it ended, because each index of the table makes a second statement expensive.
        self._new_tasks: dict[tuple[Any, ...], list[Any]] = {}
        # One byte for the ids of operations and tasks with the same hash: not 0 if one of them may be in the database.
        # Then SQLite decides. Other ids are certainly new. Unlike a set of ids, it does not grow.
        self._used = bytearray(_SLOTS)
        self._has_late_indexes = False
        self._ready: set[str] = set()  # queries whose indexes exist
        super().__init__(MEMORY, MEMORY, connection, fault, known)

    def carry_out(self) -> None:
        deque(starmap(self._execute, self._waiting), maxlen=0)  # a loop without its bytecodes
        self._waiting.clear()
        if self._new_tasks:
            self._new_tasks.clear()

    def add_late_indexes(self) -> None:
        """Create the late indexes, unless they exist. Many programs only run agents and never need them."""
        if self._has_late_indexes:
            return
        try:
            add_late_indexes(self.connection)
        except sqlite3.Error as error:
            raise translated(error, MEMORY) from error
        self._has_late_indexes = True

    def has_only(self, ids: Iterable[str]) -> None:
        """Record which ids are in the database, after many were removed."""
        self._used = used = bytearray(_MORE_SLOTS)
        for id_ in ids:
            used[hash(id_) % _MORE_SLOTS] = 1

    def append(self, event: Event) -> bool:
        if event.op is not None:
            used = self._used
            slot = hash(event.op) % len(used)
            if used[slot]:
                self.carry_out()
                return super().append(event)
            used[slot] = 1
        self._waiting.append((_APPEND, event[:-1]))
        return True

    def query(self, name: str, row: Sequence[Any]) -> Rows:
        if self._waiting:
            self.carry_out()
        if name not in self._ready:
            if _needs_late_indexes(name):
                self.add_late_indexes()
            self._ready.add(name)
        return self._execute(query(name).sql, row).fetchall()

    def write(self, name: str, row: tuple[Any, ...]) -> None:
        if name in _DELAYED:
            self._waiting.append((query(name).sql, row))
        elif name in _OF_TASKS:
            task = self._new_tasks.get(row[-2:])
            if task is None:
                self._waiting.append((query(name).sql, row))
                return
            deque(map(task.__setitem__, _changed_columns(name), row), maxlen=0)
            if name == "task_end":  # an ended task does not change any more
                del self._new_tasks[row[-2:]]
        elif name == "task_add" and not self._used[slot := hash(row[1]) % len(self._used)]:
            self._used[slot] = 1
            self._new_tasks[row[:2]] = task = [*row]
            self._waiting.append((query(name).sql, task))
        else:
            self.carry_out()
            self._execute(query(name).sql, row)

    def rollback(self) -> None:
        self._waiting.clear()
        self._new_tasks.clear()
        self._has_late_indexes = False  # the transaction may have created them
        self._ready.clear()
        super().rollback()


class ReadingConnection:
    """A read-only connection; it sees committed data only."""

    def __init__(self, where: str, connection: sqlite3.Connection, known: KnownSchema) -> None:
        self.connection = connection
        self._where = where
        self._known = known
        self._seen = 0  # data_version at the last check of the schema number
        self.looking = threading.Lock()  # a fork waits for running reads

    def query(self, name: str, row: Sequence[Any]) -> Rows:
        return self.connection.execute(query(name).sql, row).fetchall()

    def rows(self, sql: str, values: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a statement about the file, not about a workspace."""
        try:
            with self.looking:
                return self.connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise translated(error, self._where) from error

    def look(self, view: View, look: Callable[[View], T]) -> T:
        """Run `look` on a snapshot and return its result."""
        self._known.check()
        try:
            with self.looking:
                execute = self.connection.execute
                execute("BEGIN")
                try:
                    return look(view)
                finally:
                    if self.connection.in_transaction:  # some errors end the transaction, and those must be raised
                        execute("COMMIT")
        except sqlite3.Error as error:
            raise translated(error, self._where) from error

    def head(self, workspace: str) -> int:
        """Return the number of the last event of a workspace, or 0."""
        row = self.rows(query("head").sql, (workspace,))
        return row[0][0] if row else 0

    def version(self) -> int:
        """Return a number that changes when any other connection has written. Raise `NewerStore` if the file has been
        migrated since."""
        version: int = self.rows("PRAGMA data_version")[0][0]
        if version != self._seen:
            self._known.saw(self.rows("PRAGMA user_version")[0][0])
            self._seen = version
        return version


class LostConnection(sqlite3.Connection):
    """A stand-in for a connection that cannot be used any more, for example the parent's after a fork. Every call
    raises `StoreError`."""

    in_transaction = False  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride] - what there was is not ours
    total_changes = 0  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]

    def __init__(self, why: str) -> None:
        self._why = why  # no connection is opened

    def execute(self, *_: object) -> Never:
        raise StoreError(self._why)

    def cursor(self, *_: object) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self

    def close(self) -> None:
        """Do nothing."""


_AT_ONCE: Final = 4  # concurrent reads; further ones wait


# -- long reads --------------------------------------------------------------------------------------
# A short read runs on the event loop's thread, where it costs least. A long read would block the loop, so it runs in
# another thread with its own connection, on its own snapshot of the file.


class _Stopped(Exception):
    """A read was interrupted."""


class _Browse(Generic[T]):
    """One long read. It can be stopped from another thread: at its next query, or in the middle of one."""

    def __init__(self, use: Callable[["_Browse[T]", ReadingConnection], T]) -> None:
        self._use = use
        self._reader: ReadingConnection | None = None
        self.stopped = False
        self.abandoned = False  # its caller has gone

    def on(self, reader: ReadingConnection) -> T:
        answer = self._use(self, reader)
        if self.stopped:  # it may have mistaken the interruption for damage
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
    """Owns the threads and connections of long reads. The first read creates them."""

    def __init__(self, where: str, place: Whereabouts, known: KnownSchema, busy_seconds: float) -> None:
        self._where = where
        self._place = place
        self._known = known
        self._seconds = busy_seconds
        self._threads: ThreadPoolExecutor | None = None
        self._state = threading.Condition()  # protects all fields below
        self._free: list[ReadingConnection] = []
        self._under_way: set[_Browse[Any]] = set()
        self._resting = False
        self._closed = ""  # why, if it is

    async def look(self, workspace: str, look: Callable[[View], T]) -> T:
        """Run `look` on a snapshot, in another thread, and return its result."""
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
            with self._state:  # its connection may belong to another read by now
                browse.abandon()
            raise

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement about the file, on this thread."""
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
                raise StoreError("this query was abandoned")  # never seen by a caller

    def _take(self, browse: _Browse[Any]) -> ReadingConnection:
        with forks.opening(), self._state:  # no read starts during a fork
            if self._closed:
                raise StoreError(self._closed)
            reader = self._free.pop() if self._free else self._open()
            browse.begin(reader)
            self._under_way.add(browse)
            return reader

    def _open(self) -> ReadingConnection:
        self._place.check_file()
        connection = connect(self._place.path, self._place.looks)
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
        """Stop the running reads and close the file. A read that is not in a query cannot be stopped: wait for it for
        `busy_seconds`; later, it closes the file itself when it ends."""
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
        """Close the file before a fork. Interrupt running reads; they restart afterwards. Return False if one does not
        stop."""
        with self._state:
            self._resting = True
            return self._let_go()

    def go_on(self) -> None:
        """Allow reads again, after they were stopped."""
        with self._state:
            self._resting = False

    def leave(self, why: str) -> None:
        """In a child process, refuse all calls: reads, threads and connections belong to the parent."""
        forks.keep((self._threads, self._under_way))
        self._closed = why
        self._threads = None
        self._state = threading.Condition()
        self._under_way = set()
