"""Writing to PostgreSQL: one thread, and one transaction for all waiting operations.

Decisions read while they run, so each needs some round trips to the server; on the event loop's thread they would block
it. Everything goes through a pipeline: a write waits for no answer and travels with the next query, or with the commit.
The round trip that begins a transaction also returns which operations have been done and where each journal ends. A
lost connection is reopened and the batch repeated: operations are idempotent, so the second try finds out what became
of the first.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Final, NamedTuple, TypeAlias

import psycopg

from remit.core.events import Event, Head, SealKey
from remit.core.placement import MoveMark, moved
from remit.errors import StoreError
from remit.ports import Beat, Decide, Decided, Fault, Wants
from remit.stores import forks
from remit.stores.journal import BATCH, Applied, Feed, Journal, Operation, Recorded, Rows, answer_all, try_one_by_one
from remit.stores.postgres.address import (
    CONFINED,
    STATEMENTS,
    Address,
    Connection,
    PatientConnection,
    broke,
    digest,
    is_connection_lost,
    lock_key,
    reason,
)
from remit.stores.queries import KnownSchema, query
from remit.stores.threads import quick_switching

_Cursor: TypeAlias = psycopg.Cursor[tuple[Any, ...]]


class _Asked(NamedTuple):
    """The queries that were sent when a transaction began; the answers are on their way."""

    workspace: str
    ops: list[str]
    same: list[str]
    keys: list[str]
    start: _Cursor
    done: _Cursor
    standings: _Cursor | None
    same_requests: _Cursor | None
    runs: _Cursor | None
    used_keys: _Cursor | None
    lease_ids: list[str]
    leases: _Cursor | None
    agents: list[str]
    disputes: _Cursor | None


class Transactions:
    """A writing connection. It implements the journal's `Sql`."""

    def __init__(self, connection: PatientConnection, fault: Fault, known: KnownSchema) -> None:
        self.connection = connection
        self._known = known
        self._pipeline = ExitStack()
        self.journal = self._journal = Journal(self, fault)
        self._done: dict[tuple[str, str], Recorded | None] = {}  # the operations of this transaction
        self._heads: dict[str, Head] = {}  # the last known end of each journal
        self._changed: set[str] = set()
        self._marks: dict[str, MoveMark] = {}  # of the workspaces of this transaction that are being moved
        self.writes = 0  # in this transaction
        self.confined = False

    def begin(self, wanted: Mapping[str, Sequence[tuple[str, Wants]]]) -> None:
        """Lock the journals of these workspaces; fetch where they end, which operations are done, and the rows that the
        decisions will read."""
        self._done.clear()
        self._changed.clear()
        self.writes = 0
        self._pipeline.enter_context(self.connection.pipeline())
        self._send("begin")
        if self.confined:
            self._send("confine", ("\n".join(wanted),))
        self._send("lock", (sorted(map(lock_key, wanted)),))
        asked = [self._ask(workspace, operations) for workspace, operations in wanted.items()]
        self._marks.clear()
        self._notice_others({each.workspace: self._head(each.workspace, each.start) for each in asked})
        for each in asked:
            self._done.update({(each.workspace, op): None for op in each.ops})
            self._done.update({(each.workspace, op): Recorded(text, seal) for op, text, seal in each.done.fetchall()})
            view = self._journal.view(each.workspace)
            view.prime(_rows(each.standings), each.same, _rows(each.same_requests), _rows(each.runs))
            view.prime_keys(each.keys, _rows(each.used_keys))
            view.prime_leases(each.lease_ids, _rows(each.leases))
            view.prime_disputes(each.agents, _rows(each.disputes))

    def _ask(self, workspace: str, operations: Sequence[tuple[str, Wants]]) -> _Asked:
        ops = [op for op, _ in operations]
        standings = [task for _, wants in operations for task in wants.standings]
        same = [key for _, wants in operations for key in wants.same_requests]
        keys = [key for _, wants in operations for key in wants.used_keys]
        runs = [run for _, wants in operations for run in wants.runs]
        leases = [lease for _, wants in operations for lease in wants.leases]
        agents = [agent for _, wants in operations for agent in wants.disputes]
        return _Asked(
            workspace,
            ops,
            same,
            keys,
            self._send("start", (workspace, workspace)),
            self._send("done_of", (workspace, ops)),
            self._send("standings", (workspace, standings)) if standings else None,
            self._send("same_requests_of", (workspace, same)) if same else None,
            self._send("run_facts_of", (workspace, runs)) if runs else None,
            self._send("used_keys_of", (workspace, keys)) if keys else None,
            leases,
            self._send("leases_of", (workspace, leases)) if leases else None,
            agents,
            self._send("holds_disputed_of", (workspace, agents)) if agents else None,
        )

    def _head(self, workspace: str, cursor: _Cursor) -> Head:
        """Return the journal's head. Raise `NewerStore` for a schema that is newer than ours."""
        number, seq, seal, *mark = cursor.fetchall()[0]
        self._known.saw(number)
        if mark[0] is not None:
            self._marks[workspace] = MoveMark(*mark)
        return Head() if seq is None else Head(seq, seal)

    def _notice_others(self, heads: Mapping[str, Head]) -> None:
        """Drop the journal's caches unless it ends where we left it: every change is an event."""
        if any(self._heads.get(workspace, head) != head for workspace, head in heads.items()):
            self._forget()
        self._heads.update(heads)

    def _forget(self) -> None:
        self._journal.forget()
        self._heads.clear()

    def apply(self, workspace: str, op: str, decide: Decide[Any]) -> Applied:
        """Apply an operation. Raise `Moved` if its workspace may not be written here."""
        if self._marks and workspace in self._marks:
            raise moved(workspace, self._marks[workspace])
        return self._journal.apply(workspace, op, decide)

    def commit(self) -> None:
        """Commit. If the connection is lost here, it is unknown whether the transaction was committed."""
        self._journal.flush()
        for workspace in self._changed:
            self._send("notify", (digest(workspace),))
        self._send("commit")
        self._pipeline.close()  # waits for all the answers

    def rollback(self) -> None:
        """Roll back. Raise psycopg's errors if the connection is lost."""
        self._forget()
        with suppress(psycopg.Error):  # already raised: the pipeline fails with the first error
            self._pipeline.close()
        self.connection.execute(STATEMENTS["rollback"])

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._pipeline.close()
        self.connection.close()

    # -- `Sql` for the journal ----------------------------------------------------------------------

    def head(self, workspace: str) -> Head:
        """Return the end of a journal of this transaction, which `begin` has fetched."""
        return self._heads[workspace]

    def done(self, workspace: str, op: str) -> Recorded | None:
        """Return an operation, or None; the server is asked only about those that `begin` did not fetch."""
        if (workspace, op) in self._done:
            return self._done[workspace, op]
        rows = self.query("done", (workspace, op))
        return Recorded(*rows[0]) if rows else None

    def append(self, event: Event) -> bool:
        """Write an event without waiting for the server: if its number is taken, the transaction fails. Return False if
        its operation is already recorded."""
        workspace, op = event.workspace, event.op
        if op is not None:
            if self._done.get((workspace, op)) is not None:
                return False
            self._done[workspace, op] = Recorded(event.answer, event.hash)
        self._changed.add(workspace)
        self._heads[workspace] = Head(event.seq, event.hash)
        self.write("append", event[:-1])  # columns are the event's fields except `data`
        return True

    def query(self, name: str, row: Sequence[Any]) -> Rows:
        return self._send(name, row).fetchall()

    def write(self, name: str, row: Sequence[Any]) -> None:
        self.writes += 1
        self._send(name, row)

    def erase(self, name: str, row: Sequence[Any]) -> None:
        """Write; the server keeps the old data until it vacuums."""
        self.write(name, row)

    def _send(self, name: str, row: Sequence[Any] | None = None) -> _Cursor:
        cursor = self.connection.cursor()
        cursor.execute(STATEMENTS[name], row, prepare=row is not None)
        return cursor


