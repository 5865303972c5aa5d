"""remit: agents hand work to each other under control."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remit.adapters.http_client import Client
    from remit.core.artifact import Artifact
    from remit.core.bounds import Bounds
    from remit.core.card import Card
    from remit.core.command import END, Command, Send
    from remit.core.entry import Entry
    from remit.core.events import Event
    from remit.core.lifecycle import Outcome
    from remit.core.plan import Plan, Step
    from remit.core.remit import Pass
    from remit.core.scope import BOARD, Scope
    from remit.core.secret import Secret
    from remit.engine.queue.task import Task
    from remit.engine.turn import Turn
    from remit.errors import Failed, Refused, RemitError
    from remit.runtime.opening import open_database
    from remit.runtime.runtime import Runtime, run
    from remit.runtime.workspace import Workspace

__version__ = "0.2.0"

__all__ = [
    "BOARD",
    "END",
    "Artifact",
    "Bounds",
    "Card",
    "Client",
    "Command",
    "Entry",
    "Event",
    "Failed",
    "Outcome",
    "Pass",
    "Plan",
    "Refused",
    "RemitError",
    "Runtime",
    "Scope",
    "Secret",
    "Send",
    "Step",
    "Task",
    "Turn",
    "Workspace",
    "open_database",
    "run",
]

# Where each name is defined. It is imported on first use, so that `import remit` costs next to nothing.
_HOMES = {
    "remit.adapters.http_client": ["Client"],
    "remit.core.artifact": ["Artifact"],
    "remit.core.bounds": ["Bounds"],
    "remit.core.card": ["Card"],
    "remit.core.entry": ["Entry"],
    "remit.core.events": ["Event"],
    "remit.core.command": ["END", "Command", "Send"],
    "remit.core.lifecycle": ["Outcome"],
    "remit.core.plan": ["Plan", "Step"],
    "remit.core.remit": ["Pass"],
    "remit.core.scope": ["BOARD", "Scope"],
    "remit.core.secret": ["Secret"],
    "remit.engine.queue.task": ["Task"],
    "remit.engine.turn": ["Turn"],
    "remit.errors": ["Failed", "Refused", "RemitError"],
    "remit.runtime.opening": ["open_database"],
    "remit.runtime.runtime": ["Runtime", "run"],
    "remit.runtime.workspace": ["Workspace"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # so that type checkers know that other names are not there

    def __getattr__(name: str) -> object:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"remit has no {name!r}")
        value: object = getattr(import_module(home), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
