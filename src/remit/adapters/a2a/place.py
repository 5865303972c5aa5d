"""The address of an agent on another server, with the token and the key to reach it."""

from collections.abc import Callable
from typing import Final

from remit.adapters.vetted import Vetted, checked_form, networks
from remit.core.values import canonical

_SHOWN: Final = 60


class RemotePlace:
    """The address of an agent of another server, the token that is sent there, the public key that its card must be
    signed with, and the networks of one's own that may be reached."""

    def __init__(self, url: str, token: Callable[[], str] | None, key: str, permits: str) -> None:
        self.url = url.rstrip("/")
        self.token = token
        self.key = key
        self.permits = networks(permits, "networks")
        self.target = checked_form(self.url, self.permits)

    @property
    def name(self) -> str:
        """The agent's name if none is given: the last part of the path, or the first part of the host."""
        path = self.target.path.partition("?")[0].strip("/")
        return canonical(path.rpartition("/")[2] or self.target.host.partition(".")[0])

    @property
    def host(self) -> str:
        """The host as it is shown to people: at most 60 characters."""
        return self.target.host[:_SHOWN]

    def vetted(self) -> Vetted:
        """Return the client that connects only to public addresses and to the permitted networks."""
        return Vetted(self.permits)
