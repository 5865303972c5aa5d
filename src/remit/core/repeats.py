"""Repeats: an action with the same outcome again and again, or two actions in turn that change nothing.

One detector serves delegations and tool calls. It gets digests of actions and outcomes, counts over the latest ones,
and takes a changed outcome for progress. Handoffs have their own rule: see `repeated`.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from remit.core.command import Move

WINDOW: Final = 30
HANDOFF_WINDOW: Final = 3
NEVER_REACHED: Final = 1_000_000_000
LONGEST: Final = 1_000  # actions that are remembered


class Thresholds(NamedTuple):
    """The numbers of repeats after which an asker is warned, refused, and stopped."""

    warn: int = 10
    block: int = 20
    stop: int = 30


USUAL: Final = Thresholds()


class Sign(IntEnum):
    """Ordered from mild to severe: nothing, a warning, a refusal of this action, and the end of a task that
    continues."""

    NONE = 0
    WARN = 1
    BLOCK = 2
    STOP = 3


class Repetition(NamedTuple):
    """How often the same action was done, this time included; `in_turn` if two actions alternate. `echo` is not 0 if an
    answer keeps coming back: the number of such answers after which the agent is not called any more. `at` are the
    thresholds."""

    times: int = 1
    in_turn: bool = False
    echo: int = 0
    at: Thresholds = USUAL

    @property
    def sign(self) -> Sign:
        times, at = self.times, self.at
        if times < at.warn and times < at.block and times < at.stop:
            return Sign.NONE
        if times < at.block and times < at.stop:
            return Sign.WARN
        return Sign.BLOCK if times < at.stop else Sign.STOP


ONCE: Final = Repetition()


class Repeats:
    """Detects repeated actions with the same outcome. Kept in memory for one task; not persisted."""

    __slots__ = ("_at", "_latest", "_most", "_window")

    def __init__(self) -> None:
        self._at = USUAL
        self._most = WINDOW
        self._window: list[tuple[str, str]] = []  # short; a deque takes ten times the memory
        self._latest: dict[str, list[str]] = {}  # of each action in the window: its outcomes, in order

    def judge_by(self, at: Thresholds) -> None:
        """Use these thresholds, and keep as many actions as they need."""
        self._at = at
        self._most = min(max(WINDOW, at.stop), LONGEST)

    def asks(self, action: str) -> Repetition:
        """Return how often this action would have been done with the same outcome, if it were done now."""
        outcomes = self._latest.get(action)
        if outcomes is None:  # nearly always
            return ONCE
        same, in_turn = _equal_at_end(outcomes) + 1, self._in_turn(action) + 1
        return Repetition(in_turn, True, 0, self._at) if in_turn > same else Repetition(same, at=self._at)

    def seen(self, action: str, outcome: str) -> Repetition:
        """Record the outcome of an action. Return how often it has occurred in a row."""
        outcomes = self._latest.get(action)
        stays = outcomes is not None and outcomes[-1] == outcome
        found = self.asks(action) if stays else ONCE
        self._note(action, outcome)
        return found

    def blocked(self, action: str) -> None:
        """Record an action that was refused: repeating a refused action is no progress either."""
        outcomes = self._latest.get(action)
        self._note(action, outcomes[-1] if outcomes is not None else "")

    def _note(self, action: str, outcome: str) -> None:
        self._window.append((action, outcome))
        outcomes = self._latest.get(action)
        if outcomes is None:
            self._latest[action] = [outcome]
        else:
            outcomes.append(outcome)
        if len(self._window) > self._most:
            oldest, _ = self._window.pop(0)
            outcomes = self._latest[oldest]
            if len(outcomes) == 1:
                del self._latest[oldest]
            else:
                del outcomes[0]

    def _in_turn(self, action: str) -> int:
        """Return how long this action and one other have alternated, each with the same outcome every time."""
        pair = (self._window[-1][0], action)
        outcomes: dict[str, str] = {}
        times = 0
        for done, came in reversed(self._window):
            if done != pair[times % 2] or outcomes.setdefault(done, came) != came:
                break
            times += 1
        return times if pair[0] != action else 0


def _equal_at_end(outcomes: Sequence[str]) -> int:
    """Return the number of latest outcomes that are equal."""
    times = 0
    for outcome in reversed(outcomes):
        if outcome != outcomes[-1]:
            break
        times += 1
    return times


def repeated(trail: Sequence[Move], wanted: Move, window: int | None = HANDOFF_WINDOW) -> bool:
    """Whether the same handoff with the same content is among the latest ones."""
    return window is not None and wanted in trail[-window:]
