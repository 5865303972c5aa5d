"""Shared services of all parts that pass work on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from remit.core.records import NamedTuple
from remit.engine.attempt.handoffs import Handoffs
from remit.engine.attempt.live import StopListener
from remit.engine.attempt.slots import BusyAgents, Slots
from remit.engine.attempt.turns import Conductor
from remit.engine.door import Admission
from remit.engine.ground import Ground
from remit.engine.presence.bell import Bell
from remit.engine.presence.heartbeat import Heartbeat
from remit.engine.presence.insisting import Insisting

if TYPE_CHECKING:
    from remit.engine.messenger import Messenger
    from remit.engine.people import Questions


class Services(NamedTuple):
    ground: Ground
    admission: Admission
    conductor: Conductor
    handoffs: Handoffs
    bell: Bell
    heartbeat: Heartbeat
    stops: StopListener
    slots: Slots
    busy: BusyAgents
    insisting: Insisting
    people: Callable[[], Questions]  # made for the first task that asks a person
    messenger: Messenger | None = None  # only if this process has channels

    @property
    def questions(self) -> Questions:
        """Questions to people."""
        return self.people()
