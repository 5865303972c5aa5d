"""Schedules of a team's file: `[schedules.NAME]`. A worker of the team sets them when it starts.

The name is the key. A schedule that is new is added, one that differs is changed, and an equal one is left as it is, so
any number of workers can start with the same file. A schedule that was removed from the file continues, and is marked.
"""

from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from remit.core.plan import Lead
from remit.core.remit import STAND_IN
from remit.core.times import Schedule
from remit.engine import asking
from remit.engine.acts import act_of
from remit.engine.schedules import Schedules
from remit.errors import BadInput
from remit.runtime.workspace import Workspace, opening_of

_WHAT: Final = ("agent", "coordinator", "task")


class FileSchedule(NamedTuple):
    """A schedule of a file. Without `lead`, `agent` gets the task. With `lead`, `agent` coordinates a team for the goal
    `task`, or, if `agent` is empty, a plan runs. `times` has the zone and the catch-up, `how` the keywords of each
    run."""

    name: str
    cron: str
    agent: str
    task: str
    lead: Lead | None
    times: dict[str, Any]
    how: dict[str, Any]

    def add(self, workspace: Workspace, source: str) -> Coroutine[Any, Any, Schedule]:
        """Return a coroutine that sets the schedule in a workspace and returns it. `source` is the name of the file."""
        schedules, when = workspace.schedules, (self.name, self.cron)
        how: dict[str, Any] = {**self.times, **self.how, "source": source, "by": source, "replace": True}
        if self.lead is None:
            return schedules.add(*when, self.agent, self.task, **how)
        if self.agent:
            return schedules.add_team(*when, self.task, self.agent, plan=self.lead.plan, **how)
        assert self.lead.plan is not None
        return schedules.add_plan(*when, self.lead.plan, **how)


class AppliedSchedule(NamedTuple):
    """What a worker did about a schedule of its file: added, changed, or left (it is in the file no more)."""

    schedule: Schedule
    done: str


class FileDefaults(NamedTuple):
    """The agent, the coordinator and the plan of a file, for schedules that name none."""

    agent: str
    coordinator: str
    lead: Lead


def file_schedule(name: str, table: Mapping[str, Any], defaults: FileDefaults) -> FileSchedule:
    """Return the schedule of a table. Raise `BadInput` if the table does not say what runs, or has a keyword that a
    submission would refuse."""
    agent, coordinator, task = (str(table.get(key, "")) for key in _WHAT)
    lead, plan = defaults.lead, defaults.lead.plan
    if agent and coordinator:
        raise BadInput("set only one of agent and coordinator")
    if not agent and not coordinator:
        if task and defaults.agent:
            agent = defaults.agent
        elif task or plan is None or plan.goal:
            coordinator = defaults.coordinator
    how = {key: value for key, value in table.items() if key not in ("cron", "zone", "catch_up", *_WHAT)}
    times = {key: table[key] for key in ("zone", "catch_up") if key in table}
    if agent:
        if not task:
            raise BadInput("set task: what the agent is to do")
        asking.scheduled(agent, task, how)
        return FileSchedule(name, table["cron"], agent, task, None, times, how)
    goal = task or (plan.goal if plan is not None else "")
    if coordinator and not goal:
        raise BadInput("set task: the goal of the team")
    if not coordinator and plan is None:
        raise BadInput("set agent and task; without a task, a schedule runs the [plan] of the file")
    how |= {"concurrency": lead.concurrency, "reveal": lead.reveal}
    if plan is not None and not coordinator:
        plan = replace(plan, goal=goal)
    asking.scheduled(coordinator or STAND_IN, goal or asking.NO_GOAL, how, plan, leads=bool(coordinator))
    return FileSchedule(name, table["cron"], coordinator, goal, lead._replace(plan=plan), times, how)


async def apply_schedules(
    workspace: Workspace, schedules: Iterable[FileSchedule], source: str
) -> list[AppliedSchedule]:
    """Set the schedules of a file in a workspace. `source` is the name of the file. A schedule that was set from this
    file earlier and is not in `schedules` is marked and continues. Return the schedules that were added, changed or
    marked; equal ones stay as they are."""
    before = {one.name: one for one in await workspace.schedules.list()}
    done: list[AppliedSchedule] = []
    named: set[str] = set()
    for one in schedules:
        named.add(one.name)
        made, was = await one.add(workspace, source), before.get(one.name)
        if was is None:
            done.append(AppliedSchedule(made, "added"))
        elif was.asks_for != made.asks_for:
            done.append(AppliedSchedule(made, "changed"))
    opening = opening_of(workspace)
    for name, was in before.items():
        if was.source == source and name not in named:
            await Schedules(opening.ground, opening.settings.calendar).leave(name, act_of("", source))
            done.append(AppliedSchedule(was, "left"))
    return done
