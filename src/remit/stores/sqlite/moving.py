"""A SQLite file as one end of a move."""

import sqlite3
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from secrets import token_hex
from typing import Any, Self

from remit.core.placement import Membership, MoveMark
from remit.ports.placing import TableColumns
from remit.stores import forks
from remit.stores.copying import PAGE, after_row, copy_statements, name_taken
from remit.stores.queries import query
from remit.stores.sqlite.connection import connect
from remit.stores.sqlite.files import translated


class SqliteEnd:
    """A separate connection for a move. Other connections notice its commits like those of another process."""

    def __init__(self, where: str, busy_seconds: float) -> None:
        self._where = where
        self._busy = int(busy_seconds * 1000)
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        with forks.opening(), self._store_errors():
            self._connection = connect(self._where)
            self._connection.execute(f"PRAGMA busy_timeout = {self._busy}")
            self._connection.execute("PRAGMA synchronous = FULL")
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def join(self, home: str) -> Membership:
        with self._transaction():
            rows = self._run("member_of")
            known = Membership(*rows[0]) if rows else Membership(token_hex(8), "")
            joined = known._replace(home=known.home or home or known.name)
            if joined != known or not rows:
                self._run("member_join", joined)
        return joined

    def place(self, workspace: str, place: str, *, moves: bool = False) -> str:
        with self._transaction():
            self._run("place_change" if moves else "place_note", (workspace, place))
            return self._run("place_of", (workspace,))[0][0]

    def has(self, workspace: str) -> bool:
        with self._store_errors():
            return bool(self._run("head", (workspace,)))

    def mark(self, workspace: str, mark: MoveMark | None) -> None:
        with self._transaction():
            if mark is None:
                self._run("moving_drop", (workspace,))
                return
            is_new = mark.state == "arriving" and not self._run("moving_of", (workspace,))
            if is_new and self._run("head", (workspace,)):
                raise name_taken(workspace, self._where)
            self._run("moving_put", (workspace, *mark))

    def tables(self) -> Mapping[str, TableColumns]:
        with self._store_errors():
            names = [row[0] for row in self._run("tables_here")]
            found = {name: self._sql(f"PRAGMA table_info({name})") for name in names}
        return {name: _columns(rows) for name, rows in found.items() if "workspace" in {row[1] for row in rows}}

    def pages(self, table: str, has: TableColumns, workspace: str) -> Iterator[Sequence[tuple[Any, ...]]]:
        statements = copy_statements(table, has, "?")
        with self._store_errors():
            page = self._sql(statements.first, (workspace, PAGE))
            while page:
                yield page
                after = after_row(has, page[-1])
                page = self._sql(statements.following, (workspace, *after, PAGE)) if after else ()

    def add(self, table: str, has: TableColumns, rows: Sequence[Sequence[Any]]) -> None:
        with self._transaction() as connection:
            connection.executemany(copy_statements(table, has, "?").add, rows)

    def clear(self, table: str, has: TableColumns, workspace: str) -> None:
        left = 1
        while left:
            with self._transaction() as connection:
                left = connection.execute(copy_statements(table, has, "?").clear, (workspace, PAGE)).rowcount

    def wake(self, workspace: str, now: int) -> None:
        """Do nothing: the workers see that the file has changed."""

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        assert self._connection is not None
        with self._store_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextmanager
    def _store_errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise translated(error, self._where) from error

    def _run(self, name: str, row: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._sql(query(name).sql, row)

    def _sql(self, sql: str, row: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        assert self._connection is not None
        return self._connection.execute(sql, row).fetchall()


def _columns(rows: Sequence[Sequence[Any]]) -> TableColumns:
    key = sorted((row for row in rows if row[5] and row[1] != "workspace"), key=lambda row: row[5])
    return TableColumns(tuple(sorted(row[1] for row in rows)), tuple(row[1] for row in key))
