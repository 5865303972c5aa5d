"""The vault: what seals secrets, so that whoever has the database alone has nothing."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from remit.core.secret import Secret


class Sealed(NamedTuple):
    """A secret that only its vault can open; `key_id` tells with which master key."""

    key_id: str
    text: str


class KeyInfo(NamedTuple):
    """What is told of a key that is kept: its name, with which master key it is sealed, and since when it is there."""

    name: str
    key_id: str
    set_at: int


class KeyRow(NamedTuple):
    """A key as it is kept: sealed."""

    name: str
    sealed: Sealed
    set_at: int


class KeyChange(NamedTuple):
    """Which keys are kept from now on, and which no more.

    It is not history: what it replaces and drops is really gone. So it is no event, and is written along with one that
    tells who did it.
    """

    puts: Sequence[KeyRow] = ()
    drops: Sequence[str] = ()


class Vault(Protocol):
    """Seals secrets and opens them. What was sealed for a workspace under a name opens there and nowhere else."""

    @property
    def newest(self) -> str:
        """Which master key it seals with."""
        ...

    def seal(self, workspace: str, name: str, secret: Secret) -> Sealed: ...
    def open(self, workspace: str, name: str, sealed: Sealed) -> Secret:
        """Open what was sealed for this workspace under this name; raises a sentence if it cannot be."""
        ...
