"""A file as a store: what may be opened, whether it is still in its place, and the meaning of SQLite's errors."""

import os
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from remit.core.values import shown
from remit.errors import BadInput, NotAStore, NotFound, StoreBusy, StoreError

MEMORY: Final = ":memory:"
_POSIX: Final = os.name == "posix"  # elsewhere the file mode has no permissions
COMPANIONS: Final = ("-wal", "-shm", "-journal")
ARTIFACTS: Final = "-artifacts"  # the folder of their contents has the name of the store and this
_WRITES: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_SHARED: Final = (("read", stat.S_IRGRP | stat.S_IROTH), ("written", stat.S_IWGRP))
_MEANING: Final = {
    "SQLITE_FULL": "the disk is full; make room and try again",
    "SQLITE_READONLY": "the file or its folder is read-only; remit needs to write to it",
    "SQLITE_CORRUPT": (
        "the file is damaged. `remit doctor` says where, unless it answers with this sentence too; then restore a "
        "backup. If the file was restored beside an older -wal, remove the files -wal and -shm and restore it once more"
    ),
    "SQLITE_NOTADB": "it is not a SQLite database, so it is not a remit store; it was left as it is",
    "SQLITE_BUSY": "another process holds the file; try again, or stop it",
    "SQLITE_CANTOPEN": (
        "the file cannot be opened; is its folder there and writable? To look at a store with a -wal beside it that is "
        "read-only, copy both to a folder that you can write to"
    ),
    "SQLITE_IOERR_SHMSIZE": "the file {where}-shm beside it cannot be made larger; the disk may be full ({name})",
    "SQLITE_IOERR": "the disk could not be read or written ({name}); look at it, then try again",
}

_PASSING: Final = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_CANTOPEN", "SQLITE_IOERR")


def translated(error: sqlite3.Error, where: str) -> StoreError:
    """Return the error of remit for an error of SQLite."""
    name = getattr(error, "sqlite_errorname", "")
    base = next((known for known in _MEANING if name.startswith(known)), "")
    meaning = _MEANING.get(base, f"the database failed ({name or type(error).__name__}): {error}")
    meaning = meaning.replace("{name}", name).replace("{where}", where)
    kind = {"SQLITE_NOTADB": NotAStore, "SQLITE_BUSY": StoreBusy}.get(base, StoreError)
    told = kind(f"{where}: {meaning}")
    told.retryable = name.startswith(_PASSING)
    return told


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another process holds the file."""
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def prepare(path: Path, *, create: bool) -> None:
    """Check the path of a store; with `create`, create a missing file, for its owner only. Raise `BadInput`,
    `NotFound`, `NotAStore` or `StoreError`, with more detail than SQLite.

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
    if create and not mode & _WRITES:
        raise StoreError(f"{path} is read-only; remit needs to write to it (chmod u+w {path})")
    if create and _is_read_only(path):
        raise StoreError(f"{path} or its folder is read-only; remit needs to write to both")
    if _POSIX and mode & stat.S_IWOTH:
        raise StoreError(
            f"{path} can be written by everyone on this machine, so nothing in it can be trusted (chmod o-w {path})"
        )


def looks_at(path: Path) -> str:
    """Return the parameters with which SQLite opens a store that is read-only for this user, or "" for one that can be
    written. If a read-only store has neither a -wal nor a -shm file, SQLite is told that it does not change, because
    SQLite could not create these files."""
    if not _is_read_only(path):
        return ""
    return "mode=ro" if identity(f"{path}-wal") or identity(f"{path}-shm") else "mode=ro&immutable=1"


def _is_read_only(path: Path) -> bool:
    """Whether a file is read-only, or its folder is and no process has left the file there that SQLite needs."""
    if not path.stat().st_mode & _WRITES or not os.access(path, os.W_OK):
        return True
    return not os.access(path.absolute().parent, os.W_OK) and identity(f"{path}-shm") is None


def others(where: str) -> list[str]:
    """Return warnings about other users who may read or write the file, as sentences."""
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
    """Raise `NotAStore` for a symbolic link: everyone who may write to its folder decides where it leads. Links in its
    parent folders are allowed."""
    for name in (path, *(Path(f"{path}{end}") for end in COMPANIONS)):
        if name.is_symlink():
            raise NotAStore(f"{name} is a symbolic link, and remit follows none to a store; name the file itself")


def _make(path: Path, *, create: bool) -> None:
    if not create:
        raise NotFound(f"there is no store at {path}; name it with --store, or start a run, which creates one")
    if not path.parent.is_dir():
        raise NotAStore(f"{path.parent} is not a folder, so no store can be made in it")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), 0o600))
    except OSError as error:
        raise StoreError(f"{path} cannot be made: {error.strerror}") from error


