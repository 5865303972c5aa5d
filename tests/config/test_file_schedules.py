"""Schedules of a team's file: a worker sets them, by name, and says what it did."""

from pathlib import Path

import pytest

from remit.config.schedules import apply_schedules
from remit.config.teams import Team, check_team, team

pytestmark = pytest.mark.anyio

AGENTS = """
[agents.writer]
program = ["cat"]

[agents.lead]
program = ["cat"]
asks = ["writer"]

[run]
agent = "writer"

[plan]
goal = "find out what sells"

[[plan.steps]]
id = "list"
title = "List it"
agent = "writer"
"""
SCHEDULES = """
[schedules.report]
cron = "30 8 * * MON-FRI"
zone = "Europe/Berlin"
task = "write the report"
catch_up = "all"
tags = ["nightly"]
meta = { ticket = 7 }
priority = 3

[schedules.weekly]
cron = "0 9 * * MON"

[schedules.crew]
cron = "0 9 * * MON"
coordinator = "lead"
task = "sell more"
"""


def written(folder: Path, text: str, name: str = "remit.toml") -> Path:
    file = folder / name
    file.write_text(AGENTS + text)
    return file


async def applied(made: Team, into: Team) -> list[tuple[str, str]]:
    found = await apply_schedules(into.runtime.workspace, made.schedules, made.file)
    return [(one.name, done) for one, done in found]


@pytest.mark.rule("file.schedules")
async def test_schedules_of_a_file_are_added_changed_and_marked_when_they_leave_it(tmp_path: Path):
    made = team(written(tmp_path, SCHEDULES))
    async with made.runtime:
        schedules = made.runtime.workspace.schedules
        assert await applied(made, made) == [("report", "added"), ("weekly", "added"), ("crew", "added")]
        crew, report, weekly = await schedules.list()
        assert (report.agent, report.zone, report.catch_up) == ("writer", "Europe/Berlin", "all")
        assert report.keywords == {"tags": ["nightly"], "meta": {"ticket": 7}, "priority": 3}
        assert (weekly.led_as, weekly.task) == ("plan", "find out what sells")
        assert (crew.led_as, crew.agent, crew.task) == ("team", "lead", "sell more")
        assert {one.source for one in (crew, report, weekly)} == {"remit.toml"}
        assert await applied(made, made) == []  # any number of workers may start

        await schedules.add("own", "0 9 * * *", "writer", "x")
        await schedules.pause("report")
        changed = SCHEDULES.replace("write the report", "write more").split("[schedules.crew]")[0]
        assert await applied(team(written(tmp_path, changed)), made) == [("report", "changed"), ("crew", "left")]
        crew, own, report, weekly = await schedules.list()
        assert (report.task, report.state) == ("write more", "paused")
        assert (crew.left, crew.next is not None) == (True, True)
        assert (own.source, own.left, weekly.left) == ("", False, False)

        other = team(written(tmp_path, "[schedules.theirs]\ncron = '0 9 * * *'\n", "other.toml"))
        assert await applied(other, made) == [("theirs", "added")]  # another file leaves those of this one alone
        assert await applied(team(written(tmp_path, SCHEDULES)), made) == [("report", "changed"), ("crew", "changed")]
        assert not any(one.left for one in await schedules.list())


@pytest.mark.rule("file.schedules")
async def test_a_schedule_uses_the_coordinator_and_the_plan_of_the_file_as_remit_run_does(tmp_path: Path):
    text = AGENTS.replace('agent = "writer"\n\n[plan]', 'coordinator = "lead"\n\n[plan]')
    file = tmp_path / "remit.toml"
    file.write_text(f"{text}[schedules.a]\ncron = '0 9 * * *'\n[schedules.b]\ncron = '0 9 * * *'\ntask = 'more'\n")
    made = team(file)
    async with made.runtime:
        await applied(made, made)
        found = await made.runtime.workspace.schedules.list()
    assert [(one.agent, one.task, one.led_as) for one in found] == [
        ("lead", "find out what sells", "team"),
        ("lead", "more", "team"),
    ]


CRON = "cron = '0 9 * * *'\n"
WRONG = {
    "[schedules.x]\ntask = 'y'\n": "19: schedules.x: cron is missing: text in quotes",
    "[schedules.x]\ncron = 'often'\ntask = 'y'\n": "20: schedules.x.cron: ",
    f"[schedules.x]\n{CRON}zone = 'Mars/Base'\ntask = 'y'\n": "20: schedules.x.cron: ",
    f"[schedules.x]\n{CRON}agent = 'writr'\ntask = 'y'\n": (
        "21: schedules.x.agent: there is no agent 'writr'; did you mean 'writer'?"
    ),
    f"[schedules.x]\n{CRON}agent = 'writer'\n": "19: schedules.x: set task: what the agent is to do",
    f"[schedules.x]\n{CRON}agent = 'writer'\ncoordinator = 'lead'\n": "set only one of agent and coordinator",
    f"[schedules.x]\n{CRON}catch_up = 'al'\n": "21: schedules.x.catch_up: this is ",
    f"[schedules.x]\n{CRON}task = 'y'\npriority = 1000\n": "19: schedules.x: priority is a whole number from -100",
    f"[schedules.x]\n{CRON}remembers = true\n": "19: schedules.x: schedules.add_plan takes no remembers",
    "[[schedules]]\ncron = '0 9 * * *'\n": "schedules: this is a list; write [schedules.NAME]",
}


@pytest.mark.rule("file.schedules", "schedule.checked")
@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_schedule_is_a_problem_of_the_file(text: str, tmp_path: Path):
    _, problems = check_team(written(tmp_path, text))
    assert any(WRONG[text] in str(one) for one in problems), [*map(str, problems)]


@pytest.mark.rule("file.schedules")
def test_without_a_plan_a_schedule_needs_a_task(tmp_path: Path):
    file = tmp_path / "remit.toml"
    file.write_text(f"[agents.a]\nprogram = ['cat']\n[agents.b]\nprogram = ['cat']\n[schedules.x]\n{CRON}")
    (problem,) = check_team(file)[1]
    assert "set agent and task; without a task, a schedule runs the [plan] of the file" in str(problem)
    file.write_text(f"[agents.a]\nprogram = ['cat']\n[schedules.x]\n{CRON}coordinator = 'a'\n")
    (problem,) = check_team(file)[1]
    assert "set task: the goal of the team" in str(problem)
