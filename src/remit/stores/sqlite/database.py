"""SQLite: one file, no server; or `:memory:`, the same without the file."""

import asyncio
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeAlias, TypeVar

from remit.core.events import Event, SealKey
from remit.errors import BadInput, NotFound, StoreError
from remit.ports import NOTHING, Beat, Decide, Decided, Fault, Sink, View, Wants, no_fault
from remit.stores import forks
from remit.stores.journal import Sinks
from remit.stores.queries import KnownSchema, query
from remit.stores.sqlite import schema
from remit.stores.sqlite.committing import GroupCommit, ImmediateCommit
from remit.stores.sqlite.connection import (
    Browser,
    LostConnection,
    MemoryConnection,
    ReadingConnection,
    WritingConnection,
    connect,
)
from remit.stores.sqlite.files import (
    ARTIFACTS,
    COMPANIONS,
    MEMORY,
    Whereabouts,
    advice,
    identity,
    looks_at,
    others,
    prepare,
    translated,
)
from remit.stores.sqlite.schema import must_be_newest, recognised, set_up
from remit.stores.views import SqlView

if TYPE_CHECKING:
    from remit.core.placement import Membership, MoveMark
    from remit.stores.sqlite.contents import FileContents, TemporaryFolder
    from remit.stores.sqlite.moving import SqliteEnd

QUICK_SECONDS: Final = 0.02
SLOW_SECONDS: Final = 0.2
QUICK_LOOKS: Final = 50  # after the last change: about a second

_UNKNOWN: Final = -1
_READ_SECONDS: Final = 1.0  # longest wait of a read


class Cancels(Protocol):
    """A timer that can be cancelled."""

    def cancel(self) -> None: ...


CallLater: TypeAlias = Callable[[float, Callable[[], None]], Cancels]