# -- moved files -------------------------------------------------------------------------------------
# SQLite continues with files that were renamed or removed, and what it writes to them is lost with the last process
# that has them open. Without the `-shm`, which processes share, the next process to open the store creates another,
# and the two overwrite each other. So the names are checked before every write, and again before it is
# acknowledged.

_LOST: Final = "{where}: the file was moved, removed or replaced; put it back, or start again"
_NO_COMPANION: Final = (
    "{where}: the file {where}{end} beside it was {what} while the store was open. {saved}. Stop every process that "
    "uses it, run `remit doctor`, and start again; never touch that file while the store is open"
)
_SAVED: Final = "What was acknowledged has been saved into {where} itself"
_UNSAVED: Final = "What was acknowledged last may be lost with it"

Identity: TypeAlias = tuple[int, int]  # the device and the number of a file


class Whereabouts:
    """The identities of the files of one store, as they were when it was opened. A store in memory has none.

    `check` compares them with the present files. `where` is the name of the store in errors. `path` is absolute, so it
    stays valid if the process changes its folder. `looks` has SQLite's URI parameters for a read-only store."""

    def __init__(self, where: str, path: str, *, lasting: bool, looks: str = "") -> None:
        self._where = where
        self.path = path
        self.looks = looks
        self._wal_name = f"{path}-wal"
        self._shared_name = f"{path}-shm"
        self._lasting = lasting
        self.settle()

    def settle(self) -> None:
        """Record the files as they are now: they have just been opened."""
        self.main, self._written = _file(self.path) if self._lasting else (None, 0)
        self._wal = identity(self._wal_name) if self._lasting else None
        self._shared = identity(self._shared_name) if self._lasting else None
        self._lost = ""  # the error for all callers, once a companion file is lost

    def check(self, connection: sqlite3.Connection) -> None:
        """Raise `StoreError` if a file is not the one that was opened. A lost companion file stays lost."""
        if not self._lasting:
            return
        main, written = _file(self.path)
        self._must_be(main)
        wal, shared = identity(self._wal_name), identity(self._shared_name)
        if (wal != self._wal or shared != self._shared) and not self._lost:
            self._lost = self._without(wal, shared, connection, touched=written != self._written)
        if self._lost:
            raise StoreError(self._lost)
        self._written = written

    def check_file(self) -> None:
        """Raise `StoreError` if the file to be reopened is not the one that was opened."""
        self._must_be(identity(self.path))

    def _must_be(self, main: Identity | None) -> None:
        if main != self.main:
            raise StoreError(_LOST.format(where=self._where))

    def _without(
        self, wal: Identity | None, shared: Identity | None, connection: sqlite3.Connection, *, touched: bool
    ) -> str:
        """Save what is only in the `-wal`, which this process still has open, and return the sentence about it.

        That is safe only while no process can have written without us: other processes share the `-shm` with us, or it
        is gone and no process has created another one.
        """
        changed = wal != self._wal
        alone = shared is None and (not changed or not touched)
        ours = (wal is None or not changed) and (shared == self._shared or alone)
        saved = _SAVED if ours and _moved_into_the_file(connection) else _UNSAVED
        end, now = ("-wal", wal) if changed else ("-shm", shared)
        what = "replaced" if now is not None else "removed"
        return _NO_COMPANION.format(where=self._where, end=end, what=what, saved=saved.format(where=self._where))


def _moved_into_the_file(connection: sqlite3.Connection) -> bool:
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy
    return False


def identity(name: str) -> Identity | None:
    """Return the identity of the file that has this name now, or None."""
    return _file(name)[0]


def _file(name: str) -> tuple[Identity | None, int]:
    """Return the identity of the file that has this name now, and when it was last written, in ns; (None, 0) if
    none."""
    try:
        status = os.stat(name)  # noqa: PTH116 - runs at every transaction, and a Path costs more than the call
    except OSError:
        return None, 0
    return (status.st_dev, status.st_ino), status.st_mtime_ns


# -- SQLite version ----------------------------------------------------------------------------------

_Version = tuple[int, int, int]

# https://www.sqlite.org/wal.html#walresetbug: since 3.7.0; fixed in 3.51.3, and in these older branches.
_MENDED: Final[_Version] = (3, 51, 3)
_MENDED_TOO: Final[tuple[_Version, ...]] = ((3, 44, 6), (3, 50, 7))


def advice(version: _Version) -> list[str]:
    """Return the risks of this version of SQLite for a file that several processes use."""
    mended = version >= _MENDED or any(fixed <= version < (3, fixed[1] + 1, 0) for fixed in _MENDED_TOO)
    number, since = (".".join(map(str, one)) for one in (version, _MENDED))
    sentence = (
        f"SQLite {number} has the WAL-reset bug: if two processes write and checkpoint at the very same moment, which "
        f"is rare, the file can be damaged. One process alone is safe; for several use a Python with SQLite {since} or "
        "newer, or PostgreSQL"
    )
    return [] if mended else [sentence]
