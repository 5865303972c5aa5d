"""The schema of a PostgreSQL store: made once, brought up to date, and refused if it is not ours, older or newer."""

from typing import Any, Final

from procrastinate.schema import SchemaManager

from remit.errors import NewerStore, NotAStore, NotFound, StoreError
from remit.stores.postgres.address import STATEMENTS, Connection
from remit.stores.queries import OLDER, migrations

_MIGRATING: Final = 0x72656D6974  # the lock that only who migrates takes


def set_up(connection: Connection, where: str, *, migrate: bool) -> None:
    """Make the tables as this remit expects them, or refuse the schema; raises what psycopg raises."""
    steps = migrations("postgres")
    newest = max(steps)
    if _version(connection, where) == newest:
        return
    if not migrate:
        raise NotFound(f"there is no store of this version at {where}; start a run that makes one")
    with connection.transaction():
        connection.execute(STATEMENTS["migrating"], (_MIGRATING,))
        version = _version(connection, where)
        if version == newest:
            return
        connection.execute(STATEMENTS["schema"])
        _procrastinate(connection)
        for step in (text for number, text in steps.items() if number > version):
            connection.execute(step.encode(), prepare=False)
        connection.execute(STATEMENTS["number"])
        connection.execute(STATEMENTS["renumber"], (newest,))


def _version(connection: Connection, where: str) -> int:
    """Give the number of the schema that is there, 0 if none is; refuse a number we do not know."""
    tables, numbered, _, encoding = _state(connection)
    if encoding != "UTF8":
        raise StoreError(f"{where} keeps text as {encoding}; remit needs a database with the encoding UTF8")
    if not numbered:
        if tables:
            raise NotAStore(f"{where} has a schema `remit` of another program; it was left as it is")
        return 0
    version: int = _rows(connection, "version")[0][0]
    steps = migrations("postgres")
    if version > max(steps):
        raise NewerStore(
            f"{where} has schema {version} and this remit knows up to {max(steps)}; "
            "upgrade remit, the database is unchanged"
        )
    if version < min(steps):
        raise NotAStore(f"{where} {OLDER}; the database is unchanged")
    return version


def _procrastinate(connection: Connection) -> None:
    """Make procrastinate's tables beside ours, so that a task and what wakes its worker are written together."""
    if not _state(connection)[2]:
        connection.execute(SchemaManager.get_schema().encode(), prepare=False)


def _state(connection: Connection) -> tuple[Any, ...]:
    return _rows(connection, "state")[0]


def _rows(connection: Connection, name: str) -> list[tuple[Any, ...]]:
    return connection.execute(STATEMENTS[name]).fetchall()
