"""`remit schedule`: tasks that workers submit at the times of a cron expression."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter
from rich.text import Text

from remit.cli.completing import TeamWord
from remit.cli.options import (
    HERE,
    MYSELF,
    Acting,
    AsJson,
    Credits,
    DataOption,
    Where,
    aside,
    emit,
    opened_workspace,
    out,
    stay_at,
    typed,
    typed_data,
    with_unit,
)
from remit.cli.run import NO_TAGS, AskedFor, TagOptions, asked_by, asked_for
from remit.cli.submit import opened_team, read_plan, request_words
from remit.cli.terminal import Rows, moment
from remit.config.teams import Team
from remit.core.plan import Lead
from remit.core.times import Schedule
from remit.engine.schedules import missing
from remit.report import wire
from remit.report.printable import escaped
from remit.runtime.workspace import Workspace

_ADD: Final = "schedule add NAME CRON"


def listing(*, place: Where = HERE, json: AsJson = False) -> None:
    """List the schedules: when each runs next, when it ran last, and how often. Times are UTC.

    Parameters
    ----------
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        found = asyncio.run(workspace.schedules.list())
    if json:
        emit([wire.schedule(one) for one in found])
    elif not found:
        adds = typed("remit schedule add NAME '30 8 * * MON-FRI' AGENT 'task'")
        out().print(Text(f"no schedules; add one: {adds}", "dim"))
    else:
        names = ("name", "cron", "zone", "agent", "from", "next", "last", "runs", "task")
        out().print(Rows(names, [_row(one) for one in found], left=7, gives_way="task"))
        for one in found:
            if one.left:
                aside().print(Text(left_sentence(one), "yellow"))


def add(
    name: str,
    cron: str,
    *request: TeamWord,
    zone: str = "UTC",
    catch_up: Literal["latest", "all", "none"] = "latest",
    replace: Annotated[bool, Parameter(negative="")] = False,
    attempts: int | None = None,
    timeout: float | None = None,
    priority: int = 0,
    credits: Credits = None,
    data: DataOption = None,
    session: str = "",
    remembers: Annotated[bool, Parameter(negative="")] = False,
    labels: TagOptions = NO_TAGS,
    plan: Path | None = None,
    team: Annotated[bool, Parameter(negative="")] = False,
    place: Where = HERE,
    act: Acting = MYSELF,
    json: AsJson = False,
) -> None:
    """Submit a task at every time that a cron expression matches. Workers do so: `remit worker`.

    Each planned run is started once, however many workers there are. If an equal schedule of this name exists, the
    command changes nothing.

    Parameters
    ----------
    name
        Name of the schedule. Its runs say that they were started by `schedule NAME`.
    cron
        Cron expression, in quotes: minute, hour, day of month, month and day of week. '30 8 * * MON-FRI' is 8:30 on
        weekdays.
    request
        `[[TEAM] AGENT] TASK`, as for `remit submit`.
    zone
        Time zone of the expression, such as Europe/Berlin.
    catch_up
        Runs to start if no worker ran at planned times: the latest, all (up to 100), or none.
    replace
        Change a schedule of this name that differs.
    attempts
        Maximum number of attempts of a run. [default: the agent's retry policy, else 4]
    timeout
        Timeout of one attempt, in seconds. [default: the agent's, else 260]
    priority
        Place in the queue: from -100 to 100, higher first.
    credits
        Budget of a run, for example 0.50USD.
    data
        JSON value for the agent, next to the task's text: `'{"order": 7}'`, or `@order.json` for a file.
    session
        Session of all runs. [default: a new one for each run]
    remembers
        Start each run with the earlier messages of the session.
    labels
        Labels of the runs.
    plan
        Run the plan in this JSON file instead of a task.
    team
        Let AGENT coordinate a team; TASK is the goal.
    json
        Print JSON.
    """
    run: dict[str, Any] = {
        "attempts": attempts,
        "timeout": timeout,
        "priority": priority or None,
        "credits": with_unit(credits),
    }
    run |= {"session": session or None, "remembers": remembers or None, **labels.labels}
    run["data"] = typed_data(data)
    how = {key: value for key, value in run.items() if value is not None}
    how |= {"zone": zone, "catch_up": catch_up, "replace": replace, **act.said}
    where, agent, task = request_words(request, plan, team=team, command=_ADD)
    asked = AskedFor("", "", Lead(read_plan(plan))) if plan is not None else None
    opened_, defaults = opened_team(where, place)
    with opened_ as owner:
        if team:
            asked = AskedFor(agent or asked_by(defaults, _ADD), task, Lead())
        made = asyncio.run(_added(owner, (name, cron), asked or asked_for(defaults, agent, task, _ADD), how))
        stay_at(owner, place.store)
    _say_added(made, as_json=json)


