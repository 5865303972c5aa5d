"""Agents of other servers, by the A2A protocol and the a2a-sdk package (`remit[a2a]`), which is imported when one is
called.

    rt.add(a2a("https://example.com/a2a/translator"))

The address is that of the agent; its card is below it, at `/.well-known/agent-card.json`.
"""

import os
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, Final

from remit.adapters.asking.secrecy import Hidden, SecretGiven, kept
from remit.adapters.vetted import Vetted, checked_form, networks
from remit.core.secret import REDACTED
from remit.core.values import canonical, shown
from remit.errors import BadInput

NETWORKS: Final = "REMIT_A2A_NETWORKS"
_SHOWN: Final = 60


class RemoteAgent:
    """An agent of another server. It is called like a function: with the turn."""

    polices_tools = False
    outside = ("an agent of another server", "an agent of another server", "there")

    def __init__(self, url: str, token: Callable[[], str] | None, key: str, permits: str) -> None:
        self.url = url.rstrip("/")
        self.token = token
        self.key = key
        self.permits = networks(permits)
        self.target = checked_form(self.url, self.permits)
        self._hidden = None if token is None else Hidden(lambda: [(one, REDACTED) for one in [token()] if one])

    @property
    def name(self) -> str:
        """The last part of its address, or its host: the agent's name if none is given."""
        path = self.target.path.partition("?")[0].strip("/")
        return canonical(path.rpartition("/")[2] or self.target.host.partition(".")[0])

    @property
    def host(self) -> str:
        """Its host, as it is shown to people."""
        return self.target.host[:_SHOWN]

    def vetted(self) -> Vetted:
        """Return what connects to its address."""
        return Vetted(self.permits)

    def __call__(self, turn: Any) -> Awaitable[Any]:
        return _client().answer(self, turn)

    def __repr__(self) -> str:
        return f"<a2a {self.host}>"


def a2a(url: str, *, token: SecretGiven | None = None, key: str = "", networks: str | None = None) -> RemoteAgent:
    """Return an agent of another server, for `rt.add`: `rt.add(a2a("https://example.com/a2a/translator"))`. What it
    answers is untrusted, unless its card here declares its output trusted.

    `token` is sent as `Authorization: Bearer`, only to this host. `key` is the public key of the server, as PEM: then
    the agent's card must be signed with it. The address must be public; `networks` lists networks of your own that may
    be reached too, such as "127.0.0.0/8" [default: the environment variable REMIT_A2A_NETWORKS].

    The remote task is recorded before it is followed: another worker that continues the task follows the same remote
    task. A question of the remote agent is a question to a person. The remote agent is told when the task is cancelled.
    """
    if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance] - it comes from callers
        raise BadInput(f"key is a public key as PEM text, not {shown(key)}")
    if key and "-----BEGIN PUBLIC KEY-----" not in key:
        raise BadInput("key is a public key as PEM: text that begins with -----BEGIN PUBLIC KEY-----")
    permits = os.environ.get(NETWORKS, "") if networks is None else networks
    secret = None if token is None else kept(token, "the token")
    return RemoteAgent(url, secret, key, permits)


def _client() -> Any:
    try:
        return import_module("remit.adapters.a2a_client")
    except ImportError as error:
        raise BadInput("agents of other servers need the a2a-sdk package: pip install 'remit[a2a]'") from error
