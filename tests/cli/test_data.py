"""`--data`: a JSON value next to the text of a task."""

import json
from pathlib import Path

import pytest

from commands import command

TEAM = """
import remit

rt = remit.Runtime("remit.db")


@rt.agent
async def checker(turn):
    return [turn.task, turn.data]
"""


@pytest.mark.rule("task.data")
def test_run_submit_and_schedules_take_a_value(tmp_path: Path):
    (tmp_path / "team.py").write_text(TEAM)
    (tmp_path / "order.json").write_text('{"order": 8}')
    done = command(tmp_path, "run", "team:rt", "checker", "check", "--data", '{"order": 7}')
    assert json.loads(done.stdout) == ["check", {"order": 7}]
    done = command(tmp_path, "submit", "team:rt", "checker", "check", "--data", "@order.json", "--json")
    shown = json.loads(command(tmp_path, "show", json.loads(done.stdout)["task"], "--json").stdout)
    assert '{"order":8}' in json.dumps(shown).replace("\\", "")
    added = command(tmp_path, "schedule", "add", "s", "30 8 * * *", "checker", "check", "--data", "-5", "--json")
    assert json.loads(added.stdout)["keywords"] == {"data": -5}


@pytest.mark.rule("task.data")
def test_a_value_that_cannot_be_read_is_an_error(tmp_path: Path):
    (tmp_path / "team.py").write_text(TEAM)
    for data, says in (("{order}", "--data is JSON"), ("@none.json", "'none.json' cannot be read: No such file")):
        done = command(tmp_path, "run", "team:rt", "checker", "check", "--data", data)
        assert done.returncode == 2
        assert says in " ".join(done.stderr.split())
    done = command(tmp_path, "submit", "team:rt", "--team", "checker", "check", "--data", "1")
    assert "--data is for a run of one agent" in " ".join(done.stderr.split())