class Polling:
    """Polls a file for changes by other processes, with one timer for all listeners. It notifies the listeners of those
    workspaces whose journal has grown.

    It looks every 20 ms if something has happened within the last second: another process has written, or this one has
    and another may react, because it has written before. Otherwise it looks every 200 ms.

    `version` returns a number that changes when any other connection has written, `head` the number of the last event
    of a workspace. `later` starts a timer; without it, the running event loop does.
    """

    def __init__(self, version: Callable[[], int], head: Callable[[str], int], later: CallLater | None = None) -> None:
        self._version = version
        self._head = head
        self._later = later
        self._loop: asyncio.AbstractEventLoop | None = None
        self._rings: dict[str, dict[int, Callable[[], None]]] = {}  # of each workspace
        self._heads: dict[str, int] = {}  # the last events of which the listeners know
        self._numbers = count()
        self._seen = _UNKNOWN
        self._quick = 0  # quick looks that are left
        self._has_company = False  # whether another process has been seen to write
        self._written: dict[str, int] = {}  # the last events that this process has written
        # An event that this process has not written, or not passed to its listeners yet.
        self._suspect: tuple[str, int] | None = None
        self._timer: Cancels | None = None

    def add(self, workspace: str, ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` when the journal of a workspace has grown. Return a function that stops it."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # a store outlives an event loop; listeners of the old loop are gone
            self._forget_all()
            self._loop = loop
        if self._timer is None:
            self._seen = self._version()
            self._wait()
        number = next(self._numbers)
        self._rings.setdefault(workspace, {})[number] = ring
        self._heads.setdefault(workspace, _UNKNOWN)  # the first change notifies, whichever workspace it concerns
        return partial(self._remove, workspace, number)

    def own(self, events: Sequence[Event]) -> None:
        """Record events that this process has written. Its own listeners have them already; another process may react
        at once."""
        if not self._rings:
            return
        first, last = events[0], events[-1]
        self._written[first.workspace] = last.seq
        if self._heads.get(first.workspace) == first.seq - 1:  # no other process has written in between
            self._heads[first.workspace] = last.seq
        if self._has_company and self._timer is not None:
            was_slow, self._quick = not self._quick, QUICK_LOOKS
            if was_slow:
                self._timer.cancel()
                self._wait()

    def close(self) -> None:
        """Notify the listeners a last time, because reads now raise, and stop."""
        loop, rings = self._loop, [ring for some in self._rings.values() for ring in some.values()]
        self._forget_all()
        if loop is not None and loop.is_running():
            with suppress(RuntimeError):  # it has just been closed
                for ring in rings:
                    loop.call_soon_threadsafe(ring)

    def leave(self) -> None:
        """In a child process, drop the listeners: they belong to the parent."""
        self._rings, self._heads, self._timer, self._loop = {}, {}, None, None

    def _remove(self, workspace: str, number: int) -> None:
        rings = self._rings.get(workspace, {})
        rings.pop(number, None)
        if not rings:
            self._rings.pop(workspace, None)
            self._heads.pop(workspace, None)
        if not self._rings:
            self._forget_all()

    def _forget_all(self) -> None:
        self._rings, self._heads, self._written, self._suspect, self._quick = {}, {}, {}, None, 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        assert self._loop is not None
        later = self._loop.call_later if self._later is None else self._later
        self._timer = later(QUICK_SECONDS if self._quick else SLOW_SECONDS, self._look)

    def _look(self) -> None:
        if self._suspect is not None:
            self._notice_company(*self._suspect)
        try:
            version = self._version()
            moved = self._moved() if version != self._seen else []
        except StoreError:  # the next read gets the error; keep polling, because files come back
            version, moved = _UNKNOWN, [*self._rings]
        self._quick = max(0, self._quick - 1)
        self._seen = version
        self._wait()
        for workspace in moved:
            for ring in tuple(self._rings.get(workspace, {}).values()):
                ring()

    def _moved(self) -> list[str]:
        """Return the workspaces whose journal has changed since the listeners were notified."""
        found: list[str] = []
        for workspace, known in self._heads.items():
            if (head := self._head(workspace)) != known:
                found.append(workspace)
                self._heads[workspace] = head
                if self._has_company:
                    self._quick = QUICK_LOOKS + 1
                elif known != _UNKNOWN:
                    self._suspect = workspace, head
        return found

    def _notice_company(self, workspace: str, head: int) -> None:
        """Decide whether another process has written an event. The next poll calls this, not the one that found the
        event, because an event of this process can be in the file before this process is notified of it."""
        self._suspect = None
        if self._written.get(workspace, 0) < head:
            self._has_company, self._quick = True, QUICK_LOOKS + 1


_BEAT: Final = query("worker_beat")


class SqlitePulse:
    """Writes the heartbeats of one worker, to the file that was opened."""

    def __init__(self, where: str, place: Whereabouts, workspace: str, busy_seconds: float) -> None:
        self._where = where
        self._path = place.path
        self._file = place.main
        self._workspace = workspace
        self._busy = int(busy_seconds * 1000)
        self._using = threading.Lock()  # a fork waits for running writes
        self._connection: sqlite3.Connection | None = None
        self._elsewhere = ""

    def write(self, beat: Beat) -> None:
        while not self._write_beat(beat):
            self._open()

    def _write_beat(self, beat: Beat) -> bool:
        """Write the heartbeat and return True. Return False if the connection must be opened first: that waits for a
        fork, which in turn waits for `_using`."""
        with self._using:
            if self._connection is None:
                return False
            try:
                self._check_file()
                self._connection.execute(_BEAT.sql, _BEAT.fill({**beat._asdict(), "workspace": self._workspace}))
            except (sqlite3.Error, StoreError) as error:
                self._drop()
                raise translated(error, self._where) if isinstance(error, sqlite3.Error) else error from error
            return True

    def _open(self) -> None:
        with forks.opening(), self._using:
            if self._elsewhere:
                raise StoreError(self._elsewhere)
            self._check_file()
            connection = connect(self._path)
            try:
                connection.execute(f"PRAGMA busy_timeout = {self._busy}")
                connection.execute("PRAGMA synchronous = NORMAL")  # a heartbeat need not survive a power cut
            except sqlite3.Error as error:
                connection.close()
                raise translated(error, self._where) from error
            self._connection = connection
            forks.tell(self)

    def close(self) -> None:
        with forks.opening(), self._using:
            self._drop()
            forks.no_more(self)

    def _check_file(self) -> None:
        if identity(self._path) != self._file:
            raise StoreError(f"{self._where}: the file was moved, removed or replaced; put it back, or start again")

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- forks ----------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Close the file once nothing is being written; the next heartbeat opens it again."""
        self._using.acquire()
        self._drop()

    def after_fork(self) -> None:
        self._using.release()

    def leave(self) -> None:
        self._elsewhere = forks.ELSEWHERE.format(where=self._where)
        self._using = threading.Lock()


def back_up(source: Path, target: Path) -> int:
    """Copy a snapshot of a store and the contents of its artifacts, readable by their owner only. Return the number of
    its schema.

    The store is neither changed nor migrated: a backup comes before that. Contents never change, so those that exist
    before the snapshot and those that came until it together are all that the snapshot refers to.
    """
    prepare(source, create=False)
    _create_empty(target)
    from shutil import rmtree  # noqa: PLC0415 - it imports four compressors

    from remit.stores.sqlite.contents import beside, copied  # noqa: PLC0415

    files, copies = beside(str(source)), beside(str(target))
    try:
        copied(files, copies)
        number = _copied(source, target)
        copied(files, copies)
    except BaseException as error:
        target.unlink(missing_ok=True)
        rmtree(copies, ignore_errors=True)
        if isinstance(error, sqlite3.Error):
            raise translated(error, str(source)) from error
        raise
    return number


def _copied(source: Path, target: Path) -> int:
    with closing(connect(str(source))) as store, closing(connect(str(target))) as copy:
        store.execute("PRAGMA busy_timeout = 5000")
        number = recognised(store, str(source))
        if not number:
            raise NotFound(f"{source} is empty, so there is nothing to copy")
        store.backup(copy)  # in one step, so that concurrent writers neither wait nor interfere
        return number


def _create_empty(target: Path) -> None:
    """Create an empty file for the copy; an existing file is not touched."""
    names = [f"{target}{end}" for end in ("", *COMPANIONS, ARTIFACTS)]
    there = [name for name in names if os.path.lexists(name)]
    if there:
        raise BadInput(f"{there[0]} is there already, and a backup overwrites nothing; name another file")
    if not target.parent.is_dir():
        raise BadInput(f"{target.parent} is not a folder, so no copy can be made in it")
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StoreError(f"{target} cannot be made: {error.strerror}") from error


T = TypeVar("T")

# Skips from one workspace to the next, so that no table is scanned. Includes workspaces with rows but without
# events, which the doctor reports.
WORKSPACES: Final = """
WITH RECURSIVE found (name) AS (
    SELECT ''
    UNION ALL
    SELECT (SELECT min(next) FROM (
        SELECT min(workspace) AS next FROM event WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM task WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM run WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM entry WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM retired WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM message WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM breaker WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM card WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM cooling WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM used_key WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM ask WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM gap WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM blob WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM artifact WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM lease WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM hold WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM meter WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM question WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM schedule WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM hook WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM access WHERE workspace > found.name UNION ALL
        SELECT min(workspace) AS next FROM secret WHERE workspace > found.name
    )) FROM found WHERE found.name IS NOT NULL
)
SELECT name FROM found WHERE name <> ''"""

# Finds the workspace of an access key. Two rows mean that two workspaces have a key with this id.
OPENS: Final = "SELECT workspace FROM access WHERE id = ? LIMIT 2"

_log = logging.getLogger("remit")


class SqliteDatabase:
    """Owns the connections to one file, or to a database in memory, and returns stores bound to a workspace."""

    def __init__(
        self,
        where: str | Path = MEMORY,
        *,
        create: bool = True,
        fault: Fault = no_fault,
        busy_seconds: float = 5.0,
    ) -> None:
        self.where = str(where)
        self.lasting = self.where != MEMORY
        # An agent or a daemon may change the folder of the process; the store stays where it was opened.
        self.path = str(Path(where).absolute()) if self.lasting else MEMORY
        self._busy_seconds = busy_seconds
        self._at_rest = False
        self._sinks = Sinks()
        self._files: TemporaryFolder | None = None  # of a store in memory, once it has an artifact
        with forks.opening():
            self._open(fault, create=create)
            self._polling = Polling(self.reader.version, self.reader.head)
            if isinstance(self.writer, MemoryConnection):
                self._commits = ImmediateCommit(self.writer, self._sinks.feed, fault)
            else:
                self._commits = GroupCommit(self.writer, self._feed, fault, busy_seconds=busy_seconds)
            forks.tell(self)
        for remark in self.remarks():
            _log.warning("%s", remark)

    def _open(self, fault: Fault, *, create: bool) -> None:
        if self.lasting:
            forks.refuse_unsafe(self.path)
            prepare(Path(self.where), create=create)
        self._looks = looks_at(Path(self.path)) if self.lasting and not create else ""
        connection = connect(self.path, self._looks)
        try:
            self._set_up(connection)
            known = KnownSchema(self.where, schema.newest())
            if self.lasting:
                self.writer = WritingConnection(self.where, self.path, connection, fault, known, self._looks)
            else:
                self.writer = MemoryConnection(connection, fault, known)
            reading = connect(self.path, self._looks) if self.lasting else connection
            self.reader = ReadingConnection(self.where, reading, known)
            if self.lasting:
                self._prepare_reader()
            self._browser = Browser(self.where, self.writer.place, known, self._busy_seconds)
        except BaseException as error:
            connection.close()
            if isinstance(error, sqlite3.Error):
                raise translated(error, self.where) from error
            raise

    def _set_up(self, connection: sqlite3.Connection) -> None:
        if self._looks:
            must_be_newest(connection, self.where)
        else:
            set_up(connection, self.where, self._busy_seconds)

    def _prepare_reader(self) -> None:
        """Let the reading connection only read, and wait for a moment: a write does not lock it out, but another
        process that opens, closes or recovers the log does."""
        connection = self.reader.connection
        connection.execute("PRAGMA query_only = ON")
        connection.execute(f"PRAGMA busy_timeout = {int(min(self._busy_seconds, _READ_SECONDS) * 1000)}")

    def keep(self, events: int | None) -> None:
        """In memory, keep this many of the newest events of each workspace and drop the rest, except for runs with
        something open; None keeps all. A file keeps everything."""
        if isinstance(self._commits, ImmediateCommit):
            self._commits.forgetting.keep = events

    def store(self, workspace: str) -> "FileStore | MemoryStore":
        if isinstance(self._commits, ImmediateCommit):
            return MemoryStore(workspace, self._commits, self.writer, self._sinks)
        return FileStore(workspace, self._commits, self.reader, self._browser, self._sinks, self._polling)

    def _feed(self, events: list[Event]) -> None:
        self._sinks.feed(events)
        self._polling.own(events)

    # -- forks ----------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Close the file once no read or write runs: two processes must not share an open SQLite file."""
        if not self.lasting or not self.writer.rest(self._busy_seconds):
            return
        if not self._browser.rest():
            self._browser.go_on()
            self.writer.go_on()
            return
        self.reader.looking.acquire()
        self._at_rest = True
        self.reader.connection.close()
        self.writer.connection.close()

    def after_fork(self) -> None:
        """Open the file again."""
        if not self._at_rest:
            return
        try:
            self._connect()
        except (StoreError, sqlite3.Error) as error:  # a fork hook must not raise: the next call gets the error
            _log.error("%s could not be opened again after a fork: %s", self.where, error)
            lost = LostConnection(f"{self.where} could not be opened again after a fork: {error}")
            self.writer.use(lost)
            self.reader.connection = lost
        finally:
            self._go_on()

    def leave(self) -> None:
        why = forks.ELSEWHERE.format(where="a store in memory" if not self.lasting else self.where)
        if self.lasting and not self._at_rest:
            forks.unsafe(self.path)
        forks.keep((self.writer.connection, self.reader.connection))
        lost = LostConnection(why)
        self.writer.use(lost)
        self.reader.connection = lost
        self._commits.leave(why)
        self._browser.leave(why)
        self._polling.leave()
        self._go_on()

    def _go_on(self) -> None:
        if self._at_rest:
            self._at_rest = False
            self.reader.looking.release()
            self._browser.go_on()
            self.writer.go_on()

    def _connect(self) -> None:
        connection = connect(self.path, self._looks)
        self._set_up(connection)
        self.writer.use(connection)
        self.reader.connection = connect(self.path, self._looks)
        self._prepare_reader()

    def contents(self, workspace: str) -> "FileContents":
        from remit.stores.sqlite.contents import FileContents, beside  # noqa: PLC0415 - few programs have artifacts

        if self.lasting:
            return FileContents(beside(self.path), workspace)
        return FileContents(self._temporary().path, workspace, durable=False)

    def _temporary(self) -> "TemporaryFolder":
        from remit.stores.sqlite.contents import TemporaryFolder  # noqa: PLC0415

        if self._files is None:
            self._files = TemporaryFolder()
        return self._files

    def dispatcher(self, workspace: str) -> None:
        """Return None: the store itself wakes its listeners."""
        return

    def pulse(self, workspace: str) -> SqlitePulse | None:
        if not self.lasting:
            return None
        return SqlitePulse(self.where, self.writer.place, workspace, self._busy_seconds)

    def server_time(self) -> None:
        """Return None: a file has no clock."""
        return

    def workspaces(self) -> list[str]:
        self._carry_out()
        return [row[0] for row in self.reader.rows(WORKSPACES)]

    async def opened_by(self, access: str) -> str | None:
        self._carry_out()
        rows = self.reader.rows(OPENS, (access,))
        return rows[0][0] if len(rows) == 1 else None

    # -- several databases ----------------------------------------------------------------------------

    def membership(self) -> "Membership | None":
        from remit.core.placement import Membership  # noqa: PLC0415 - few programs have several databases

        rows = self.reader.rows(query("member_of").sql)
        return Membership(*rows[0]) if rows else None

    def placed(self, workspace: str) -> str | None:
        rows = self.reader.rows(query("place_of").sql, (workspace,))
        return rows[0][0] if rows else None

    def has(self, workspace: str) -> bool:
        return self.reader.head(workspace) > 0

    def marks(self) -> "dict[str, MoveMark]":
        from remit.core.placement import MoveMark  # noqa: PLC0415

        return {name: MoveMark(*mark) for name, *mark in self.reader.rows(query("moving_all").sql)}

    def end(self) -> "SqliteEnd":
        from remit.stores.sqlite.moving import SqliteEnd  # noqa: PLC0415

        return SqliteEnd(self.path, self._busy_seconds)

    @property
    def key(self) -> SealKey | None:
        return self.writer.journal.key

    def seal_with(self, key: SealKey | None) -> None:
        """Sign everything that is written from now on with this key."""
        self.writer.journal.key = key

    def faulty(self) -> list[str]:
        rows = self._browser.rows if self.lasting else self.reader.rows  # other reads continue meanwhile
        try:
            self._carry_out()
            findings = [row[0] for row in rows("PRAGMA quick_check")]
            differences = schema.differences(rows(schema.OBJECTS))
        except StoreError as error:
            return [f"the file itself is damaged: {error}"]
        return [*(f"the file itself is damaged: {what}" for what in findings if what != "ok"), *differences]

    def _carry_out(self) -> None:
        """Write the delayed changes of a store in memory, and its late indexes, before a read of the whole database."""
        try:
            self.writer.carry_out()
            if isinstance(self.writer, MemoryConnection):
                self.writer.add_late_indexes()
        except sqlite3.Error as error:
            raise translated(error, self.where) from error

    def remarks(self) -> list[str]:
        return others(self.where) if self.lasting else []

    def advice(self) -> list[str]:
        return advice(sqlite3.sqlite_version_info) if self.lasting else []

    def close(self) -> None:
        self._commits.close()
        self._browser.close()
        self._polling.close()
        with forks.opening():
            forks.no_more(self)
            self.reader.connection.close()
            self.writer.connection.close()
        if self._files is not None:
            self._files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class MemoryStore:
    """One workspace in memory: an operation is done when it returns."""

    __slots__ = ("_commits", "_sinks", "_view", "workspace")

    def __init__(self, workspace: str, commits: ImmediateCommit, writer: WritingConnection, sinks: Sinks) -> None:
        self.workspace = workspace
        self._commits = commits
        self._sinks = sinks
        self._view = writer.journal.view(workspace)  # reads use the writer's view, between two operations

    async def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Decided[T]:
        return self._commits.apply(self.workspace, op, decide)

    async def read(self, look: Callable[[View], T]) -> T:
        self._commits.one.enter()
        try:
            return look(self._view)
        except sqlite3.Error as error:
            raise translated(error, MEMORY) from error

    async def browse(self, look: Callable[[View], T]) -> T:
        """Read in the same way as `read`: there is only one connection."""
        return await self.read(look)

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        return self._sinks.add(self.workspace, sink)

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        """Never notify: no other process can write here."""
        return _nothing


class FileStore:
    """One workspace on a file: an operation is done when it is on disk."""

    __slots__ = ("_browser", "_commits", "_polling", "_reader", "_sinks", "_view", "workspace")

    def __init__(
        self,
        workspace: str,
        commits: GroupCommit,
        reader: ReadingConnection,
        browser: Browser,
        sinks: Sinks,
        polling: Polling,
    ) -> None:
        self.workspace = workspace
        self._commits = commits
        self._reader = reader
        self._browser = browser
        self._sinks = sinks
        self._polling = polling
        self._view = SqlView(workspace, reader.query)

    async def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Decided[T]:
        return await self._commits.submit(self.workspace, op, decide)

    async def read(self, look: Callable[[View], T]) -> T:
        self._commits.one.enter()
        return self._reader.look(self._view, look)

    async def browse(self, look: Callable[[View], T]) -> T:
        self._commits.one.enter()
        return await self._browser.look(self.workspace, look)

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        return self._sinks.add(self.workspace, sink)

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        return self._polling.add(self.workspace, ring)


def _nothing() -> None:
    """Do nothing."""
