"""Reading from PostgreSQL: a few connections, each read in its own transaction, on separate threads.

Short and long reads have separate readers, so that no short read waits behind a long one.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from remit.errors import StoreError
from remit.ports import View
from remit.stores import forks
from remit.stores.postgres.address import (
    STATEMENTS,
    Address,
    Connection,
    PatientConnection,
    broke,
    is_connection_lost,
    prepare,
    reason,
)
from remit.stores.queries import KnownSchema
from remit.stores.threads import quick_switching
from remit.stores.views import SqlView

T = TypeVar("T")

_LONG: Final = 6  # factor on the timeout, for statements that read whole tables
AT_ONCE: Final = 2  # concurrent long reads; further ones wait
_STEP: Final = 0.5  # seconds between two looks whether the asker still waits for a free connection
_FOR_GOOD: Final = 600.0  # lifetime of an idle connection for short reads
_IDLE_SECONDS: Final = 5.0  # lifetime of an idle connection for long reads


class Reader:
    """A pool of connections for reads. If a connection is lost, the read is repeated on a new one, because a read
    changes nothing. With `long`, it is for long reads, and closes a connection that is idle for five seconds."""

    def __init__(self, address: Address, size: int, patience: float, known: KnownSchema, *, long: bool = False) -> None:
        self._address = address
        self._known = known
        self._patience = patience
        self._long = long
        _hush()
        self._pool: ConnectionPool[PatientConnection] = ConnectionPool(
            connection_class=PatientConnection,
            kwargs=address.settings(),
            min_size=0,
            max_size=size,
            max_idle=_IDLE_SECONDS if long else _FOR_GOOD,
            timeout=patience,
            reconnect_timeout=patience,
            configure=prepare,
            name="remit-browse" if long else "remit-read",
            open=False,
        )
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=self._pool.name)
        self._closed = "the store is closed"
        self._is_open = True
        self.confined = False  # each read names its workspace to the server

    async def look(self, workspace: str, look: Callable[[View], T]) -> T:
        """Run `look` on a snapshot and return its result."""
        self._known.check()
        asker = _Asker()
        try:
            answer = self._threads.submit(self._look, workspace, look, asker)
        except RuntimeError:
            raise StoreError(self._closed) from None
        try:
            return await asyncio.wrap_future(answer)
        except asyncio.CancelledError:
            asker.is_there = False
            raise

    async def ask(self, name: str, row: Sequence[Any]) -> Sequence[tuple[Any, ...]]:
        """Run one of our own statements, on another thread, and return its rows."""
        self._known.check()
        try:
            answer = self._threads.submit(
                self._retried, lambda connection: connection.execute(STATEMENTS[name], row).fetchall()
            )
        except RuntimeError:
            raise StoreError(self._closed) from None
        return await asyncio.wrap_future(answer)

    def rows(self, name: str, row: Sequence[Any] | None = None) -> Sequence[tuple[Any, ...]]:
        """Run one of our own statements, on this thread, and return its rows."""
        return self._retried(lambda connection: connection.execute(STATEMENTS[name], row).fetchall(), _LONG)

    def looked(self, workspace: str, look: Callable[[View], T]) -> T:
        """Run `look` on a snapshot, on this thread, and return its result."""
        return self._look(workspace, look, _Asker())

    def _must_be_open(self) -> None:
        if not self._is_open:
            raise StoreError(self._closed)

    def learn(self) -> None:
        """Run ANALYZE soon, on another thread, for the planner of queries. Errors are ignored."""
        with suppress(RuntimeError):  # closed in the meantime
            self._threads.submit(self._learn)

    def _learn(self) -> None:
        with suppress(StoreError):
            self._retried(lambda connection: connection.execute(STATEMENTS["analyze"]), _LONG)

    def close(self) -> None:
        """Wait for the running reads; a long one is not waited for, and ends at its next query."""
        if self._long:
            self._is_open = False
        self._threads.shutdown(wait=not self._long)
        self._is_open = False
        self._pool.close()

    def leave(self, why: str) -> None:
        """In a child process, refuse all calls: the threads and the connections belong to the parent."""
        forks.keep((self._pool, self._threads))
        self._is_open = False
        self._closed = why
        self._threads = ThreadPoolExecutor(1)
        self._threads.shutdown()
        self._pool = ConnectionPool(connection_class=PatientConnection, open=False, min_size=0, max_size=1)

    def _look(self, workspace: str, look: Callable[[View], T], asker: "_Asker") -> T:
        def must_be_wanted() -> None:
            if not asker.is_there or (self._long and not self._is_open):
                raise StoreError(self._closed)

        def use(connection: Connection) -> T:
            def ask(name: str, row: Sequence[Any]) -> Sequence[Sequence[Any]]:
                must_be_wanted()
                return connection.execute(STATEMENTS[name], row).fetchall()

            confined = workspace if self.confined else None
            answer = _one_picture(connection, lambda: look(SqlView(workspace, ask)), confined)
            must_be_wanted()  # otherwise the read may have mistaken the interruption for damage
            return answer

        return self._retried(use, _LONG if self._long else 1, asker)

    def _retried(self, use: Callable[[Connection], T], longer: int = 1, asker: "_Asker | None" = None) -> T:
        """Use a connection, and another if that one is lost; `longer` is a factor on the timeout, for slow statements.
        While no connection is free, look every half second whether the asker has gone, and raise `StoreError` then."""
        until = free_by = time.monotonic() + self._patience
        while True:
            self._must_be_open()
            try:
                self._pool.open()  # opened on first use
                with self._pool.connection(min(_STEP, self._patience)) as connection:
                    connection.patience = self._patience * longer
                    try:
                        with quick_switching():
                            return use(connection)
                    except psycopg.Error as error:
                        if not (broke(error) or is_connection_lost(error, connection)) or time.monotonic() > until:
                            raise
                        connection.close()  # so that the pool does not reuse it
                        free_by = time.monotonic() + self._patience
            except PoolClosed:
                raise StoreError(self._closed) from None
            except PoolTimeout as error:
                if asker is not None and not asker.is_there:
                    raise StoreError(self._closed) from None
                if time.monotonic() >= free_by:
                    raise self._unanswered() from error
            except psycopg.Error as error:
                raise self._address.translated(reason(error)) from error

    def _unanswered(self) -> StoreError:
        """Return why the pool has no connection: the pool does not say, so try to open one."""
        try:
            self._address.connect().close()
        except psycopg.Error as error:
            return self._address.translated(error)
        seconds = f"{self._patience:g} s"  # the server may have been away for so long, and be back
        return StoreError(f"{self._address.where}: no connection for reading was free for {seconds}; try again")


def _hush() -> None:
    """Keep the log of psycopg to itself where it is about our connections: it has several lines for a lost one and a
    line for every attempt to connect, with addresses in memory. Callers get the error in words of ours."""
    for name in ("psycopg", "psycopg.pool"):
        logging.getLogger(name).addFilter(_is_of_others)  # once: a second time changes nothing


def _is_of_others(record: logging.LogRecord) -> bool:
    ours = (record.threadName or "").startswith("remit-") or any(
        isinstance(one, PatientConnection) for one in record.args or ()
    )
    return record.levelno < logging.WARNING or not ours


class _Asker:
    """The caller of a read; when it has gone, the read ends at its next query."""

    __slots__ = ("is_there",)

    def __init__(self) -> None:
        self.is_there = True


def _one_picture(connection: Connection, look: Callable[[], T], confined: str | None) -> T:
    """Run `look` in one snapshot and return its result. With `confined`, only the rows of that workspace exist."""
    try:
        with connection.pipeline():
            connection.execute(STATEMENTS["look"])
            if confined is not None:
                connection.execute(STATEMENTS["confine"], (confined,))
            answer = look()
            connection.execute(STATEMENTS["commit"])
            return answer
    except BaseException:
        if not connection.closed:
            connection.execute(STATEMENTS["rollback"])
        raise
