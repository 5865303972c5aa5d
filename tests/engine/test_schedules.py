"""Schedules: a worker submits their tasks at the planned times, each once, and catches up after downtime as told."""

import logging
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.helping import found, kinds, quiet, serving, sound
from remit import Bounds, Card, Plan, Runtime, Scope, Step, Turn, Workspace
from remit.core.events import read
from remit.core.kinds.workspace import ScheduleFired, ScheduleSkipped, schedule_set
from remit.core.times import DAY, HOUR, SECOND, Schedule, aware, moment
from remit.engine.schedules import Schedules
from remit.errors import BadInput, Conflict, NotFound
from remit.ports import Decision, View, Which
from remit.runtime.workspace import opening_of
from remit.testing import FakeClock
from teams import echo, team

pytestmark = pytest.mark.anyio

HOURLY = "0 * * * *"
START = 1_800_000_000 * SECOND  # 2027-01-15T08:00Z, where the clock of the tests starts


async def later(clock: FakeClock, seconds: float) -> None:
    """Let time pass, and let the workers do what is due then."""
    clock.advance(seconds)
    await quiet()


async def ran(rt: Runtime, times: int, name: str = "report") -> None:
    """Wait until a schedule has started so many runs, and all have ended: a server may tell its workers late."""

    def look(view: View) -> bool | None:
        schedule = view.schedule(name)
        done = schedule is not None and schedule.runs >= times and not view.tasks(Which(state="open"))
        return done or None

    await found(rt, look)