def _rows(cursor: _Cursor | None) -> Rows:
    return cursor.fetchall() if cursor is not None else ()


_FILL: Final = query("worker_beat").fill


class PostgresPulse:
    """Writes the heartbeats of one worker; gives up after `patience` seconds."""

    def __init__(self, address: Address, workspace: str, patience: float) -> None:
        self._address = address
        self._workspace = workspace
        self._patience = patience
        wait = str(max(1, int(patience * 1000)))
        # A heartbeat need not survive a server crash, and its writer must not wait long.
        self._session = {
            "application_name": "remit-heartbeat",
            "synchronous_commit": "off",
            "lock_timeout": wait,
            "statement_timeout": wait,
            CONFINED: workspace,
        }
        self._connection: Connection | None = None
        self._elsewhere = ""
        forks.tell(self)

    def write(self, beat: Beat) -> None:
        if self._elsewhere:
            raise StoreError(self._elsewhere)
        row = _FILL({**beat._asdict(), "workspace": self._workspace})
        try:
            if self._connection is None:
                self._connection = self._address.connect(self._patience, **self._session)
            self._connection.execute(STATEMENTS["worker_beat"], row)
        except psycopg.Error as error:
            self.close()
            raise self._address.translated(error) from error

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # -- forks ----------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Do nothing: the connection stays with the parent."""

    def after_fork(self) -> None:
        """Do nothing."""

    def leave(self) -> None:
        forks.keep(self._connection)
        self._connection = None
        self._elsewhere = forks.ELSEWHERE.format(where=self._address.where)


