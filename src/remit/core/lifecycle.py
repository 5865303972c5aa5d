"""The state machine of a task, as one table. `make docs` draws the diagram from it."""

from typing import Final

from remit.errors import Conflict

START: Final = ""

# state -> what may happen -> state after it
TRANSITIONS: Final[dict[str, dict[str, str]]] = {
    START: {
        "task.submitted": "pending",
        "task.started": "running",
    },
    "pending": {
        "task.claimed": "running",
        "task.resumed": "running",
        "task.retrying": "pending",  # it waited, another task took its slot, and the attempt timed out
        "task.released": "pending",
        "task.lost": "pending",
        "task.parked": "waiting",
        "task.fenced": "running",
        "task.cancelling": "cancelling",
        "task.cancelled": "cancelled",
        "task.failed": "failed",
        "task.died": "dead",
    },
    "running": {
        "task.claimed": "running",
        "task.handed": "running",
        "task.waiting": "waiting",
        "task.retrying": "pending",
        "task.released": "pending",
        "task.lost": "pending",
        "task.parked": "waiting",  # its process is gone, and it waits for a person's answer
        "task.fenced": "running",
        "task.cancelling": "cancelling",
        "task.cancelled": "cancelled",
        "task.completed": "completed",
        "task.failed": "failed",
        "task.died": "dead",
    },
    "waiting": {
        "task.claimed": "running",  # its process died while it waited, and its asker resumes it
        "task.resumed": "running",
        "task.queued": "pending",
        "task.released": "pending",
        "task.lost": "pending",
        "task.parked": "waiting",
        "task.fenced": "running",
        "task.cancelling": "cancelling",
        "task.cancelled": "cancelled",
        "task.failed": "failed",
        "task.died": "dead",
    },
    "cancelling": {
        "task.cancelled": "cancelled",
    },
    "completed": {},
    "failed": {},
    "cancelled": {},
    "dead": {},
}

BEGINNINGS: Final = frozenset(TRANSITIONS[START])
TERMINAL: Final = frozenset(state for state, moves in TRANSITIONS.items() if not moves)
GONE: Final = TERMINAL - {"completed"}  # may be requested again
OPEN: Final = frozenset(TRANSITIONS) - TERMINAL - {START}
MOVES: Final = frozenset(kind for moves in TRANSITIONS.values() for kind in moves)
_LANDS: Final = {kind: after for moves in TRANSITIONS.values() for kind, after in moves.items()}
QUEUES: Final = frozenset(kind for kind, after in _LANDS.items() if after == "pending")
ENDS: Final = frozenset(kind for moves in TRANSITIONS.values() for kind, after in moves.items() if after in TERMINAL)


def lands(kind: str) -> str:
    """Return the state that a move leads to. Each kind of move leads to one state, whatever the state before."""
    return _LANDS[kind]


def after(state: str, kind: str) -> str:
    """Return the state after a move. Raise if the table does not have the move."""
    try:
        return TRANSITIONS[state][kind]
    except KeyError:
        word = kind.removeprefix("task.")
        raise Conflict(f"a task that is {state or 'not there'} cannot be {word}") from None


_BOX: Final = ("pending", "running", "waiting")  # drawn as one box: a move of all three is one edge


def mermaid() -> str:
    """Return the table as a state diagram; several moves between the same two states are one edge."""
    shared = {
        kind: to
        for kind, to in TRANSITIONS[_BOX[0]].items()
        if to not in _BOX and all(kind in TRANSITIONS[state] for state in _BOX)
    }
    inside: list[str] = []
    outside: list[str] = []
    for state, moves in TRANSITIONS.items():
        boxed = state in _BOX
        for to, words in _merged({kind: to for kind, to in moves.items() if not boxed or kind not in shared}):
            (inside if boxed and to in _BOX else outside).append(f"    {state or '[*]'} --> {to}: {words}")
    outside += [f"    open --> {to}: {words}" for to, words in _merged(shared)]
    outside += [f"    {state} --> [*]" for state in TRANSITIONS if state in TERMINAL]
    box = ["    state open {", *(f"    {line}" for line in inside), "    }"]
    return "\n".join(["stateDiagram-v2", *box, *outside]) + "\n"


def _merged(moves: dict[str, str]) -> list[tuple[str, str]]:
    words: dict[str, list[str]] = {}
    for kind, to in moves.items():
        words.setdefault(to, []).append(kind.removeprefix("task."))
    return [(to, ", ".join(kinds)) for to, kinds in words.items()]
