"""The schema of a PostgreSQL store: created, migrated, and refused if it is foreign, too old or too new."""

import re
from typing import Any, Final

from procrastinate.schema import SchemaManager

from remit.errors import NewerStore, NotAStore, NotFound, StoreError
from remit.stores.postgres.address import STATEMENTS, Address, Connection
from remit.stores.queries import OLDER, migrations

# A pooler in session mode is fine. One in transaction mode gives each transaction another session,
# with another client's settings; but workers listen on their session, and session settings must persist.

_SHARED: Final = (
    "{where}: the connection pooler there uses transaction pooling, and remit needs session pooling (LISTEN/NOTIFY). "
    "Set pool_mode = session for this database, or connect to the server directly"
)


def refuse_shared_sessions(connection: Connection, address: Address) -> None:
    """Raise `StoreError` if a pooler runs the transactions of one connection in different sessions. Raise psycopg's
    errors.

    A connection through a pooler has another process number than the session in which its statements run. If they
    differ, a second connection begins a transaction. If that runs in our session, or if we get another session
    meanwhile, sessions are shared.
    """
    own = _backend(connection)
    if own == connection.info.backend_pid:
        return
    with address.connect() as other, other.transaction():
        shared = _backend(other) == own or _backend(connection) != own
    if shared:
        raise StoreError(_SHARED.format(where=address.where))


def _backend(connection: Connection) -> int:
    # Not prepared: with shared sessions, another client's statement may have the same name.
    row = connection.execute(STATEMENTS["backend"], prepare=False).fetchone()
    assert row is not None
    return row[0]


_VERSION: Final = "column version."  # the table with the schema number is not created by the migrations
_FUNCTIONS: Final = re.compile(r"CREATE (?:OR REPLACE )?FUNCTION (procrastinate_\w+)")
_MADE: Final[dict[str, dict[str, str]]] = {}
_MIGRATING: Final = 0x72656D6974  # the advisory lock of a migration


def set_up(connection: Connection, where: str, *, migrate: bool) -> None:
    """Create or migrate the tables, or refuse the schema. Raise psycopg's errors."""
    steps = migrations("postgres")
    _refuse_strangers(connection, where)
    if _version(connection, where) == newest():
        return
    if not migrate:
        raise NotFound(f"there are no tables of this version of remit in {where}; run `remit db migrate`")
    with connection.transaction():
        connection.execute(STATEMENTS["migrating"], (_MIGRATING,))
        version = _version(connection, where)
        if version == newest():
            return
        connection.execute(STATEMENTS["schema"])
        connection.execute(STATEMENTS["path"])
        _procrastinate(connection)
        for step in (text for number, text in steps.items() if number > version):
            connection.execute(step.encode(), prepare=False)
        connection.execute(STATEMENTS["secure_again"])
        connection.execute(STATEMENTS["number"])
        connection.execute(STATEMENTS["renumber"], (newest(),))


def newest() -> int:
    """Return the number of the newest schema that this remit knows."""
    return max(migrations("postgres"))


def _refuse_strangers(connection: Connection, where: str) -> None:
    """Raise `NotAStore` for a schema into which another user could put functions or triggers: they would run with our
    rights."""
    strangers = [row[0] for row in _rows(connection, "strangers")]
    if strangers:
        who = ", ".join(strangers)
        raise NotAStore(
            f"{where}: others can change what remit would execute in the schema `remit`: {who}. Make this user or the "
            "owner of the database the owner of the schema and of everything in it, and revoke CREATE from all others"
        )


def differences(connection: Connection) -> list[str]:
    """Return the differences between the schema and what the migrations create."""
    there, wanted = _catalogue(connection), _created_schema(connection)
    both = wanted.keys() & there.keys()
    sentences = [f"{name} is missing" for name in wanted.keys() - both]
    sentences += [f"{name} is not as remit made it" for name in both if wanted[name] != there[name]]
    sentences += [f"{name} was not made by remit" for name in there.keys() - both if not name.startswith(_VERSION)]
    return sorted(sentences)


def advice(connection: Connection) -> list[str]:
    """Return advice if an older version of procrastinate has created its tables and they lack functions of the
    installed version."""
    there = {row[0] for row in _rows(connection, "procrastinate_functions")}
    missing = sorted(set(_FUNCTIONS.findall(SchemaManager.get_schema())) - there)
    sentence = (
        f"procrastinate's part of the schema was made by an older version of it, and has no {', '.join(missing)}; "
        "apply its migrations in the schema `remit` (see Operating), or workers may be woken late"
    )
    return [sentence] if missing else []


def is_confined(connection: Connection) -> bool:
    """Whether this user sees, in a secured store, only the rows of the workspaces that its transaction names."""
    return _rows(connection, "is_confined")[0][0]


def may_compare(connection: Connection) -> bool:
    return _rows(connection, "may_create")[0][0]


def _created_schema(connection: Connection) -> dict[str, str]:
    """Return the schema that the migrations create, as text: they run in a separate schema, in a transaction that is
    rolled back. The text depends only on the server's version and its quoting, so a process does this once for each
    combination."""
    ((way,),) = _rows(connection, "way_of_writing")
    if way not in _MADE:
        with connection.transaction(force_rollback=True):
            connection.execute(STATEMENTS["scratch"])
            connection.execute(STATEMENTS["scratch_path"])
            for step in migrations("postgres").values():
                connection.execute(step.encode(), prepare=False)
            _MADE[way] = _catalogue(connection)
    return _MADE[way]


def _catalogue(connection: Connection) -> dict[str, str]:
    return {name: text.replace("remit_scratch.", "remit.") for name, text in _rows(connection, "catalogue")}


def _version(connection: Connection, where: str) -> int:
    """Return the number of the present schema, 0 if there is none. Raise for an unknown one."""
    tables, numbered, _, encoding = _state(connection)
    if encoding != "UTF8":
        raise StoreError(f"{where} keeps text as {encoding}; remit needs a database with the encoding UTF8")
    if not numbered:
        if tables:
            raise NotAStore(f"{where} has a schema `remit` of another program; it was left as it is")
        return 0
    version: int = _rows(connection, "version")[0][0]
    steps = migrations("postgres")
    if version > newest():
        raise NewerStore(
            f"{where} has schema {version} and this remit knows up to {newest()}; "
            "upgrade remit, the database is unchanged"
        )
    if version < min(steps):
        raise NotAStore(f"{where} {OLDER}; the database is unchanged")
    return version


def _procrastinate(connection: Connection) -> None:
    """Create procrastinate's tables next to ours, so that a task and its wake-up are written in one transaction."""
    if not _state(connection)[2]:
        connection.execute(SchemaManager.get_schema().encode(), prepare=False)


def _state(connection: Connection) -> tuple[Any, ...]:
    return _rows(connection, "state")[0]


def _rows(connection: Connection, name: str) -> list[tuple[Any, ...]]:
    return connection.execute(STATEMENTS[name]).fetchall()
