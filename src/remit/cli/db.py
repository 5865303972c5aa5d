"""`remit db`: the database itself."""

import sqlite3
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from remit.cli.options import AsJson, OwnStore, emit, out, store_at
from remit.errors import BadInput, NotFound
from remit.ports import Database
from remit.report.figures import count
from remit.report.printable import escaped
from remit.stores.addresses import is_server
from remit.stores.opening import database_at
from remit.stores.queries import migrations
from remit.stores.sqlite.database import MEMORY

if TYPE_CHECKING:
    from remit.stores.postgres.database import PostgresDatabase


def migrate(*, store: OwnStore = None, json: AsJson = False) -> None:
    """Create a store, or migrate an older one. A store that is up to date stays unchanged.

    Parameters
    ----------
    store
        SQLite file or postgresql:// URL. [default: from remit.toml, else remit.db]
    json
        Print JSON.
    """
    store = store_at(store)
    if store == MEMORY:
        raise BadInput("a store in memory cannot be migrated; pass --store FILE or --store postgresql://...")
    before, database = _server(store) if is_server(store) else (_version(Path(store)), database_at(store))
    where = str(getattr(database, "where", "the store"))
    database.close()
    now = max(migrations("postgres" if is_server(store) else "sqlite"))
    done = "unchanged" if before == now else "migrated" if before else "made"
    if json:
        emit({"store": where, "done": done, "schema": now})
    else:
        out().print(Text(_sentence(where, done, before, now)))


def secure(role: str, *, store: OwnStore = None, json: AsJson = False) -> None:
    """Isolate workspaces with PostgreSQL's row-level security, and let a role use the store.

    Run the command as the owner of the tables, and let servers and workers connect as ROLE. In each transaction, ROLE
    sees and changes only the rows of the workspaces that remit names in it. The owner sees all rows; only the owner can
    migrate.

    Parameters
    ----------
    role
        An existing role that owns no table of the store: CREATE ROLE remit_app LOGIN PASSWORD '...'.
    store
        postgresql:// URL of the store, as its owner. [default: from remit.toml]
    json
        Print JSON.
    """
    store = store_at(store)
    if not is_server(store):
        raise BadInput("a SQLite file has one user; row-level security needs --store postgresql://...")
    with closing(_postgres(store, migrate=False)) as database:
        where, tables = database.where, database.secure(role)
    if json:
        emit({"store": where, "role": role, "tables": tables})
    else:
        sentence = f"{where}: {count(tables, 'table')} secured; connect servers and workers as {escaped(role, 64)}"
        out().print(Text(sentence))


def _sentence(where: str, done: str, before: int | None, now: int) -> str:
    if done == "unchanged":
        return f"{where}: up to date, schema {now}"
    if before is None:
        return f"{where}: created or migrated, schema {now}"
    return f"{where}: created, schema {now}" if done == "made" else f"{where}: migrated from schema {before} to {now}"


def _version(path: Path) -> int:
    """Return the schema version of a file, 0 if it has none. Other problems are reported when the file is opened."""
    if not path.is_file() or path.stat().st_size == 0:
        return 0
    try:
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error:
        return 0


def _server(store: str) -> tuple[int | None, Database]:
    """Open a store on a server, and create or migrate its tables if needed. Return the number of the schema that it
    had, or None if its tables were missing or older, and the database."""
    try:
        return max(migrations("postgres")), _postgres(store, migrate=False)
    except NotFound:
        return None, _postgres(store, migrate=True)


def _postgres(store: str, *, migrate: bool) -> "PostgresDatabase":
    try:
        module = import_module("remit.stores.postgres.database")
    except ImportError as error:
        raise BadInput("a postgresql:// store needs psycopg and procrastinate; install remit[postgres]") from error
    return module.PostgresDatabase(store, migrate=migrate)
