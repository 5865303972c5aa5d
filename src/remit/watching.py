"""Callbacks for every workspace that this process opens, and for every function of its owner that raises, for example
to show the runs of a failed test and the bug behind it.

This module imports nothing of remit, so that a program that may never open a workspace can register a callback cheaply.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

_log = logging.getLogger("remit")


class Opened(Protocol):
    """A workspace that was opened. `store` is its store as the caller gave it: a path, an address or a database."""

    workspace: str
    store: Any

    @property
    def is_open(self) -> bool: ...


# Passes the events that this process commits from now on to a sink. Returns a function that stops it.
Subscribe: TypeAlias = Callable[[Callable[[Sequence[Any]], None]], Callable[[], None]]
Watcher: TypeAlias = Callable[[Opened, Subscribe], None]

_watchers: list[Watcher] = []


def watch(watcher: Watcher) -> Callable[[], None]:
    """Call `watcher` for each workspace that is opened from now on. Return a function that stops it."""
    _watchers.append(watcher)

    def stop() -> None:
        if watcher in _watchers:
            _watchers.remove(watcher)

    return stop


def tell(opened: Opened, subscribe: Subscribe) -> None:
    """Call the watchers. An exception in a watcher is logged and has no other effect."""
    for watcher in tuple(_watchers):
        try:
            watcher(opened, subscribe)
        except Exception:  # noqa: BLE001 - an error of a watcher must not affect the workspace
            _log.exception("a watcher failed on workspace %s; the work goes on", opened.workspace)


class Bug(NamedTuple):
    """An exception of a function that the owner gave. `role` says which function, such as "on_question". `in_script`
    says that the function stands in for an agent or a model in a test."""

    error: BaseException
    role: str
    in_script: bool = False


_bug_watchers: list[Callable[[Bug], None]] = []


def watch_bugs(watcher: Callable[[Bug], None]) -> Callable[[], None]:
    """Call `watcher` for each bug from now on, in the thread that raised, until another watcher is added. Return a
    function that removes it; the watcher before it is then called again."""
    _bug_watchers.append(watcher)

    def stop() -> None:
        if watcher in _bug_watchers:
            _bug_watchers.remove(watcher)

    return stop


def tell_bug(bug: Bug) -> None:
    """Call only the newest watcher: if a test runs tests, a bug belongs to the inner test."""
    for watcher in _bug_watchers[-1:]:
        watcher(bug)
