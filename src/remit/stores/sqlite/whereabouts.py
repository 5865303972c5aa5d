"""Whether a store's files are still where they were: the file itself, and the `-wal` and `-shm` beside it.

SQLite goes on with files that have lost their names, and whatever it writes to them is gone with the last process that
has them open. Without the `-shm`, which processes share, the next process to open the store makes another one, and the
two write over each other. So their names are looked at before anything is written, and again before it is acknowledged.
"""

import os
import sqlite3
from contextlib import suppress
from typing import Final, TypeAlias

from remit.errors import StoreError

_LOST: Final = "{where}: the file was moved, removed or replaced; put it back, or start again"
_NO_COMPANION: Final = (
    "{where}: the file {where}{end} beside it was {what} while the store was open. {saved}. Stop every process that "
    "uses it, run `remit doctor`, and start again; never touch that file while the store is open"
)
_SAVED: Final = "What was acknowledged has been saved into {where} itself"
_UNSAVED: Final = "What was acknowledged last may be lost with it"

Identity: TypeAlias = tuple[int, int]  # the device and the number of a file


class Whereabouts:
    """The files of one store, as they were when it was opened. A store in memory has none."""

    def __init__(self, where: str, *, lasting: bool) -> None:
        self._where = where
        self._wal_name = f"{where}-wal"
        self._shared_name = f"{where}-shm"
        self._lasting = lasting
        self.settle()

    def settle(self) -> None:
        """Remember the files as they are now: they have just been opened."""
        self.main, self._written = _file(self._where) if self._lasting else (None, 0)
        self._wal = identity(self._wal_name) if self._lasting else None
        self._shared = identity(self._shared_name) if self._lasting else None
        self._lost = ""  # what to tell everyone, once a file beside it is not there any more

    def check(self, connection: sqlite3.Connection) -> None:
        """Refuse to go on if a file is not the one that was opened. What was lost once beside it stays lost."""
        if not self._lasting:
            return
        main, written = _file(self._where)
        self._must_be(main)
        wal, shared = identity(self._wal_name), identity(self._shared_name)
        if (wal != self._wal or shared != self._shared) and not self._lost:
            self._lost = self._without(wal, shared, connection, touched=written != self._written)
        if self._lost:
            raise StoreError(self._lost)
        self._written = written

    def check_file(self) -> None:
        """Refuse to open the file once more if it is not the one that was opened."""
        self._must_be(identity(self._where))

    def _must_be(self, main: Identity | None) -> None:
        if main != self.main:
            raise StoreError(_LOST.format(where=self._where))

    def _without(
        self, wal: Identity | None, shared: Identity | None, connection: sqlite3.Connection, *, touched: bool
    ) -> str:
        """Save what is only in the `-wal`, which this process still has open, and say what became of it.

        That is safe only while nobody can have written without us: other processes share the `-shm` with us, or it is
        gone and no process has made another one.
        """
        changed = wal != self._wal
        alone = shared is None and (not changed or not touched)
        ours = (wal is None or not changed) and (shared == self._shared or alone)
        saved = _SAVED if ours and _moved_into_the_file(connection) else _UNSAVED
        end, now = ("-wal", wal) if changed else ("-shm", shared)
        what = "replaced" if now is not None else "removed"
        return _NO_COMPANION.format(where=self._where, end=end, what=what, saved=saved.format(where=self._where))


def _moved_into_the_file(connection: sqlite3.Connection) -> bool:
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy
    return False


def identity(name: str) -> Identity | None:
    """Tell which file has this name now; None if there is none."""
    return _file(name)[0]


def _file(name: str) -> tuple[Identity | None, int]:
    """Tell which file has this name now, and when it was last written."""
    try:
        status = os.stat(name)  # noqa: PTH116 - at every transaction, and a Path costs more than the question
    except OSError:
        return None, 0
    return (status.st_dev, status.st_ino), status.st_mtime_ns
