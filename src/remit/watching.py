"""Callbacks for every workspace that this process opens, for example to show the runs of a failed test.

This module imports nothing of remit, so that a program that may never open a workspace can register a callback cheaply.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

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
