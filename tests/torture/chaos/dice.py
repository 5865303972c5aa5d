"""Chance that can be had again: every draw is a digest of a seed and of what it is drawn for."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def chance(*words: object) -> float:
    """Draw a number from 0 up to 1, always the same for the same words."""
    text = "\0".join(str(word) for word in words)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7]) / 2**56


def between(low: float, high: float, *words: object) -> float:
    """Draw a number between two others."""
    return low + (high - low) * chance(*words)


def one_of(items: Sequence[T], *words: object) -> T:
    """Draw one of several."""
    return items[int(chance(*words) * len(items))]


def weighed(weights: dict[str, int], *words: object) -> str:
    """Draw a name, each as often as its weight says."""
    left = chance(*words) * sum(weights.values())
    for name, weight in weights.items():
        left -= weight
        if left < 0:
            return name
    return next(reversed(weights))


def shuffled(items: Sequence[T], *words: object) -> list[T]:
    """Give the same items in another order."""
    return [item for _, item in sorted(enumerate(items), key=lambda numbered: chance(*words, numbered[0]))]
