"""A request of A2A: who makes it, in which workspace, and for which agent."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

from a2a.server.context import ServerCallContext

from remit.core.bounds import Bounds
from remit.runtime.tasks import Status
from remit.runtime.workspace import Workspace

_PREFIX: Final = "a2a-"


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
        """What the names of its sessions begin with: no request reaches the session of another key."""
        return f"{_PREFIX}{self.caller.access or 'token'}-"

    def context_of(self, status: Status) -> str:
        """Return the context of a task: its session, without what tells keys apart."""
        return status.session.removeprefix(self.sessions)

    def key(self, given: str) -> str:
        """Return the key of a request, which only requests with the same access share."""
        return f"{self.caller.access or 'token'}/a2a/{given}"


def call_of(context: ServerCallContext) -> A2ACall:
    """Return the call that the routes have put into the context of the SDK."""
    return context.state["remit.call"]
