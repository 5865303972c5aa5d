"""One PostgreSQL transaction after the other: what the journal asks and writes, in as few round trips as can be.

Everything goes through a pipeline. What is written waits for no answer: it travels with the next question, or with the
commit. The one round trip that begins a transaction also tells which operations have been done and where each journal
ends.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple, TypeAlias

import psycopg

from remit.core.events import Event, Head
from remit.ports import Decide, Fault, Wants
from remit.stores.journal import Journal, Recorded, Rows
from remit.stores.newer import KnownSchema
from remit.stores.operations import Applied
from remit.stores.postgres.address import STATEMENTS, digest, lock_key
from remit.stores.postgres.patience import PatientConnection

_Cursor: TypeAlias = psycopg.Cursor[tuple[Any, ...]]


class _Asked(NamedTuple):
    """What was asked of a workspace when a transaction began; the answers are on their way."""

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
    """A connection that writes. It is what the journal calls `Sql`."""

    def __init__(self, connection: PatientConnection, fault: Fault, known: KnownSchema) -> None:
        self.connection = connection
        self._known = known
        self._pipeline = ExitStack()
        self.journal = self._journal = Journal(self, fault)
        self._done: dict[tuple[str, str], Recorded | None] = {}  # the operations of this transaction
        self._heads: dict[str, Head] = {}  # where each journal ended when we last saw it
        self._changed: set[str] = set()
        self.writes = 0  # in this transaction

    def begin(self, wanted: Mapping[str, Sequence[tuple[str, Wants]]]) -> None:
        """Lock the journals of these workspaces; learn where they end, which operations are done, and what the
        decisions will ask for."""
        self._done.clear()
        self._changed.clear()
        self.writes = 0
        self._pipeline.enter_context(self.connection.pipeline())
        self._send("begin")
        self._send("lock", (sorted(map(lock_key, wanted)),))
        asked = [self._ask(workspace, operations) for workspace, operations in wanted.items()]
        self._notice_others({each.workspace: self._head(each.start) for each in asked})
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
            self._send("start", (workspace,)),
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

    def _head(self, cursor: _Cursor) -> Head:
        """Read the journal's head; refuse a schema that is newer than ours."""
        number, seq, seal = cursor.fetchall()[0]
        self._known.saw(number)
        return Head() if seq is None else Head(seq, seal)

    def _notice_others(self, heads: Mapping[str, Head]) -> None:
        """Forget what the journal remembers unless it ends where we left it: every change is an event."""
        if any(self._heads.get(workspace, head) != head for workspace, head in heads.items()):
            self._forget()
        self._heads.update(heads)

    def _forget(self) -> None:
        self._journal.forget()
        self._heads.clear()

    def apply(self, workspace: str, op: str, decide: Decide[Any]) -> Applied:
        return self._journal.apply(workspace, op, decide)

    def commit(self) -> None:
        """Commit. If this raises a loss of the connection, it is not known whether it was committed."""
        self._journal.flush()
        for workspace in self._changed:
            self._send("notify", (digest(workspace),))
        self._send("commit")
        self._pipeline.close()  # waits for all the answers

    def rollback(self) -> None:
        """Roll back. Raises what psycopg raises if the connection is lost."""
        self._forget()
        with suppress(psycopg.Error):  # raised before: what is under way fails with the first error
            self._pipeline.close()
        self.connection.execute(STATEMENTS["rollback"])

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._pipeline.close()
        self.connection.close()

    # -- what the journal uses ----------------------------------------------------------------------

    def head(self, workspace: str) -> Head:
        """Tell where a journal of this transaction ends; `begin` has asked."""
        return self._heads[workspace]

    def done(self, workspace: str, op: str) -> Recorded | None:
        """Look an operation up; the server is asked only about those that `begin` did not ask for."""
        if (workspace, op) in self._done:
            return self._done[workspace, op]
        rows = self.query("done", (workspace, op))
        return Recorded(*rows[0]) if rows else None

    def append(self, event: Event) -> bool:
        """Write an event. The server's answer is not waited for: a place that is taken fails the transaction."""
        workspace, op = event.workspace, event.op
        if op is not None:
            if self._done.get((workspace, op)) is not None:
                return False
            self._done[workspace, op] = Recorded(event.answer, event.hash)
        self._changed.add(workspace)
        self._heads[workspace] = Head(event.seq, event.hash)
        self.write("append", event[:-1])  # the columns are the event's fields, without decoded data
        return True

    def query(self, name: str, row: Sequence[Any]) -> Rows:
        return self._send(name, row).fetchall()

    def write(self, name: str, row: Sequence[Any]) -> None:
        self.writes += 1
        self._send(name, row)

    def erase(self, name: str, row: Sequence[Any]) -> None:
        """Write; the server keeps what was there before until it vacuums."""
        self.write(name, row)

    def _send(self, name: str, row: Sequence[Any] | None = None) -> _Cursor:
        cursor = self.connection.cursor()
        cursor.execute(STATEMENTS[name], row, prepare=row is not None)
        return cursor


def _rows(cursor: _Cursor | None) -> Rows:
    return cursor.fetchall() if cursor is not None else ()
