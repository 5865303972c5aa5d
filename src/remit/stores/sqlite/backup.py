"""Copying a store's file while others use it."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from remit.errors import BadInput, NotFound, StoreError
from remit.stores.sqlite.connection import connect
from remit.stores.sqlite.files import COMPANIONS, prepare, translated
from remit.stores.sqlite.schema import recognised


def back_up(source: Path, target: Path) -> int:
    """Copy a store as it is at one moment into a new file, for its owner only; give the number of its schema.

    The store is not changed, nor brought up to date: this is what one does before that.
    """
    prepare(source, create=False)
    _make_anew(target)
    try:
        return _copied(source, target)
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, sqlite3.Error):
            raise translated(error, str(source)) from error
        raise


def _copied(source: Path, target: Path) -> int:
    with closing(connect(str(source))) as store, closing(connect(str(target))) as copy:
        store.execute("PRAGMA busy_timeout = 5000")
        number = recognised(store, str(source))
        if not number:
            raise NotFound(f"{source} is empty, so there is nothing to copy")
        store.backup(copy)  # in one go: whoever writes meanwhile neither waits nor comes in between
        return number


def _make_anew(target: Path) -> None:
    """Make an empty file that SQLite writes the copy to; whatever is there already stays as it is."""
    there = [name for name in (target, *(Path(f"{target}{end}") for end in COMPANIONS)) if os.path.lexists(name)]
    if there:
        raise BadInput(f"{there[0]} is there already, and a backup overwrites nothing; name another file")
    if not target.parent.is_dir():
        raise BadInput(f"{target.parent} is not a folder, so no copy can be made in it")
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StoreError(f"{target} cannot be made: {error.strerror}") from error
