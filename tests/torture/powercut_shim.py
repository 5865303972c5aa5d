"""Records what SQLite does to its files: every write, truncation, deletion and sync, in the order of all processes.

SQLite reaches files through a table of functions, its VFS. Here the default one is copied, with those functions
replaced that change something, and the copy becomes the default. That needs neither rights nor tools, only that the
library that `sqlite3` uses can be reached.

The order is that of the log: it is opened for appending, and each record is one write. A change is recorded before
SQLite goes on, so whoever relies on it, in whichever process, comes later in the log. A sync is recorded
when it is over, and says how long the log was when it began: it vouches for what was recorded before that.
"""

import _sqlite3
import ctypes
import json
import os
import sqlite3
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

LAID, CREATE, WRITE, TRUNCATE, SYNC, DELETE, SYNC_FOLDER, TOLD = range(1, 9)
HEADER: Final = struct.Struct("<BBqI")  # kind, file, place, length of what follows
ENDS: Final = ("", "-wal", "-journal")  # the ends of the file names; the shared memory is created again
_OK: Final = 0

_P, _INT, _LONG = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_OPEN = ctypes.CFUNCTYPE(_INT, _P, _P, _P, _INT, _P)
_DELETE = ctypes.CFUNCTYPE(_INT, _P, ctypes.c_char_p, _INT)
_CLOSE = ctypes.CFUNCTYPE(_INT, _P)
_WRITE = ctypes.CFUNCTYPE(_INT, _P, _P, _INT, _LONG)
_TRUNCATE = ctypes.CFUNCTYPE(_INT, _P, _LONG)
_SYNC = ctypes.CFUNCTYPE(_INT, _P, _INT)
_SET_CALL = ctypes.CFUNCTYPE(_INT, _P, ctypes.c_char_p, _P)
_GET_CALL = ctypes.CFUNCTYPE(_P, _P, ctypes.c_char_p)
_OPEN_FOLDER = ctypes.CFUNCTYPE(_INT, ctypes.c_char_p, _P)


class Unreachable(Exception):
    """SQLite cannot be listened to here; says why."""


class _Vfs(ctypes.Structure):
    _fields_ = (
        *((name, _INT) for name in ("version", "file_size", "longest_path")),
        *((name, _P) for name in ("next", "name", "data", "open", "delete", "access", "full_path")),
        *((name, _P) for name in ("dl_open", "dl_error", "dl_sym", "dl_close", "randomness", "sleep", "time")),
        *((name, _P) for name in ("last_error", "precise_time", "set_call", "get_call", "next_call")),
    )


class _Methods(ctypes.Structure):
    _fields_ = (
        ("version", _INT),
        *((name, _P) for name in ("close", "read", "write", "truncate", "sync", "file_size", "lock", "unlock")),
        *((name, _P) for name in ("reserved", "control", "sector", "device", "shm_map", "shm_lock", "shm_barrier")),
        *((name, _P) for name in ("shm_unmap", "fetch", "unfetch")),
    )


class _File(ctypes.Structure):
    _fields_ = (("methods", ctypes.POINTER(_Methods)),)


# What SQLite has the address of, and calls for as long as this process lives.
_installed: list[Any] = []


