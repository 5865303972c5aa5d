"""The harm that is done in a chaos run, one after the other, all drawn from the seed."""

from collections.abc import Iterator
from typing import NamedTuple

from torture.chaos import dice

MINUTE = 60_000_000  # microseconds
BUDGET = 20 * 60 * MINUTE  # what passes in all: less than the day within which a task must begin

# How often which harm is done, out of their sum.
ON_A_FILE = {
    "kill": 55,
    "stop": 14,
    "stop_for_long": 8,
    "terminate": 8,
    "switch_off": 3,
    "sleep": 3,
    "hold": 6,
    "hold_for_long": 1,
    "calm": 4,
}
ON_A_SERVER = {
    "kill": 45,
    "stop": 12,
    "stop_for_long": 7,
    "terminate": 8,
    "switch_off": 3,
    "sleep": 3,
    "hold": 5,
    "hold_for_long": 1,
    "cut": 10,
    "restart": 3,
    "calm": 5,
}
# For how many seconds each lasts, at least and at most; killing has no length.
_LASTS = {
    "stop": (0.05, 0.7),
    "stop_for_long": (2.5, 5.0),
    "sleep": (0.3, 1.0),
    "switch_off": (0.0, 0.3),
    "hold": (0.2, 2.0),
    "hold_for_long": (6.0, 9.0),
    "calm": (0.5, 2.0),
}


class Harm(NamedTuple):
    """One of them: after how many seconds, to whom (a number from 0 up to 1), for how long, and how much time passes
    for those who sleep or are off."""

    kind: str
    after: float
    whom: float
    seconds: float
    passes: int


def harms(seed: int, weights: dict[str, int], pause: tuple[float, float]) -> Iterator[Harm]:
    """Give one after the other without end, always the same ones for the same seed."""
    number = 0
    while True:
        number += 1
        kind = dice.weighed(weights, seed, number, "kind")
        yield Harm(
            kind,
            dice.between(*pause, seed, number, "after"),
            dice.chance(seed, number, "whom"),
            dice.between(*_LASTS.get(kind, (0.0, 0.0)), seed, number, "seconds"),
            int(dice.between(1 * MINUTE, 90 * MINUTE, seed, number, "passes")),
        )
