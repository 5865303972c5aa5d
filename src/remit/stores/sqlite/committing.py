"""Committing. In memory at once; on a file, all waiting operations go into one transaction.

SQL runs on the event loop's own thread, where it is fastest: statements are short, and a second thread would only
compete for the interpreter. The commit waits for the disk, so it runs on a separate thread, and operations that arrive
meanwhile form the next batch. If the disk is as fast as a few statements, and a single operation is waiting, that
thread is not worth its two wake-ups.
"""

import asyncio
import queue
import sqlite3
import threading
import time
from asyncio import get_running_loop
from collections import deque
from typing import Any, Final, TypeAlias

from remit.codec import encode
from remit.core.events import Event
from remit.errors import StoreBusy, StoreError
from remit.ports import Decide, Decided, Fault
from remit.stores.journal import BATCH, Feed, Operation, answer_all, try_one_by_one
from remit.stores.queries import query
from remit.stores.sqlite.connection import MemoryConnection, WritingConnection
from remit.stores.sqlite.files import MEMORY, translated
from remit.stores.threads import OneLoop

# -- dropping old data -------------------------------------------------------------------------------
# A database in memory keeps only the newest events and their rows, so that a process that runs for days needs no
# more memory than one that runs for an hour. No other process reads that journal, and it is gone when the process
# ends. Runs with something open are kept whole, and so is every entry.

_STEP: Final = 1_000  # events dropped in one step
_INDEXED: Final = 16_384  # events after which the late indexes are created: with more it takes more than 30 ms
_LOOK: Final = 128  # steps after which the ids in use are looked up again
_SWEEP: Final = 16  # steps after which events that were kept earlier are checked again

_FORGET: Final = (
    *("forget_keys", "forget_messages", "forget_questions", "forget_figures", "forget_asks", "forget_tasks"),
    *("forget_events", "forget_blobs", "forget_artifacts", "forget_chapters"),
)


