"""Schedules: setting them, and submitting their tasks at the planned times, once for any number of workers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple, cast

from remit.core import bounds
from remit.core.bounds import Bounds
from remit.core.checks import meant
from remit.core.events import Labels, MetaValue
from remit.core.guards import BEGIN_QUEUED
from remit.core.kinds.tasks import submitted
from remit.core.kinds.workspace import (
    ScheduleRequest,
    schedule_fired,
    schedule_removed,
    schedule_set,
    schedule_skipped,
)
from remit.core.plan import Lead, lead_restored
from remit.core.remit import LASTS, expires
from remit.core.schedule import LATE, MISSED, given_again, operation
from remit.core.times import SECOND, Schedule, iso, starter
from remit.core.values import Json, decode, encode, shown
from remit.engine import asking
from remit.engine.acts import ONCE, Act, ActContent
from remit.engine.directory import PLANNER
from remit.engine.door import first_proposed
from remit.engine.ground import Ground
from remit.engine.queue.submitting import Request, begun_of, queued_of
from remit.engine.services import Services
from remit.errors import BadInput, Conflict, NotFound, StoreError
from remit.ports import Calendar, Decision, View

MOST: Final = 1_000  # schedules of one workspace, so that a worker can look at all of them at once
_AGAIN: Final = SECOND  # after a failure, the next try
_WHY_LIMIT: Final = 500

_log = logging.getLogger("remit")


def request_text(keywords: dict[str, Json], ceiling: Bounds, lead: Lead | None = None, source: str = "") -> str:
    """Return the stored form of a schedule's submission, as JSON text. `lead` is set for a plan or a team; `source` is
    set if the schedule comes from a team file."""
    data: dict[str, Json] = {"keywords": keywords, "ceiling": {**ceiling.data}}
    if lead is not None:
        data["lead"] = lead.data
    if source:
        data["source"] = source
    return encode(data)


class Schedules(NamedTuple):
    """The schedules of a workspace, as its owner sets them."""

    ground: Ground
    calendar: Callable[[], Calendar]

    async def add(self, wanted: Schedule, act: Act = ONCE, *, replace: bool = False) -> Schedule:
        """Add a schedule, and return it. If there is an equal schedule of the same name, return that one. If there is a
        different one, replace it with `replace=True`, otherwise raise `Conflict`."""
        ground, calendar = self.ground, self.calendar()
        first = self._next(wanted, ground.clock.now())
        if first is None:
            raise BadInput(f"the cron expression {shown(wanted.cron)} matches no time in the next 50 years")

        def decide(view: View) -> Decision[Json]:
            now = ground.clock.now()
            before = view.schedule(wanted.name)
            if before is not None and before.asks_for == wanted.asks_for:
                return Decision([*before])
            if before is None:
                self._must_fit(view, wanted)
                made = wanted._replace(next=_unused(calendar, view, wanted, now))
            elif replace:
                self._must_fit(view, wanted)
                upcoming = before.next  # stays if only the task changes: a run that is due must not be lost
                if before.state != "paused" and (wanted.cron, wanted.zone) != (before.cron, before.zone):
                    upcoming = self._next(wanted, max(now, before.last or 0))
                kept = {"state": before.state, "last": before.last, "last_task": before.last_task, "runs": before.runs}
                made = wanted._replace(next=upcoming, **kept)
            else:
                raise _exists(before)
            return Decision([*made], (schedule_set(made, now),))

        content = ActContent("schedules.add", wanted.name, [*wanted.asks_for, replace])
        answer = (await act.perform(ground, content, decide)).answer
        found = await ground.store.read(lambda view: view.schedule(wanted.name))
        return found or Schedule._make(cast("list[Json]", answer))

    async def remove(self, name: str, act: Act = ONCE) -> bool:
        """Remove a schedule; its runs stay. Return whether there was one."""

        def decide(view: View) -> Decision[bool]:
            if view.schedule(name) is None:
                return Decision(False)
            return Decision(True, (schedule_removed(name, act.by, self.ground.clock.now()),))

        return (await act.perform(self.ground, ActContent("schedules.remove", name), decide)).answer

    async def pause(self, name: str, act: Act = ONCE) -> bool:
        """Start no more runs of a schedule. Return whether this changed anything."""
        return await self._set("pause", name, act, lambda before, _: before._replace(state="paused", next=None))

    async def resume(self, name: str, act: Act = ONCE) -> bool:
        """Start runs of a paused schedule again, from the next planned time on. Return whether this changed
        anything."""

        def resumed(before: Schedule, now: int) -> Schedule:
            return before._replace(state="active", next=self._next(before, max(now, before.last or 0)))

        return await self._set("resume", name, act, resumed)

    async def leave(self, name: str, act: Act = ONCE) -> bool:
        """Record that the team file of a schedule no longer has it. Return whether this changed anything."""

        def decide(view: View) -> Decision[bool]:
            before = view.schedule(name)
            if before is None or before.left:
                return Decision(False)
            request = encode({**cast("dict[str, Json]", decode(before.request)), "left": True})
            return Decision(True, (schedule_set(before._replace(request=request), self.ground.clock.now()),))

        return (await act.perform(self.ground, ActContent("schedules.leave", name), decide)).answer

    async def _set(self, verb: str, name: str, act: Act, change: Callable[[Schedule, int], Schedule]) -> bool:
        def decide(view: View) -> Decision[bool]:
            now = self.ground.clock.now()
            before = view.schedule(name)
            if before is None:
                raise missing(name, [one.name for one in view.schedules()])
            if (before.state == "paused") == (verb == "pause"):
                return Decision(False)
            return Decision(True, (schedule_set(change(before, now)._replace(set_by=act.by), now),))

        return (await act.perform(self.ground, ActContent(f"schedules.{verb}", name), decide)).answer

    def _next(self, schedule: Schedule, after: int) -> int | None:
        return self.calendar().next_after(schedule.cron, schedule.zone, after)

    def _must_fit(self, view: View, wanted: Schedule) -> None:
        """Raise `BadInput` if there are too many schedules. Raise `NotFound` if the agent is unknown, so that a typo is
        noticed now and not at the first planned time."""
        if view.schedule(wanted.name) is None and len(view.schedules()) >= MOST:
            raise BadInput(f"a workspace has at most {MOST:,} schedules; remove one that is not needed")
        known = {*self.ground.directory.names(), *(card.name for card, _ in view.cards())}
        # A store opened without agents, in which no worker has published any, knows none.
        if known and wanted.agent not in known and wanted.led_as != "plan":
            hint = meant(wanted.agent, sorted(known)) or f"; there is {', '.join(sorted(known))}"
            raise NotFound(f"there is no agent '{wanted.agent}'{hint}")


def missing(name: str, known: list[str]) -> NotFound:
    """Return the error for an unknown schedule."""
    hint = meant(name, known) or (f"; there is {', '.join(known[:10])}" if known else "; there are no schedules")
    return NotFound(f"there is no schedule {shown(name)}{hint}")


def _exists(before: Schedule) -> Conflict:
    no = Conflict(
        f"there is a schedule {shown(before.name)} already, '{before.cron}' {before.zone} for '{before.agent}'; "
        "change it with replace=True (--replace), or use another name"
    )
    no.retryable = False  # the same request would fail again
    return no


def _unused(calendar: Calendar, view: View, wanted: Schedule, now: int) -> int | None:
    """Return the next planned time for which no run was started under this name: an earlier schedule may have been
    removed, and the clock of the worker that started its last run may be ahead."""
    planned = calendar.next_after(wanted.cron, wanted.zone, now)
    while planned is not None and view.done(operation(wanted.name, planned)) is not None:
        planned = calendar.next_after(wanted.cron, wanted.zone, planned)
    return planned


class Scheduler:
    """Submits the tasks of due schedules, in a worker.

    Every planned run is one transaction, which submits its task and moves the schedule to the next planned time. Its
    operation id is the name of the schedule with the planned time, so the run is started once however many workers try.
    """

    def __init__(self, services: Services, calendar: Callable[[], Calendar]) -> None:
        self._services = services
        self._calendar = calendar
        self._ground = services.ground
        self._failing: dict[str, str] = {}  # the last error of each schedule that could not be tried, logged once

    async def fire(self) -> int | None:
        """Submit everything that is due. Return when to call again, or None if there is no schedule."""
        ground = self._ground
        now = ground.clock.now()
        for schedule in await ground.store.read(lambda view: view.schedules_due(now, MOST)):
            try:
                await self._fire(schedule, now)
                self._failing.pop(schedule.name, None)
            except BadInput as error:  # no cronsim here, or no such time zone: another worker may have it
                if self._failing.get(schedule.name) != str(error):
                    _log.warning("schedule %s: %s", schedule.name, error)
                self._failing[schedule.name] = str(error)
        upcoming = await ground.store.read(lambda view: view.next_planned())
        return None if upcoming is None else max(upcoming, now + _AGAIN if self._failing else 0)

    async def _fire(self, schedule: Schedule, now: int) -> None:
        """Start the run of a due schedule. If it missed planned times, start as many runs as its `catch_up` says: the
        latest, all, or none."""
        times, then = self._planned(schedule, now)
        if schedule.catch_up == "none" and now - times[-1] > LATE:
            await self._skip(schedule, then, "no worker ran at that time")
            return
        for planned, following in pairwise([*times, then]):
            assert planned is not None
            if not await self._start(schedule, planned, following):
                return  # another worker was faster, or the schedule was changed
            schedule = schedule._replace(next=following)

    def _planned(self, schedule: Schedule, now: int) -> tuple[list[int], int | None]:
        """Return the planned times to start runs for, and the next one after them."""
        calendar, cron, zone, due = self._calendar(), schedule.cron, schedule.zone, schedule.next
        assert due is not None
        following = calendar.next_after(cron, zone, due)
        if following is None or following > now:
            return [due], following
        most = MISSED if schedule.catch_up == "all" else 1
        return calendar.latest(cron, zone, due, now, most) or [due], calendar.next_after(cron, zone, now)

    async def _start(self, schedule: Schedule, planned: int, following: int | None) -> bool:
        """Submit the task for a planned time. Return False if another worker was faster or the schedule was changed. If
        a rule refuses the run, record the reason and return True."""
        ground = self._ground
        request = self._request(schedule, planned)
        child, now = request.proposal.child, request.proposal.now
        missed = schedule.next if planned != schedule.next else None

        def decide(view: View) -> Decision[bool]:
            row = view.schedule(schedule.name)
            if row is None or (row.began, row.next) != (schedule.began, schedule.next):
                return Decision(False)
            after = row._replace(next=following)
            admitted = self._services.admission.admit(view, BEGIN_QUEUED, request.proposal)
            if not admitted.ok:
                why = admitted.verdict.sentence[:_WHY_LIMIT]
                return Decision(True, (schedule_skipped(after, planned, why, now), *admitted.events), aside=why)
            after = after._replace(last=planned, last_task=child.id, runs=row.runs + 1)
            begun = begun_of(request, expires(child.bounds, now, LASTS), None, admitted)
            task = submitted(child, now, queued_of(ground, request), begun)
            return Decision(True, (schedule_fired(after, missed, now), task, *admitted.events))

        try:
            done = await ground.store.tx(operation(schedule.name, planned), decide)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - a guard of the owner failed; it must not stop all schedules
            await self._skip(schedule, following, f"{type(error).__name__}: {error}"[:_WHY_LIMIT], planned)
            return True
        if done.aside:
            _log.warning("schedule %s starts no run: %s", schedule.name, done.aside)
        return done.answer

    async def _skip(self, schedule: Schedule, following: int | None, why: str, planned: int | None = None) -> None:
        """Record that no run is started, and go on with the next planned time."""
        ground = self._ground
        due = schedule.next if planned is None else planned
        assert due is not None

        def decide(view: View) -> Decision[bool]:
            row = view.schedule(schedule.name)
            if row is None or (row.began, row.next) != (schedule.began, schedule.next):
                return Decision(False)
            event = schedule_skipped(row._replace(next=following), due, why, ground.clock.now())
            return Decision(True, (event,))

        if (await ground.store.tx(operation(schedule.name, due), decide)).answer:
            _log.warning("schedule %s starts no run: %s", schedule.name, why)

    def _request(self, schedule: Schedule, planned: int) -> Request:
        """Return the submission for a planned time. The time is in the metadata of the run, because the run may be
        late."""
        kept = cast("ScheduleRequest", decode(schedule.request))
        how = given_again(kept["keywords"])
        submission, session = asking.submitted(schedule.agent, schedule.task, cast("asking.Submitting", how))
        meta: dict[str, MetaValue] = {**dict(submission.labels.meta), "planned": f"{iso(planned)[:19]}Z"}
        labels = Labels(starter(schedule.name), submission.labels.tags, tuple(sorted(meta.items())))
        ceiling = bounds.restored(kept["ceiling"])
        proposal = first_proposed(self._ground, submission.wish, ceiling, session, labels)
        if "lead" in kept:
            submission = submission._replace(lead=lead_restored(kept["lead"]))
            proposal = proposal._replace(brought=PLANNER.card if "plan" in kept["lead"] else None)
        return Request(BEGIN_QUEUED, proposal, submission, "", "")