class Log:
    """The file that all processes append to."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def add(self, kind: int, file: int = 0, place: int = 0, what: bytes = b"") -> None:
        record = HEADER.pack(kind, file, place, len(what)) + what
        if os.write(self._file, record) != len(record):
            raise OSError("a record was cut short, so the recording is of no use")

    def laid(self, file: int, content: bytes) -> None:
        """Note that a file lay there on the disk when everything began."""
        self.add(LAID, file, what=content)

    def told(self, *what: object) -> None:
        """Note that someone was told this: from now on it must not be lost."""
        self.add(TOLD, what=json.dumps(what).encode())

    @property
    def length(self) -> int:
        return os.fstat(self._file).st_size


class Recorder:
    """What all of SQLite in this process goes through from now on, and in those that are forked from it."""

    def __init__(self, store: Path, log: Log) -> None:
        self._files = {os.fsencode(f"{store}{end}"): number for number, end in enumerate(ENDS)}
        self._log = log
        self._open_files: dict[int, int] = {}  # where the struct of an open file is -> which file it is
        self._tables: dict[int, _Methods] = {}  # where a table of methods is -> its copy
        self._here = threading.local()  # whether a folder was synced inside of the call that this thread is in

    def install(self) -> None:
        """Have everything recorded from now on."""
        library = _library()
        find = library.sqlite3_vfs_find
        find.restype = ctypes.POINTER(_Vfs)
        original = find(None)
        if not original or original.contents.version < 3:
            raise Unreachable("the default VFS of this SQLite is older than version 3")
        self._vfs = ctypes.addressof(original.contents)
        self._open = _OPEN(original.contents.open)
        self._delete = _DELETE(original.contents.delete)
        self._watch_folder(original.contents)
        ours = _Vfs.from_buffer_copy(original.contents)
        name = ctypes.create_string_buffer(b"recorder")
        ours.name = ctypes.addressof(name)
        ours.open = self._address(_OPEN(self._opened))
        ours.delete = self._address(_DELETE(self._deleted))
        _installed.extend((ours, name))
        if library.sqlite3_vfs_register(ctypes.byref(ours), 1) != _OK:
            raise Unreachable("SQLite does not take a VFS")

    def _watch_folder(self, vfs: _Vfs) -> None:
        """Notice when SQLite syncs the folder, which it does inside of a sync or a deletion."""
        found = _GET_CALL(vfs.get_call)(self._vfs, b"openDirectory")
        if not found:
            raise Unreachable("this SQLite does not tell when it syncs a folder")
        original = _OPEN_FOLDER(found)

        def opened(path: bytes, descriptor: int) -> int:
            status = original(path, descriptor)
            self._here.folder_synced = status == _OK
            return status

        _SET_CALL(vfs.set_call)(self._vfs, b"openDirectory", self._address(_OPEN_FOLDER(opened)))

    def _address(self, function: Any) -> int | None:
        _installed.append(function)
        return ctypes.cast(function, _P).value

    # -- in place of SQLite's own ---------------------------------------------------------------------

    def _opened(self, _vfs: int, name: int | None, file: int, flags: int, out: int | None) -> int:
        path = ctypes.string_at(name) if name else b""
        number = self._files.get(path)
        new = number is not None and not os.path.exists(path)  # noqa: PTH110 - bytes, as SQLite has them
        status = self._open(self._vfs, name, file, flags, out)
        if number is not None and status == _OK:
            if new or number == 0:  # the store's own file was made before SQLite saw it
                self._log.add(CREATE, number)
            self._open_files[file] = number
            opened = _File.from_address(file)
            opened.methods = ctypes.pointer(self._methods(opened.methods.contents))
        return status

    def _deleted(self, _vfs: int, name: bytes, sync_folder: int) -> int:
        number = self._files.get(name)
        if number is not None:
            self._log.add(DELETE, number)  # beforehand, because the sync of the folder inside of it vouches for it
        since, self._here.folder_synced = self._log.length, False
        status = self._delete(self._vfs, name, sync_folder)
        if self._here.folder_synced and status == _OK:
            self._log.add(SYNC_FOLDER, place=since)
        return status

    def _methods(self, original: _Methods) -> _Methods:
        """The copy of a table of methods that records."""
        where = ctypes.addressof(original)
        if where not in self._tables:
            ours = self._tables[where] = _Methods.from_buffer_copy(original)
            ours.close = self._address(_CLOSE(self._closing(_CLOSE(original.close))))
            ours.write = self._address(_WRITE(self._writing(_WRITE(original.write))))
            ours.truncate = self._address(_TRUNCATE(self._truncating(_TRUNCATE(original.truncate))))
            ours.sync = self._address(_SYNC(self._syncing(_SYNC(original.sync))))
        return self._tables[where]

    def _closing(self, original: Any) -> Callable[[int], int]:
        def close(file: int) -> int:
            self._open_files.pop(file, None)
            return original(file)

        return close

    def _writing(self, original: Any) -> Callable[[int, int, int, int], int]:
        def write(file: int, data: int, length: int, place: int) -> int:
            status = original(file, data, length, place)
            if status == _OK:
                self._log.add(WRITE, self._open_files[file], place, ctypes.string_at(data, length))
            return status

        return write

    def _truncating(self, original: Any) -> Callable[[int, int], int]:
        def truncate(file: int, length: int) -> int:
            status = original(file, length)
            if status == _OK:
                self._log.add(TRUNCATE, self._open_files[file], length)
            return status

        return truncate

    def _syncing(self, original: Any) -> Callable[[int, int], int]:
        def sync(file: int, flags: int) -> int:
            since, self._here.folder_synced = self._log.length, False
            status = original(file, flags)
            if status == _OK:
                self._log.add(SYNC, self._open_files[file], since)
                if self._here.folder_synced:
                    self._log.add(SYNC_FOLDER, place=since)
            return status

        return sync


def _library() -> ctypes.CDLL:
    """The SQLite that the module `sqlite3` uses, and no other that may be on this machine."""
    library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
    if not all(hasattr(library, name) for name in ("sqlite3_libversion", "sqlite3_vfs_find", "sqlite3_vfs_register")):
        raise Unreachable("the SQLite of this Python is built in, and its functions cannot be reached")
    version = library.sqlite3_libversion
    version.restype = ctypes.c_char_p
    if version().decode() != sqlite3.sqlite_version:
        raise Unreachable("another SQLite was found than the one that this Python uses")
    return library


def reachable() -> str:
    """Why SQLite cannot be recorded here; empty if it can."""
    try:
        _library()
    except Unreachable as error:
        return str(error)
    return "" if os.name == "posix" else "only recorded where SQLite uses the files of POSIX"
