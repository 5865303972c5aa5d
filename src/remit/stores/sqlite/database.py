"""SQLite: one file, no server; or `:memory:`, the same thing without the file."""

import os
import sqlite3
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from time import sleep
from typing import Any, Final, TypeVar

from remit.core.events import Event
from remit.core.text import shown
from remit.errors import BadInput, NewerStore, NotAStore, NotFound, StoreBusy, StoreError
from remit.ports import NOTHING, Decide, Decided, Fault, Sink, View, Wants, no_fault
from remit.stores.journal import Journal
from remit.stores.queries import OLDER, migrations, queries
from remit.stores.sinks import Sinks
from remit.stores.sqlite.committing import GroupCommit, ImmediateCommit
from remit.stores.sqlite.polling import Poll
from remit.stores.view import SqlView

T = TypeVar("T")

MEMORY: Final = ":memory:"
APPLICATION_ID: Final = 0x52454D49  # "REMI": what tells a remit store from any other SQLite file
_MAGIC: Final = b"SQLite format 3\x00"
_MEANING: Final = {
    "SQLITE_FULL": "the disk is full; make room and try again",
    "SQLITE_READONLY": "the file or its folder is read-only; remit needs to write to it",
    "SQLITE_CORRUPT": "the file is damaged; run `remit doctor` on a copy of it",
    "SQLITE_NOTADB": "the file is not a SQLite database",
    "SQLITE_BUSY": "another process holds the file; try again, or stop it",
    "SQLITE_CANTOPEN": "the file cannot be opened; is its folder there and writable?",
    "SQLITE_IOERR": "the disk could not be read or written ({name}); look at it, then try again",
}


