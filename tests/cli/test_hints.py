"""Hints are commands that work here: with the store, the workspace and the team; and what `remit show` can do more."""

import json
import re
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from commands import Said, command, plain_environment
from programs import Program, ran, running
from terminals import in_terminal

TEAM = """
import asyncio
from remit import Runtime, Step, Plan

rt = Runtime()
here = Runtime("here.db", workspace="shop")

for team in (rt, here):
    @team.agent(asks="*")
    async def lead(turn):
        return await turn.run_plan(Plan([Step(f"s{n}", f"Source {n}", agent="worker") for n in range(20)]))

    @team.agent
    async def worker(turn):
        return "done"

    @team.agent
    async def slow(turn):
        await asyncio.sleep(3600)

    @team.agent(asks="*")
    async def boss(turn):
        await turn.spawn("slow", "a part of it")
        return await turn.delegate("slow", "another")

    @team.agent
    async def asks(turn):
        return await turn.ask_human("which colour?")
"""
Cli = Callable[..., Said]
PLACE = ("--store", "here.db", "--workspace", "shop")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "team.py").write_text(TEAM)
    return tmp_path


@pytest.fixture
def cli(folder: Path) -> Cli:
    return partial(command, folder)


def hints(text: str) -> list[list[str]]:
    """Return the commands in backquotes, as words."""
    return [shlex.split(command)[1:] for command in re.findall(r"`(remit [^`\n]*)`", text)]


@pytest.mark.rule("hints.here")
def test_a_hint_names_the_store_and_the_workspace_unless_they_are_usual(cli: Cli):
    assert cli("run", "team:here", "lead", "x").returncode == 0
    shown = cli("show", *PLACE).stdout
    [whole] = hints(shown)[:1]
    assert whole[0] == "show"
    assert whole[2:] == ["--all", *PLACE]
    assert cli(*whole).stdout.count(": Source") == 20
    unknown = cli("status", "zzzz", *PLACE)
    for hint in hints(unknown.stderr):
        assert hint[-4:] == list(PLACE)
        assert cli(*hint).returncode == 0
    usual = cli("show", REMIT_STORE="here.db", REMIT_WORKSPACE="shop").stdout
    assert "--store" not in usual
    assert "--workspace" not in usual


@pytest.mark.rule("hints.here")
def test_a_run_in_memory_has_no_hint_to_show_it(folder: Path):
    memory = in_terminal(folder, "run", "team:rt", "lead", "x", width=200)
    assert "… and 8 more (8 completed)" in memory.text
    assert "remit show" not in memory.text
    kept = in_terminal(folder, "run", "team:here", "lead", "x", width=200)
    assert re.search(r"8 more \(8 completed\); `remit show \w+ --all --store here.db --workspace shop`", kept.text)


@pytest.mark.rule("hints.here")
def test_a_hint_leaves_out_the_team_only_if_there_is_a_usual_one(cli: Cli):
    cli("submit", "team:here", "worker", "x")
    assert "`remit worker module:runtime --store here.db`\n" in cli("ps", *PLACE).stdout
    assert "`remit worker --store here.db`\n" in cli("ps", *PLACE, REMIT_TEAM="team:here").stdout


@pytest.mark.rule("hints.here")
def test_a_question_is_shown_with_the_command_that_answers_it_here(cli: Cli, folder: Path):
    with running("-m", "remit.cli", "run", "team:here", "asks", "x", cwd=folder, env=plain_environment()) as asking:
        printed = until(asking, "remit answer")
        [command] = re.findall(r"remit (answer .*)", cli("show", *PLACE).stdout)
        assert f"remit {command}" in printed
        assert command.endswith(f" ANSWER {' '.join(PLACE)}")
        assert cli(*shlex.split(command.replace("ANSWER", "green"))).returncode == 0
        assert asking.communicate()[0] == "green\n"