async def planned(rt: Runtime, name: str = "report") -> list[int]:
    """Return the hours after the start for which a schedule started runs, in order."""
    events = await rt.workspace.journal.history(kinds=["schedule.fired"])
    fired = [read(event, ScheduleFired) for event in events]
    return [(data["last"] - START) // HOUR for data in fired if data["name"] == name]


async def skipped(rt: Runtime) -> list[str]:
    events = await rt.workspace.journal.history(kinds=["schedule.skipped"])
    return [read(event, ScheduleSkipped)["why"] for event in events]


async def the(rt: Runtime, name: str = "report") -> Schedule:
    return next(one for one in await rt.workspace.schedules.list() if one.name == name)


@pytest.mark.rule("task.data", "schedule.run")
async def test_the_runs_of_a_schedule_have_its_value(rt: Runtime, clock: FakeClock):
    rt.add(Card("coder"), lambda turn: [turn.task, turn.data])
    added = await rt.workspace.schedules.add("report", HOURLY, "coder", "write it", data={"days": [date(2026, 1, 2)]})
    assert added.keywords == {"data": {"days": ["2026-01-02"]}}
    await rt.workspace.schedules.add("figures", HOURLY, "coder", data=7)
    async with serving(rt):
        await later(clock, 3_600)
        await ran(rt, 1)
        await ran(rt, 1, "figures")
    results = {one.by: one.result for one in await rt.workspace.tasks.list()}
    assert results == {"schedule report": ["write it", {"days": ["2026-01-02"]}], "schedule figures": ["7", 7]}


@pytest.mark.rule("schedule.once")
async def test_a_schedule_submits_its_task_at_every_planned_time(anywhere: Runtime, clock: FakeClock):
    anywhere.add(Card("coder"), echo)
    added = await anywhere.workspace.schedules.add("report", HOURLY, "coder", "write it", by="ann")
    assert (added.next_time, added.last_time, added.set_by) == (aware(START + HOUR), None, "ann")
    assert added == await the(anywhere)
    async with serving(anywhere):
        await later(clock, 3_599)
        assert await anywhere.workspace.tasks.list() == []
        await later(clock, 1)
        await ran(anywhere, 1)
        await later(clock, 3_600)
        await ran(anywhere, 2)
    second, first = await anywhere.workspace.tasks.list()
    assert [one.asked_at for one in (first, second)] == [START + HOUR, START + 2 * HOUR]
    told = {(one.state, one.result, one.by) for one in (first, second)}
    assert told == {("completed", "write it", "schedule report")}
    assert first.session != second.session
    now = await the(anywhere)
    assert (now.last_time, now.last_task, now.runs) == (aware(START + 2 * HOUR), second.id, 2)
    assert now.next == START + 3 * HOUR
    await sound(anywhere)


@pytest.mark.rule("schedule.once")
async def test_the_worker_of_a_process_starts_when_a_schedule_is_added_there(rt: Runtime, clock: FakeClock):
    rt.add(Card("coder"), echo)
    await rt.workspace.schedules.add("report", HOURLY, "coder", "write it")
    await later(clock, 3_600)
    assert await planned(rt) == [1]


@pytest.mark.rule("schedule.once")
async def test_two_workers_start_one_run(tmp_path: Path, clock: FakeClock):
    with team(tmp_path / "team.db", clock=clock) as one, team(tmp_path / "team.db", clock=clock) as two:
        for rt in (one, two):
            rt.add(Card("coder"), echo)
        async with serving(one, two):
            await one.workspace.schedules.add("report", HOURLY, "coder", "write it")
            for _ in range(5):
                await later(clock, 3_600)
        assert await planned(one) == [1, 2, 3, 4, 5]
        assert len(await one.workspace.tasks.list()) == 5
        await sound(one)


@pytest.mark.rule("schedule.catch-up")
@pytest.mark.parametrize(
    ("catch_up", "missed", "why"),
    [
        ("latest", [25], []),
        ("all", [*range(2, 26)], []),
        ("none", [], ["no worker ran at that time"]),
    ],
)
async def test_after_a_day_of_downtime_runs_are_started_as_told(
    rt: Runtime, clock: FakeClock, catch_up: Any, missed: list[int], why: list[str]
):
    rt.add(Card("coder"), echo)
    async with serving(rt):
        await rt.workspace.schedules.add("report", HOURLY, "coder", "write it", catch_up=catch_up)
        await later(clock, 3_600)
    clock.advance(DAY / SECOND + 300)
    async with serving(rt):
        await quiet()
        assert await planned(rt) == [1, *missed]
        assert await skipped(rt) == why
        assert (await the(rt)).next == START + 26 * HOUR
        await later(clock, 3_300)
    assert await planned(rt) == [1, *missed, 26]
    assert len(await rt.workspace.tasks.list()) == len(missed) + 2
    await sound(rt)


@pytest.mark.rule("schedule.catch-up")
async def test_the_run_after_downtime_says_which_planned_times_were_left_out(rt: Runtime, clock: FakeClock):
    rt.add(Card("coder"), echo)
    await Workspace(opening_of(rt.workspace)).schedules.add("report", HOURLY, "coder", "write it")
    async with serving(rt):
        await later(clock, 3 * 3_600 + 5)
    (event,) = await rt.workspace.journal.history(kinds=["schedule.fired"])
    assert (event.data["last"], event.data["missed"]) == (START + 3 * HOUR, START + HOUR)


@pytest.mark.rule("schedule.catch-up")
async def test_catching_up_with_all_starts_the_latest_100_runs(rt: Runtime, clock: FakeClock):
    rt.add(Card("coder"), echo)
    async with serving(rt):
        await rt.workspace.schedules.add("report", "* * * * *", "coder", "write it", catch_up="all")
        await later(clock, DAY / SECOND)
    events = await rt.workspace.journal.history(kinds=["schedule.fired"])
    minutes = [(read(event, ScheduleFired)["last"] - START) // (60 * SECOND) for event in events]
    assert minutes == [*range(1_341, 1_441)]
    assert events[0].data["missed"] == START + 60 * SECOND
    assert "missed" not in events[1].data


@pytest.mark.rule("schedule.catch-up")
async def test_a_run_that_is_a_minute_late_is_not_missed(rt: Runtime, clock: FakeClock):
    rt.add(Card("coder"), echo)
    for name, minute in (("report", "0"), ("other", "59")):
        await rt.workspace.schedules.add(name, f"{minute} * * * *", "coder", "write it", catch_up="none")
    async with serving(rt):
        await later(clock, 3_660)
    assert await planned(rt) == [1]
    assert await planned(rt, "other") == []


@pytest.mark.rule("schedule.pause")
async def test_a_paused_schedule_starts_nothing_and_catches_up_with_nothing(anywhere: Runtime, clock: FakeClock):
    anywhere.add(Card("coder"), echo)
    schedules = anywhere.workspace.schedules
    async with serving(anywhere):
        await schedules.add("report", HOURLY, "coder", "write it", catch_up="all")
        await later(clock, 3_600)
        await ran(anywhere, 1)
        assert await schedules.pause("report", by="ann")
        assert not await schedules.pause("report")
        assert ((await the(anywhere)).state, (await the(anywhere)).next) == ("paused", None)
        await later(clock, 3 * 3_600)
        assert await schedules.resume("report")
        assert not await schedules.resume("report")
        assert (await the(anywhere)).next == START + 5 * HOUR
        await later(clock, 3_600)
        await ran(anywhere, 2)
    assert await planned(anywhere) == [1, 5]
    assert (await the(anywhere)).runs == 2
    await sound(anywhere)


@pytest.mark.rule("schedule.pause")
async def test_a_removed_schedule_starts_nothing_and_its_runs_stay(rt: Runtime, clock: FakeClock):
    rt.add(Card("coder"), echo)
    schedules = rt.workspace.schedules
    async with serving(rt):
        await schedules.add("report", HOURLY, "coder", "write it")
        await later(clock, 3_600)
        assert await schedules.remove("report")
        assert not await schedules.remove("report")
        await later(clock, 3_600)
    assert await schedules.list() == []
    assert await planned(rt) == [1]
    assert len(await rt.workspace.tasks.list()) == 1
    await sound(rt)


@pytest.mark.rule("schedule.once")
async def test_a_schedule_that_is_removed_and_added_again_does_not_repeat_a_planned_run(rt: Runtime, clock: FakeClock):
    """The clock of the worker that started the last run may be ahead of the clock of the process that adds it."""
    rt.add(Card("coder"), echo)
    schedules = rt.workspace.schedules
    async with serving(rt):
        await schedules.add("report", HOURLY, "coder", "write it")
        await later(clock, 3_600)
        clock.jump(-5)
        await schedules.remove("report")
        added = await schedules.add("report", HOURLY, "coder", "write it")
        assert added.next == START + 2 * HOUR
        await later(clock, 3_605)
    assert await planned(rt) == [1, 2]


@pytest.mark.rule("schedule.add")
async def test_an_equal_schedule_is_left_as_it_is_and_another_one_is_replaced_only_if_told(
    rt: Runtime, clock: FakeClock
):
    rt.add(Card("coder"), echo)
    schedules = rt.workspace.schedules
    async with serving(rt):
        first = await schedules.add("report", HOURLY, "coder", "write it", priority=2)
        assert await schedules.add("report", " 0  * * * *", "Coder", "write it", priority=2) == first
        await later(clock, 3_600)
        with pytest.raises(Conflict, match="there is a schedule 'report' already, .* replace=True"):
            await schedules.add("report", HOURLY, "coder", "write it", priority=3)
        after = await schedules.add("report", "30 * * * *", "coder", "write more", replace=True)
        assert (after.runs, after.last, after.next) == (1, START + HOUR, START + HOUR + 30 * 60 * SECOND)
        await schedules.pause("report")
        paused = await schedules.add("report", HOURLY, "coder", "write less", replace=True)
        assert (paused.state, paused.next, paused.task) == ("paused", None, "write less")
    await sound(rt)


@pytest.mark.rule("schedule.add")
async def test_the_same_operation_is_done_once(rt: Runtime):
    rt.add(Card("coder"), echo)
    schedules = rt.workspace.schedules
    for _ in range(2):
        await schedules.add("report", HOURLY, "coder", "write it", op="add")
        assert await schedules.remove("report", op="remove")
    found = [kind for kind in await kinds(rt) if kind != "cards.published"]
    assert found == ["owner.acted", "schedule.set", "owner.acted", "schedule.removed"]
    with pytest.raises(Conflict, match="was used for another act"):
        await schedules.add("report", HOURLY, "coder", "write more", op="add")


@pytest.mark.rule("schedule.checked")
@pytest.mark.parametrize(
    ("how", "wrong"),
    [
        ({"name": ""}, "a schedule's name"),
        ({"name": "a\nb"}, "a schedule's name"),
        ({"name": "x" * 56}, "a schedule's name"),
        ({"cron": "0 0 * *"}, "is not a cron expression"),
        ({"cron": 7}, "a cron expression"),
        ({"cron": "0 0 */20 * 1L"}, "matches no time in the next 50 years"),
        ({"zone": "Berlin"}, "there is no time zone 'Berlin'"),
        ({"zone": None}, "a time zone"),
        ({"catch_up": "some"}, "catch_up is latest or one of all, none, not 'some'"),
        ({"replace": "yes"}, "replace"),
        ({"task": ""}, "a task"),
        ({"priority": 101}, "priority"),
        ({"attempts": 0}, "attempts"),
        ({"within": 3}, "within takes Bounds"),
        ({"key": "k"}, "schedules.add takes no 'key'"),
        ({"after": 3}, "schedules.add takes no 'after'"),
        ({"remembers": True}, "remembers= needs session="),
    ],
)
async def test_a_wrong_schedule_is_an_error_when_it_is_added(rt: Runtime, how: dict[str, Any], wrong: str):
    rt.add(Card("coder"), echo)
    right = {"name": "report", "cron": HOURLY, "agent": "coder", "task": "write it"}
    with pytest.raises(BadInput, match=wrong):
        await rt.workspace.schedules.add(**{**right, **how})
    assert await rt.workspace.schedules.list() == []


@pytest.mark.rule("schedule.checked")
async def test_an_unknown_agent_or_schedule_is_not_found(rt: Runtime, tmp_path: Path):
    rt.add(Card("coder"), echo)
    schedules = rt.workspace.schedules
    with pytest.raises(NotFound, match="there is no agent 'codre'; did you mean coder"):
        await schedules.add("report", HOURLY, "codre", "write it")
    with pytest.raises(NotFound, match="there is no schedule 'report'; there are no schedules"):
        await schedules.pause("report")
    await schedules.add("report", HOURLY, "coder", "write it")
    with pytest.raises(NotFound, match="there is no schedule 'reprot'; did you mean report"):
        await schedules.resume("reprot")
    with Workspace(tmp_path / "other.db") as workspace:  # it knows no agent: the worker that has it may come later
        assert (await workspace.schedules.add("report", HOURLY, "anyone", "write it")).agent == "anyone"


@pytest.mark.rule("schedule.checked")
async def test_an_agent_cannot_add_a_schedule(rt: Runtime):
    @rt.agent
    async def coder(turn: Turn) -> None:
        await rt.workspace.schedules.add("report", HOURLY, "coder", turn.task)

    outcome = await rt.outcome("coder", "go")
    assert "Refused" in str(outcome.error)
    assert "inside a turn say turn.submit" in str(outcome.error)


@pytest.mark.rule("schedule.run")
async def test_a_run_is_what_a_submission_with_the_same_keywords_is(tmp_path: Path, clock: FakeClock):
    how: Any = {
        "sees": ["notes", Scope("books", prefix="a/*")],
        "writes": "*",
        "tools": ["look"],
        "within": Bounds(agents=["coder"], tokens=900, deadline=datetime(2030, 1, 1, tzinfo=UTC)),
        "timeout": timedelta(minutes=5),
        "trust": "untrusted",
        "credits": "$0.25",
        "session": "s1",
        "tier": "simple",
        "handoffs": False,
        "attempts": 2,
        "priority": 7,
        "remembers": "whole",
        "tags": ["nightly", "books"],
        "meta": {"ticket": 7},
    }
    with team(tmp_path / "team.db", clock=clock, bounds=Bounds(depth=2)) as rt:
        rt.add(Card("coder"), echo)
        await rt.workspace.money.grant("$1")
        async with serving(rt):
            await rt.workspace.schedules.add("report", HOURLY, "coder", "write it", **how)
            await later(clock, 3_600)
            await rt.submit("coder", "write it", by="ann", **how)
            await quiet()
        events = await rt.workspace.journal.history(kinds=["task.submitted", "task.started"])
        fired, asked = (dict(event.data) for event in events)
        own = {"by", "meta", "purse", "opens", "worker", "ready_at"}
        assert {name: value for name, value in fired.items() if name not in own} == {
            name: value for name, value in asked.items() if name not in own
        }
        assert (fired["by"], fired["tags"]) == ("schedule report", ["books", "nightly"])
        assert fired["meta"] == {"planned": "2027-01-15T09:00:00Z", "ticket": 7}
        keywords = (await the(rt)).keywords
        assert (keywords["credits"], keywords["timeout"], keywords["tools"]) == ("$0.25", 300.0, ["look"])
        await sound(rt)


@pytest.mark.rule("schedule.led")
async def test_a_schedule_may_submit_a_plan_or_a_goal_for_a_team(tmp_path: Path, clock: FakeClock):
    plan = Plan([Step("a", "list", agent="coder"), Step("b", "count", capability="counting", after=["a"])], "sell")
    how: Any = {"concurrency": 2, "reveal": True, "tags": ["nightly"], "attempts": 2}

    async def combine(turn: Turn) -> str:
        return f"{turn.phase} {turn.task}"

    with team(tmp_path / "team.db", clock=clock) as rt:
        rt.add(Card("coder"), echo)
        rt.add(Card("counter", can="counting"), echo)
        rt.add(Card("lead", asks="*"), combine)
        schedules = rt.workspace.schedules
        await schedules.add_plan("books", HOURLY, plan, **how)
        assert await schedules.add_plan("books", HOURLY, plan, **how) == await the(rt, "books")
        await schedules.add_team("crew", HOURLY, "sell", "lead", plan=plan, **how)
        await schedules.add_team("free", HOURLY, "sell more", "lead")
        assert [(one.name, one.agent, one.task, one.led_as) for one in await schedules.list()] == [
            ("books", "plan", "sell", "plan"),
            ("crew", "lead", "sell", "team"),
            ("free", "lead", "sell more", "team"),
        ]
        with pytest.raises(Conflict):
            await schedules.add("books", HOURLY, "coder", "sell")
        async with serving(rt):
            await later(clock, 3_600)
            await rt.submit_plan(plan, by="ann", **how)
            await rt.submit_team("sell", "lead", plan=plan, by="ann", **how)
            await quiet()
        events = await rt.workspace.journal.history(kinds=["task.submitted", "task.started"])
        first = [dict(event.data) for event in events if event.data["parent"] == ""]
        own = {"by", "meta", "worker", "ready_at"}
        books, crew, _, *asked = [{key: one[key] for key in one if key not in own} for one in first]
        assert [books, crew] == asked
        runs = await rt.workspace.tasks.list()
        assert {one.state for one in runs if one.agent in ("plan", "coder", "counter")} == {"completed"}
        await sound(rt)


@pytest.mark.rule("schedule.led", "schedule.checked")
async def test_a_schedule_of_a_plan_is_checked_when_it_is_added(rt: Runtime):
    rt.add(Card("coder"), echo)
    schedules: Any = rt.workspace.schedules
    for wrong, adding in {
        "takes a Plan": schedules.add_plan("x", HOURLY, "coder"),
        "who cannot be asked": schedules.add_plan("x", HOURLY, Plan([Step("a", "list", agent="codr")])),
        "takes no remembers": schedules.add_team("x", HOURLY, "sell", "coder", remembers=True),
        "takes no 'concurrency'": schedules.add("x", HOURLY, "coder", "sell", concurrency=2),
        "takes no 'key'": schedules.add_plan("x", HOURLY, Plan([Step("a", "list", agent="coder")]), key="k"),
    }.items():
        with pytest.raises(BadInput, match=wrong):
            await adding
    with pytest.raises(NotFound, match="there is no agent 'codr'; did you mean coder"):
        await schedules.add_team("x", HOURLY, "sell", "codr")
    assert await schedules.list() == []


@pytest.mark.rule("schedule.add", "schedule.catch-up")
async def test_a_run_that_is_due_is_not_lost_if_only_the_task_of_its_schedule_changes(rt: Runtime, clock: FakeClock):
    rt.add(Card("coder"), echo)
    schedules = opening_of(rt.workspace)
    await rt.workspace.schedules.add("report", HOURLY, "coder", "write it", source="remit.toml")
    assert (await the(rt)).source == "remit.toml"
    clock.advance(3 * 3_600 + 1)
    await rt.workspace.schedules.add("report", HOURLY, "coder", "write more", replace=True, source="remit.toml")
    setting = Schedules(schedules.ground, schedules.settings.calendar)
    assert [await setting.leave("report"), await setting.leave("report"), await setting.leave("none")] == [
        True,
        False,
        False,
    ]
    assert ((await the(rt)).left, (await the(rt)).next) == (True, START + HOUR)
    async with serving(rt):
        await quiet()
    assert await planned(rt) == [3]
    await sound(rt)


@pytest.mark.rule("schedule.run")
async def test_a_late_run_knows_for_which_time_it_was_planned(rt: Runtime, clock: FakeClock):
    @rt.agent
    async def coder(turn: Turn) -> object:
        return turn.meta["planned"]

    async with serving(rt):
        await rt.workspace.schedules.add("report", HOURLY, "coder", "write it", catch_up="all")
        await later(clock, 2 * 3_600 + 300)
    results = [task.result for task in await rt.workspace.tasks.list()]
    assert results == ["2027-01-15T10:00:00Z", "2027-01-15T09:00:00Z"]


@pytest.mark.rule("schedule.refused")
async def test_a_run_that_is_refused_is_skipped_and_the_next_one_starts(
    rt: Runtime, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    rt.add(Card("coder"), echo)
    await rt.workspace.schedules.add("report", HOURLY, "coder", "write it")
    await rt.workspace.agents.trip("coder", "being repaired")
    async with serving(rt):
        await later(clock, 3_600)
        (why,) = await skipped(rt)
        assert "being repaired" in why
        assert f"schedule report starts no run: {why}" in caplog.messages
        await rt.workspace.agents.reset("coder")
        await later(clock, 3_600)
    assert await planned(rt) == [2]
    await sound(rt)


@pytest.mark.rule("schedule.refused")
async def test_a_guard_that_fails_stops_neither_other_schedules_nor_the_next_run(rt: Runtime, clock: FakeClock):
    fails = [True]

    @rt.guard
    def strict(hop: Any) -> None:
        if hop.task == "write it" and fails:
            raise KeyError(fails.pop())

    rt.add(Card("coder"), echo)
    await rt.workspace.schedules.add("other", HOURLY, "coder", "write more")
    await rt.workspace.schedules.add("report", HOURLY, "coder", "write it")
    async with serving(rt):
        await later(clock, 3_600)
        await later(clock, 3_600)
    assert await skipped(rt) == ["KeyError: True"]
    assert (await planned(rt), await planned(rt, "other")) == ([2], [1, 2])
    await sound(rt)


@pytest.mark.rule("schedule.refused")
async def test_a_worker_that_does_not_know_a_time_zone_logs_it_once_and_starts_the_others(
    rt: Runtime, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    rt.add(Card("coder"), echo)
    added = await rt.workspace.schedules.add("report", HOURLY, "coder", "write it")
    strange = added._replace(name="another", zone="Mars/Olympus")
    await opening_of(rt.workspace).ground.store.tx(
        "strange", lambda _: Decision(None, (schedule_set(strange, clock.now()),))
    )
    async with serving(rt):
        await later(clock, 3_600)
        await later(clock, 2)
        await later(clock, 3_600)
    assert await planned(rt) == [1, 2]
    assert (await the(rt, "another")).runs == 0
    assert len([said for said in caplog.messages if "there is no time zone 'Mars/Olympus'" in said]) == 1
    assert [record.levelno for record in caplog.records if "Mars" in record.message] == [logging.WARNING]


@pytest.mark.rule("schedule.clock-changes")
async def test_a_schedule_runs_once_in_a_night_with_an_hour_that_happens_twice(tmp_path: Path):
    evening = datetime(2026, 10, 24, 20, tzinfo=UTC)
    clock = FakeClock(moment(evening, "now"))
    with team(tmp_path / "team.db", clock=clock) as rt:
        rt.add(Card("coder"), echo)
        async with serving(rt):
            await rt.workspace.schedules.add("report", "30 2 * * *", "coder", "write it", zone="Europe/Berlin")
            for _ in range(12 * 4):
                await later(clock, 900)
        (run,) = await rt.workspace.tasks.list()
        assert run.asked == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


@pytest.mark.rule("schedule.clock-changes")
@pytest.mark.parametrize(
    ("evening", "nightly"),
    [
        (datetime(2026, 3, 28, 20, tzinfo=UTC), datetime(2026, 3, 29, 1, tzinfo=UTC)),  # 02:30 is skipped
        (datetime(2026, 10, 24, 20, tzinfo=UTC), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),  # 02:30 happens twice
    ],
)
async def test_a_worker_doubles_and_loses_no_run_when_clocks_change(
    tmp_path: Path, evening: datetime, nightly: datetime
):
    clock = FakeClock(moment(evening, "now"))
    with team(tmp_path / "team.db", clock=clock) as rt:
        rt.add(Card("coder"), echo)
        async with serving(rt):
            await rt.workspace.schedules.add("once", "30 2 * * *", "coder", "once", zone="Europe/Berlin")
            await rt.workspace.schedules.add("often", "*/30 * * * *", "coder", "often", zone="Europe/Berlin")
            for _ in range(12 * 4):
                await later(clock, 900)
        runs = await rt.workspace.tasks.list()
        assert [one.asked for one in runs if one.task == "once"] == [nightly]
        often = sorted(one.asked for one in runs if one.task == "often")
        assert often == [evening + timedelta(minutes=30 * n) for n in range(1, 25)]


@pytest.mark.rule("schedule.pruned")
async def test_pruning_keeps_a_schedule_and_only_the_last_of_its_events(anywhere: Runtime, clock: FakeClock):
    anywhere.add(Card("coder"), echo)
    async with serving(anywhere):
        await anywhere.workspace.schedules.add("report", HOURLY, "coder", "write it")
        await anywhere.workspace.schedules.add("gone", HOURLY, "coder", "write it")
        for times in range(1, 4):
            await later(clock, 3_600)
            await ran(anywhere, times)
            await ran(anywhere, times, "gone")
        await anywhere.workspace.schedules.remove("gone")
    before = await the(anywhere)
    clock.advance(DAY / SECOND)
    await anywhere.workspace.prune(0.5)
    assert await anywhere.workspace.schedules.list() == [before]
    about = [event for event in await anywhere.workspace.journal.history() if event.kind.startswith("schedule.")]
    assert [event.kind for event in about] == ["schedule.set", "schedule.fired"]
    await sound(anywhere)


@pytest.mark.rule("schedule.checked")
async def test_a_workspace_has_at_most_a_thousand_schedules(rt: Runtime, clock: FakeClock):
    rt.add(Card("coder"), echo)
    added = await rt.workspace.schedules.add("report", HOURLY, "coder", "write it")
    await opening_of(rt.workspace).ground.store.tx(
        "many", lambda _: Decision(None, [schedule_set(added._replace(name=f"n{n}"), clock.now()) for n in range(999)])
    )
    with pytest.raises(BadInput, match="a workspace has at most 1,000 schedules"):
        await rt.workspace.schedules.add("more", HOURLY, "coder", "write it")
    await rt.workspace.schedules.add("report", HOURLY, "coder", "write more", replace=True)
