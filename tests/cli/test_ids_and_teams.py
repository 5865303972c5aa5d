"""What a person types: ids, teams and settings mean the same in every command, and errors are JSON with --json."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from commands import Said, command, plain_environment
from programs import ran

TEAM = """
from remit import Runtime

rt = Runtime("remit.db")

@rt.agent(asks="*")
async def lead(turn):
    return await turn.delegate("worker", turn.task)

@rt.agent
async def worker(turn):
    if turn.task == "break":
        raise ValueError("no paper")
    return "done"
"""
Cli = Callable[..., Said]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "team.py").write_text(TEAM)
    return tmp_path


@pytest.fixture
def cli(folder: Path) -> Cli:
    return partial(command, folder)


def tasks(cli: Cli) -> tuple[str, str]:
    """Return the ids of a run that fails and of its subtask."""
    assert cli("run", "team:rt", "lead", "break").returncode == 1
    tree = json.loads(cli("show", "--json").stdout)
    return tree["id"], tree["children"][0]["id"]


WITH_AN_ID = (
    ("show",),
    ("show", "--trace"),
    ("show", "--talk"),
    ("flow",),
    ("status",),
    ("watch",),
    ("wait",),
    ("history", "--run"),
    ("ps", "--parent"),
)


@pytest.mark.rule("ids.alike")
def test_each_command_takes_the_id_of_a_run_or_a_task_a_part_of_it_and_last(cli: Cli):
    run, task = tasks(cli)
    for words in WITH_AN_ID:
        said = {typed: cli(*words, typed) for typed in (run, run[-8:], task, task[-8:], "last")}
        for typed, one in said.items():
            assert one.returncode in (0, 1), (words, typed, one.stderr)
            assert one.stderr == "", (words, typed)
            whole = next((id_ for id_ in (run, task) if id_.endswith(typed)), run)
            assert one.stdout == said[whole].stdout
        unknown = cli(*words, "zzzz")
        assert (unknown.returncode, unknown.stdout) == (4, ""), words
        assert "there is no run or task 'zzzz' in this workspace" in unknown.stderr
    for words in (("cancel",), ("retry",)):
        assert cli(*words, "zzzz").returncode == 4


@pytest.mark.rule("ids.alike")
def test_of_a_task_a_command_shows_its_part_of_the_run(cli: Cli):
    run, task = tasks(cli)
    assert json.loads(cli("show", task, "--json").stdout)["agent"] == "worker"
    assert "lead" not in cli("flow", task).stdout
    events = json.loads(cli("history", "--run", task, "--json").stdout)
    assert {event["task"] for event in events} == {task}
    assert {event["run"] for event in events} == {run}
    assert "lead" not in cli("watch", task).stdout.splitlines()[0]


@pytest.mark.rule("failure.trace")
def test_a_trace_of_a_run_shows_each_failed_attempt_with_its_chain(cli: Cli):
    run, task = tasks(cli)
    shown = cli("show", "last", "--trace").stdout
    assert f"lead > worker  {task}" in shown
    assert f"lead  {run}" in shown
    first, second = json.loads(cli("show", "last", "--trace", "--json").stdout)["failures"]
    assert (first["task"], first["chain"]) == (task, ["lead", "worker"])
    assert " in worker" in first["trace"]
    assert (second["task"], second["chain"]) == (run, ["lead"])
    [alone] = json.loads(cli("show", task, "--trace", "--json").stdout)["failures"]
    assert alone["chain"] == ["worker"]
    assert cli("run", "team:rt", "lead", "x").returncode == 0
    assert cli("show", "--trace").stdout.startswith("no attempt of ")


@pytest.mark.rule("json.errors")
@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (("show", "zzzz"), 4, "NotFound"),
        (("runs", "--store", "nowhere.db"), 4, "NotFound"),
        (("runs", "--limit", "0"), 2, "BadInput"),
        (("runs", "--limt", "3"), 2, "BadInput"),
        (("nonsense",), 2, "BadInput"),
        (("run", "nothing:rt", "lead", "x"), 2, "BadInput"),
        (("run", "team:rt", "nobody", "x"), 3, "Refused"),
        (("runs", "--store", "team.py"), 5, "NotAStore"),
    ],
)
def test_an_error_under_json_is_json_with_the_same_exit_code(cli: Cli, words: tuple[str, ...], code: int, kind: str):
    cli("run", "team:rt", "lead", "x")
    plain, said = cli(*words), cli(*words, "--json")
    assert (plain.returncode, said.returncode, said.stderr) == (code, code, "")
    error = json.loads(said.stdout)["error"]
    assert (error["type"], error["exit_code"]) == (kind, code)
    assert error["message"].splitlines()[0] in plain.stderr
    assert error.get("rule") == ("unknown" if kind == "Refused" else None)


@pytest.mark.rule("json.errors")
def test_after_two_dashes_json_is_a_word_and_not_an_option(cli: Cli):
    said = cli("show", "--", "--json")
    assert (said.returncode, said.stdout) == (4, "")


def test_the_package_is_a_command(folder: Path):
    said = subprocess.run([sys.executable, "-m", "remit", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("remit ")
    assert ran("-m", "remit", "runs", cwd=folder, env=plain_environment()).returncode == 4


@pytest.mark.rule("team.where")
def test_a_team_is_a_module_a_script_or_the_one_in_the_environment(cli: Cli, folder: Path):
    assert cli("run", "./team.py:rt", "worker", "x").stdout == "done\n"
    assert cli("run", "team.py:rt", "worker", "x").stdout == "done\n"
    assert cli("run", str(folder / "team.py") + ":rt", "worker", "x").stdout == "done\n"
    assert cli("run", "worker", "x", REMIT_TEAM="team:rt").stdout == "done\n"
    assert cli("run", "worker", "x", REMIT_TEAM="./team.py:rt").stdout == "done\n"
    assert cli("submit", "worker", "x", REMIT_TEAM="./team.py:rt").returncode == 0
    assert "worker" in cli("agents", "-v", REMIT_TEAM="./team.py:rt").stdout


@pytest.mark.rule("team.where")
def test_a_script_in_a_package_finds_the_rest_of_it(cli: Cli, folder: Path):
    package = folder / "shop" / "agents"
    package.mkdir(parents=True)
    for place in (package.parent, package):
        (place / "__init__.py").touch()
    (folder / "team.py").rename(package / "team.py")
    (package / "desk.py").write_text("from .team import rt\n")
    assert cli("run", "./shop/agents/desk.py:rt", "worker", "x").stdout == "done\n"


@pytest.mark.rule("team.where")
def test_a_script_that_cannot_be_imported_says_why(cli: Cli, folder: Path):
    missing = cli("run", "./teem.py:rt", "worker", "x")
    assert (missing.returncode, missing.stderr) == (2, "remit: there is no file 'teem.py'\n")
    (folder / "json.py").write_text(TEAM)
    taken = cli("run", "./json.py:rt", "worker", "x")
    assert taken.returncode == 2
    assert "json.py cannot be imported, because another module 'json' is at " in taken.stderr
    (folder / "sys.py").write_text(TEAM)
    assert "another module 'sys' is built into Python; rename the file" in cli("run", "./sys.py:rt", "w", "x").stderr
    unnamed = cli("run", "./team.py:nothing", "worker", "x")
    assert "'nothing' in ./team.py is not a remit.Runtime; it has rt" in unnamed.stderr


@pytest.mark.rule("team.where")
def test_the_file_of_the_environment_names_the_store_of_commands_that_read(cli: Cli, folder: Path):
    other = folder / "other"
    other.mkdir()
    (other / "remit.toml").write_text('[store]\npath = "kept.db"\n\n[agents.worker]\nfunction = "team:worker"\n')
    (other / "team.py").write_text("async def worker(turn):\n    return 'other'\n")
    assert cli("run", "worker", "x", REMIT_TEAM="other/remit.toml").stdout == "other\n"
    assert (other / "kept.db").exists()
    assert len(json.loads(cli("runs", "--json", REMIT_TEAM="other/remit.toml").stdout)) == 1
    assert cli("runs", REMIT_TEAM="gone.toml").stderr == (
        "remit: REMIT_TEAM names 'gone.toml', and there is no such file; correct it or unset it\n"
    )
    assert "1 agent" in cli("check", REMIT_TEAM="other/remit.toml").stdout
    assert "worker" in cli("find", "worker", REMIT_TEAM="other/remit.toml").stdout


def test_without_a_team_a_command_says_how_to_name_one(folder: Path):
    assert "or set REMIT_TEAM to it" in command(folder, "worker").stderr
