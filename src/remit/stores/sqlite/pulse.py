"""Heartbeats on a connection of their own: they are written also while the loop's thread is busy."""

import sqlite3
import threading
from typing import Final

from remit.errors import StoreError
from remit.ports import Beat
from remit.stores import forks
from remit.stores.queries import queries
from remit.stores.sqlite.connection import connect
from remit.stores.sqlite.files import translated
from remit.stores.sqlite.whereabouts import Identity, identity

_BEAT: Final = queries()["worker_beat"]


class SqlitePulse:
    """Writes the heartbeats of one worker. `file` is which file it was when the database was opened."""

    def __init__(self, where: str, file: Identity | None, workspace: str, busy_seconds: float) -> None:
        self._where = where
        self._file = file
        self._workspace = workspace
        self._busy = int(busy_seconds * 1000)
        self._using = threading.Lock()  # a fork waits for whoever writes
        self._connection: sqlite3.Connection | None = None
        self._elsewhere = ""

    def write(self, beat: Beat) -> None:
        while not self._written(beat):
            self._open()

    def _written(self, beat: Beat) -> bool:
        """Write, unless the connection has to be opened first: nobody may wait for that while a process forks."""
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
            connection = connect(self._where)
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
        if identity(self._where) != self._file:
            raise StoreError(f"{self._where}: the file was moved, removed or replaced; put it back, or start again")

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- forks ----------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Close the file, once nothing is being written; the next heartbeat opens it again."""
        self._using.acquire()
        self._drop()

    def after_fork(self) -> None:
        self._using.release()

    def leave(self) -> None:
        self._elsewhere = forks.ELSEWHERE.format(where=self._where)
        self._using = threading.Lock()
