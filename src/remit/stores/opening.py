"""Opening the database of an address, or the databases of several."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from remit.core.events import SealKey
from remit.ports import Database
from remit.stores.addresses import each_address, is_server
from remit.stores.sqlite.database import SqliteDatabase


def database_at(
    where: str | Path, *, create: bool = True, key: SealKey | None = None, keep_events: int | None = None
) -> Database:
    """Open a file, `:memory:`, or a PostgreSQL server by its address; with a key, its journals are signed. With
    `keep_events`, a database in memory keeps about this many events. Several addresses, one on each line, are opened as
    one database."""
    addresses = each_address(where)
    if len(addresses) > 1:
        return _several(addresses, create=create, key=key)
    database = _open_database(addresses[0], create=create)
    database.seal_with(key)
    if not database.lasting:
        database.keep(keep_events)
    return database


def members_at(addresses: Sequence[str], *, create: bool | str) -> list[Any]:
    """Open several databases; if one fails, none stays open. `create` may be the only address that is created."""
    opened: list[Any] = []
    try:
        opened.extend(
            _open_database(one, create=create if isinstance(create, bool) else one == create) for one in addresses
        )
    except BaseException:
        for one in opened:
            one.close()
        raise
    return opened


def _several(addresses: Sequence[str], *, create: bool, key: SealKey | None) -> Database:
    several = import_module("remit.stores.several")  # few programs have several databases
    members = members_at(addresses, create=create)
    try:
        database = several.SeveralDatabases(members)
    except BaseException:
        for one in members:
            one.close()
        raise
    database.seal_with(key)
    return database


def _open_database(where: str | Path, *, create: bool) -> Any:
    if not is_server(where):
        return SqliteDatabase(where, create=create)
    address = str(where).strip()
    postgres = import_module("remit.stores.postgres.database")  # raises if a package is missing
    return postgres.PostgresDatabase(address, migrate=create)
