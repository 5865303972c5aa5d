"""The two connections to a SQLite database: one that writes, and on a file another that reads."""

import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Never, Self, TypeVar

from remit.core.events import Event, Head
from remit.errors import StoreError
from remit.ports import Decide, Fault, View
from remit.stores.journal import Journal, Recorded, Rows
from remit.stores.newer import KnownSchema
from remit.stores.operations import Applied
from remit.stores.queries import queries
from remit.stores.sqlite.files import MEMORY, is_busy, translated
from remit.stores.sqlite.whereabouts import Whereabouts

T = TypeVar("T")

_STATEMENTS: Final = {name: query.sql for name, query in queries().items()}
_APPEND: Final = _STATEMENTS["append"]


def connect(where: str) -> sqlite3.Connection:
    """Open a connection that begins and commits only when told to."""
    try:
        # Two threads use the writing connection, never both at once: the loop's for SQL, the committer's for COMMIT.
        return sqlite3.connect(where, isolation_level=None, check_same_thread=False, cached_statements=256, timeout=0)
    except sqlite3.Error as error:
        raise translated(error, where) from error


class WritingConnection:
    """Begins, applies operations, commits or rolls back. It is what the journal calls `Sql`."""

    def __init__(self, where: str, connection: sqlite3.Connection, fault: Fault, known: KnownSchema) -> None:
        self._where = where
        self._journal = Journal(self, fault)
        self._lasting = where != MEMORY
        self._known = known
        self.place = Whereabouts(where, lasting=self._lasting)
        self._transaction = threading.Lock()  # held while one is open on a file, so that a fork can wait for its end
        self._holds = False  # the lock above, for a transaction
        self._changes = 0  # rows changed before the open transaction began
        self._seen = 0  # the last version of the data that no one but us had changed
        self._erased = False  # something was, and the log may still have it
        self.use(connection)

    def use(self, connection: sqlite3.Connection) -> None:
        """Use this connection, which is ready, from now on; forget what is remembered."""
        self.place.settle()
        self.connection = connection
        self._execute = connection.cursor().execute  # one cursor for all statements: each is read to its end at once
        self._journal.forget()

    def rest(self, seconds: float) -> bool:
        """Wait until no transaction is open and let none begin; False if one takes longer than that."""
        return self._transaction.acquire(timeout=seconds)

    def go_on(self) -> None:
        """Let transactions begin again."""
        self._transaction.release()

    # -- transactions -------------------------------------------------------------------------------

    def begin(self) -> bool:
        """Begin to write; False if another process is writing."""
        if self._lasting:
            self._transaction.acquire()  # before anything else: around a fork the files are others
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
        """Forget what is remembered if another connection has written: SQLite counts that in `data_version`. It may
        have brought the file to a schema that we do not know."""
        version = self._execute("PRAGMA data_version").fetchone()[0]
        if version != self._seen:
            self._known.saw(self._execute("PRAGMA user_version").fetchone()[0])
            self._seen = version
            self._journal.forget()

    def changed(self) -> bool:
        """Tell whether there is anything to commit."""
        return self.connection.total_changes != self._changes

    def apply(self, workspace: str, op: str, decide: Decide[Any]) -> Applied:
        """Apply an operation. Raises StoreError if the database fails; any other error is the operation's own."""
        try:
            return self._journal.apply(workspace, op, decide)
        except sqlite3.Error as error:
            raise translated(error, self._where) from error

    def restore(self, events: list[Event]) -> None:
        """Write events again that a rollback took away."""
        try:
            self._journal.restore(events)
        except sqlite3.Error as error:
            raise translated(error, self._where) from error

    @property
    def journal(self) -> Journal:
        return self._journal

    def commit(self) -> None:
        """Commit; raise StoreError also if the file was moved or removed meanwhile."""
        try:
            self._journal.flush()
            self.connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise translated(error, self._where) from error
        self.place.check(self.connection)
        if self._erased:
            self._wipe()
        self._ended()

    def _wipe(self) -> None:
        """Empty the log, which still has the pages as they were, into the file. While others read that cannot be; then
        it is tried again after the next commit, and SQLite does it at the latest when all have closed."""
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
            if self.connection.in_transaction:  # otherwise SQLite has done so itself
                raise translated(error, self._where) from error
        finally:
            self._ended()

    def _ended(self) -> None:
        if self._holds:
            self._holds = False
            self._transaction.release()

    # -- what the journal uses ----------------------------------------------------------------------

    def head(self, workspace: str) -> Head:
        rows = self.query("head", (workspace,))
        return Head(*rows[0]) if rows else Head()

    def done(self, workspace: str, op: str) -> Recorded | None:
        rows = self.query("done", (workspace, op))
        return Recorded(*rows[0]) if rows else None

    def append(self, event: Event) -> bool:
        return self._execute(_APPEND, event[:-1]).rowcount > 0  # the columns are the fields, without decoded data

    def query(self, name: str, row: Sequence[Any]) -> Rows:
        return self._execute(_STATEMENTS[name], row).fetchall()

    def write(self, name: str, row: Sequence[Any]) -> None:
        self._execute(_STATEMENTS[name], row)

    def erase(self, name: str, row: Sequence[Any]) -> None:
        """Write, and have SQLite fill with zeros what is free in the file afterwards."""
        self._execute("PRAGMA secure_delete = ON").fetchall()
        self.write(name, row)
        self._execute("PRAGMA secure_delete = OFF").fetchall()
        self._erased = self._lasting


class ReadingConnection:
    """Sees what is committed, and changes nothing."""

    def __init__(self, where: str, connection: sqlite3.Connection, known: KnownSchema) -> None:
        self.connection = connection
        self._where = where
        self._known = known
        self._seen = 0  # the version of the data when the number of the schema was last looked at
        self.looking = threading.Lock()  # a fork waits for whoever reads

    def query(self, name: str, row: Sequence[Any]) -> Rows:
        return self.connection.execute(_STATEMENTS[name], row).fetchall()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement that is about the file, not about a workspace."""
        try:
            with self.looking:
                return self.connection.execute(sql).fetchall()
        except sqlite3.Error as error:
            raise translated(error, self._where) from error

    def look(self, view: View, look: Callable[[View], T]) -> T:
        """Answer all that `look` asks as of one moment."""
        self._known.check()
        try:
            with self.looking:
                execute = self.connection.execute
                execute("BEGIN")
                try:
                    return look(view)
                finally:
                    if self.connection.in_transaction:  # some errors end it, and those are what has to be raised
                        execute("COMMIT")
        except sqlite3.Error as error:
            raise translated(error, self._where) from error

    def version(self) -> int:
        """Give a number that changes when any other connection has written; refuse a file that is newer since then."""
        version: int = self.rows("PRAGMA data_version")[0][0]
        if version != self._seen:
            self._known.saw(self.rows("PRAGMA user_version")[0][0])
            self._seen = version
        return version


class LostConnection(sqlite3.Connection):
    """Stands for a connection that is lost, such as a parent's in a child process: what is asked of it is refused."""

    in_transaction = False  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride] - what there was is not ours
    total_changes = 0  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]

    def __init__(self, why: str) -> None:
        self._why = why  # nothing is opened

    def execute(self, *_: object) -> Never:
        raise StoreError(self._why)

    def cursor(self, *_: object) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self

    def close(self) -> None:
        """Close nothing."""
