"""Feeding committed events to whoever listens. A listener that fails is told to the log, never to the work."""

import logging
from collections.abc import Callable

from remit.core.events import Event
from remit.ports import Sink

_log = logging.getLogger("remit")


class Sinks:
    def __init__(self) -> None:
        self._by_workspace: dict[str, list[Sink]] = {}

    def add(self, workspace: str, sink: Sink) -> Callable[[], None]:
        listening = self._by_workspace.setdefault(workspace, [])
        listening.append(sink)

        def stop() -> None:
            if sink in listening:
                listening.remove(sink)

        return stop

    def feed(self, events: list[Event]) -> None:
        """All events of one transaction; they belong to one workspace."""
        if not self._by_workspace:
            return
        given = tuple(events)  # a listener may do what it likes with what it gets
        for sink in tuple(self._by_workspace.get(given[0].workspace, ())):
            try:
                sink(given)
            except Exception:  # noqa: BLE001 - whatever a listener does wrong, the work was done
                _log.exception("a sink failed on %s; the work goes on", given[0].kind)