def until(program: Program, words: str) -> str:
    """Return the line on standard error that has these words."""
    return next(line for line in program.stderr if words in line)


@pytest.mark.rule("stop.all")
def test_stop_all_cancels_every_open_run_and_task(cli: Cli, folder: Path):
    assert cli("submit", "team:here", "worker", "later", "--after", "1d").returncode == 0
    with running("-m", "remit.cli", "run", "team:here", "boss", "x", cwd=folder, env=plain_environment()) as working:
        until(working, "task.started slow: another")
        stopped = json.loads(cli("stop-all", "--json", *PLACE, "--why", "fire drill", "--op", "drill").stdout)
        assert len(stopped["tasks"]) == 2
        assert stopped["cancelled"] == 4
        assert stopped["stopping"] == []
        assert working.communicate()[0] == "'boss' was cancelled: fire drill\n"
        assert working.wait() == 1
    assert json.loads(cli("ps", "--json", *PLACE).stdout)["tasks"] == []
    assert cli("stop-all", *PLACE).stdout == "nothing is open\n"


@pytest.mark.rule("stop.all")
def test_stop_all_ends_the_tasks_of_a_dead_process(cli: Cli, folder: Path):
    with running("-m", "remit.cli", "run", "team:here", "slow", "x", cwd=folder, env=plain_environment()) as working:
        until(working, "task.started slow")
        working.kill()
        working.wait()
    assert cli("stop-all", *PLACE).stdout == "1 task cancelled; all have stopped\n"


@pytest.mark.rule("show.follow")
def test_show_follows_a_run_until_it_ends(cli: Cli, folder: Path):
    with running("-m", "remit.cli", "run", "team:here", "asks", "x", cwd=folder, env=plain_environment()) as asking:
        question = re.findall(r"remit answer (\w+)", until(asking, "remit answer"))[0]
        words = ("-m", "remit.cli", "show", "--follow", *PLACE)
        with (
            running(*words, cwd=folder, env=plain_environment()) as following,
            running(*words, "--json", cwd=folder, env=plain_environment()) as waiting,
        ):
            assert cli("answer", question, "red", *PLACE).returncode == 0
            followed = following.communicate()[0].splitlines()
            assert "question.asked asks" in followed[1]
            assert followed[-1] == "red"
            assert json.loads(waiting.communicate()[0])["result"] == "red"


@pytest.mark.rule("show.follow")
@pytest.mark.parametrize(("form", "start"), [("mermaid", "flowchart"), ("svg", "<svg")])
def test_show_draws_a_diagram(cli: Cli, folder: Path, form: str, start: str):
    cli("run", "team:here", "worker", "x")
    drawn = cli("show", "--as", form, *PLACE).stdout
    assert drawn.startswith(start)
    assert cli("show", "--as", form, "--output", "run.txt", *PLACE).stdout == "written to run.txt\n"
    assert (folder / "run.txt").read_text().strip() == drawn.strip()
    refused = cli("show", "--output", "run.txt", *PLACE)
    assert (refused.returncode, "add --as svg" in refused.stderr) == (2, True)


@pytest.mark.rule("show.receipts")
def test_receipts_are_one_line_each_and_whole_with_all(cli: Cli):
    cli("run", "team:here", "lead", "x")
    short = cli("show", *PLACE).stdout
    assert "worker  (20 turns)  saw its task and nothing else; withheld: everything else\n" in short
    assert "   everything else  withheld: not passed\n" in cli("show", "--all", *PLACE).stdout


@pytest.mark.rule("hints.here")
def test_a_chat_ends_with_the_command_that_continues_it(cli: Cli, folder: Path):
    words = ("-m", "remit.cli", "chat", "team:here", "worker", "--session", "s1")
    said = ran(*words, cwd=folder, env=plain_environment(), said="hello\n")
    assert said.stderr.splitlines()[-1] == "remit chat team:here worker --session s1 --store here.db"
