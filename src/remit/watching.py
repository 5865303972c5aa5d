"""Whoever wants to know of every workspace that this process opens, such as what shows the runs of a test that failed.

Nothing of remit is imported here, so that a program that may never open one can ask.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

_log = logging.getLogger("remit")


class Opened(Protocol):
    """A workspace that was opened. `store` is where, as it was given: a path, an address or a database."""

    workspace: str
    store: Any

    @property
    def is_open(self) -> bool: ...


# Feeds a sink what this process commits there from now on; gives back the way to stop.
Subscribe: TypeAlias = Callable[[Callable[[Sequence[Any]], None]], Callable[[], None]]
Watcher: TypeAlias = Callable[[Opened, Subscribe], None]

_watchers: list[Watcher] = []


def watch(watcher: Watcher) -> Callable[[], None]:
    """Tell `watcher` of each workspace that is opened from now on; gives back the way to stop."""
    _watchers.append(watcher)

    def stop() -> None:
        if watcher in _watchers:
            _watchers.remove(watcher)

    return stop


def tell(opened: Opened, subscribe: Subscribe) -> None:
    """Tell the watchers. One that fails is logged and harms nobody."""
    for watcher in tuple(_watchers):
        try:
            watcher(opened, subscribe)
        except Exception:  # noqa: BLE001 - whatever a watcher does wrong, the workspace is open
            _log.exception("a watcher failed on workspace %s; the work goes on", opened.workspace)
