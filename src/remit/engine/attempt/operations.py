"""One try at a task, and the ids of what is done in it: the same when it is tried again."""

from __future__ import annotations

from typing import Final, NamedTuple

from remit.core.backoff import ATTEMPTS
from remit.core.values import digest


class Attempt(NamedTuple):
    """One live try at a task: the claim under which this process runs it, and what the queue said about it.

    `number` counts the claims, `failures` how often it has failed before, `attempts` how often it may be tried (0: as
    often as its agent's policy says). `origin` is the first task of those that were
    retried by hand, so that what they finished is found again.
    """

    fence: int = 1
    number: int = 1
    failures: int = 0
    origin: str = ""
    asked_how: str = "delegate"
    queued: bool = False
    timeout: int = 0
    attempts: int = ATTEMPTS

    @property
    def is_rerun(self) -> bool:
        """Releasing a task gives its attempt back but never lowers the fence, so the fence tells."""
        return self.fence > 1 or self.failures > 0


FIRST: Final = Attempt()


class Operations:
    """The ids of what is done in a task's name: the same when it is run again, so that nothing is done twice.

    An id is made of the task, the try, the turn, what is done, and how often that was done before in this turn.
    """

    __slots__ = ("_counts", "_failures", "_origin", "turns")

    def __init__(self, task: str, attempt: Attempt, turns: int = 0) -> None:
        self._origin = attempt.origin or task
        self._failures = attempt.failures
        self.turns = turns  # how often it has changed hands, or gone out and come back
        self._counts: dict[str, int] = {}

    def next_turn(self) -> None:
        """Begin the ids of a new turn: should the task be run again, it begins there."""
        self.turns += 1
        self._counts = {}

    def ids(self, what: str, *about: str) -> list[str]:
        """Give the ids of the next operation of this name: in this try, then in the earlier ones, latest first."""
        name = f"{self.turns}/{what}/{digest(chr(0).join(about))}" if about else f"{self.turns}/{what}"
        counted = self._next(name)
        if self._failures == 0:  # nearly always
            return [f"{self._origin}/0/{counted}"]
        return [f"{self._origin}/{failures}/{counted}" for failures in range(self._failures, -1, -1)]

    def effect(self, key: str, args: str) -> tuple[str, str]:
        """Give the id of an effect, and its place among those of its name in this turn. The id is the same in every
        try, because what has taken effect is not taken back, and another for other arguments."""
        op = f"{self._origin}/{self._next(f'{self.turns}/effect/{key}/{args}')}"
        return op, self._next(f"{self.turns}/{key}")

    def _next(self, name: str) -> str:
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return f"{name}/{count}"
