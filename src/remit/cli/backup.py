"""`remit backup`: copy a store while it is in use."""

import asyncio
import shlex
from pathlib import Path

from rich.text import Text

from remit.cli.doctor import show_health
from remit.cli.options import AsJson, OwnStore, Where, emit, opened_workspace, out, store_at
from remit.engine.upkeep.doctor import examine
from remit.errors import BadInput
from remit.report import wire
from remit.runtime.workspace import opening_of
from remit.stores.addresses import is_server, redacted
from remit.stores.sqlite.database import back_up
from remit.stores.sqlite.files import MEMORY
from remit.stores.sqlite.schema import newest


def backup(file: Path, *, store: OwnStore = None, json: AsJson = False) -> int:
    """Back up a SQLite store while other processes use it, and verify the copy.

    The command overwrites no file and does not change the store. It does not verify the copy of a store that has an
    older schema. For a PostgreSQL store, use pg_dump. Exits with 1 if the copy is broken.

    Parameters
    ----------
    file
        The copy: a new file, which only its owner can read.
    store
        The SQLite file. [default: from remit.toml, else remit.db]
    json
        Print JSON.
    """
    store = store_at(store)
    if store == MEMORY:
        raise BadInput("a store in memory has no file to copy")
    if is_server(store):
        words = f"--schema=remit --format=custom --file={shlex.quote(str(file))} {shlex.quote(redacted(store))}"
        raise BadInput(f"back up a PostgreSQL store with: pg_dump {words}")
    number = back_up(Path(store), file)
    if number != newest():
        return _not_examined(store, file, number, json=json)
    with opened_workspace(Where(str(file))) as workspace:
        health = asyncio.run(examine(opening_of(workspace).database, opening_of(workspace).clock.now()))
    if json:
        emit({"store": store, "file": str(file), "schema": number, "sound": health.sound, **wire.object_of(health)})
    else:
        show_health(health, f"{file}, copied from {store}")
    return 0 if health.sound else 1


def _not_examined(store: str, file: Path, number: int, *, json: bool) -> int:
    if json:
        emit({"store": store, "file": str(file), "schema": number, "sound": None})
    else:
        out().print(Text(f"{file} is a copy of {store}, of schema {number}; not verified, because its schema is older"))
    return 0
