"""The contents of artifacts next to a SQLite file: one file each, named by its digest, in a folder that remit
creates for its owner only."""

import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
import weakref
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from remit.errors import StoreError
from remit.ports.contents import PART, Kept
from remit.stores.sqlite.files import ARTIFACTS

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows, where an open file cannot be removed anyway
    fcntl = None

_DRAFTS: Final = "drafts"
_LOCK: Final = "lock"
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_NEW: Final = os.O_CREAT | os.O_EXCL | os.O_RDWR | _NO_LINK | getattr(os, "O_BINARY", 0)
_READ: Final = os.O_RDONLY | _NO_LINK | getattr(os, "O_BINARY", 0)
_HEX: Final = re.compile(r"[0-9a-f]{64}")


class FileContents:
    """The contents of one workspace, in a folder that is created when the first one is saved.

    A content is written to `drafts`, synced, and renamed to its digest, so under a digest there is always a whole file.
    A process that saves has a shared lock until its event is committed, and a process that removes an exclusive one. So
    no content is removed between the moment when it is stored and the moment when an event refers to it. The system
    releases the locks of a process that dies.
    """

    def __init__(self, root: Path, workspace: str, *, durable: bool = True) -> None:
        self._root = root
        self.folder = root / hashlib.sha256(workspace.encode()).hexdigest()[:32]
        self._durable = durable

    def begin(self) -> "FileSaving":
        with _store_errors(self.folder):
            self._make_folders()
            lock = _Lock(self.folder / _LOCK, shared=True)
            try:
                return FileSaving(self.folder, lock, durable=self._durable)
            except BaseException:
                lock.release()
                raise

    def open(self, digest: str) -> "FileReader | None":
        with _store_errors(self.folder):
            try:
                return FileReader(os.open(_place(self.folder, digest), _READ))
            except FileNotFoundError:
                return None

    def stored(self) -> Iterator[Kept]:
        with _store_errors(self.folder):
            for folder in _entries_of(self.folder):
                if len(folder.name) == 2:
                    for found in _entries_of(Path(folder.path)):
                        if _HEX.fullmatch(found.name):
                            yield Kept(f"sha256:{found.name}", found.stat(follow_symlinks=False).st_size)

    def unfinished(self) -> int:
        with _store_errors(self.folder):
            return len(_entries_of(self.folder / _DRAFTS))

    def _make_folders(self) -> None:
        for folder in (self._root, self.folder, self.folder / _DRAFTS):
            _make(folder)

    def clearing(self, *, make: bool = False) -> "FileClearing | None":
        with _store_errors(self.folder):
            if make:
                self._make_folders()
            if not self.folder.is_dir():
                return FileClearing(self.folder, None)
            try:
                return FileClearing(self.folder, _Lock(self.folder / _LOCK, shared=False))
            except BlockingIOError:
                return None


class _Lock:
    """A locked file. Raise `BlockingIOError` if an exclusive lock would have to wait."""

    def __init__(self, path: Path, *, shared: bool) -> None:
        self._file: int | None = os.open(path, os.O_CREAT | os.O_RDWR | _NO_LINK, 0o600)
        if fcntl is not None:  # pragma: no branch
            try:
                fcntl.flock(self._file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BaseException:
                self.release()
                raise

    def release(self) -> None:
        """Unlock the file, also for a forked process that has it open too."""
        file, self._file = self._file, None
        if file is None:
            return
        if fcntl is not None:  # pragma: no branch
            fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)


class FileSaving:
    """A content that is being written, as a draft."""

    def __init__(self, folder: Path, lock: _Lock, *, durable: bool) -> None:
        self.folder = folder
        self._lock = lock
        self._durable = durable
        self._draft = folder / _DRAFTS / f"{os.getpid()}-{secrets.token_hex(8)}"
        self._file: BinaryIO | None = os.fdopen(os.open(self._draft, _NEW, 0o600), "wb")
        self._sum = hashlib.sha256()
        self._size = 0

    def write(self, data: bytes) -> int:
        assert self._file is not None  # nothing is written after `keep` or `close`
        with _store_errors(self.folder):
            self._file.write(data)
        self._sum.update(data)
        self._size += len(data)
        return self._size

    def keep(self) -> Kept:
        assert self._file is not None
        kept = Kept(f"sha256:{self._sum.hexdigest()}", self._size)
        place = _place(self.folder, kept.digest)
        with _store_errors(self.folder):
            self._file.flush()
            if self._durable:
                os.fsync(self._file.fileno())
            self._file.close()
            self._file = None
            is_new = not place.parent.exists()
            _make(place.parent)
            self._draft.replace(place)
            if self._durable:
                _sync(place.parent)
                if is_new:
                    _sync(self.folder)
        return kept

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self._draft.unlink(missing_ok=True)
        self._lock.release()


