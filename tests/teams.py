"""Runtimes for tests, with the settings of policy and serving by their plain names; and the simplest agent."""

import os
import shutil
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any, Final

from remit import Runtime, Turn
from remit.ports import Clock, Database, Ids
from remit.runtime.workspace import opening_of
from remit.settings import Policy, Serving, System
from remit.stores.sqlite.database import SqliteDatabase

POLICY = tuple(field.name for field in fields(Policy))
RENAMED = {"hands": "concurrency", "silence": "heartbeat_timeout"}  # of serving, by shorter words
SERVING = tuple(field.name for field in fields(Serving) if field.name not in POLICY)

_MEMORY: Final = Path("/dev/shm")
_ENOUGH: Final = 2 * 1024**3  # bytes: all tests write a tenth of that, and PostgreSQL for each process half as much


def in_memory() -> Path | None:
    """The folder whose files are kept in memory, if there is one and it has room."""
    return _MEMORY if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ENOUGH else None


@cache
def empty_file() -> bytes:
    """The file of a store in which nothing is."""
    with TemporaryDirectory(dir=in_memory()) as folder:
        path = Path(folder) / "empty.db"
        SqliteDatabase(path).close()
        return path.read_bytes()


def new_file(path: Path) -> Path:
    """Put a store there in which nothing is, if no file is there: copied, which takes a tenth of making it. Two
    processes may do it at the same time, so the file is there all at once."""
    if not path.exists():
        with NamedTemporaryFile(dir=path.parent) as whole:  # for its owner only, as a store makes it
            whole.write(empty_file())
            whole.flush()
            with suppress(FileExistsError):
                os.link(whole.name, path)
    return path


def team(
    store: str | Path | Database = ":memory:", *, clock: Clock | None = None, ids: Ids | None = None, **given: Any
) -> Runtime:
    """A runtime with these settings; whatever is not a setting goes to the runtime itself."""
    if isinstance(store, Path):
        new_file(store)
    policy = {name: given.pop(name) for name in POLICY if name in given}
    serving = {name: given.pop(name) for name in SERVING if name in given}
    serving |= {name: given.pop(word) for word, name in RENAMED.items() if word in given}
    system = {name: value for name, value in (("clock", clock), ("ids", ids)) if value is not None}
    kind = Runtime if isinstance(store, str | Path) else Closing
    return kind(store, policy=Policy(**policy), serving=Serving(**serving), system=System(**system), **given)


class Closing(Runtime):
    """A runtime that closes the database that it was given, like one that dies with its process."""

    def close(self) -> None:
        super().close()
        store = opening_of(self.workspace).store
        assert not isinstance(store, str | Path)
        store.close()


async def echo(turn: Turn) -> str:
    return turn.task
