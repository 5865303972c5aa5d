"""One PostgreSQL transaction after the other: what the journal asks and writes, in as few trips as can be.

Everything goes through a pipeline. What is written waits for no answer: it travels with the next question, or with the
commit. That no operation is done twice and where each journal ends is known from the one trip that begins.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Final, NamedTuple, TypeAlias

import psycopg

from remit.core.events import Event
from remit.ports import Decide, Fault, Wants
from remit.stores.journal import Journal, Rows
from remit.stores.postgres.address import STATEMENTS, Connection, digest, lock_key

_OP: Final = 9  # where a row of `append` has its operation and its answer
_ANSWER: Final = 10


class Applied(NamedTuple):
    """What became of an operation, and the hash of its first event."""

    answer: str | None
    hash: str


_Cursor: TypeAlias = psycopg.Cursor[tuple[Any, ...]]


class _Asked(NamedTuple):
    """What was asked of a workspace when a transaction began; the answers are on their way."""

    workspace: str
    ops: list[str]
    keys: list[str]
    head: _Cursor
    done: _Cursor
    standings: _Cursor | None
    same_requests: _Cursor | None
    runs: _Cursor | None


def _rows(cursor: _Cursor | None) -> Rows:
    return cursor.fetchall() if cursor is not None else ()


class Transactions:
    """A connection that writes. It is what the journal calls `Sql`."""

    def __init__(self, connection: Connection, fault: Fault) -> None:
        self.connection = connection
        self._pipeline = ExitStack()
        self._journal = Journal(self, fault)
        self._done: dict[tuple[str, str], Applied | None] = {}
        self._heads: dict[str, Rows] = {}
        self._ends: dict[str, Rows] = {}  # where each journal ended when we last saw it
        self._changed: set[str] = set()
        self.writes = 0  # in this transaction

    def begin(self, wanted: Mapping[str, Sequence[tuple[str, Wants]]]) -> None:
        """Takes the journals of these workspaces for ourselves; learns where they end, which operations are done, and
        what the decisions will ask for."""
        self._done.clear()
        self._heads.clear()
        self._changed.clear()
        self.writes = 0
        self._pipeline.enter_context(self.connection.pipeline())
        self._send("begin")
        self._send("lock", (sorted(map(lock_key, wanted)),))
        asked = [self._asked(workspace, given) for workspace, given in wanted.items()]
        for one in asked:
            self._heads[one.workspace] = one.head.fetchall()
            self._done.update({(one.workspace, op): None for op in one.ops})
            told = one.done.fetchall()
            self._done.update({(one.workspace, op): Applied(answer, hash_) for op, answer, hash_ in told})
        self._notice_others()
        for one in asked:
            view = self._journal.view(one.workspace)
            view.prime(_rows(one.standings), one.keys, _rows(one.same_requests), _rows(one.runs))

    def _asked(self, workspace: str, given: Sequence[tuple[str, Wants]]) -> "_Asked":
        ops = [op for op, _ in given]
        standings = [task for _, wants in given for task in wants.standings]
        keys = [key for _, wants in given for key in wants.same_requests]
        runs = [run for _, wants in given for run in wants.runs]
        return _Asked(
            workspace,
            ops,
            keys,
            self._send("head", (workspace,)),
            self._send("done", (workspace, ops)),
            self._send("standings", (workspace, standings)) if standings else None,
            self._send("same_requests_of", (workspace, keys)) if keys else None,
            self._send("run_facts_of", (workspace, runs)) if runs else None,
        )

    def _notice_others(self) -> None:
        """What the journal remembers holds as long as it ends where we left it: every change is an event."""
        ends = self._ends
        if any(ends.get(workspace, head) != head for workspace, head in self._heads.items()):
            self._forget()
        ends.update(self._heads)

    def _forget(self) -> None:
        self._journal.forget()
        self._ends.clear()

    def done(self, workspace: str, op: str) -> Applied | None:
        return self._done.get((workspace, op))

    def apply(self, workspace: str, op: str, decide: Decide[Any]) -> tuple[Any, list[Event], Any]:
        return self._journal.apply(workspace, op, decide)

    def commit(self) -> None:
        """If this raises a loss of the connection, it is not known whether it was committed."""
        for workspace in self._changed:
            self._send("notify", (digest(workspace),))
        self._send("commit")
        self._pipeline.close()  # waits for all the answers

    def rollback(self) -> None:
        """Raises what psycopg raises if the connection is lost."""
        self._forget()
        with suppress(psycopg.Error):  # told before: what is under way fails with the first error
            self._pipeline.close()
        self.connection.execute(STATEMENTS["rollback"])

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._pipeline.close()
        self.connection.close()

    # -- what the journal uses ----------------------------------------------------------------------

    def query(self, name: str, row: Sequence[Any]) -> Rows:
        if name == "head" and row[0] in self._heads:
            return self._heads[row[0]]
        if name == "answer_of":
            known = self._done.get((row[0], row[1]), name)
            if known != name:
                return [(known.answer,)] if isinstance(known, Applied) else []
        return self._send(name, row).fetchall()

    def write(self, name: str, row: Sequence[Any]) -> int:
        if name == "append" and not self._note(row):
            return 0
        self.writes += 1
        self._send(name, row)
        return 1  # where it is not so the server says no, and the transaction fails

    def _note(self, row: Sequence[Any]) -> bool:
        """Keeps in mind what is appended; False if its operation has been done before."""
        workspace, op = row[0], row[_OP]
        if op is not None:
            if self._done.get((workspace, op)) is not None:
                return False
            self._done[workspace, op] = Applied(row[_ANSWER], row[-1])
        self._changed.add(workspace)
        self._ends[workspace] = [(row[1], row[-1])]
        return True

    def _send(self, name: str, row: Sequence[Any] | None = None) -> psycopg.Cursor[tuple[Any, ...]]:
        cursor = self.connection.cursor()
        cursor.execute(STATEMENTS[name], row, prepare=row is not None)
        return cursor
