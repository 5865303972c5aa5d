"""Trust labels. Data derived from untrusted input stays untrusted, until an owner or an agent with trusted output
clears it."""

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
    """Return the combined label: untrusted if any of the labels is."""
    return OUTSIDE if OUTSIDE in labels else INSIDE
