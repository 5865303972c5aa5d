"""Committing. In memory at once; on a file, everything that is waiting goes into one transaction.

SQL runs on the event loop's own thread, where it is fastest: statements are short and a second thread would only
fight for the interpreter. The commit waits for the disk, so it runs on a thread of its own, and what arrives meanwhile
forms the next batch. Only where the disk has shown to be as fast as a few statements, and a single job is waiting, is
that thread not worth its two wake-ups.
"""

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from remit.core.events import Event
from remit.errors import RemitError, StoreBusy, StoreError
from remit.ports import NOTHING, Decide, Wants

BATCH = 128  # jobs a transaction takes at most, so that the loop is never held for long
RETRY_SECONDS = 0.002
QUICK_SECONDS = 0.001  # a commit that takes no longer than this may hold the loop


Apply: TypeAlias = Callable[[str, str, Decide[Any]], tuple[Any, list[Event], Any]]


class Operation:
    """One operation on its way onto the disk."""

    __slots__ = ("answer", "aside", "decide", "error", "events", "future", "op", "wants", "workspace")

    def __init__(
        self, workspace: str, op: str, decide: Decide[Any], future: "asyncio.Future[Any]", wants: Wants = NOTHING
    ) -> None:
        self.wants = wants
        self.workspace = workspace
        self.op = op
        self.decide = decide
        self.future = future
        self.answer: Any = None
        self.aside: Any = None
        self.events: list[Event] = []
        self.error: Exception | None = None

    def perform(self, apply: Apply, failures: tuple[type[Exception], ...] = (StoreError,)) -> None:
        """Carries it out. `failures` are the database's and go through; any other error is the job's own, and goes to
        whoever awaits the job."""
        self.answer, self.aside, self.events, self.error = None, None, [], None
        try:
            self.answer, self.events, self.aside = apply(self.workspace, self.op, self.decide)
        except failures:
            raise
        except StopIteration as error:  # the one exception a future does not take
            self.error = RuntimeError("a decision raised StopIteration")
            self.error.__cause__ = error
        except Exception as error:  # noqa: BLE001 - whatever it is
            self.error = error


class Connection(Protocol):
    """What a commit strategy needs of a database."""

    def begin(self) -> bool:
        """Begins to write; False if another process is writing."""
        ...

    def changed(self) -> bool:
        """Whether there is anything to commit."""
        ...

    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def apply(self, workspace: str, op: str, decide: Decide[Any]) -> tuple[Any, list[Event], Any]:
        """The answer and the events; raises StoreError if the database fails, any other error is the job's own."""
        ...

    def feed(self, events: list[Event]) -> None:
        """Tells whoever listens what has been committed."""
        ...

    def restore(self, events: list[Event]) -> None:
        """Writes events again that a rollback took away."""
        ...

    def fault(self, name: str, /) -> None: ...


