"""A PostgreSQL database as one end of a move."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from secrets import token_hex
from typing import Any, Self

import psycopg

from remit.core.placement import Membership, MoveMark
from remit.errors import BadInput
from remit.ports.placing import TableColumns
from remit.stores.copying import PAGE, after_row, copy_statements, name_taken
from remit.stores.postgres.address import STATEMENTS, Address, Connection, digest, lock_key


class PostgresEnd:
    """A separate connection for a move. Each transaction names its workspace, because row-level security may confine
    the user."""

    def __init__(self, address: Address, patience: float) -> None:
        self._address = address
        self._patience = patience
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        with self._store_errors():
            wait = str(max(1, int(self._patience * 1000)))
            self._connection = self._address.connect(0.0, application_name="remit-move", lock_timeout=wait)
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def join(self, home: str) -> Membership:
        with self._transaction("", lock="member"):
            rows = self._run("member_of")
            known = Membership(*rows[0]) if rows else Membership(token_hex(8), "")
            joined = known._replace(home=known.home or home or known.name)
            if joined != known or not rows:
                self._send("member_join", joined)
        return joined

    def place(self, workspace: str, place: str, *, moves: bool = False) -> str:
        with self._transaction(workspace):
            self._send("place_change" if moves else "place_note", (workspace, place))
            return self._run("place_of", (workspace,))[0][0]

    def has(self, workspace: str) -> bool:
        with self._transaction(workspace):
            return bool(self._run("head", (workspace,)))

    def mark(self, workspace: str, mark: MoveMark | None) -> None:
        with self._transaction(workspace, lock=workspace):
            if mark is None:
                self._send("moving_drop", (workspace,))
                return
            is_new = mark.state == "arriving" and not self._run("moving_of", (workspace,))
            if is_new and self._run("head", (workspace,)):
                raise name_taken(workspace, self._address.where)
            self._send("moving_put", (workspace, *mark))

    def tables(self) -> Mapping[str, TableColumns]:
        with self._transaction(""):
            rows = self._run("tables_apart")
        found = {name: TableColumns(tuple(sorted(columns)), tuple(key)) for name, columns, key in rows}
        if not found:
            raise BadInput(f"{self._address.where} has no tables that this user may see")
        return found

    def pages(self, table: str, has: TableColumns, workspace: str) -> Iterator[Sequence[tuple[Any, ...]]]:
        statements = copy_statements(table, has, "%s")
        page = self._page(statements.first, workspace, (workspace, PAGE))
        while page:
            yield page
            after = after_row(has, page[-1])
            page = self._page(statements.following, workspace, (workspace, *after, PAGE)) if after else ()

    def _page(self, sql: str, workspace: str, row: Sequence[Any]) -> Sequence[tuple[Any, ...]]:
        with self._transaction(workspace) as connection:
            return connection.execute(sql.encode(), row).fetchall()

    def add(self, table: str, has: TableColumns, rows: Sequence[Sequence[Any]]) -> None:
        workspace = rows[0][has.columns.index("workspace")]
        with self._transaction(workspace) as connection, connection.cursor() as cursor:
            cursor.executemany(copy_statements(table, has, "%s").add.encode(), rows)

    def clear(self, table: str, has: TableColumns, workspace: str) -> None:
        left = 1
        while left:
            with self._transaction(workspace) as connection:
                left = connection.execute(copy_statements(table, has, "%s").clear.encode(), (workspace, PAGE)).rowcount

    def wake(self, workspace: str, now: int) -> None:
        """Set the jobs of tasks with a due time again, by the present time `now`, in microseconds since 1970: the
        triggers count from the last event, which may be old. Drop the jobs of a workspace without pending tasks, and
        wake its listeners."""
        with self._transaction(workspace):
            self._send("jobs_later", (now, workspace))
            self._send("jobs_gone", (digest(workspace), workspace))
            self._send("notify", (digest(workspace),))

    @contextmanager
    def _transaction(self, workspace: str, lock: str = "") -> Generator[Connection]:
        assert self._connection is not None
        with self._store_errors(), self._connection.transaction():
            self._send("confine", (workspace,))
            if lock:
                self._send("lock", ([lock_key(lock)],))
            yield self._connection

    @contextmanager
    def _store_errors(self) -> Generator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._address.translated(error) from error

    def _run(self, name: str, row: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._send(name, row).fetchall()

    def _send(self, name: str, row: Sequence[Any] = ()) -> "psycopg.Cursor[tuple[Any, ...]]":
        assert self._connection is not None
        return self._connection.execute(STATEMENTS[name], row)
