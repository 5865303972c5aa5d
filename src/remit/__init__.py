"""remit: agents hand work to each other, and nobody loses control of it."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remit.core.allow import ANY
    from remit.core.bounds import Bounds
    from remit.core.card import Card
    from remit.core.command import END, Command, Send
    from remit.core.entry import Entry
    from remit.core.events import Event
    from remit.core.outcome import Outcome
    from remit.core.plan import Plan, Step
    from remit.core.remit import Pass
    from remit.core.scope import BOARD, Scope
    from remit.engine.queue.task import Task
    from remit.engine.turn import Turn
    from remit.errors import BadInput, Conflict, Failed, NotFound, Refused, RemitError, StoreError
    from remit.runtime.runtime import Runtime, run

__version__ = "0.1.0"

__all__ = [
    "ANY",
    "BOARD",
    "END",
    "BadInput",
    "Bounds",
    "Card",
    "Command",
    "Conflict",
    "Entry",
    "Event",
    "Failed",
    "NotFound",
    "Outcome",
    "Pass",
    "Plan",
    "Refused",
    "RemitError",
    "Runtime",
    "Scope",
    "Send",
    "Step",
    "StoreError",
    "Task",
    "Turn",
    "run",
]

# Where each name lives. It is imported when it is first used, so that `import remit` costs next to nothing.
_HOMES = {
    "remit.core.allow": ["ANY"],
    "remit.core.bounds": ["Bounds"],
    "remit.core.card": ["Card"],
    "remit.core.entry": ["Entry"],
    "remit.core.events": ["Event"],
    "remit.core.command": ["END", "Command", "Send"],
    "remit.core.outcome": ["Outcome"],
    "remit.core.plan": ["Plan", "Step"],
    "remit.core.remit": ["Pass"],
    "remit.core.scope": ["BOARD", "Scope"],
    "remit.engine.queue.task": ["Task"],
    "remit.engine.turn": ["Turn"],
    "remit.errors": ["BadInput", "Conflict", "Failed", "NotFound", "Refused", "RemitError", "StoreError"],
    "remit.runtime.runtime": ["Runtime", "run"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"remit has no {name!r}")
    found: object = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
