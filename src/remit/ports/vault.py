"""The vault: it encrypts provider keys, so that the database alone reveals none."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from remit.core.secret import Secret


class Sealed(NamedTuple):
    """An encrypted secret; `key_id` identifies the master key."""

    key_id: str
    text: str


class KeyInfo(NamedTuple):
    """The visible facts about a stored provider key: its name, its master key, and when it was set."""

    name: str
    key_id: str
    set_at: int


class KeyRow(NamedTuple):
    """A stored provider key, encrypted."""

    name: str
    sealed: Sealed
    set_at: int


class KeyChange(NamedTuple):
    """Which keys are stored from now on, and which are deleted.

    Replaced and deleted keys are gone for good, so the change is no event. It is written together with an event that
    says who made it.
    """

    puts: Sequence[KeyRow] = ()
    drops: Sequence[str] = ()


class Vault(Protocol):
    """Encrypts and decrypts secrets. A secret that was encrypted for a workspace and a name opens only there."""

    @property
    def newest(self) -> str:
        """The id of the master key that encrypts new secrets."""
        ...

    def seal(self, workspace: str, name: str, secret: Secret) -> Sealed: ...
    def open(self, workspace: str, name: str, sealed: Sealed) -> Secret:
        """Return the secret that was encrypted for this workspace and name. Raise if it cannot be decrypted."""
        ...
