"""Access over HTTP: an admin makes, lists and revokes keys of its workspace, and gives none more than it has."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from remit.core.access import wrong_id
from remit.core.bounds import TOP
from remit.errors import NotFound
from remit.report import wire
from remit.runtime.performing import expiry_within
from remit.server.calls import BodyModel, HttpAnswer, HttpCall, NoBody, NoQuery
from remit.server.fields import AgentName, BoundsBody, Line, Seconds

ScopeName = Literal["read", "run", "approve", "admin"]


class AccessBody(BodyModel):
    """A new access: its name, its scopes, the seconds until it expires, the agent in whose name it asks, and its
    bounds."""

    name: Line
    scopes: Annotated[list[ScopeName], Field(min_length=1, max_length=4)]
    seconds: Seconds | None = None
    agent: AgentName | None = None
    bounds: BoundsBody | None = None


async def make(call: HttpCall[NoQuery, AccessBody]) -> HttpAnswer:
    """Create an access key. It is in this answer and nowhere else, so a repeated request gets a conflict. It has the
    bounds and the expiry of the caller where the request asks for more."""
    body, access = call.body, call.workspace.access
    made = await access.make(
        body.name,
        scopes=[*body.scopes],
        expires=await expiry_within(call.workspace, call.caller.access, body.seconds),
        agent=body.agent or "",
        bounds=(TOP if body.bounds is None else body.bounds.bounds) & call.caller.bounds,
        op=call.op,
        by=call.caller.by,
    )
    return HttpAnswer(
        {**wire.access(made.access), "key": made.key.reveal()},
        201,
        {"Location": f"/v1/access/{made.id}", "Cache-Control": "no-store"},
    )


async def listing(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """List all access keys of the workspace, without their texts, also the revoked and expired ones."""
    return HttpAnswer({"access": [wire.access(one) for one in await call.workspace.access.list()]})


async def revoke(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Revoke an access key. Every server refuses it within a second."""
    if wrong_id(call.id):
        raise NotFound("there is no such access")
    await call.workspace.access.revoke(call.id, op=call.op, by=call.caller.by)
    return HttpAnswer(None, 204)
