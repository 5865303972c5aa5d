"""Forks: a child process neither uses nor closes what its parent has opened.

Both would harm the parent. A connection to a server is one conversation, which two processes cannot share. With SQLite,
a child inherits the parent's memory of its locks, while the system gives it none of them; so a file is closed before a
fork, and the parent opens it again afterwards.
"""

import os
import threading
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol

from remit.errors import StoreError

ELSEWHERE = (
    "{where} was opened by the process that this one was forked from, and cannot be used from here; "
    "make a new runtime in this process, or start processes with 'spawn' instead of 'fork'"
)


class Forking(Protocol):
    """An open object with hooks that are called before a fork, and after it in the parent and in the child."""

    def before_fork(self) -> None:
        """Pause, so that the state in memory is valid in both processes."""
        ...

    def after_fork(self) -> None:
        """Continue, in the parent."""
        ...

    def leave(self) -> None:
        """In the child, refuse everything from now on, and close nothing that belongs to the parent."""
        ...


_open: "weakref.WeakSet[Any]" = weakref.WeakSet()
_unsafe: set[str] = set()
_opening = threading.Lock()  # held while a file is opened: a fork in between would inherit a half-open file


@contextmanager
def opening() -> Generator[None]:
    """Delay forks of this process until the body has opened its file. One body runs at a time."""
    with _opening:
        yield


def tell(thing: Forking) -> None:
    """Call this object's hooks before and after each fork, as long as it is referenced (weakly)."""
    _open.add(thing)


def no_more(thing: Forking) -> None:
    """Stop calling the hooks of this object: it is closed."""
    _open.discard(thing)


def unsafe(where: str) -> None:
    """Remember a file that could not be closed before this process was forked: here, SQLite believes that it has locks
    which the system did not give to it."""
    _unsafe.add(os.path.realpath(where))


def refuse_unsafe(where: str) -> None:
    if _unsafe and os.path.realpath(where) in _unsafe:
        raise StoreError(
            f"{where} was being written for so long when this process was forked that it cannot be opened here; "
            "close the runtime before forking, or start processes with 'spawn'"
        )


def keep(thing: object) -> None:
    """Keep an object until this process ends, past the interpreter's shutdown, so that nothing of it is closed or
    run."""
    ctypes = import_module("ctypes")  # only needed in a child
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _before() -> None:
    _opening.acquire()
    for thing in tuple(_open):
        thing.before_fork()


def _in_parent() -> None:
    for thing in tuple(_open):
        thing.after_fork()
    _opening.release()


def _in_child() -> None:
    for thing in tuple(_open):
        keep(thing)
        thing.leave()
    _open.clear()
    _opening.release()


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has no forks
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
