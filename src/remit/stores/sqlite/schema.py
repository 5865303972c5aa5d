"""The schema of a SQLite store: created, migrated, and refused if it is foreign, too old or too new."""

import sqlite3
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from time import sleep
from typing import Any, Final

from remit.core.values import shown
from remit.errors import NewerStore, NotAStore, StoreError
from remit.stores.queries import OLDER, OLDEST, migrations, newest_migration
from remit.stores.sqlite.files import MEMORY, is_busy

APPLICATION_ID: Final = 0x52454D49  # "REMI": marks a SQLite file as a remit store
_PAUSE: Final = 0.005
# A transaction writes about eight whole pages, so small pages are faster. Even smaller ones would not hold an event,
# and files would double.
_PAGE: Final = 2_048
_WHOLE: Final = Path(__file__).parent / "migrations" / "whole.sql"  # what all migrations create; `make docs` writes it


def set_up(connection: sqlite3.Connection, where: str, busy_seconds: float) -> None:
    """Create or migrate the tables, or refuse the file and leave it unchanged."""
    run = connection.execute
    # Only while opening: later, the loop waits for other processes without blocking.
    run(f"PRAGMA busy_timeout = {int(busy_seconds * 1000)}")
    if where == MEMORY:
        _copy_into(connection)
    else:
        recognised(connection, where)  # check before anything is changed
        run(f"PRAGMA page_size = {_PAGE}")  # for a new file; an existing one keeps its own
        _use_wal(connection, busy_seconds)
        for pragma in pragmas(sys.platform):
            run(f"PRAGMA {pragma}")
        _migrate(connection, where)
    run("PRAGMA busy_timeout = 0")


def must_be_newest(connection: sqlite3.Connection, where: str) -> None:
    """Raise `StoreError` if a read-only store has another schema than this remit."""
    version = recognised(connection, where)
    if version != newest():
        raise StoreError(
            f"{where} has schema {version}, this remit has {newest()}, and the file is read-only, so it cannot be "
            "migrated; copy it to a folder that you can write to, with its -wal if it has one"
        )


def pragmas(platform: str) -> list[str]:
    """Return the settings with which acknowledged writes survive a loss of power on this platform."""
    settings = ["synchronous = FULL", "cache_size = -32768"]
    if platform == "darwin":  # fsync returns there before the disk has written; this waits for the disk
        settings += ["fullfsync = ON", "checkpoint_fullfsync = ON"]
    return settings


def newest() -> int:
    """Return the number of the newest schema that this remit knows."""
    return newest_migration("sqlite")


def recognised(connection: sqlite3.Connection, where: str) -> int:
    """Return the number of the present schema, 0 if there is none. Raise for the database of another program, and for
    an unknown schema."""
    run = connection.execute
    run("BEGIN")  # one snapshot: another process may be creating the store right now
    application, version = _pragma(connection, "application_id"), _pragma(connection, "user_version")
    tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
    run("COMMIT")
    if application != APPLICATION_ID and (application or version or tables):
        raise NotAStore(f"{where} is a SQLite database of another program, not a remit store")
    return _version(connection, where)


def _version(connection: sqlite3.Connection, where: str) -> int:
    """Return the number of the present schema, 0 if there is none. Raise for an unknown one."""
    version = _pragma(connection, "user_version")
    if version > newest():
        raise NewerStore(
            f"{where} has schema {version} and this remit knows up to {newest()}; upgrade remit, the file is unchanged"
        )
    if 0 < version < OLDEST:
        raise NotAStore(f"{where} {OLDER}; the file is unchanged")
    return version


def _use_wal(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Set the journal mode. SQLite does not wait for another process that sets it at the same time, so we do."""
    for _ in range(max(1, int(busy_seconds / _PAUSE))):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            sleep(_PAUSE)
        else:
            return
    connection.execute("PRAGMA journal_mode = WAL")


def _copy_into(connection: sqlite3.Connection) -> None:
    """Create the tables in memory, without the late indexes. Copying them is twenty times as fast as creating them, and
    many programs and tests open many stores."""
    with closing(sqlite3.connect(MEMORY)) as made:
        made.deserialize(_empty(late=False))
        made.backup(connection)


@cache
def _empty(*, late: bool) -> bytes:
    """Return an empty store as bytes, with or without the late indexes."""
    with closing(sqlite3.connect(MEMORY, isolation_level=None)) as connection:
        _migrate(connection, MEMORY, late=late)
        return connection.serialize()


def is_late(statement: str) -> bool:
    """Whether a statement of the schema creates a late index: one of a table that every delegation writes, which only
    makes queries fast. A store in memory gets these when they are first needed."""
    return statement.startswith("CREATE INDEX") and statement.split(" ON ")[1].startswith(("event ", "task "))


def add_late_indexes(connection: sqlite3.Connection) -> None:
    """Create the late indexes that are missing."""
    for statement in filter(is_late, _whole()):
        connection.execute(statement.replace("INDEX", "INDEX IF NOT EXISTS", 1))
    connection.execute("ANALYZE sqlite_schema")  # have the planner read its estimates of the new indexes


@cache
def _whole() -> tuple[str, ...]:
    """Return the statements that create the tables and indexes of an empty store."""
    return tuple(statement.strip() for statement in _WHOLE.read_text(encoding="utf-8").split(";\n"))


def _migrate(connection: sqlite3.Connection, where: str, *, late: bool = True) -> None:
    if _version(connection, where) == newest():
        return
    run = connection.execute
    run("BEGIN IMMEDIATE")  # if two processes start at once, the second finds the work done
    try:
        if not _version(connection, where):
            _run_all(connection, (one for one in _whole() if late or not is_late(one)))
        if (version := _version(connection, where)) < newest():
            for step in (text for number, text in migrations("sqlite").items() if number > version):
                _run_all(connection, step.split(";\n"))
        run(f"PRAGMA application_id = {APPLICATION_ID}")
        run(f"PRAGMA user_version = {newest()}")
        run("COMMIT")
    except BaseException:
        run("ROLLBACK")
        raise


def _run_all(connection: sqlite3.Connection, statements: Iterable[str]) -> None:
    for statement in statements:
        connection.execute(statement)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


# -- for the doctor ------------------------------------------------------------------------------------------

# All objects except those that SQLite creates itself.
OBJECTS: Final = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name"


def differences(found: Iterable[Sequence[Any]]) -> list[str]:
    """Return the differences between a file and what the migrations create."""
    there = {(row[0], row[1]): (row[2], _words(row[3])) for row in found}
    wanted = _expected_objects()
    sentences = [f"{kind} {name} is missing" for kind, name in wanted.keys() - there.keys()]
    sentences += [
        f"{kind} {name} is not as remit made it"
        for kind, name in wanted.keys() & there.keys()
        if wanted[kind, name] != there[kind, name]
    ]
    sentences += [f"{kind} {shown(name)} was not made by remit" for kind, name in there.keys() - wanted.keys()]
    return sorted(sentences)


@cache
def _expected_objects() -> dict[tuple[str, str], tuple[str, str]]:
    with closing(sqlite3.connect(MEMORY)) as connection:
        connection.deserialize(_empty(late=True))
        return {(row[0], row[1]): (row[2], _words(row[3])) for row in connection.execute(OBJECTS)}


def _words(sql: str) -> str:
    return " ".join(sql.split())
