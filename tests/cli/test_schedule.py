"""`remit schedule`: schedules are added, listed, paused, resumed and removed, and a worker starts their runs."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from commands import Said, command
from remit import Runtime

TEAM = """
import remit

rt = remit.Runtime("remit.db")


@rt.agent
async def writer(turn):
    return f"wrote {turn.task} by {turn.by}"
"""
WEEKDAYS = ("30 8 * * MON-FRI", "writer", "write the report")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "team.py").write_text(TEAM)
    assert command(tmp_path, "db", "migrate").returncode == 0
    return tmp_path


def remit(folder: Path, *words: str) -> Said:
    return command(folder, "schedule", *words)


def listed(folder: Path) -> list[dict[str, Any]]:
    return json.loads(remit(folder, "ls", "--json").stdout)


@pytest.mark.rule("schedule.commands")
def test_a_schedule_is_added_and_listed(folder: Path):
    assert "no schedules; add one: remit schedule add NAME" in remit(folder, "ls").stdout
    done = remit(folder, "add", "report", *WEEKDAYS, "--zone", "Europe/Berlin", "--priority", "3", "--by", "ann")
    assert done.returncode == 0
    assert done.stdout.startswith("schedule report: next 20")
    assert "then '30 8 * * MON-FRI' Europe/Berlin" in done.stdout
    assert "a worker starts its runs: remit worker" in done.stderr
    (found,) = listed(folder)
    assert {
        "name": "report",
        "state": "active",
        "catch_up": "latest",
        "agent": "writer",
        "runs": 0,
    }.items() <= found.items()
    assert (found["keywords"], found["set_by"], found["last"]) == ({"priority": 3}, "ann", None)
    head, row = remit(folder, "ls").stdout.splitlines()
    assert head.split() == ["name", "cron", "zone", "agent", "next", "runs", "task"]
    assert row.startswith("report  30 8 * * MON-FRI  Europe/Berlin  writer  20")
    assert row.endswith("Z     0  write the report")


@pytest.mark.rule("schedule.commands", "schedule.led")
def test_labels_plans_and_teams_are_scheduled_as_they_are_submitted(folder: Path):
    labels = ("--tag", "nightly", "--tag", "books", "--meta", "ticket=T-7", "--session", "desk", "--remembers")
    assert remit(folder, "add", "report", *WEEKDAYS, *labels).returncode == 0
    plan = {"goal": "tidy up", "steps": [{"id": "a", "title": "list", "agent": "writer"}]}
    (folder / "plan.json").write_text(json.dumps(plan))
    assert remit(folder, "add", "weekly", "0 9 * * MON", "team:rt", "--plan", "plan.json").returncode == 0
    assert remit(folder, "add", "crew", "0 9 * * MON", "team:rt", "writer", "sell", "--team").returncode == 0
    crew, report, weekly = listed(folder)
    assert report["keywords"] == {
        "meta": {"ticket": "T-7"},
        "remembers": "session",
        "session": "desk",
        "tags": ["books", "nightly"],
    }
    assert (weekly["agent"], weekly["task"], weekly["led_as"]) == ("plan", "tidy up", "plan")
    assert (crew["agent"], crew["task"], crew["led_as"]) == ("writer", "sell", "team")
    assert "writer (team)" in remit(folder, "ls").stdout
    for wrong, said in {
        ("--plan", "plan.json", "--team"): "with --plan, pass only [module:runtime]",
        ("--plan", "none.json"): "the plan in none.json cannot be read",
        ("writer", "x", "--meta", "ticket"): "--meta is NAME=VALUE",
        (): "pass [module:runtime] [AGENT] 'task'",
        ("x",): "name an agent: remit schedule add NAME CRON",
    }.items():
        done = remit(folder, "add", "other", "0 9 * * MON", *wrong)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


@pytest.mark.rule("schedule.commands")
def test_a_schedule_is_paused_resumed_and_removed(folder: Path):
    added = json.loads(remit(folder, "add", "report", *WEEKDAYS, "--json").stdout)
    assert added == listed(folder)[0]
    assert remit(folder, "pause", "report").stdout == "schedule report is paused\n"
    assert remit(folder, "pause", "report").stdout == "schedule report was paused\n"
    assert "  paused  " in remit(folder, "ls").stdout
    assert json.loads(remit(folder, "pause", "report", "--json").stdout)["changed"] is False
    assert remit(folder, "resume", "report").stdout.startswith("schedule report is active: next 20")
    assert json.loads(remit(folder, "resume", "report", "--json").stdout) == {
        "name": "report",
        "state": "active",
        "changed": False,
    }
    assert remit(folder, "rm", "report").stdout == "schedule report is removed\n"
    assert listed(folder) == []
    remit(folder, "add", "report", *WEEKDAYS)
    assert json.loads(remit(folder, "rm", "report", "--json").stdout) == {"name": "report", "removed": True}


@pytest.mark.rule("schedule.commands")
def test_what_is_wrong_is_said_with_its_exit_code(folder: Path):
    remit(folder, "add", "report", *WEEKDAYS)
    wrong = {
        ("add", "report", "0 9 * * *", *WEEKDAYS[1:]): (3, "replace=True (--replace)"),
        ("add", "other", "0 9 * *", *WEEKDAYS[1:]): (2, "is not a cron expression"),
        ("add", "other", *WEEKDAYS, "--zone", "Berlin"): (2, "there is no time zone 'Berlin'"),
        ("add", "other", *WEEKDAYS, "--catch-up", "some"): (2, "--catch-up"),
        ("pause", "reprot"): (4, "did you mean report"),
        ("resume", "reprot"): (4, "did you mean report"),
        ("rm", "reprot"): (4, "did you mean report"),
    }
    for words, (code, said) in wrong.items():
        done = remit(folder, *words)
        assert (done.returncode, said in done.stderr) == (code, True), (words, done)
    assert remit(folder, "add", "report", "0 9 * * *", *WEEKDAYS[1:], "--replace").returncode == 0
    assert listed(folder)[0]["cron"] == "0 9 * * *"


@pytest.mark.rule("schedule.run")
def test_a_worker_starts_the_runs_and_they_say_who_started_them(folder: Path):
    remit(folder, "add", "tick", "* * * * * *", "writer", "count")
    with Runtime(folder / "remit.db") as rt:

        @rt.agent
        async def writer(turn: Any) -> str:
            return f"{turn.task} by {turn.by}"

        async def first() -> str:
            async with rt.serving(), rt.workspace.journal.follow() as follow:
                while not (ended := [event for event in await follow.next() if event.kind == "task.completed"]):
                    pass
                await rt.workspace.schedules.pause("tick")
                return ended[0].task

        run = asyncio.run(first())
    assert "  by schedule tick" in command(folder, "show", run).stdout.splitlines()[0]
    status = command(folder, "status", run).stdout
    assert "Z by schedule tick\n" in status
    assert "count by schedule tick" in status
    assert json.loads(command(folder, "status", run, "--json").stdout)["by"] == "schedule tick"
    assert listed(folder)[0]["runs"] >= 1
