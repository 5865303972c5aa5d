"""Writes the tables of a new SQLite store: what all migrations create, in one text of statements."""

import sqlite3
from contextlib import closing

from remit.stores.queries import migrations

HEAD = """\
-- The tables as the migrations leave them. A new store is made of these, in a quarter of the time.
-- `make docs` writes this file, after each new migration.
"""
OBJECTS = "SELECT sql FROM sqlite_master WHERE sql > '' AND name NOT LIKE 'sqlite_%'"
ESTIMATES = "SELECT printf('(%Q, %Q, %Q)', tbl, idx, stat) FROM sqlite_stat1 ORDER BY tbl, idx"


def tables() -> str:
    steps = migrations("sqlite")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for step in steps.values():
            connection.executescript(step)
        statements: list[str] = [sql for (sql,) in connection.execute(OBJECTS)]
        rows = ",\n".join(row for (row,) in connection.execute(ESTIMATES))
    estimates = f"INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES\n{rows}"
    statements += ["ANALYZE", estimates, "ANALYZE sqlite_schema", f"PRAGMA user_version = {max(steps)}"]
    return HEAD + ";\n\n".join(statements) + ";\n"
