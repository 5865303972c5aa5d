"""Hooks over HTTP: an admin adds, lists, rotates and removes hooks, looks at deliveries and sends them again."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from remit.core.events import FAMILY
from remit.core.kinds import SHAPES
from remit.core.values import NAME_LIMIT, Json
from remit.errors import NotFound
from remit.report import wire
from remit.runtime.hooks import NewHook
from remit.server.calls import BodyModel, HttpAnswer, HttpCall, NoBody, NoQuery, QueryModel
from remit.server.fields import Limit, Line

KINDS = tuple(sorted({*SHAPES, *(f"{kind.partition('.')[0]}{FAMILY}" for kind in SHAPES)}))
HookKind = Annotated[str, Field(json_schema_extra={"enum": [*KINDS]})]
_ADDRESS = r"^https://([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.){1,2}[a-z]{2,20}(/[!$-;=?-\[\]_a-z~]*)?$"


class HookBody(BodyModel):
    """A new hook: its address, the kinds of events that it wants, and the run whose events it wants if it is one."""

    url: Annotated[str, Field(min_length=1, max_length=2_000, json_schema_extra={"pattern": _ADDRESS})]
    kinds: Annotated[list[HookKind], Field(min_length=1, max_length=len(KINDS))]
    run: Line | None = None


class DeliveriesQuery(QueryModel):
    """Which deliveries to list: those in `state`, or all if it is missing. `open` stands for every state of a delivery
    that has not ended. `cursor` is the id of the last delivery of the previous page."""

    state: Literal["open", "pending", "running", "waiting", "completed", "failed", "dead", "cancelled"] | None = None
    limit: Limit = 100
    cursor: Line | None = None


async def add(call: HttpCall[NoQuery, HookBody]) -> HttpAnswer:
    """Send the events of these kinds to an address from now on. The secret is in this answer and in no table."""
    body = call.body
    made = await call.workspace.hooks.add(body.url, body.kinds, run=body.run or "", op=call.op, by=call.caller.by)
    return _secret(made, 201)


async def listing(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """List the hooks, and how their deliveries go."""
    return HttpAnswer({"hooks": [wire.object_of(one) for one in await call.workspace.hooks.list()]})


async def rotate(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Give a hook a new secret. For 24 hours, deliveries are signed with the old secret too."""
    return _secret(await call.workspace.hooks.rotate(call.id, op=call.op, by=call.caller.by), 200)


async def remove(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Remove a hook. Nothing more is sent to it."""
    if not await call.workspace.hooks.remove(call.id, op=call.op, by=call.caller.by):
        raise NotFound("there is no such hook")
    return HttpAnswer(None, 204)


async def deliveries(call: HttpCall[DeliveriesQuery, NoBody]) -> HttpAnswer:
    """List what was sent to a hook, or is to be sent, newest first."""
    query = call.query
    found = await call.workspace.hooks.deliveries(
        call.id, state=query.state, limit=query.limit, before=query.cursor or ""
    )
    following = found[-1].id if len(found) == query.limit else None
    return HttpAnswer({"deliveries": [wire.object_of(one) for one in found], "next": following})


async def replay(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Send a delivery again that has ended."""
    text = call.path["delivery"]
    if len(text) > NAME_LIMIT or not text.isprintable() or not text:
        raise NotFound("there is no such delivery")
    again = await call.workspace.hooks.replay(text, hook=call.id, op=call.op, by=call.caller.by)
    return HttpAnswer({"id": again}, 202)


def _secret(made: NewHook, status: int) -> HttpAnswer:
    answer: dict[str, Json] = {"id": made.id, "secret": made.secret.reveal()}
    return HttpAnswer(answer, status, {"Location": f"/v1/hooks/{made.id}", "Cache-Control": "no-store"})
