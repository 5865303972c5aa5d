"""Agents of other servers, by the A2A protocol and the a2a-sdk package (`remit[a2a]`), which is imported when one is
called.

    rt.add(a2a("https://example.com/a2a/translator"))

The address is that of the agent; its card is below it, at `/.well-known/agent-card.json`.
"""

import os
from collections.abc import Awaitable
from importlib import import_module
from typing import Any, Final

from remit.adapters.a2a.place import RemotePlace
from remit.adapters.asking.secrecy import Hidden, SecretGiven, secret_reader
from remit.core.secret import REDACTED
from remit.core.values import shown
from remit.errors import BadInput

NETWORKS: Final = "REMIT_A2A_NETWORKS"


class RemoteAgent:
    """An agent of another server. It is called like a function: with the turn."""

    polices_tools = False
    outside = ("an agent of another server", "an agent of another server", "there")

    def __init__(self, place: RemotePlace) -> None:
        self.place = place
        token = place.token
        self._hidden = None if token is None else Hidden(lambda: [(one, REDACTED) for one in [token()] if one])

    @property
    def name(self) -> str:
        """The agent's name if none is given."""
        return self.place.name

    def __call__(self, turn: Any) -> Awaitable[Any]:
        return _client().answer(self.place, turn)

    def __repr__(self) -> str:
        return f"<a2a {self.place.host}>"


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
    if not isinstance(permits, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(
            f'networks lists networks, such as "127.0.0.0/8, 10.1.0.0/16", in one text, not {shown(permits)}'
        )
    secret = None if token is None else secret_reader(token, "the token")
    return RemoteAgent(RemotePlace(url, secret, key, permits))


def _client() -> Any:
    try:
        return import_module("remit.adapters.a2a.client")
    except ImportError as error:
        raise BadInput("agents of other servers need the a2a-sdk package: pip install 'remit[a2a]'") from error
