"""Trust labels. Data derived from untrusted input stays untrusted, until an owner or an agent with trusted output
clears it."""

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from remit.core.text import shown
from remit.errors import BadInput

Trust: TypeAlias = Literal["trusted", "untrusted"]
TRUSTED: Final = "trusted"
UNTRUSTED: Final = "untrusted"


def known_trust(given: object) -> None:
    if given not in (TRUSTED, UNTRUSTED):
        raise BadInput(f"trust is 'trusted' or 'untrusted', not {shown(given)}")


def least(labels: Iterable[Trust]) -> Trust:
    """Return the combined label: untrusted if any of the labels is."""
    return UNTRUSTED if UNTRUSTED in labels else TRUSTED
