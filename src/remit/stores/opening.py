"""Which database an address means."""

from importlib import import_module
from pathlib import Path

from remit.ports import Database
from remit.stores.sqlite.database import SqliteDatabase

_SERVER = ("postgresql://", "postgres://")


def is_server(where: str | Path) -> bool:
    return isinstance(where, str) and where.startswith(_SERVER)


def database_at(where: str | Path, *, create: bool = True) -> Database:
    """Open a file, `:memory:`, or a PostgreSQL server by its address."""
    if not is_server(where):
        return SqliteDatabase(where, create=create)
    postgres = import_module("remit.stores.postgres.database")  # raises itself when a package is missing
    return postgres.PostgresDatabase(where, migrate=create)
