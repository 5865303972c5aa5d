"""Passing committed events to sinks. An exception in a sink is logged and has no other effect."""

import logging
from collections.abc import Callable

from remit.core.events import Event
from remit.ports import Sink

_log = logging.getLogger("remit")


class Sinks:
    """The sinks of all workspaces of a database."""

    def __init__(self) -> None:
        self._by_workspace: dict[str, list[Sink]] = {}

    def add(self, workspace: str, sink: Sink) -> Callable[[], None]:
        """Pass events to this sink from now on. Return a function that stops it."""
        sinks = self._by_workspace.setdefault(workspace, [])
        sinks.append(sink)

        def stop() -> None:
            if sink in sinks:
                sinks.remove(sink)

        return stop

    def feed(self, events: list[Event]) -> None:
        """Pass on the events of one operation, which belong to one workspace."""
        if not self._by_workspace:
            return
        fixed = tuple(events)  # a tuple: a sink must not change the list for the others
        for sink in tuple(self._by_workspace.get(fixed[0].workspace, ())):
            try:
                sink(fixed)
            except Exception:  # noqa: BLE001 - an error of a sink must not affect the committed work
                _log.exception("a sink failed on %s; the work goes on", fixed[0].kind)
