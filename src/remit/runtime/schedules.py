"""`ws.schedules`: tasks that workers submit again and again."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Unpack

from remit.core.bounds import Bounds
from remit.core.checks import keywords, of_type, yes_or_no
from remit.core.plan import Plan
from remit.core.remit import STAND_IN
from remit.core.schedule import catch_up_of, keywords_json, schedule_name
from remit.core.times import Schedule
from remit.core.values import NAME_LIMIT, line, plain, text_alone
from remit.engine import asking
from remit.engine.acts import Act, act_of
from remit.engine.asking import Scheduling, SchedulingPlan, Submission
from remit.engine.schedules import Schedules, request_text
from remit.runtime.leading import Leader
from remit.runtime.opening import Opening

_CRON_LIMIT = 200
_ZONE_LIMIT = 100


class _When(NamedTuple):
    """The name and the times of a schedule, as given."""

    name: str
    cron: str
    zone: str
    catch_up: str
    source: str
    replace: bool


class WorkspaceSchedules:
    """The schedules of a workspace. Its workers submit each planned run exactly once (`remit[schedule]`)."""

    __slots__ = ("_ceiling", "_opening")

    def __init__(self, opening: Opening, ceiling: Bounds) -> None:
        self._opening = opening
        self._ceiling = ceiling

    @property
    def _schedules(self) -> Schedules:
        return Schedules(self._opening.ground, self._opening.settings.calendar)

    @keywords(Scheduling)
    async def add(
        self,
        name: str,
        cron: str,
        agent: str,
        task: str = "",
        *,
        zone: str = "UTC",
        catch_up: Literal["latest", "all", "none"] = "latest",
        replace: bool = False,
        source: str = "",
        op: str = "",
        by: str = "",
        **how: Unpack[Scheduling],
    ) -> Schedule:
        """Submit a task to an agent at every time that a cron expression matches in a time zone: `await
        ws.schedules.add("report", "30 8 * * MON-FRI", "writer", "write the report", zone="Europe/Berlin")`.

        If no worker ran at planned times, `catch_up` decides: "latest" starts one run, "all" one for each of the latest
        100 times, "none" none. An equal schedule of the same name is left as it is; `replace` changes another one.
        `source` is the file that has the schedule, for lists. The other keywords are those of `submit`. `schedule
        NAME` is the person who starts the runs.
        """
        self._opening.must_be_outside("schedules.add", "turn.submit")
        when = _When(name, cron, zone, catch_up, source, replace=replace)
        how = await asking.classified(task, how, self._opening.settings.policy.classifier)
        return await self._add(when, act_of(op, by), *asking.scheduled(agent, task, how))

    @keywords(SchedulingPlan)
    async def add_plan(
        self,
        name: str,
        cron: str,
        plan: Plan,
        *,
        zone: str = "UTC",
        catch_up: Literal["latest", "all", "none"] = "latest",
        replace: bool = False,
        source: str = "",
        op: str = "",
        by: str = "",
        **how: Unpack[SchedulingPlan],
    ) -> Schedule:
        """Submit a plan at every time that a cron expression matches, as `submit_plan` does. The agent of each step is
        chosen now. See `add` for the other keywords."""
        self._opening.must_be_outside("schedules.add_plan", "turn.submit")
        of_type(plan, Plan, "schedules.add_plan takes a Plan(...)")
        goal = plan.goal or asking.NO_GOAL
        when = _When(name, cron, zone, catch_up, source, replace=replace)
        how = await asking.classified(goal, how, self._opening.settings.policy.classifier)
        return await self._add(when, act_of(op, by), *asking.scheduled(STAND_IN, goal, how, plan))

    @keywords(SchedulingPlan)
    async def add_team(
        self,
        name: str,
        cron: str,
        goal: str,
        coordinator: str,
        *,
        plan: Plan | None = None,
        zone: str = "UTC",
        catch_up: Literal["latest", "all", "none"] = "latest",
        replace: bool = False,
        source: str = "",
        op: str = "",
        by: str = "",
        **how: Unpack[SchedulingPlan],
    ) -> Schedule:
        """Give a goal to a team at every time that a cron expression matches, as `submit_team` does. See `add` for the
        other keywords."""
        self._opening.must_be_outside("schedules.add_team", "turn.submit")
        given = asking.team_plan("schedules.add_team", plan, goal)
        when = _When(name, cron, zone, catch_up, source, replace=replace)
        how = await asking.classified(goal, how, self._opening.settings.policy.classifier)
        return await self._add(when, act_of(op, by), *asking.scheduled(coordinator, goal, how, given, leads=True))

    async def _add(self, when: _When, act: Act, submission: Submission, how: dict[str, Any]) -> Schedule:
        """Add the schedule of a submission, whose keywords are `how`."""
        yes_or_no(when.replace, "replace")
        if submission.lead is not None:
            cards = [card for card, _ in await self._opening.records.read(lambda view: view.cards())]
            own = self._opening.ground.directory.cards()
            submission = Leader(self._opening.engine, self._ceiling).assigned(submission, [*cards, *own])
        source = line(when.source, "source", NAME_LIMIT) if when.source else ""
        how = {**how, **submission.labels.data}
        wanted = Schedule(
            schedule_name(when.name),
            "active",
            " ".join(plain(when.cron, "a cron expression", _CRON_LIMIT).split()),
            plain(when.zone, "a time zone", _ZONE_LIMIT),
            catch_up_of(when.catch_up),
            submission.wish.to,
            text_alone(submission.wish.task, submission.wish.data),
            request_text(keywords_json(how), self._ceiling, submission.lead, source),
            *(None, None, "", 0, act.by, self._opening.clock.now(), 0, 0),
        )
        added = await self._schedules.add(wanted, act, replace=when.replace)
        self._opening.engine.resident.lend()  # a process with agents starts to work, as after `submit`
        return added

    async def remove(self, name: str, *, op: str = "", by: str = "") -> bool:
        """Remove a schedule. Its runs and queued tasks stay. Return whether there was one."""
        return await self._schedules.remove(schedule_name(name), act_of(op, by))

    async def pause(self, name: str, *, op: str = "", by: str = "") -> bool:
        """Start no more runs of a schedule until it is resumed. Return whether this changed anything."""
        return await self._schedules.pause(schedule_name(name), act_of(op, by))

    async def resume(self, name: str, *, op: str = "", by: str = "") -> bool:
        """Start the runs of a paused schedule again, from the next planned time on: runs that were planned meanwhile
        are not started. Return whether this changed anything."""
        return await self._schedules.resume(schedule_name(name), act_of(op, by))

    async def list(self) -> list[Schedule]:
        """Return all schedules, by name."""
        return await self._opening.records.read(lambda view: view.schedules())