class SqliteDatabase:
    """Opens, migrates and owns the connections; hands out stores bound to a workspace."""

    def __init__(
        self,
        where: str | Path = MEMORY,
        *,
        create: bool = True,
        fault: Fault = no_fault,
        busy_seconds: float = 5.0,
    ) -> None:
        self.where = str(where)
        self.fault = fault
        self._statements = {name: query.sql for name, query in queries().items()}
        self._in_memory = self.where == MEMORY
        if not self._in_memory:
            _prepare(Path(where), create=create)
        self._busy_seconds = busy_seconds
        self._writer = self._connect()
        self._file = _identity(self.where)
        self._write = self._writer.cursor().execute  # one cursor for all statements: each is read to its end at once
        self._reader = self._writer
        self._journal = Journal(self, fault)
        self._sinks = Sinks()
        self.feed = self._sinks.feed
        self._changes = 0  # rows changed before the open transaction began
        self._seen = 0  # the last version of the data that no one but us had changed
        try:
            self._set_up()
            if not self._in_memory:
                self._reader = self._connect()
                self._reader.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            self.close()
            raise self.translated(error) from error
        except BaseException:
            self.close()
            raise
        self._commits = ImmediateCommit(self) if self._in_memory else GroupCommit(self, busy_seconds=busy_seconds)

    @property
    def lasting(self) -> bool:
        return not self._in_memory

    def dispatcher(self, workspace: str) -> None:
        return None

    def store(self, workspace: str) -> "FileStore | MemoryStore":
        if isinstance(self._commits, ImmediateCommit):
            return MemoryStore(self, workspace, self._commits)
        return FileStore(self, workspace, self._commits)

    def workspaces(self) -> list[str]:
        try:
            rows = self._reader.execute("SELECT DISTINCT workspace FROM event ORDER BY workspace").fetchall()
        except sqlite3.Error as error:
            raise self.translated(error) from error
        return [row[0] for row in rows]

    def faulty(self) -> list[str]:
        try:
            found = [row[0] for row in self._reader.execute("PRAGMA quick_check").fetchall()]
        except sqlite3.Error as error:
            return [str(error)]
        return [] if found == ["ok"] else found

    def close(self) -> None:
        commits = getattr(self, "_commits", None)
        if commits is not None:
            commits.close()
        if self._reader is not self._writer:
            self._reader.close()
        self._writer.close()

    # -- opening ----------------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        try:
            # Two threads use the writer, never both at once: the loop's for SQL, the committer's for COMMIT.
            found = sqlite3.connect(
                self.where, isolation_level=None, check_same_thread=False, cached_statements=256, timeout=0
            )
        except sqlite3.Error as error:
            raise self.translated(error) from error
        return found

    def _set_up(self) -> None:
        run = self._writer.execute
        # Only while opening: later, waiting for another process is done by the loop, without blocking it.
        run(f"PRAGMA busy_timeout = {int(self._busy_seconds * 1000)}")
        self._recognise()
        self._version()  # before anything is changed
        if not self._in_memory:
            self._use_wal()
            run("PRAGMA synchronous = FULL")
            run("PRAGMA cache_size = -32768")
        self._migrate()
        run("PRAGMA busy_timeout = 0")

    def _use_wal(self) -> None:
        """SQLite does not wait for another process that changes the mode at the same time, so we do."""
        for _ in range(max(1, int(self._busy_seconds / 0.005))):
            try:
                self._writer.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if not error.sqlite_errorname.startswith("SQLITE_BUSY"):
                    raise
                sleep(0.005)
            else:
                return
        self._writer.execute("PRAGMA journal_mode = WAL")

    def _recognise(self) -> None:
        run = self._writer.execute
        run("BEGIN")  # one picture: another process may be making the store right now
        application, version = self._pragma("application_id"), self._pragma("user_version")
        tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        run("COMMIT")
        if application != APPLICATION_ID and (application or version or tables):
            raise NotAStore(f"{self.where} is a SQLite database of another program, not a remit store")

    def _migrate(self) -> None:
        steps = migrations("sqlite")
        newest = max(steps)
        if self._version() == newest:
            return
        run = self._writer.execute
        run("BEGIN IMMEDIATE")  # of two processes that start at once, the second finds the work done
        try:
            version = self._version()
            for step in (text for number, text in steps.items() if number > version):
                for statement in step.split(";\n"):
                    run(statement)
            run(f"PRAGMA application_id = {APPLICATION_ID}")
            run(f"PRAGMA user_version = {newest}")
            run("COMMIT")
        except BaseException:
            run("ROLLBACK")
            raise

    def _version(self) -> int:
        steps = migrations("sqlite")
        version = self._pragma("user_version")
        if version > max(steps):
            raise NewerStore(
                f"{self.where} has schema {version} and this remit knows up to {max(steps)}; "
                "upgrade remit, the file is unchanged"
            )
        if 0 < version < min(steps):
            raise NotAStore(f"{self.where} {OLDER}; the file is unchanged")
        return version

    def _pragma(self, name: str) -> int:
        return self._writer.execute(f"PRAGMA {name}").fetchone()[0]

    # -- what the commit strategies use -------------------------------------------------------------

    def begin(self) -> bool:
        self._changes = self._writer.total_changes
        if _identity(self.where) != self._file:  # what is written to a file without a name is lost with this process
            raise StoreError(f"{self.where}: the file was moved, removed or replaced; put it back, or start again")
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            if not self._in_memory:
                self._notice_others()
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                return False
            raise self.translated(error) from error
        return True

    def _notice_others(self) -> None:
        """This number changes when another connection has written; then the journal's end is not where we left it."""
        version = self._write("PRAGMA data_version").fetchone()[0]
        if version != self._seen:
            self._seen = version
            self._journal.forget()

    def changed(self) -> bool:
        return self._writer.total_changes != self._changes

    def commit(self) -> None:
        try:
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            raise self.translated(error) from error

    def rollback(self) -> None:
        self._journal.forget()
        if self._writer.in_transaction:
            try:
                self._writer.execute("ROLLBACK")
            except sqlite3.Error as error:
                if self._writer.in_transaction:  # otherwise SQLite has done so itself
                    raise self.translated(error) from error

    def apply(self, workspace: str, op: str, decide: Decide[Any]) -> tuple[Any, list[Event], Any]:
        try:
            return self._journal.apply(workspace, op, decide)
        except sqlite3.Error as error:
            raise self.translated(error) from error

    def restore(self, events: list[Event]) -> None:
        try:
            self._journal.restore(events)
        except sqlite3.Error as error:
            raise self.translated(error) from error

    # -- reading and writing --------------------------------------------------------------------------

    def query(self, name: str, row: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Within the transaction that is being written."""
        return self._write(self._statements[name], row).fetchall()

    def write(self, name: str, row: Sequence[Any]) -> int:
        return self._write(self._statements[name], row).rowcount

    def read(self, name: str, row: Sequence[Any]) -> Sequence[Sequence[Any]]:
        return self._reader.execute(self._statements[name], row).fetchall()

    def look(self, view: View, look: Callable[[View], T]) -> T:
        """One consistent picture: all that `look` asks is answered as of one moment."""
        execute = self._reader.execute
        try:
            execute("BEGIN")
            try:
                return look(view)
            finally:
                if self._reader.in_transaction:  # some errors have ended it already, and are what is to be told
                    execute("COMMIT")
        except sqlite3.Error as error:
            raise self.translated(error) from error

    def subscribe(self, workspace: str, sink: Sink) -> Callable[[], None]:
        return self._sinks.add(workspace, sink)

    def version(self) -> int:
        """A number that changes when anyone else has written."""
        try:
            return self._reader.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error as error:
            raise self.translated(error) from error

    def translated(self, error: sqlite3.Error) -> StoreError:
        name = getattr(error, "sqlite_errorname", "")
        base = next((known for known in _MEANING if name.startswith(known)), "")
        meaning = _MEANING.get(base, f"the database failed ({name or type(error).__name__}): {error}")
        meaning = meaning.replace("{name}", name)
        kind = {"SQLITE_NOTADB": NotAStore, "SQLITE_BUSY": StoreBusy}.get(base, StoreError)
        return kind(f"{self.where}: {meaning}")


class _Store:
    """One workspace's part of the database."""

    __slots__ = ("_database", "workspace")

    def __init__(self, database: SqliteDatabase, workspace: str) -> None:
        self._database = database
        self.workspace = workspace

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        return self._database.subscribe(self.workspace, sink)


class MemoryStore(_Store):
    """In memory nothing waits for anything: an operation is done when it returns."""

    __slots__ = ("_commits", "_view")

    def __init__(self, database: SqliteDatabase, workspace: str, commits: ImmediateCommit) -> None:
        super().__init__(database, workspace)
        self._commits = commits
        self._view = SqlView(workspace, database.query)  # read where it is written, between two jobs

    async def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> T:
        return self._commits.apply(self.workspace, op, decide)[0]

    async def transact(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Decided[T]:
        return Decided(*self._commits.apply(self.workspace, op, decide))

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        return _nothing

    async def read(self, look: Callable[[View], T]) -> T:
        try:
            return look(self._view)
        except sqlite3.Error as error:
            raise self._database.translated(error) from error


class FileStore(_Store):
    """On a file an operation is done when it is on disk."""

    __slots__ = ("_commits", "_view")

    def __init__(self, database: SqliteDatabase, workspace: str, commits: GroupCommit) -> None:
        super().__init__(database, workspace)
        self._commits = commits
        self._view = SqlView(workspace, database.read)

    async def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> T:
        return (await self._commits.submit(self.workspace, op, decide))[0]

    async def transact(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Decided[T]:
        return Decided(*await self._commits.submit(self.workspace, op, decide))

    async def read(self, look: Callable[[View], T]) -> T:
        return self._database.look(self._view, look)

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        return Poll(self._database.version, ring).stop


def _identity(where: str) -> tuple[int, int] | None:
    """Which file has this name now; none has the name of a store in memory."""
    try:
        found = os.stat(where)  # noqa: PTH116 - at every transaction, and a Path costs more than the question
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _nothing() -> None:
    """There is nothing to stop."""


def _prepare(path: Path, *, create: bool) -> None:
    """Says what is wrong with a path before SQLite says it in fewer words; makes a new file for its owner only."""
    if "\0" in str(path):
        raise BadInput(f"a store's path must not contain a NUL character: {shown(str(path))}")
    if path.is_dir():
        raise NotAStore(f"{path} is a folder; a store is a file, for example {path / 'remit.db'}")
    if not path.exists():
        _make(path, create=create)
        return
    if not path.is_file():
        raise NotAStore(f"{path} is not a regular file; a store is a file")
    if not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise StoreError(f"{path} is read-only; remit needs to write to it (chmod u+w {path})")
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
    if start not in (b"", _MAGIC):
        raise NotAStore(f"{path} is not a SQLite database, so it is not a remit store; it was left as it is")


def _make(path: Path, *, create: bool) -> None:
    if not create:
        raise NotFound(f"there is no store at {path}; say which with --store, or start a run that makes one")
    if not path.parent.is_dir():
        raise NotAStore(f"{path.parent} is not a folder, so no store can be made in it")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StoreError(f"{path} cannot be made: {error.strerror}") from error
