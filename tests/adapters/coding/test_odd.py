"""Coding agents in odd places and with odd ends: rubbish on stdout, programs that hang or crash, odd repositories."""

import asyncio
import json
import logging
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.coding.crews import KEY, LIKE, SYSTEM, Crew, repository
from remit import Card, Runtime
from remit.testing.models import Calls, Fails, ModelReply, ModelRequest, Says, model_server

pytestmark = pytest.mark.anyio
_PRINT = "sys.stdout.buffer.write(zlib.decompress"
DONE = json.dumps({"type": "turn.completed", "usage": {}})


@pytest.fixture(autouse=True)
def real_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODING_KEY", KEY)


def answer(text: str) -> str:
    return json.dumps({"type": "item.completed", "item": {"type": "agent_message", "text": text}})


def printing(*lines: str | bytes, then: str = "") -> list[str]:
    """A program that stands in for Codex: it prints these lines and nothing else."""
    data = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
    code = f"import os, sys, time, zlib\n{_PRINT}({zlib.compress(data)!r}))\nsys.stdout.flush()\n{then}"
    return [sys.executable, "-c", code]


async def outcome_of(crew: Crew, command: list[str], linger: float = 60) -> Any:
    async with Runtime(system=SYSTEM) as rt:
        agent = crew.codex(command=command)
        agent.linger = linger
        rt.add(Card("coder"), agent)
        return await rt.outcome("coder", "do it")


@pytest.fixture
def crew(tmp_path: Path) -> Crew:
    return Crew("http://127.0.0.1:1", tmp_path)


@pytest.mark.rule("coding.output")
@pytest.mark.parametrize(
    "rubbish",
    ["plain words", '{"type": ', "[1, 2]", "null", b"\xff\xfe broken", '"' + "x" * 10_000_000, "[" * 100_000],
    ids=["words", "half", "list", "null", "bytes", "long", "deep"],
)
async def test_lines_that_say_nothing_are_passed_over(crew: Crew, rubbish: str | bytes):
    outcome = await outcome_of(crew, printing(rubbish, answer("fine"), rubbish, DONE))
    assert (outcome.state, outcome.value) == ("completed", "fine")


@pytest.mark.rule("coding.output")
async def test_an_answer_with_broken_characters_is_kept(crew: Crew):
    spoiled = answer("fine").encode().replace(b"fine", rb"f\u0000i\ud800n" + b"\xff" + b"e")
    outcome = await outcome_of(crew, printing(spoiled, DONE))
    assert (outcome.state, outcome.value) == ("completed", "f\ufffdi?n\ufffde")


@pytest.mark.rule("coding.output")
@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (printing(answer("I will")), "'codex' failed: I will"),
        (printing(), "'codex' failed: it ended without a result"),
        (printing(answer("half"), then="sys.exit(7)"), "'codex' ended with exit code 7: half"),
        (printing(answer("half"), then="os.kill(os.getpid(), 11)"), "'codex' was ended by signal 11: half"),
        (printing(DONE, then="sys.stderr.write('oh no')\nsys.exit(7)"), "'codex' ended with exit code 7: oh no"),
    ],
    ids=["no-result", "nothing", "exit-code", "signal", "after-result"],
)
async def test_a_program_that_ends_without_its_result_fails(crew: Crew, command: list[str], sentence: str):
    outcome = await outcome_of(crew, command)
    assert outcome.state == "failed"
    assert sentence in str(outcome.error)


@pytest.mark.rule("coding.output")
def test_a_program_that_hangs_after_its_result_is_ended(crew: Crew):
    """In a loop that no plugin has started: its callbacks know less than those of a test."""
    hangs = printing(answer("fine"), DONE, then="time.sleep(3600)")
    outcome = asyncio.run(outcome_of(crew, hangs, linger=0.1))
    assert (outcome.state, outcome.value) == ("completed", "fine")


def forget_session(home: Path) -> None:
    (sessions,) = home.glob("*/sessions")
    shutil.rmtree(sessions)


def forget_all(home: Path) -> None:
    shutil.rmtree(home)


def keep_session(home: Path) -> None:
    assert list(home.glob("*/sessions"))


@pytest.mark.rule("coding.killed")
@pytest.mark.parametrize(
    ("between", "told"),
    [
        (forget_all, "An earlier attempt at your task was interrupted. The files that it changed are gone; you have"),
        (keep_session, "You were interrupted. Go on with your task:"),
        (forget_session, "An earlier attempt at your task was interrupted. It did this:\n- DONE: exec_command"),
    ],
    ids=["files", "kept", "lost"],
)
async def test_a_crashed_program_is_run_again_with_or_without_its_session(
    tmp_path: Path, between: Callable[[Path], None], told: str
):
    asked: list[str] = []

    def script(request: ModelRequest) -> ModelReply:
        given = request.body["input"]
        asked.append(next(one["content"][0]["text"] for one in reversed(given) if one.get("role") == "user"))
        return Calls("exec_command", {"cmd": "echo one"}) if len(asked) == 1 else Says("done")

    async with model_server(script, strict=False) as server, Runtime(system=SYSTEM) as rt:
        crew, repo = Crew(server.url, tmp_path), repository(tmp_path / "repo")
        rt.add(Card("coder"), crew.codex(cwd=repo, worktree=True, env={"LIKE_CRASH": str(tmp_path / "crashed")}))
        first = await rt.submit("coder", "do it", attempts=1)
        assert (await first.wait()).state == "failed"
        between(crew.home)
        again = await rt.workspace.tasks.retry(first.id)
        assert (await rt.workspace.tasks.get(again.id).wait()).value == "done"
    assert asked[-1].startswith(told)
    assert asked[-1].endswith("do it")


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "protocol.file.allow=always")
    return subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True).stdout


