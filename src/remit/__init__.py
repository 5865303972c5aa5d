"""remit: agents hand work to each other, and nobody loses control of it."""

from remit.core.allow import ANY
from remit.core.bounds import Bounds
from remit.core.card import Card
from remit.core.entry import Entry
from remit.core.events import Event
from remit.core.facts import Message
from remit.core.outcome import Outcome
from remit.core.remit import Pass
from remit.core.scope import BOARD, Scope
from remit.engine.turn import Turn
from remit.errors import BadInput, Conflict, Failed, NotFound, Refused, RemitError, StoreError
from remit.runtime import Runtime, run

__version__ = "0.1.0"

__all__ = [
    "ANY",
    "BOARD",
    "BadInput",
    "Bounds",
    "Card",
    "Conflict",
    "Entry",
    "Event",
    "Failed",
    "Message",
    "NotFound",
    "Outcome",
    "Pass",
    "Refused",
    "RemitError",
    "Runtime",
    "Scope",
    "StoreError",
    "Turn",
    "run",
]
