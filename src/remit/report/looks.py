"""The looks of the states of a task in a terminal, a chart and a picture.

Each state has one line here. Drawings have colours for roles, not for states, so a new state needs only one line.
"""

from typing import Final, Literal, TypeAlias

from remit.core.records import NamedTuple

Role: TypeAlias = Literal["good", "busy", "bad", "grave", "refused", "moved", "queued", "stopped", "idle"]
Dot: TypeAlias = Literal["full", "ring", "pulse"]
Line: TypeAlias = Literal["solid", "dashed", "dotted"]

UNKNOWN: Final = "unknown"  # the look of a state that this version does not know
FOLDED: Final = "folded"  # several tasks as one card
AGAIN: Final = "↻"  # an attempt that was tried again
ASKS: Final = "?"  # a question that a person has yet to answer
MODEL: Final = "◆"  # a model that was asked
TOOL: Final = "◇"  # a call of a tool
_RIMMED: Final = frozenset[Role](("busy", "bad", "grave", "refused"))


class Look(NamedTuple):
    """One state as people see it.

    `mark` stands before a name, `role` selects the colour, `word` follows a number of tasks in a sentence. `sign` is
    the path drawn into the dot of a picture, for readers who cannot see the colour. `dot` is hollow while the task
    is open. `line` is the outline of the card.
    """

    mark: str
    role: Role
    word: str
    sign: str = ""
    dot: Dot = "full"
    line: Line = "solid"

    @property
    def rimmed(self) -> bool:
        """Whether a card in this state needs attention and has a rim in the colour of the state."""
        return self.role in _RIMMED


LOOKS: Final[dict[str, Look]] = {
    "completed": Look("✓", "good", "completed", "M-3 .2l2 2.2 4-4.6"),
    "running": Look("◐", "busy", "running", dot="pulse"),
    "failed": Look("✗", "bad", "failed", "M-2.4-2.4l4.8 4.8M2.4-2.4l-4.8 4.8"),
    "dead": Look("†", "grave", "dead", "M0-3.8v7.6M-2.4-1.4h4.8"),
    "cancelled": Look("⊖", "stopped", "cancelled", "M-2.8 0h5.6"),
    "pending": Look("◌", "queued", "pending", dot="ring", line="dotted"),
    "waiting": Look("○", "idle", "waiting", dot="ring", line="dashed"),
    "cancelling": Look("⊝", "stopped", "being cancelled", "M-2.6 0h5.2", dot="ring", line="dashed"),
    "lost": Look("⊗", "grave", "lost", "M-2.6-2.6l5.2 5.2M2.6-2.6l-5.2 5.2", dot="ring"),
    "refused": Look("⊘", "refused", "refused", "M-2.6 2.6l5.2-5.2", line="dashed"),
    "handed": Look("→", "moved", "handed over", "M-3.2 0h6M.4-2.6L3 0L.4 2.6"),
    "skipped": Look("↷", "idle", "skipped", "M-3-2.6L-.4 0L-3 2.6M.6-2.6L3.2 0L.6 2.6", line="dashed"),
    FOLDED: Look("…", "idle", "folded", line="dashed"),
    UNKNOWN: Look("?", "stopped", "unknown", "M0-3v3.4M0 3v.1"),
}

BREAKER_ROLES: Final[dict[str, Role]] = {"closed": "good", "half-open": "stopped", "open": "bad"}


# The order where not everything fits: failures first, then running tasks, completed ones last.
_URGENT: Final = ("failed", "dead", "lost", "running", "cancelling", "waiting", "pending", "cancelled", "skipped")


def urgency(state: str) -> int:
    """Return the rank of a task or step where not all fit: 0 is shown first."""
    return _URGENT.index(state) if state in _URGENT else len(_URGENT)


def known_state(state: str) -> str:
    """Return the state if it has a look, otherwise `UNKNOWN`. Class names in pictures are made from it."""
    return state if state in LOOKS else UNKNOWN


def look(state: str) -> Look:
    return LOOKS.get(state, LOOKS[UNKNOWN])


def mark(state: str) -> str:
    return look(state).mark
