"""Schedules over HTTP: tasks that are submitted again and again; and the names of provider keys and cooldowns."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import ConfigDict, Field

from remit.core.schedule import SCHEDULE_LIMIT
from remit.engine.asking import Scheduling
from remit.errors import NotFound
from remit.report import wire
from remit.server.calls import HttpAnswer, HttpCall, NoBody, NoQuery
from remit.server.fields import NO_NUL, SAYS_SOMETHING, AgentName, AnyJson, Text
from remit.server.handlers.tasks import LabelsBody

CronText = Annotated[str, Field(min_length=1, max_length=200, json_schema_extra={"pattern": NO_NUL})]


class ScheduleBody(LabelsBody):
    """A schedule: a cron expression in a time zone, and the task that is submitted at its times."""

    model_config = ConfigDict(json_schema_extra=SAYS_SOMETHING)

    cron: CronText
    agent: AgentName
    task: Text = ""
    data: AnyJson = None
    zone: Annotated[str, Field(min_length=1, max_length=100, json_schema_extra={"pattern": NO_NUL})] = "UTC"
    catch_up: Literal["latest", "all", "none"] = "latest"


async def listing(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """List all schedules, by name."""
    return HttpAnswer({"schedules": [wire.schedule(one) for one in await call.workspace.schedules.list()]})


async def put(call: HttpCall[NoQuery, ScheduleBody]) -> HttpAnswer:
    """Set a schedule; another one of the same name is replaced."""
    body, name = call.body, _name(call)
    how = body.keywords("cron", "agent", "task", "zone", "catch_up", "after", "at")
    how["within"] = how.get("within", call.caller.bounds) & call.caller.bounds
    act: dict[str, Any] = {"replace": True, "op": call.op, "by": call.caller.by}
    times: dict[str, Any] = {"zone": body.zone, "catch_up": body.catch_up}
    await call.workspace.schedules.add(
        name, body.cron, body.agent, body.task, **times, **act, **cast("Scheduling", how)
    )
    return HttpAnswer({"name": name})


async def remove(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Remove a schedule. Its runs stay."""
    if not await call.workspace.schedules.remove(_name(call), op=call.op, by=call.caller.by):
        raise NotFound("there is no such schedule")
    return HttpAnswer(None, 204)


async def pause(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Start no more runs of a schedule until it is resumed."""
    changed = await call.workspace.schedules.pause(_name(call), op=call.op, by=call.caller.by)
    return HttpAnswer({"changed": changed})


async def resume(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Start the runs of a paused schedule again."""
    changed = await call.workspace.schedules.resume(_name(call), op=call.op, by=call.caller.by)
    return HttpAnswer({"changed": changed})


def _name(call: HttpCall[NoQuery, ScheduleBody] | HttpCall[NoQuery, NoBody]) -> str:
    name = call.path["name"]
    if len(name) > SCHEDULE_LIMIT or not name.isprintable():
        raise NotFound("there is no such schedule")
    return name


async def keys(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """List the provider keys by name. No key is decrypted, and none can be read."""
    return HttpAnswer({"keys": [wire.key(one) for one in await call.workspace.keys.names()]})


async def cooling(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """List the keys and models on cooldown."""
    return HttpAnswer({"cooling": [wire.resting(one) for one in await call.workspace.keys.cooling.list()]})
