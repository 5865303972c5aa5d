"""`ws.schedules`: tasks that workers submit again and again."""

from __future__ import annotations

from typing import Literal, Unpack

from remit.core.bounds import Bounds
from remit.core.checks import keywords, yes_or_no
from remit.core.schedule import catch_up_of, kept, schedule_name
from remit.core.times import Schedule
from remit.core.values import canonical, plain
from remit.engine import asking
from remit.engine.acts import act_of
from remit.engine.asking import Scheduling
from remit.engine.schedules import Schedules, request_text
from remit.runtime.opening import Opening

_CRON_LIMIT = 200
_ZONE_LIMIT = 100


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
        task: str,
        *,
        zone: str = "UTC",
        catch_up: Literal["latest", "all", "none"] = "latest",
        replace: bool = False,
        op: str = "",
        by: str = "",
        **how: Unpack[Scheduling],
    ) -> Schedule:
        """Submit a task to an agent at every time that a cron expression matches in a time zone: `await
        ws.schedules.add("report", "30 8 * * MON-FRI", "writer", "write the report", zone="Europe/Berlin")`.

        If no worker ran at planned times, `catch_up` decides: "latest" starts one run, "all" one for each of the latest
        100 times, "none" none. An equal schedule of the same name is left as it is; `replace` changes another one. The
        other keywords are those of `submit`. `schedule NAME` is the person who starts the runs.
        """
        self._opening.must_be_outside("schedules.add", "turn.submit")
        yes_or_no(replace, "replace")
        act = act_of(op, by)
        wanted = Schedule(
            schedule_name(name),
            "active",
            " ".join(plain(cron, "a cron expression", _CRON_LIMIT).split()),
            plain(zone, "a time zone", _ZONE_LIMIT),
            catch_up_of(catch_up),
            canonical(agent),
            task,
            await self._request(agent, task, how),
            *(None, None, "", 0, act.by, self._opening.clock.now(), 0, 0),
        )
        added = await self._schedules.add(wanted, act, replace=replace)
        self._opening.engine.resident.lend()  # a process with agents starts to work, as after `submit`
        return added

    async def _request(self, agent: str, task: str, how: Scheduling) -> str:
        """Return the submission as JSON text, checked as a submission is."""
        asking.checked("schedules.add", how, Scheduling)
        how = await asking.classified(task, how, self._opening.settings.policy.classifier)
        submission, _ = asking.submitted(agent, task, {**how})
        return request_text(kept({**how, **submission.labels.data}), self._ceiling)

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
