"""The statements that copy the rows of a workspace from one database to another, for any table that has some.

They are put together from the names of tables and columns, which come from the catalogue of a database that remit has
created: a table that a migration adds is copied without another line here.
"""

import re
from functools import cache
from typing import Final, NamedTuple

from remit.errors import BadInput, StoreError
from remit.ports.placing import TableColumns

PAGE: Final = 500  # rows of one transaction, so that other workspaces wait only for a moment
_NAME: Final = re.compile(r"[a-z][a-z_]*", re.ASCII)


class CopyStatements(NamedTuple):
    """The SQL for one table: `first` selects the first page of rows, `following` the page after a row, both in the
    order of the key; `add` inserts a row; `clear` deletes up to a page of rows."""

    first: str
    following: str
    add: str
    clear: str


@cache
def copy_statements(table: str, has: TableColumns, mark: str) -> CopyStatements:
    """Return the statements for a table; `mark` is how the database writes a placeholder."""
    for name in (table, *has.columns):
        if not _NAME.fullmatch(name):
            raise StoreError(f"{name!r} is no name of a table or column that remit has created; run `remit doctor`")
    columns, keys = ", ".join(has.columns), ", ".join(has.key)
    workspace = ("WHERE workspace =", mark)
    order = ("ORDER BY", keys) if keys else ()
    after = ("AND (", keys, ") > (", ", ".join([mark] * len(has.key)), ")") if keys else ()
    whole = ", ".join(("workspace", *has.key))
    some = ("SELECT", whole, "FROM", table, *workspace, "LIMIT", mark)
    return CopyStatements(
        " ".join(("SELECT", columns, "FROM", table, *workspace, *order, "LIMIT", mark)),
        " ".join(("SELECT", columns, "FROM", table, *workspace, *after, *order, "LIMIT", mark)),
        " ".join(("INSERT INTO", table, "(", columns, ") VALUES (", ", ".join([mark] * len(has.columns)), ")")),
        " ".join(("DELETE FROM", table, "WHERE (", whole, ") IN (", *some, ")")),
    )


def after_row(has: TableColumns, row: tuple[object, ...]) -> list[object]:
    """Return the values of a row's primary key, without `workspace`. The next page of a copy starts after them."""
    values = dict(zip(has.columns, row, strict=True))
    return [values[name] for name in has.key]


def name_taken(workspace: str, where: str) -> BadInput:
    """Return the error for a move to a database, named `where`, that already has a workspace of that name."""
    return BadInput(f"{where} already has a workspace '{workspace}' of its own; two cannot become one")
