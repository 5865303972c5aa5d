"""Ids that are the same every time."""

from itertools import count

_LETTERS = "234567abcdefghijklmnopqrstuvwxyz"
_LENGTH = 16


class CountedIds:
    """Ids of sixteen characters, like real ones, that sort as text in the order they were created."""

    def __init__(self, first: int = 1) -> None:
        self._numbers = count(first)

    def chance(self) -> float:
        return 0.0

    def new(self) -> str:
        number = next(self._numbers)
        return "".join(_LETTERS[number >> 5 * place & 31] for place in reversed(range(_LENGTH)))
