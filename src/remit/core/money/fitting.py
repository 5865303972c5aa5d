"""Fitting a request into the money that is left."""

from collections.abc import Callable
from typing import Final

LEAST_OUTPUT: Final = 256  # tokens: with fewer hardly any answer is whole


def fitting(cost: Callable[[int], int], left: int, most: int, least: int = LEAST_OUTPUT) -> int:
    """Tell how many tokens may be written if all of it has to cost no more than what is left: as many as wanted, or
    fewer, but not fewer than an answer needs. `cost` never falls when more is written."""
    least = min(least, most)
    if cost(most) <= left:
        return most
    if cost(least) > left:
        return least  # whoever pays says how much is missing
    fits, too_many = least, most
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if cost(middle) <= left:
            fits = middle
        else:
            too_many = middle
    return fits
