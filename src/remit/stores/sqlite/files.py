"""A file as a store: what may be opened, which file it is, and what SQLite's errors mean."""

import os
import sqlite3
import stat
from pathlib import Path
from typing import Final

from remit.core.text import shown
from remit.errors import BadInput, NotAStore, NotFound, StoreBusy, StoreError

MEMORY: Final = ":memory:"
_POSIX: Final = os.name == "posix"  # elsewhere rights are not in the mode of a file
COMPANIONS: Final = ("-wal", "-shm", "-journal")
_SHARED: Final = (("read", stat.S_IRGRP | stat.S_IROTH), ("written", stat.S_IWGRP))
_MEANING: Final = {
    "SQLITE_FULL": "the disk is full; make room and try again",
    "SQLITE_READONLY": "the file or its folder is read-only; remit needs to write to it",
    "SQLITE_CORRUPT": (
        "the file is damaged; run `remit doctor` on a copy of it. If it was restored beside an older -wal, "
        "remove the files -wal and -shm and restore it once more"
    ),
    "SQLITE_NOTADB": "it is not a SQLite database, so it is not a remit store; it was left as it is",
    "SQLITE_BUSY": "another process holds the file; try again, or stop it",
    "SQLITE_CANTOPEN": "the file cannot be opened; is its folder there and writable?",
    "SQLITE_IOERR": "the disk could not be read or written ({name}); look at it, then try again",
}

_PASSING: Final = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_CANTOPEN", "SQLITE_IOERR")


def translated(error: sqlite3.Error, where: str) -> StoreError:
    """Say what an error of SQLite means, as a sentence."""
    name = getattr(error, "sqlite_errorname", "")
    base = next((known for known in _MEANING if name.startswith(known)), "")
    meaning = _MEANING.get(base, f"the database failed ({name or type(error).__name__}): {error}")
    meaning = meaning.replace("{name}", name)
    kind = {"SQLITE_NOTADB": NotAStore, "SQLITE_BUSY": StoreBusy}.get(base, StoreError)
    told = kind(f"{where}: {meaning}")
    told.retryable = name.startswith(_PASSING)
    return told


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether another process is in the way."""
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def prepare(path: Path, *, create: bool) -> None:
    """Say what is wrong with a path before SQLite says it in fewer words; make a new file for its owner only.

    The file is not opened here: closing it would drop the locks that another connection of this process has on it.
    """
    if "\0" in str(path):
        raise BadInput(f"a store's path must not contain a NUL character: {shown(str(path))}")
    _refuse_links(path)
    if path.is_dir():
        raise NotAStore(f"{path} is a folder; a store is a file, for example {path / 'remit.db'}")
    if not path.exists():
        _make(path, create=create)
        return
    if not path.is_file():
        raise NotAStore(f"{path} is not a regular file; a store is a file")
    mode = path.stat().st_mode
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise StoreError(f"{path} is read-only; remit needs to write to it (chmod u+w {path})")
    if _POSIX and mode & stat.S_IWOTH:
        raise StoreError(
            f"{path} can be written by everyone on this machine, so nothing in it can be trusted (chmod o-w {path})"
        )


def others(where: str) -> list[str]:
    """Tell who else may read or write the file, as sentences."""
    try:
        status = os.stat(where)  # noqa: PTH116 - the path is text here
    except OSError:
        return []
    if not _POSIX:
        return []
    sentences: list[str] = []
    if status.st_uid != os.geteuid():
        sentences.append(f"{where} belongs to another user (number {status.st_uid}), who can read and change it")
    shared = [word for word, bits in _SHARED if status.st_mode & bits]
    if shared:
        sentences.append(f"{where} can be {' and '.join(shared)} by others on this machine (chmod go-rwx {where})")
    return sentences


def _refuse_links(path: Path) -> None:
    """Refuse what is a link: whoever may write to its folder decides where it leads. Links above it are as they are."""
    for name in (path, *(Path(f"{path}{end}") for end in COMPANIONS)):
        if name.is_symlink():
            raise NotAStore(f"{name} is a symbolic link, and remit follows none to a store; name the file itself")


def _make(path: Path, *, create: bool) -> None:
    if not create:
        raise NotFound(f"there is no store at {path}; say which with --store, or start a run that makes one")
    if not path.parent.is_dir():
        raise NotAStore(f"{path.parent} is not a folder, so no store can be made in it")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), 0o600))
    except OSError as error:
        raise StoreError(f"{path} cannot be made: {error.strerror}") from error
