"""`remit schedule`: tasks that workers submit again and again, by a cron expression."""

import asyncio
from functools import partial
from typing import Annotated, Literal, cast

from cyclopts import Parameter
from rich.text import Text

from remit.cli.options import (
    HERE,
    MYSELF,
    Acting,
    AsJson,
    Credits,
    Where,
    aside,
    emit,
    opened,
    out,
    stay_at,
    typed,
    with_unit,
)
from remit.cli.submit import opened_team
from remit.cli.terminal import Rows, moment
from remit.core.times import Schedule
from remit.engine.asking import Scheduling
from remit.engine.schedules import missing
from remit.report import wire
from remit.report.printable import escaped
from remit.runtime.workspace import Workspace


def listing(*, place: Where = HERE, json: AsJson = False) -> None:
    """List the schedules: when each runs next, when it ran last, and how often. Times are UTC.

    Parameters
    ----------
    json
        Print JSON.
    """
    with opened(place) as workspace:
        found = asyncio.run(workspace.schedules.list())
    if json:
        emit([wire.schedule(one) for one in found])
    elif not found:
        out().print(Text("no schedules; add one: remit schedule add NAME '30 8 * * MON-FRI' AGENT 'task'", "dim"))
    else:
        names = ("name", "cron", "zone", "agent", "next", "last", "runs", "task")
        out().print(Rows(names, [_row(one) for one in found], left=6, gives_way="task"))


def add(
    name: str,
    cron: str,
    agent: str,
    task: str,
    *,
    zone: str = "UTC",
    catch_up: Literal["latest", "all", "none"] = "latest",
    replace: Annotated[bool, Parameter(negative="")] = False,
    attempts: int | None = None,
    timeout: float | None = None,
    priority: int = 0,
    credits: Credits = None,
    session: str = "",
    place: Where = HERE,
    act: Acting = MYSELF,
    json: AsJson = False,
) -> None:
    """Submit a task at every time that a cron expression matches. Workers do so: `remit worker`.

    CRON is one argument in quotes: minute, hour, day of month, month and day of week. '30 8 * * MON-FRI' is 8:30 on
    weekdays, '*/15 * * * *' every quarter of an hour, '0 0 L * *' the last day of a month. Each planned run is started
    once, however many workers there are. An equal schedule of this name is left as it is.

    Parameters
    ----------
    name
        Name of the schedule. Its runs say that they were started by `schedule NAME`.
    cron
        Cron expression.
    agent
        Agent that gets the task.
    task
        The task.
    zone
        Time zone of the expression, such as Europe/Berlin.
    catch_up
        Runs to start if no worker ran at planned times: the latest, all (up to 100), or none.
    replace
        Change a schedule of this name that differs.
    attempts
        Maximum number of attempts of a run. [default: the agent's retry policy, else 4]
    timeout
        Timeout of one attempt, in seconds. [default: 260]
    priority
        Place in the queue: from -100 to 100, higher first.
    credits
        Budget of a run, for example 0.50USD.
    session
        Session of all runs. [default: a new one for each run]
    json
        Print JSON.
    """
    run = {"attempts": attempts, "timeout": timeout, "priority": priority or None, "credits": with_unit(credits)}
    run = {key: value for key, value in {**run, "session": session or None}.items() if value is not None}
    how = cast("Scheduling", run)
    owner, _ = opened_team("", place.store, place.workspace)
    with owner:
        adding = partial(owner.schedules.add, name, cron, agent, task, zone=zone, catch_up=catch_up, replace=replace)
        made = asyncio.run(adding(**act.said, **how))
        stay_at(owner, place.store)
    if json:
        emit(wire.schedule(made))
    else:
        out().print(Text(f"schedule {escaped(made.name, 64)}: {_next(made)}"))
        aside().print(Text(f"a worker starts its runs: {typed('remit worker')}", "dim"))


def remove(name: str, *, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Remove a schedule. Its runs and queued tasks stay.

    Parameters
    ----------
    name
        Name of the schedule.
    json
        Print JSON.
    """

    async def removed(workspace: Workspace) -> bool:
        known = [one.name for one in await workspace.schedules.list()]
        if name not in known:
            raise missing(name, known)
        return await workspace.schedules.remove(name, **act.said)

    with opened(place) as workspace:
        asyncio.run(removed(workspace))
    if json:
        emit({"name": name, "removed": True})
    else:
        out().print(Text(f"schedule {escaped(name, 64)} is removed"))


def pause(name: str, *, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Start no more runs of a schedule until it is resumed.

    Parameters
    ----------
    name
        Name of the schedule.
    json
        Print JSON.
    """
    with opened(place) as workspace:
        changed = asyncio.run(workspace.schedules.pause(name, **act.said))
    if json:
        emit({"name": name, "state": "paused", "changed": changed})
    else:
        out().print(Text(f"schedule {escaped(name, 64)} {'is' if changed else 'was'} paused"))


def resume(name: str, *, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Start the runs of a paused schedule again, from the next planned time on.

    Parameters
    ----------
    name
        Name of the schedule.
    json
        Print JSON.
    """

    async def resumed(workspace: Workspace) -> tuple[bool, Schedule | None]:
        changed = await workspace.schedules.resume(name, **act.said)
        return changed, next((one for one in await workspace.schedules.list() if one.name == name), None)

    with opened(place) as workspace:
        changed, found = asyncio.run(resumed(workspace))
    if json:
        emit({"name": name, "state": "active", "changed": changed})
    else:
        upcoming = f": {_next(found)}" if found is not None else ""
        out().print(Text(f"schedule {escaped(name, 64)} {'is' if changed else 'was'} active{upcoming}"))


def _row(one: Schedule) -> list[Text | str]:
    upcoming = Text("paused", "yellow") if one.state == "paused" else Text(moment(one.next) if one.next else "never")
    last = moment(one.last) if one.last is not None else ""
    name, task = Text(escaped(one.name, 64), "bold"), escaped(one.task, 200)
    return [name, escaped(one.cron, 200), escaped(one.zone, 100), one.agent, upcoming, last, str(one.runs), task]


def _next(one: Schedule) -> str:
    """Return text such as "next 2026-11-16T07:30:00Z, then '30 8 * * *' Europe/Berlin"."""
    if one.next is None:
        return "paused" if one.state == "paused" else "no planned time is left"
    return f"next {moment(one.next)}, then '{escaped(one.cron, 200)}' {escaped(one.zone, 100)}"
