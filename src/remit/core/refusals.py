"""The refused hops of one task: the first are recorded one by one; the others are counted, and reported when the turn
ends."""

from typing import Final

RECORDED: Final = 100  # of one task


class Refusals:
    """The number of refused hops of a task. It stays with the task through handoffs."""

    __slots__ = ("_recorded", "more")

    def __init__(self) -> None:
        self._recorded: dict[Refusable, None] = {}
        self.more = 0  # refused in this turn without an event

    def records(self, hop: "Refusable") -> bool:
        """Whether this refusal is recorded as an event. A decision that runs twice gets the same answer."""
        if hop in self._recorded:
            return True
        if len(self._recorded) >= RECORDED:
            return False
        self._recorded[hop] = None
        return True

    def told(self, hop: "Refusable") -> None:
        """Count a refused hop, once its transaction has been committed."""
        if hop not in self._recorded:
            self.more += 1


class Refusable:
    """One hop that may be refused, with the counter of its task."""

    __slots__ = ("_tally",)

    def __init__(self, tally: Refusals) -> None:
        self._tally = tally

    def is_recorded(self) -> bool:
        return self._tally.records(self)

    def refused(self) -> None:
        self._tally.told(self)
