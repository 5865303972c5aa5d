"""Trust: a label on everything a turn takes in. What came from outside stays outside, through whatever hands it goes,
until an owner or an agent that vouches for it says otherwise."""

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from remit.core.text import shown
from remit.errors import BadInput

Trust: TypeAlias = Literal["inside", "outside"]
INSIDE: Final = "inside"
OUTSIDE: Final = "outside"


def known_trust(given: object) -> None:
    if given not in (INSIDE, OUTSIDE):
        raise BadInput(f"trust is 'inside' or 'outside', not {shown(given)}")


def least(labels: Iterable[Trust]) -> Trust:
    """Give the label of what is made of several things: from outside if any of them is."""
    return OUTSIDE if OUTSIDE in labels else INSIDE
