"""Telling clients of A2A of their tasks: what is sent to an address when a task changes.

The message is the task as it is when it is sent, so a message that arrives late or twice says nothing that is wrong.
"""

from collections.abc import Mapping
from typing import NamedTuple

from a2a.types.a2a_pb2 import StreamResponse, TaskStatusUpdateEvent
from google.protobuf.json_format import MessageToJson

from remit.adapters.a2a.call import A2ACall
from remit.adapters.a2a.looks import looked_at, status_of, task_of
from remit.core.bounds import TOP, Bounds
from remit.runtime.opening import Opening
from remit.runtime.pushes import PushTarget
from remit.runtime.workspace import Workspace

MEDIA_TYPE = "application/a2a+json"
TOKEN = "X-A2A-Notification-Token"  # noqa: S105 - the name of a header


class PushMessage(NamedTuple):
    """One push notification. `is_last` is true if it reports the end of the task."""

    body: bytes
    headers: Mapping[str, str]
    is_last: bool


class _Client(NamedTuple):
    """The client that set up a push notification, in the role of a request's caller."""

    target: PushTarget

    @property
    def access(self) -> str:
        return self.target.access

    @property
    def agent(self) -> str:
        return ""

    @property
    def bounds(self) -> Bounds:
        return TOP

    @property
    def by(self) -> str:
        return self.target.by

    def may(self, scope: str) -> bool:
        return scope == "approve" and self.target.approves


async def pushed(opening: Opening, task: str, target: PushTarget) -> PushMessage:
    """Return the push notification for the present state of a task: a status update, or the whole task if it has
    ended."""
    call = A2ACall(_Client(target), Workspace(opening), target.agent, _counts)
    look = await looked_at(call, task)
    if look.is_over:
        said = StreamResponse(task=await task_of(call, look, history=0))
    else:
        where = call.context_of(look.status)
        update = TaskStatusUpdateEvent(task_id=task, context_id=where, status=status_of(call, look))
        said = StreamResponse(status_update=update)
    headers = {"content-type": MEDIA_TYPE, "a2a-version": "1.0"}
    if target.token:
        headers[TOKEN] = target.token
    if target.scheme:
        headers["authorization"] = f"{target.scheme} {target.credentials}".strip()
    return PushMessage(MessageToJson(said, indent=None).encode(), headers, look.is_over)


async def _counts() -> None:
    """Check nothing: the sender has already checked that the access key is valid."""