_PAUSES: Final = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)  # pauses before a reconnect; the last one repeats
_FEW: Final = 100  # rows written before the first ANALYZE
_MANY: Final = 1_000_000
_AGAIN: Final = 5  # retries after a serialization failure or deadlock
_LONGER: Final = 1.2
_A_MOMENT: Final = 0.5
_BROKEN_OFF: Final = ("40001", "40P01")  # serialization failure, deadlock


class BatchWriter:
    """Takes operations from any event loop and resolves their futures there, after the commit.

    `grown` is called a few times while the tables grow from empty, `patience` is how many seconds a lost server is
    waited for.
    """

    def __init__(
        self,
        address: Address,
        feed: Feed,
        grown: Callable[[], None],
        fault: Fault,
        patience: float,
        known: KnownSchema,
    ) -> None:
        self._address = address
        self._known = known
        self._feed = feed
        self._grown = grown
        self._written = 0
        self._growth = _FEW
        self._fault = fault
        self._patience = patience
        # The server reports a lock timeout itself; the connection is dropped only if it does not.
        self._silence = patience * _LONGER + _A_MOMENT
        self._waiting: queue.SimpleQueue[Operation | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._closed = "the store is closed"
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._transactions: Transactions | None = None
        self.key: SealKey | None = None  # the key that signs events, or None
        self.confined = False  # each transaction names its workspaces to the server
        self.backend = 0  # the server's process id of our connection, as in notifications

    def submit(self, workspace: str, op: str, decide: Decide[Any], wants: Wants) -> "asyncio.Future[Decided[Any]]":
        """Add an operation to the next batch; the future is done when it is on the server's disk."""
        if self._closing.is_set():
            raise StoreError(self._closed)
        future: asyncio.Future[Decided[Any]] = asyncio.get_running_loop().create_future()
        self._waiting.put(Operation(workspace, op, decide, future, wants))
        if self._thread is None:
            self._start()
        return future

    def open(self) -> Transactions:
        """Open a writing connection. Raise psycopg's errors."""
        wait = int(self._patience * 1000)
        # A process that hangs in a transaction must not block the others forever.
        session = {"lock_timeout": str(wait), "idle_in_transaction_session_timeout": str(max(wait, 1) * 3)}
        connection = self._address.connect(self._silence, **session)
        try:
            self.backend = connection.execute(STATEMENTS["durable"], prepare=False).fetchall()[0][0]
        except BaseException:
            connection.close()
            raise
        connection.patience = 0.0  # migrations may take long
        self._transactions = Transactions(connection, self._fault, self._known)
        return self._transactions

    def close(self) -> None:
        """Wait for the running transaction and fail all operations that have not started."""
        self._closing.set()
        self._waiting.put(None)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None
        self._fail(self._drain_waiting(), StoreError("the store was closed"))
        self._drop()

    def leave(self, why: str) -> None:
        """In a child process, refuse all calls: the thread, its locks and the connection belong to the parent."""
        forks.keep((self._transactions, self._waiting, self._closing, self._starting))
        self._closed = why
        self._closing = threading.Event()
        self._closing.set()
        self._waiting = queue.SimpleQueue()
        self._thread = self._transactions = None

    # -- the thread -----------------------------------------------------------------------------------

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._work, name="remit-write", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None and not self._closing.is_set():
            self._see_through([first, *self._more()])
        if first is not None:
            self._fail([first], StoreError("the store was closed"))

    def _more(self) -> Iterable[Operation]:
        """Yield further waiting operations, as far as they fit into one transaction."""
        for _ in range(min(BATCH - 1, self._waiting.qsize())):
            operation = self._waiting.get()
            if operation is None:
                self._waiting.put(None)
                return
            yield operation

    def _see_through(self, batch: list[Operation]) -> None:
        """Run a batch, if need be one by one, until each operation has its answer or its error."""
        try:
            self._until_done(batch)
        except StoreError as error:
            hopeless = self._transactions is None or self._closing.is_set()
            if hopeless or not try_one_by_one(batch, error):
                self._fail(batch, error)
                return
            for operation in batch:
                self._see_through([operation])
        except BaseException as error:  # noqa: BLE001 - fail the waiting callers, then continue
            self._drop()
            self._fail(batch, StoreError(f"the store's writer failed: {type(error).__name__}: {error}"))
        else:
            _on_each_loop(batch, self._answer)

    def _until_done(self, batch: list[Operation]) -> None:
        until = time.monotonic() + self._patience
        broken_off = 0
        while True:
            transactions = self._transactions or self._reconnected(until)
            transactions.journal.key = self.key
            transactions.confined = self.confined
            transactions.connection.patience = self._silence
            try:
                with quick_switching():
                    self._transact(transactions, batch)
            except psycopg.Error as error:
                if broke(error) or is_connection_lost(error, transactions.connection):
                    # The batch may or may not be committed. Reconnect and repeat it: operations are idempotent, so the
                    # repetition finds out.
                    self._drop()
                    if time.monotonic() > until:
                        raise self._store_error(error) from error
                    continue
                self._undo(transactions)
                # The server rolled back in favour of another transaction: retry, but not forever.
                broken_off += error.sqlstate in _BROKEN_OFF
                if error.sqlstate not in _BROKEN_OFF or broken_off > _AGAIN:
                    raise self._address.translated(error) from error
            except BaseException:
                self._undo(transactions)
                raise
            else:
                return

    def _transact(self, transactions: Transactions, batch: list[Operation]) -> None:
        wanted: dict[str, list[tuple[str, Wants]]] = {}
        for operation in batch:
            wanted.setdefault(operation.workspace, []).append((operation.op, operation.wants))
        transactions.begin(wanted)
        if any(_is_there(transactions, operation) for operation in batch):
            transactions.rollback()  # the connection was lost after the commit: everything is committed
            return
        self._fault("store.begin")
        for operation in batch:
            operation.perform(transactions.apply, (StoreError, psycopg.Error))
        if not transactions.writes:
            transactions.commit()
            return
        self._fault("store.before-commit")
        transactions.commit()
        self._fault("store.after-commit")
        self._count(transactions.writes)

    def _count(self, writes: int) -> None:
        """Let the planner analyze growing tables a few times; later the server does that by itself."""
        self._written += writes
        if self._growth < self._written < _MANY:
            self._growth = self._written * 4
            self._grown()

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
                    raise self._store_error(error) from error

    def _store_error(self, error: psycopg.Error) -> StoreError:
        meaning = self._address.translated(reason(error))
        tried = f"it was tried for {self._patience:g} s, and asking again under the same operation is safe"
        gone = type(meaning)(f"{meaning}; {tried}")
        gone.retryable = meaning.retryable
        return gone

    def _undo(self, transactions: Transactions) -> None:
        try:
            transactions.rollback()
        except psycopg.Error:
            self._drop()

    def _drop(self) -> None:
        transactions, self._transactions = self._transactions, None
        if transactions is not None:
            transactions.close()

    # -- on the event loops ---------------------------------------------------------------------------

    def _drain_waiting(self) -> list[Operation]:
        left: list[Operation] = []
        while not self._waiting.empty():
            operation = self._waiting.get()
            left += [operation] if operation is not None else []
        return left

    def _answer(self, batch: Sequence[Operation]) -> None:
        answer_all(batch, self._feed, self._fault)

    @staticmethod
    def _fail(operations: list[Operation], error: StoreError) -> None:
        for operation in operations:
            operation.fail(error)
        _on_each_loop(operations, _settle_all)


def _is_there(transactions: Transactions, operation: Operation) -> bool:
    """Whether an earlier try was committed: then its first event is in the journal, with our hash.

    Our locks are held now, so a try whose connection was lost has ended.
    """
    done = transactions.done(operation.workspace, operation.op) if operation.events else None
    return done is not None and done.hash == operation.events[0].hash


def _settle_all(operations: Sequence[Operation]) -> None:
    for operation in operations:
        operation.settle()


def _on_each_loop(operations: list[Operation], call: Callable[[Sequence[Operation]], None]) -> None:
    """Call on each event loop with its own operations; nearly always there is one loop."""
    loops: dict[asyncio.AbstractEventLoop, list[Operation]] = {}
    for operation in operations:
        loops.setdefault(operation.future.get_loop(), []).append(operation)
    for loop, own in loops.items():
        try:
            loop.call_soon_threadsafe(call, own)
        except RuntimeError:  # the loop has closed: the work is committed, and no caller waits
            continue