def on_no_branch(folder: Path) -> Path:
    git(folder, "checkout", "-q", "--detach")
    return folder


def below_the_top(folder: Path) -> Path:
    (folder / "sub").mkdir()
    return folder / "sub"


def with_submodule(folder: Path) -> Path:
    other = repository(folder.parent / "other")
    git(folder, "submodule", "add", "-q", str(other), "inside")
    git(folder, "commit", "-qm", "two")
    return folder


def with_settings(folder: Path) -> Path:
    """A user whose patches have another form, which `git apply` does not read."""
    for name, value in (("diff.noprefix", "true"), ("diff.external", "false"), ("color.ui", "always")):
        git(folder, "config", name, value)
    return folder


@pytest.mark.rule("coding.worktree")
@pytest.mark.parametrize("made", [on_no_branch, below_the_top, with_submodule, with_settings])
async def test_a_worktree_of_any_repository_can_be_applied(tmp_path: Path, made: Callable[[Path], Path]):
    repo = repository(tmp_path / "repo")
    cwd = made(repo)
    replies = [
        Calls(
            "exec_command", {"cmd": "pwd; git -c protocol.file.allow=always submodule update --init; echo new > b.txt"}
        ),
        Says("changed"),
    ]
    async with model_server(replies, strict=False) as server, Runtime(system=SYSTEM) as rt:
        crew = Crew(server.url, tmp_path)
        rt.add(Card("coder"), crew.codex(cwd=cwd, worktree=True))
        outcome = await rt.outcome("coder", "change it", credits="$2")
        found = re.search(r"sha256:[0-9a-f]{64}", str(outcome.value))
        assert found is not None, outcome
        diff = await (await rt.workspace.artifacts.open(found[0])).read()
    assert not list(crew.home.iterdir())
    assert git(repo, "worktree", "list").count("\n") == 1
    (tmp_path / "diff").write_bytes(diff)
    git(repo, "apply", str(tmp_path / "diff"))
    assert (cwd / "b.txt").read_text() == "new\n"


@pytest.mark.rule("coding.worktree")
async def test_a_worktree_needs_a_commit(tmp_path: Path, crew: Crew):
    git(tmp_path, "init", "-q")
    async with Runtime(system=SYSTEM) as rt:
        rt.add(Card("coder"), crew.codex(worktree=True))
        outcome = await rt.outcome("coder", "change it")
    assert "worktree=True needs a commit to begin with" in str(outcome.error)


@pytest.mark.rule("coding.crowd")
@pytest.mark.parametrize("worktree", [False, True])
async def test_two_tasks_in_one_folder_are_told(tmp_path: Path, worktree: bool, caplog: pytest.LogCaptureFixture):
    repo, both = repository(tmp_path / "repo"), asyncio.Barrier(2)

    async def script(_: ModelRequest) -> ModelReply:
        await both.wait()
        return Says("done")

    async with model_server(script, strict=False) as server, Runtime(system=SYSTEM) as rt:
        rt.add(Card("coder"), Crew(server.url, tmp_path).codex(cwd=repo, worktree=worktree))
        with caplog.at_level(logging.WARNING, "remit"):
            async with anyio.create_task_group() as group:
                group.start_soon(rt.run, "coder", "one")
                group.start_soon(rt.run, "coder", "two")
    told = [one.getMessage() for one in caplog.records if "tasks of 'coder' work in" in one.getMessage()]
    assert len(told) == (not worktree)


def shell(request: ModelRequest) -> Calls:
    if "input" in request.body:
        return Calls("exec_command", {"cmd": "printf 'result-%s' 2"})
    if "contents" in request.body:
        return Calls("run_shell_command", {"command": "printf 'result-%s' 2"})
    return Calls("Bash", {"command": "printf 'result-%s' 2", "description": "say it"})


@pytest.mark.rule("coding.killed")
@pytest.mark.parametrize("program", LIKE)
@pytest.mark.parametrize("real", [False, True], ids=["like", "real"])
async def test_an_attempt_in_another_folder_knows_what_was_done(tmp_path: Path, program: str, real: bool):
    asked: list[str] = []

    def script(request: ModelRequest) -> ModelReply:
        asked.append(json.dumps(request.body))
        return [shell(request), Fails(400, message="odd"), Says("done")][len(asked) - 1]

    folders = [tmp_path / "one", tmp_path / "two"]
    id_ = ""
    async with model_server(script, strict=False) as server:
        for folder in folders:
            folder.mkdir()
            async with Runtime(tmp_path / "store.db", system=SYSTEM) as rt:
                rt.add(Card("coder"), getattr(Crew(server.url, tmp_path, real=real), program)(cwd=folder))
                if not id_:
                    first = await rt.submit("coder", "do it", attempts=1)
                    assert (await first.wait()).state == "failed"
                    id_ = first.id
                else:
                    again = await rt.workspace.tasks.retry(id_)
                    assert (await rt.workspace.tasks.get(again.id).wait()).value == "done"
    assert "interrupted" in asked[-1]
    assert "result-2" in asked[-1], "in the session or in the prompt"
