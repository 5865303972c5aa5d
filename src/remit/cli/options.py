"""Options that several commands share, and how commands print."""

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from remit.core.text import NAME_LIMIT, line
from remit.ports import Database, Store
from remit.stores.sqlite import SqliteDatabase

DEFAULT_STORE = Path("remit.db")


@Parameter(name="*")
@dataclass(frozen=True)
class Place:
    """Where to look."""

    store: Annotated[Path, Parameter(alias="-s", env_var="REMIT_STORE")] = DEFAULT_STORE
    """The store's file."""

    workspace: Annotated[str, Parameter(alias="-w", env_var="REMIT_WORKSPACE")] = "default"
    """The workspace within it."""


HERE = Place()
AsJson = Annotated[bool, Parameter(name="--json", negative="")]


@contextmanager
def opened(place: Place, *, create: bool = False) -> Generator[tuple[Database, Store]]:
    """The store of a command; looking never makes a new file."""
    workspace = line(place.workspace, "a workspace", NAME_LIMIT)
    database = SqliteDatabase(place.store, create=create)
    try:
        yield database, database.store(workspace)
    finally:
        database.close()


def out() -> Console:
    """Where people read. Agent text is printed as plain text, never as markup."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def emit(data: object) -> None:
    """Where programs read: one JSON document."""
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
