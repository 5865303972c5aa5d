"""Writing to PostgreSQL: one thread, and one transaction for everything that is waiting.

Decisions read as they go, so each takes some trips to the server; on the event loop's thread they would hold up
everyone. A connection that is lost is made anew and the batch done again: operations are done once, so the second time
finds out what became of the first.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import psycopg

from remit.core.events import Event
from remit.errors import RemitError, StoreBusy, StoreError
from remit.ports import Decide, Fault, Wants
from remit.stores.postgres.address import STATEMENTS, Address, lost
from remit.stores.postgres.switching import quick_switching
from remit.stores.postgres.transactions import Transactions
from remit.stores.sqlite.committing import BATCH, Operation

_PAUSES: Final = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)  # before each attempt to reconnect; then the last one again
_FEW: Final = 100  # rows written, before the planner is to look at the tables for the first time
_MANY: Final = 1_000_000
_AGAIN: Final = 5  # how often what the server broke off for another's sake is tried again
_BROKEN_OFF: Final = ("40001", "40P01")  # it could not be serialised, or there was a deadlock


class BatchWriter:
    """Takes operations from any event loop and answers there, after the commit."""

    def __init__(
        self,
        address: Address,
        feed: Callable[[list[Event]], None],
        grown: Callable[[], None],
        fault: Fault,
        patience: float,
    ) -> None:
        self._address = address
        self._feed = feed
        self._grown = grown
        self._written = 0
        self._growth = _FEW
        self._fault = fault
        self._patience = patience
        self._jobs: queue.SimpleQueue[Operation | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._session: Transactions | None = None
        self.backend = 0  # the server's process for us, as its notifications name it

    def submit(self, workspace: str, op: str, decide: Decide[Any], wants: Wants) -> "asyncio.Future[Any]":
        """What the operation will have answered once it is on the server's disk."""
        if self._closing.is_set():
            raise StoreError("the store is closed")
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._jobs.put(Operation(workspace, op, decide, future, wants))
        if self._thread is None:
            self._start()
        return future

    def open(self) -> Transactions:
        """A session with a connection of its own; raises what psycopg raises."""
        wait = int(self._patience * 1000)
        # A process that hangs in the middle of a transaction must not keep the others out for ever.
        options = (f"-c lock_timeout={wait}", f"-c idle_in_transaction_session_timeout={max(wait, 1) * 3}")
        connection = self._address.connect(*options)
        try:
            connection.execute(STATEMENTS["durable"])
        except BaseException:
            connection.close()
            raise
        self._session = Transactions(connection, self._fault)
        self.backend = connection.info.backend_pid
        return self._session

    def close(self) -> None:
        """Waits for the transaction that is under way; what had not begun is told that it will not."""
        self._closing.set()
        self._jobs.put(None)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None
        self._fail(self._left(), StoreError("the store was closed"))
        self._drop()

    # -- the thread -----------------------------------------------------------------------------------

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._work, name="remit-write", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while (first := self._jobs.get()) is not None and not self._closing.is_set():
            self._see_through([first, *self._more()])
        if first is not None:
            self._fail([first], StoreError("the store was closed"))

    def _more(self) -> Iterable[Operation]:
        """What else is waiting, as far as it fits into one transaction."""
        for _ in range(min(BATCH - 1, self._jobs.qsize())):
            job = self._jobs.get()
            if job is None:
                self._jobs.put(None)
                return
            yield job

    def _see_through(self, batch: list[Operation]) -> None:
        """Until each job has its answer or its error. One bad job must not take its neighbours along."""
        try:
            self._until_done(batch)
        except StoreError as error:
            if len(batch) == 1 or isinstance(error, StoreBusy) or self._session is None or self._closing.is_set():
                self._fail(batch, error)
                return
            for job in batch:
                self._see_through([job])
        except BaseException as error:  # noqa: BLE001 - whatever it is, those who wait must be told, and others come
            self._drop()
            self._fail(batch, StoreError(f"the store's writer failed: {type(error).__name__}: {error}"))
        else:
            self._tell(batch, self._answer)

    def _until_done(self, batch: list[Operation]) -> None:
        until = time.monotonic() + self._patience
        broken_off = 0
        while True:
            session = self._session or self._reconnected(until)
            try:
                with quick_switching():
                    self._transact(session, batch)
            except psycopg.Error as error:
                if lost(error, session.connection):
                    self._drop()
                    if time.monotonic() > until:
                        raise self._gone(error) from error
                    continue
                self._undo(session)
                broken_off += error.sqlstate in _BROKEN_OFF
                if error.sqlstate not in _BROKEN_OFF or broken_off > _AGAIN:
                    raise self._address.translated(error) from error
            except BaseException:
                self._undo(session)
                raise
            else:
                return

    def _transact(self, session: Transactions, batch: list[Operation]) -> None:
        wanted: dict[str, list[tuple[str, Wants]]] = {}
        for job in batch:
            wanted.setdefault(job.workspace, []).append((job.op, job.wants))
        session.begin(wanted)
        if any(self._is_there(session, job) for job in batch):
            session.rollback()  # the connection was lost on the way back: all of it had been committed
            return
        self._fault("store.begin")
        for job in batch:
            job.perform(session.apply, (StoreError, psycopg.Error))
        if not session.writes:
            session.commit()
            return
        self._fault("store.before-commit")
        session.commit()
        self._fault("store.after-commit")
        self._count(session.writes)

    def _count(self, writes: int) -> None:
        """Tables that grow from nothing are planned for anew a few times; later the server does that by itself."""
        self._written += writes
        if self._growth < self._written < _MANY:
            self._growth = self._written * 4
            self._grown()

    @staticmethod
    def _is_there(session: Transactions, job: Operation) -> bool:
        """Whether an attempt before this one was committed: then its first event is in the journal, with our seal.

        Our locks are held now, so an attempt whose connection was lost has come to its end.
        """
        done = session.done(job.workspace, job.op) if job.events else None
        return done is not None and done.hash == job.events[0].hash

    # -- the connection -------------------------------------------------------------------------------

    def _reconnected(self, until: float) -> Transactions:
        attempt = 0
        while True:
            pause = _PAUSES[min(attempt, len(_PAUSES) - 1)]
            if self._closing.wait(pause):
                raise StoreError("the store was closed")
            try:
                return self.open()
            except psycopg.Error as error:
                attempt += 1
                if time.monotonic() + pause > until:
                    raise self._gone(error) from error

    def _gone(self, error: psycopg.Error) -> StoreError:
        what = self._address.translated(error)
        tried = f"it was tried for {self._patience:g} s, and asking again under the same operation is safe"
        return type(what)(f"{what}; {tried}")

    def _undo(self, session: Transactions) -> None:
        try:
            session.rollback()
        except psycopg.Error:
            self._drop()

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    # -- on the event loops ---------------------------------------------------------------------------

    def _left(self) -> list[Operation]:
        left: list[Operation] = []
        while not self._jobs.empty():
            job = self._jobs.get()
            left += [job] if job is not None else []
        return left

    def _fail(self, jobs: list[Operation], error: RemitError) -> None:
        for job in jobs:
            job.error, job.events = error, []
        self._tell(jobs, _settle)

    @staticmethod
    def _tell(jobs: list[Operation], tell: Callable[[list[Operation]], None]) -> None:
        """To each loop its own; nearly always there is one."""
        loops: dict[asyncio.AbstractEventLoop, list[Operation]] = {}
        for job in jobs:
            loops.setdefault(job.future.get_loop(), []).append(job)
        for loop, own in loops.items():
            try:
                loop.call_soon_threadsafe(tell, own)
            except RuntimeError:  # the loop has closed: the work is done and no one waits for it
                continue

    def _answer(self, batch: list[Operation]) -> None:
        for job in batch:
            if job.error is None and job.events:
                self._feed(job.events)
            self._fault("store.before-answer")
            _settle([job])


def _settle(jobs: list[Operation]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result((job.answer, job.aside))
