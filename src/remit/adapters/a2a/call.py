"""A request of A2A: who makes it, in which workspace, and for which agent."""

import re
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Final, NamedTuple, Protocol

from a2a.server.context import ServerCallContext

from remit.core.bounds import Bounds
from remit.core.values import SESSION_LIMIT
from remit.runtime.tasks import Status
from remit.runtime.workspace import Workspace

CONTEXT: Final = "a2a.context"  # the metadata of a run whose context does not fit the name of a session
MESSAGE: Final = "a2a.message"  # the metadata of a run: the id of the message that began it
_PREFIX: Final = "a2a-"
_SHORT: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}", re.ASCII)
_DIGEST: Final = "="  # in no short name
_DIGITS: Final = 24


class A2ACaller(Protocol):
    """The client that makes a request, as its access key describes it."""

    @property
    def access(self) -> str: ...
    @property
    def agent(self) -> str: ...
    @property
    def bounds(self) -> Bounds: ...
    @property
    def by(self) -> str: ...
    def may(self, scope: str) -> bool: ...


class A2ACall(NamedTuple):
    """A request: its client, its workspace, and the agent that it is for. `check` raises an error if the client's key
    is no longer valid."""

    caller: A2ACaller
    workspace: Workspace
    agent: str
    check: Callable[[], Awaitable[object]]

    @property
    def sessions(self) -> str:
        """The prefix of the names of this client's sessions. It contains the access key's id, so that no request
        reaches the session of another key."""
        return f"{_PREFIX}{self.caller.access or 'token'}-"

    def session_of(self, context: str) -> str:
        """Return the session of a context: the prefix and its name, or a digest if the name does not fit a session."""
        if self.is_long(context):
            context = f"{_DIGEST}{sha256(context.encode()).hexdigest()[:_DIGITS]}"
        return f"{self.sessions}{context}"

    def is_long(self, context: str) -> bool:
        """Whether the name of a context does not fit a session: it is too long, or has other characters."""
        return not _SHORT.fullmatch(context) or len(self.sessions) + len(context) > SESSION_LIMIT

    def context_of(self, status: Status) -> str:
        """Return the A2A context of a task: the name of its session without the prefix of the access key, or the
        recorded name if the session has a digest of it."""
        name = status.session.removeprefix(self.sessions)
        return str(status.meta.get(CONTEXT, name)) if name.startswith(_DIGEST) else name

    def key(self, given: str) -> str:
        """Return an idempotency key that only requests with the same access key share."""
        return f"{self.caller.access or 'token'}/a2a/{given}"


def call_of(context: ServerCallContext) -> A2ACall:
    """Return the call that the routes have put into the context of the SDK."""
    return context.state["remit.call"]