class Forgetting:
    """Removes old data from a database in memory. `keep` is how many events of each workspace are kept; None for
    all."""

    def __init__(self, connection: MemoryConnection) -> None:
        self.keep: int | None = None
        self._connection = connection
        self._after: dict[str, int] = {}  # last dropped event of each workspace
        self._steps = 0

    def look(self, written: list[Event]) -> None:
        """Remove the next 1,000 old events at most of each workspace that has events in `written`, if enough are old.
        Call this after a commit, while no transaction is open."""
        if self.keep is None:
            return
        for workspace, head in {event.workspace: event.seq for event in written}.items():
            if head >= min(_INDEXED, self.keep):
                self._connection.add_late_indexes()
            after = self._after.get(workspace, 0)
            upto = min(head - self.keep, after + _STEP)
            if upto - after >= min(_STEP // 2, self.keep):
                self._after[workspace] = upto
                self._steps += 1
                self._forget(workspace, 0 if self._steps % _SWEEP == 0 else after, upto)

    def _forget(self, workspace: str, after: int, upto: int) -> None:
        assert self.keep is not None
        # Runs that started together end at different times: drop them together, once all are old.
        values: dict[str, object] = {"workspace": workspace, "after": after, "upto": upto}
        values["later"] = upto + self.keep // 2
        self._connection.begin()
        try:
            kept = {row[0] for name in ("open_runs", "ended_later") for row in self._run(name, values)}
            values["kept"] = encode(sorted(kept))
            for name in _FORGET:
                self._run(name, values)
        except sqlite3.Error as error:
            self._connection.rollback()
            raise translated(error, MEMORY) from error
        self._connection.commit()
        if self._steps % _LOOK == 0:
            self._connection.has_only(row[0] for row in self._run("used_ids", values))

    def _run(self, name: str, values: dict[str, object]) -> list[tuple[str]]:
        own = query(name, folders=("sqlite",))
        return self._connection.connection.execute(own.sql, own.fill(values)).fetchall()


RETRY_SECONDS: Final = 0.002
QUICK_SECONDS: Final = 0.001  # a commit up to this duration may block the loop
HOLD_SECONDS: Final = (0.002, 0.02)  # how long a batch may hold the loop, at least and at most, in processor time


class ImmediateCommit:
    """The commit of a database in memory: each operation is applied at once.

    The transaction stays open for some hundred operations, because SQLite copies a page the first time each transaction
    changes it. An operation that the database refuses is undone by writing those before it again.
    """

    def __init__(self, connection: MemoryConnection, feed: Feed, fault: Fault) -> None:
        self._connection = connection
        self._journal = connection.journal
        self._apply = self._journal.apply
        self._feed = feed
        self._fault = fault
        self._operations = 0
        self._open: list[Event] = []  # the events of the open transaction, to write them again after a rollback
        self._broken: StoreError | None = None
        self.forgetting = Forgetting(connection)
        self.one = OneLoop()

    def apply(self, workspace: str, op: str, decide: Decide[Any]) -> Decided[Any]:
        """Apply an operation and return its result."""
        if self._broken is not None:
            raise StoreError(f"the store in memory cannot go on: {self._broken}")
        if get_running_loop() is not self.one.loop:
            self.one.enter()
        if not self._operations:
            self._connection.begin()
            self._fault("store.begin")
        self._operations += 1
        try:
            answer, events, aside = self._apply(workspace, op, decide)
        except StoreError:
            self._undo()
            raise
        except sqlite3.Error as error:
            self._undo()
            raise translated(error, MEMORY) from error
        self._open += events
        # Also after an operation that raised: it may have filled the transaction.
        if self._operations >= BATCH or self._journal.unrepeatable:
            self._commit()
        if events:
            self._feed(events)
        self._fault("store.before-answer")
        return Decided(answer, aside)

    def _commit(self) -> None:
        try:
            self._fault("store.before-commit")
            self._connection.commit()
            self._fault("store.after-commit")
            self.forgetting.look(self._open)
        except StoreError as error:
            self._broken = error
            raise
        self._operations = 0
        self._open.clear()
        self._journal.unrepeatable = False

    def _undo(self) -> None:
        """Undo only the operation that failed."""
        try:
            # SQLite can only roll back the whole transaction, so the operations before the failed one are written
            # again.
            self._connection.rollback()
            self._connection.begin()
            self._connection.restore(self._open)
        except StoreError as error:
            self._broken = error

    def close(self) -> None:
        """Refuse all further calls; nothing is pending between two calls."""
        self._broken = StoreError("it is closed")

    def leave(self, why: str) -> None:
        """In a child process, refuse all calls."""
        self._broken = StoreError(why)


_Commit: TypeAlias = tuple[asyncio.AbstractEventLoop, list[Operation]]


class GroupCommit:
    """Group commit: one transaction for all operations that are waiting when the last one is on disk."""

    def __init__(self, connection: WritingConnection, feed: Feed, fault: Fault, *, busy_seconds: float) -> None:
        self._connection = connection
        self._feed = feed
        self._fault = fault
        self._busy_seconds = busy_seconds
        self._waiting: deque[Operation] = deque()
        self._alone: deque[Operation] = deque()  # operations of a failed batch, retried one by one
        self._locked_out: list[Operation] = []  # the batch that waits until another process has written
        self.one = OneLoop()
        self._loop: asyncio.AbstractEventLoop | None = None  # the loop whose batches are running
        self._busy = False  # a batch is running or scheduled
        self._commits: queue.SimpleQueue[_Commit | threading.Event | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        # The slowest recent commit, in seconds. It decays, so that one slow commit does not count forever.
        self._slowest = 1.0
        self._closed = ""  # the reason, if it is closed

    def submit(self, workspace: str, op: str, decide: Decide[Any]) -> "asyncio.Future[Decided[Any]]":
        """Add an operation to the next batch; the future is done when it is on disk."""
        if self._closed:
            raise StoreError(self._closed)
        loop = self.one.enter()
        if loop is not self._loop:
            self._serve(loop)
        future: asyncio.Future[Decided[Any]] = loop.create_future()
        self._waiting.append(Operation(workspace, op, decide, future))
        if not self._busy:
            self._busy = True
            # Not now but in the next iteration: other tasks that are ready now get into the same transaction.
            loop.call_soon(self._flush, loop)
        return future

    def close(self) -> None:
        """Wait for the running commit and fail all operations that have not started."""
        self._closed = self._closed or "the store is closed"
        if self._thread is not None:
            self._commits.put(None)
            self._thread.join()
            self._thread = None
        self._fail([*self._locked_out, *self._alone, *self._waiting], StoreError("the store was closed"))
        self._alone.clear()
        self._waiting.clear()

    def leave(self, why: str) -> None:
        """In a child process, refuse all calls: the callers, the thread and the loop belong to the parent."""
        self._closed = why
        self._thread = None
        self._locked_out, self._alone, self._waiting = [], deque(), deque()

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """Serve this event loop from now on.

        A store outlives event loops: each `asyncio.run` creates one and closes it, perhaps in the middle of a batch.
        Operations that the old loop left waiting are dropped, because their callers are gone; a running commit finishes
        first. Two loops at the same time are refused: batches, and the SQL in them, belong to one thread.
        """
        if self._busy and self._loop is not None and not self._loop.is_closed():
            raise StoreError("this store is in use by another event loop; open the file once per loop")
        self._wait_for_disk()
        self._connection.rollback()  # a transaction that an interrupt may have left open
        self._locked_out.clear()
        self._alone.clear()
        self._waiting.clear()
        self._busy = False
        self._loop = loop

    def _wait_for_disk(self) -> None:
        """Wait until the commit that an earlier loop left is done."""
        if self._thread is not None:
            done = threading.Event()
            self._commits.put(done)
            done.wait()

    # -- on the loop: apply a batch -----------------------------------------------------------------

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = self._next_batch()
        if batch:
            self._begin(loop, batch, loop.time() + self._busy_seconds)
        else:
            self._busy = False

    def _next_batch(self) -> list[Operation]:
        if self._alone:
            return [self._alone.popleft()]
        size = min(BATCH, len(self._waiting))
        return [self._waiting.popleft() for _ in range(size)]

    def _begin(self, loop: asyncio.AbstractEventLoop, batch: list[Operation], deadline: float) -> None:
        if self._closed:
            return
        self._locked_out = []
        try:
            if not self._connection.begin():
                if loop.time() < deadline:
                    self._locked_out = batch
                    # Another process is writing. Retry from the loop: SQLite's own busy timeout would block it.
                    loop.call_later(RETRY_SECONDS, self._begin, loop, batch, deadline)
                    return
                waited = f"{self._busy_seconds:g} s"
                raise StoreBusy(f"another process has been writing for {waited}; try again, or stop it")
            self._fault("store.begin")
            batch = self._performed(batch)
        except StoreError as error:
            self._connection.rollback()
            self._failed(batch, error)
            loop.call_soon(self._flush, loop)
            return
        if self._connection.changed():
            self._to_disk(loop, batch)
        else:
            self._connection.rollback()
            answer_all(batch, self._feed, self._fault)
            loop.call_soon(self._flush, loop)

    def _performed(self, batch: list[Operation]) -> list[Operation]:
        """Apply operations for as long as the slowest recent commit took, but for 2 to 20 ms of processor time, because
        they block the event loop. Return the operations that were applied; the others wait for the next batch."""
        apply = self._connection.apply
        batch[0].perform(apply)
        if len(batch) == 1:
            return batch
        least, most = HOLD_SECONDS
        until = time.thread_time() + min(most, max(least, self._slowest))
        for number in range(1, len(batch)):
            if time.thread_time() > until:
                self._waiting.extendleft(reversed(batch[number:]))
                return batch[:number]
            batch[number].perform(apply)
        return batch

    # -- commit -------------------------------------------------------------------------------------

    def _to_disk(self, loop: asyncio.AbstractEventLoop, batch: list[Operation]) -> None:
        if len(batch) == 1 and self._slowest < QUICK_SECONDS:
            self._committed(loop, batch, self._commit())
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._committer, name="remit-commit", daemon=True)
            self._thread.start()
        self._commits.put((loop, batch))

    def _committer(self) -> None:
        """Commit one batch after the other, on the thread that waits for the disk."""
        while (item := self._commits.get()) is not None:
            if isinstance(item, threading.Event):
                item.set()
                continue
            loop, batch = item
            error = self._commit()
            try:
                loop.call_soon_threadsafe(self._committed, loop, batch, error)
            except RuntimeError:  # the loop closed meanwhile: the work is on disk, and no caller waits
                continue

    def _commit(self) -> StoreError | None:
        began = time.perf_counter()
        try:
            self._fault("store.before-commit")
            self._connection.commit()
            self._fault("store.after-commit")
        except StoreError as error:
            self._connection.rollback()
            return error
        self._slowest = max(time.perf_counter() - began, self._slowest * 0.9)
        return None

    # -- back on the loop: answer -------------------------------------------------------------------

    def _committed(self, loop: asyncio.AbstractEventLoop, batch: list[Operation], error: StoreError | None) -> None:
        if error is None:
            answer_all(batch, self._feed, self._fault)
        else:
            self._failed(batch, error)
        if self._waiting or self._alone:
            loop.call_soon(self._flush, loop)
        else:
            self._busy = False

    def _failed(self, batch: list[Operation], error: StoreError) -> None:
        if try_one_by_one(batch, error):
            self._alone.extend(batch)
        else:
            self._fail(batch, error)

    @staticmethod
    def _fail(operations: list[Operation], error: StoreError) -> None:
        for operation in operations:
            if not operation.future.get_loop().is_closed():
                operation.fail(error)
                operation.settle()