class ImmediateCommit:
    """For a database in memory: each job is carried out at once, and there is nothing to wait for.

    The transaction stays open for some hundred jobs, because SQLite copies a page the first time each transaction
    changes it. A job that the database refuses is undone by writing the jobs before it once more.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._jobs = 0
        self._open: list[Event] = []  # what the open transaction has, to write it again should it be lost
        self._broken: StoreError | None = None

    def apply(self, workspace: str, op: str, decide: Decide[Any]) -> tuple[Any, Any]:
        connection = self._connection
        if self._broken is not None:
            raise StoreError(f"the store in memory cannot go on: {self._broken}")
        if self._jobs == 0:
            connection.begin()
            connection.fault("store.begin")
        self._jobs += 1
        try:
            answer, events, aside = connection.apply(workspace, op, decide)
        except StoreError:
            self._undo()
            raise
        self._open += events
        if self._jobs >= BATCH:  # a job that raised may have been the one that filled it
            self._commit()
        if events:
            connection.feed(events)
        connection.fault("store.before-answer")
        return answer, aside

    def _commit(self) -> None:
        connection = self._connection
        try:
            connection.fault("store.before-commit")
            connection.commit()
            connection.fault("store.after-commit")
        except StoreError as error:
            self._broken = error
            raise
        self._jobs = 0
        self._open.clear()

    def _undo(self) -> None:
        """Takes back the job that failed and nothing else."""
        try:
            self._connection.rollback()
            self._connection.begin()
            self._connection.restore(self._open)
        except StoreError as error:
            self._broken = error

    def close(self) -> None:
        """Nothing is ever under way between two calls."""
        self._broken = StoreError("it is closed")


_Commit: TypeAlias = tuple[asyncio.AbstractEventLoop, list[Operation]]


class GroupCommit:
    """Group commit: one transaction for all the jobs that are waiting when the last one is on disk."""

    def __init__(self, connection: Connection, *, busy_seconds: float) -> None:
        self._connection = connection
        self._busy_seconds = busy_seconds
        self._waiting: deque[Operation] = deque()
        self._alone: deque[Operation] = deque()  # from a batch the database failed: tried again one by one
        self._loop: asyncio.AbstractEventLoop | None = None
        self._busy = False
        self._commits: queue.SimpleQueue[_Commit | threading.Event | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._patient: list[Operation] = []  # waiting for another process
        self._slowest = (
            1.0  # of late, in seconds; it fades, so that one slow commit is not held against a disk for ever
        )
        self._closed = False

    def submit(self, workspace: str, op: str, decide: Decide[Any]) -> "asyncio.Future[Any]":
        """What the operation will have answered once it is on disk."""
        if self._closed:
            raise StoreError("the store is closed")
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._adopt(loop)
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append(Operation(workspace, op, decide, future))
        if not self._busy:
            self._busy = True
            # Not now but next: whoever else is ready to run in this round gets into the same transaction.
            loop.call_soon(self._flush, loop)
        return future

    def close(self) -> None:
        """Waits for the transaction that is on its way to the disk; what had not begun is told that it will not."""
        self._closed = True
        if self._thread is not None:
            self._commits.put(None)
            self._thread.join()
            self._thread = None
        self._fail([*self._patient, *self._alone, *self._waiting], StoreError("the store was closed"))
        self._alone.clear()
        self._waiting.clear()

    def _adopt(self, loop: asyncio.AbstractEventLoop) -> None:
        """A store outlives an event loop, but serves one at a time."""
        if self._busy and self._loop is not None and not self._loop.is_closed():
            raise StoreError("this store is in use by another event loop; open the file once per loop")
        self._wait_for_disk()
        self._connection.rollback()  # what an interrupt may have left open
        self._patient.clear()
        self._alone.clear()
        self._waiting.clear()
        self._busy = False
        self._loop = loop

    def _wait_for_disk(self) -> None:
        """Until the commit that an earlier loop left behind is done."""
        if self._thread is not None:
            done = threading.Event()
            self._commits.put(done)
            done.wait()

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = self._next_batch()
        if batch:
            self._begin(loop, batch, loop.time() + self._busy_seconds)
        else:
            self._busy = False

    def _next_batch(self) -> list[Operation]:
        if self._alone:
            return [self._alone.popleft()]
        take = min(BATCH, len(self._waiting))
        return [self._waiting.popleft() for _ in range(take)]

    def _begin(self, loop: asyncio.AbstractEventLoop, batch: list[Operation], patience: float) -> None:
        if self._closed:
            return
        self._patient = []
        try:
            if not self._connection.begin():
                if loop.time() < patience:
                    self._patient = batch
                    loop.call_later(RETRY_SECONDS, self._begin, loop, batch, patience)
                    return
                waited = f"{self._busy_seconds:g} s"
                raise StoreBusy(f"another process has been writing for {waited}; try again, or stop it")
            self._connection.fault("store.begin")
            for job in batch:
                job.perform(self._connection.apply)
        except StoreError as error:
            self._undo(batch, error)
            loop.call_soon(self._flush, loop)
            return
        if self._connection.changed():
            self._to_disk(loop, batch)
        else:
            self._connection.rollback()
            self._answer(batch)
            loop.call_soon(self._flush, loop)

    def _undo(self, batch: list[Operation], error: StoreError) -> None:
        """One bad job must not take its neighbours along: a failed batch is tried again one by one."""
        self._connection.rollback()
        if len(batch) == 1 or isinstance(error, StoreBusy):
            self._fail(batch, error)
        else:
            self._alone.extend(batch)

    def _to_disk(self, loop: asyncio.AbstractEventLoop, batch: list[Operation]) -> None:
        if len(batch) == 1 and self._slowest < QUICK_SECONDS:
            self._committed(loop, batch, self._commit())
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._committer, name="remit-commit", daemon=True)
            self._thread.start()
        self._commits.put((loop, batch))

    def _committer(self) -> None:
        while (item := self._commits.get()) is not None:
            if isinstance(item, threading.Event):
                item.set()
                continue
            loop, batch = item
            error = self._commit()
            try:
                loop.call_soon_threadsafe(self._committed, loop, batch, error)
            except RuntimeError:  # the loop closed meanwhile: the work is on disk and no one waits for it
                continue

    def _commit(self) -> StoreError | None:
        began = time.perf_counter()
        try:
            self._connection.fault("store.before-commit")
            self._connection.commit()
            self._connection.fault("store.after-commit")
        except StoreError as error:
            self._connection.rollback()
            return error
        self._slowest = max(time.perf_counter() - began, self._slowest * 0.9)
        return None

    def _committed(self, loop: asyncio.AbstractEventLoop, batch: list[Operation], error: StoreError | None) -> None:
        if error is None:
            self._answer(batch)
        elif len(batch) == 1:
            self._fail(batch, error)
        else:
            self._alone.extend(batch)
        if self._waiting or self._alone:
            loop.call_soon(self._flush, loop)
        else:
            self._busy = False

    def _answer(self, batch: list[Operation]) -> None:
        for job in batch:
            if job.error is None and job.events:
                self._connection.feed(job.events)
            self._connection.fault("store.before-answer")
            if job.future.done():
                continue
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result((job.answer, job.aside))

    @staticmethod
    def _fail(jobs: list[Operation], error: RemitError) -> None:
        for job in jobs:
            if not job.future.done() and not job.future.get_loop().is_closed():
                job.future.set_exception(error)