class FileReader:
    """An open file. If it is removed meanwhile, it can still be read to its end."""

    def __init__(self, file: int) -> None:
        self._file = os.fdopen(file, "rb", buffering=0)

    def read(self) -> bytes:
        return self._file.read(PART)

    def close(self) -> None:
        self._file.close()


class FileClearing:
    """The exclusive right to remove contents. `lock` is None if there is no folder, and so no content."""

    def __init__(self, folder: Path, lock: _Lock | None) -> None:
        self.folder = folder
        self._lock = lock

    def remove(self, digest: str) -> None:
        with _store_errors(self.folder):
            _place(self.folder, digest).unlink(missing_ok=True)

    def sweep(self) -> int:
        with _store_errors(self.folder):
            drafts = _entries_of(self.folder / _DRAFTS)
            for draft in drafts:
                Path(draft.path).unlink(missing_ok=True)
            return len(drafts)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.release()


class TemporaryFolder:
    """The folder of the contents of a store in memory. It is created with the first content, under a name that cannot
    be guessed, and removed with the store."""

    def __init__(self) -> None:
        self.path = Path(tempfile.gettempdir()) / f"remit-{secrets.token_hex(16)}"
        self._gone = weakref.finalize(self, _removed, self.path, os.getpid())

    def close(self) -> None:
        self._gone()


def beside(store: str) -> Path:
    """Return the folder of the contents of the store in this file."""
    return Path(f"{store}{ARTIFACTS}")


def copied(source: Path, target: Path) -> None:
    """Copy the contents that the target does not have yet."""
    for workspace in _entries_of(source):
        if not workspace.is_dir(follow_symlinks=False):
            continue
        for folder in _entries_of(Path(workspace.path)):
            for found in _entries_of(Path(folder.path)) if len(folder.name) == 2 else ():
                _copy(Path(found.path), target / workspace.name / folder.name / found.name)


def _copy(source: Path, target: Path) -> None:
    if target.exists():
        return
    for folder in (target.parents[2], target.parents[1], target.parent):
        _make(folder)
    try:
        with os.fdopen(os.open(source, _READ), "rb") as read, os.fdopen(os.open(target, _NEW, 0o600), "wb") as written:
            shutil.copyfileobj(read, written, PART)
            written.flush()
            os.fsync(written.fileno())
    except FileNotFoundError:  # it was pruned meanwhile, so nothing in the copy refers to it
        return


def _place(folder: Path, digest: str) -> Path:
    """Return the file of a content. No other text than a digest becomes a part of a path."""
    name = digest.removeprefix("sha256:")
    if not _HEX.fullmatch(name):
        raise StoreError(f"{digest[:80]!r} is not the digest of an artifact")
    return folder / name[:2] / name


def _make(folder: Path) -> None:
    """Create a folder for its owner only. Raise `StoreError` for a link, or a folder that others can write to: they
    could put their own files in place of ours."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise StoreError(f"{folder} is not a folder, so no artifact can be stored in it; move it away")
    if os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
        raise StoreError(f"{folder} can be written by others, so nothing in it can be trusted (chmod 700 {folder})")


def _entries_of(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _sync(folder: Path) -> None:
    """Write a folder's own data to disk: the name of a new file is in it."""
    if os.name == "posix":  # pragma: no branch - Windows opens no folders
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _removed(path: Path, process: int) -> None:
    if os.getpid() == process:  # a forked process leaves its parent's files alone
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _store_errors(folder: Path) -> Generator[None]:
    """Raise errors of the disk as `StoreError`."""
    try:
        yield
    except (FileNotFoundError, BlockingIOError):
        raise
    except OSError as error:
        told = StoreError(f"{folder}: the file of an artifact could not be read or written: {error.strerror or error}")
        told.retryable = True
        raise told from error