def _say_added(made: Schedule, *, as_json: bool) -> None:
    if as_json:
        emit(wire.schedule(made))
    else:
        out().print(Text(f"schedule {escaped(made.name, 64)}: {next_run(made)}"))
        aside().print(Text(f"a worker starts its runs: {typed('remit worker')}", "dim"))


def _added(
    owner: Workspace, when: tuple[str, str], asked: AskedFor, how: dict[str, Any]
) -> Coroutine[Any, Any, Schedule]:
    """Return a coroutine that adds the schedule of a task, of a goal for a team, or of a plan, and returns it. `when`
    is its name and its cron expression."""
    lead = asked.lead
    if lead is None:
        return owner.schedules.add(*when, asked.agent, asked.task, **how)
    led: dict[str, Any] = {**how, "concurrency": lead.concurrency, "reveal": lead.reveal}
    if asked.agent:
        return owner.schedules.add_team(*when, asked.task, asked.agent, plan=lead.plan, **led)
    assert lead.plan is not None
    return owner.schedules.add_plan(*when, lead.plan, **led)


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

    with opened_workspace(place) as workspace:
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
    _set("paused", name, place, act, as_json=json)


def resume(name: str, *, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Start the runs of a paused schedule again, from the next planned time on.

    Parameters
    ----------
    name
        Name of the schedule.
    json
        Print JSON.
    """
    _set("active", name, place, act, as_json=json)


def _set(state: str, name: str, place: Where, act: Acting, *, as_json: bool) -> None:
    """Pause or resume a schedule, and say whether that changed anything."""

    async def done(workspace: Workspace) -> tuple[bool, Schedule | None]:
        schedules = workspace.schedules
        changed = await (schedules.pause if state == "paused" else schedules.resume)(name, **act.said)
        return changed, next((one for one in await schedules.list() if one.name == name), None)

    with opened_workspace(place) as workspace:
        changed, found = asyncio.run(done(workspace))
    if as_json:
        emit({"name": name, "state": state, "changed": changed})
        return
    upcoming = f": {next_run(found)}" if found is not None and state == "active" else ""
    out().print(Text(f"schedule {escaped(name, 64)} {'is' if changed else 'was'} {state}{upcoming}"))


def _row(one: Schedule) -> list[Text | str]:
    upcoming = Text("paused", "yellow") if one.state == "paused" else Text(moment(one.next) if one.next else "never")
    last = moment(one.last) if one.last is not None else ""
    name, task = Text(escaped(one.name, 64), "bold"), escaped(one.task, 200)
    agent = f"{one.agent} (team)" if one.led_as == "team" else one.agent
    source = f"{escaped(one.source, 64)}, left" if one.left else escaped(one.source, 64)
    cron, zone = escaped(one.cron, 200), escaped(one.zone, 100)
    return [name, cron, zone, agent, source, upcoming, last, str(one.runs), task]


async def set_schedules(team: Team) -> list[tuple[str, str]]:
    """Set the schedules of a team's file. Return what changed, as sentences with their styles."""
    from remit.config.schedules import apply_schedules

    done = await apply_schedules(team.runtime.workspace, team.schedules, team.file)
    return [
        (left_sentence(one), "yellow")
        if what == "left"
        else (f"schedule {escaped(one.name, 64)} {what}: {next_run(one)}", "")
        for one, what in done
    ]


def left_sentence(one: Schedule) -> str:
    """Return a sentence about a schedule that its team file no longer has: it continues, and how to remove it."""
    name, file = escaped(one.name, 64), escaped(one.source, 64)
    ends = typed(f"remit schedule rm {quote(name)}")
    return f"schedule {name} is not in {file} any more and goes on; to end it: {ends}"


def next_run(one: Schedule) -> str:
    """Return text such as "next 2026-11-16T07:30:00Z, then '30 8 * * *' Europe/Berlin", or that the schedule is paused
    or has no planned time left."""
    if one.next is None:
        return "paused" if one.state == "paused" else "no planned time is left"
    return f"next {moment(one.next)}, then '{escaped(one.cron, 200)}' {escaped(one.zone, 100)}"
