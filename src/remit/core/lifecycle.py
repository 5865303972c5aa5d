"""The life of a task as one table. The diagram in the docs is drawn from it."""

from typing import Final

from remit.errors import Conflict

START: Final = ""

# state -> what may happen -> state after it
TRANSITIONS: Final[dict[str, dict[str, str]]] = {
    START: {"task.started": "running"},
    "running": {
        "task.handed": "running",
        "task.completed": "completed",
        "task.failed": "failed",
        "task.cancelled": "cancelled",
    },
    "completed": {},
    "failed": {},
    "cancelled": {},
}

TERMINAL: Final = frozenset(state for state, moves in TRANSITIONS.items() if not moves)
ENDS: Final = frozenset(kind for moves in TRANSITIONS.values() for kind, after in moves.items() if after in TERMINAL)


def after(state: str, kind: str) -> str:
    """The state that follows; a move the table does not have raises and changes nothing."""
    try:
        return TRANSITIONS[state][kind]
    except KeyError:
        word = kind.removeprefix("task.")
        raise Conflict(f"a task that is {state or 'not there'} cannot be {word}") from None


def mermaid() -> str:
    """The table as a state diagram."""
    lines = ["stateDiagram-v2"]
    for state, moves in TRANSITIONS.items():
        lines += [f"    {state or '[*]'} --> {to}: {kind.removeprefix('task.')}" for kind, to in moves.items()]
    lines += [f"    {state} --> [*]" for state in TRANSITIONS if state in TERMINAL]
    return "\n".join(lines) + "\n"
