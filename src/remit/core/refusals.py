"""Refusals of one task: the first are recorded one by one, the others are counted and told when the turn ends."""

from typing import Final

RECORDED: Final = 100  # of one task


class Refusals:
    """How many hops of a task were refused. It lives with the task, in whoever's hands."""

    __slots__ = ("_recorded", "more")

    def __init__(self) -> None:
        self._recorded: dict[Refusable, None] = {}
        self.more = 0  # refused in this turn, and not recorded

    def records(self, hop: "Refusable") -> bool:
        """Whether this refusal is recorded; the same answer for a decision that is made twice."""
        if hop in self._recorded:
            return True
        if len(self._recorded) >= RECORDED:
            return False
        self._recorded[hop] = None
        return True

    def told(self, hop: "Refusable") -> None:
        """Note that a hop was refused, once it is certain."""
        if hop not in self._recorded:
            self.more += 1


class Refusable:
    """One hop that may be refused, of a task that keeps count."""

    __slots__ = ("_tally",)

    def __init__(self, tally: Refusals) -> None:
        self._tally = tally

    def is_recorded(self) -> bool:
        return self._tally.records(self)

    def refused(self) -> None:
        self._tally.told(self)
