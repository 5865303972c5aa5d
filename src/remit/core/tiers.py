"""Tiers: bounds with a name, for tasks of a kind; given by the caller, or chosen by a classifier."""

from typing import Final

from remit.core.bounds import Bounds
from remit.core.checks import meant
from remit.core.text import shown
from remit.errors import BadInput

TIERS: Final[dict[str, Bounds]] = {
    "simple": Bounds(handoffs=0, tokens=10_000, members=1),
    "medium": Bounds(handoffs=2, tokens=25_000, members=3),
    "complex": Bounds(handoffs=5, tokens=150_000, members=5),
}


def tier(name: object) -> Bounds:
    """Give the bounds that a tier stands for."""
    bounds = TIERS.get(name) if isinstance(name, str) else None
    if bounds is None:
        raise BadInput(f"there is no tier {shown(name)}; the tiers are {', '.join(TIERS)}{meant(name, TIERS)}")
    return bounds
