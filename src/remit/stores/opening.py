"""Opening the database of an address."""

from importlib import import_module
from pathlib import Path
from typing import Any

from remit.core.events import SealKey
from remit.ports import Database
from remit.stores.addresses import is_server
from remit.stores.sqlite.database import SqliteDatabase


def database_at(
    where: str | Path, *, create: bool = True, key: SealKey | None = None, keep_events: int | None = None
) -> Database:
    """Open a file, `:memory:`, or a PostgreSQL server by its address; with a key, its journals are signed. With
    `keep_events`, a database in memory keeps about this many events."""
    database = _opened(where, create=create)
    database.seal_with(key)
    if not database.lasting:
        database.keep(keep_events)
    return database


def _opened(where: str | Path, *, create: bool) -> Any:
    if not is_server(where):
        return SqliteDatabase(where, create=create)
    address = str(where).strip()
    postgres = import_module("remit.stores.postgres.database")  # raises if a package is missing
    return postgres.PostgresDatabase(address, migrate=create)
