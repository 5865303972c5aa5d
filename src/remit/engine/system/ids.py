"""Real ids."""

import os
import time
from typing import Final

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_SORTED: Final = sorted(_LETTERS)  # digits before letters, so that ids sort as text in the order they were made
_PAIRS: Final = [a + b for a in _SORTED for b in _SORTED]


class TimedIds:
    """Sixteen characters: 45 bits of time, so that new rows go to the end of an index, and 35 bits of chance."""

    def chance(self) -> float:
        return int.from_bytes(os.urandom(4)) / 2**32

    def new(self) -> str:
        number = (time.time_ns() // 1_000_000 << 35) | (int.from_bytes(os.urandom(5)) >> 5)
        pairs = _PAIRS
        return (
            pairs[number >> 70 & 1023]
            + pairs[number >> 60 & 1023]
            + pairs[number >> 50 & 1023]
            + pairs[number >> 40 & 1023]
            + pairs[number >> 30 & 1023]
            + pairs[number >> 20 & 1023]
            + pairs[number >> 10 & 1023]
            + pairs[number & 1023]
        )
