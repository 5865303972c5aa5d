"""The command line, as people and programs use it: real processes, real files."""

import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

TEAM = """
import anyio
import remit

rt = remit.Runtime()
not_a_runtime = 7

@rt.agent(asks="*")
async def lead(turn):
    await turn.context.set("notes", "seen", turn.task)
    try:
        await turn.delegate("lead", "again")
    except remit.Refused:
        pass
    return await turn.delegate("worker", "part of it", sees=["notes"])

@rt.agent
async def worker(turn):
    return "read " + await turn.context.get("notes", "seen")

@rt.agent
async def broken(turn):
    raise ValueError("\\x1b[31mred\\x1b[0m alert")

@rt.agent
async def slow(turn):
    print("started", flush=True)
    await anyio.sleep_forever()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "team.py").write_text(TEAM)
    return tmp_path


def remit(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("REMIT_")}
    return subprocess.run(
        [sys.executable, "-m", "remit.cli", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )


def ran(folder: Path) -> Path:
    """The folder after one run that is kept in remit.db."""
    done = remit(folder, "run", "team:rt", "lead", "the task", "--store", "remit.db")
    assert done.returncode == 0, done.stderr
    return folder


def test_run_shows_lines_when_nobody_watches_and_ends_with_the_result(folder: Path):
    done = remit(folder, "run", "team:rt", "lead", "the task")
    assert done.returncode == 0
    assert "task.started worker: part of it" in done.stdout
    assert "hop.refused lead: lead (self)" in done.stdout
    assert "read the task" in done.stdout
    assert "kept in memory only" in done.stdout


def test_run_draws_a_tree_in_a_terminal(folder: Path):
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "remit.cli", "run", "team:rt", "lead", "the task"]
    child = subprocess.Popen(command, cwd=folder, stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm"})
    os.close(slave)
    seen = b""
    while chunk := _read(master):
        seen += chunk
    assert child.wait() == 0
    assert "✔" in seen.decode()
    assert "worker" in seen.decode()


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:  # the other end is closed
        return b""


def test_run_as_json_is_one_document(folder: Path):
    done = remit(folder, "run", "team:rt", "lead", "the task", "--json")
    tree = json.loads(done.stdout)
    assert (tree["agent"], tree["status"], tree["result"]) == ("lead", "completed", "read the task")
    assert tree["refusals"][0]["rule"] == "self"
    assert tree["children"][0]["receipt"]["saw"][1][0] == "notes/seen"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["run", "team", "lead", "x"], 2, "module:name"),
        (["run", "nothere:rt", "lead", "x"], 2, "cannot be imported"),
        (["run", "team:not_a_runtime", "lead", "x"], 2, "it has rt"),
        (["run", "team:rt", "nobody", "x"], 3, "there is no agent 'nobody'"),
        (["run", "team:rt", "lead", ""], 2, "must not be empty"),
        (["run", "team:rt", "lead", "x", "--credits", "lots"], 2, "credits are written"),
        (["run", "team:rt", "lead", "x", "--seconds", "-1"], 2, "positive"),
        (["run", "team:rt", "broken", "x"], 1, ""),
        (["runs"], 4, "there is no store at remit.db"),
        (["runs", "--store", "."], 5, "is a folder"),
        (["runs", "--store", "team.py"], 5, "not a SQLite database"),
        (["nonsense"], 2, ""),
        (["runs", "--nonsense"], 2, ""),
        (["context", "set", "a", "b", "c", "--ttl", "0"], 2, "ttl must be a positive"),
        (["context", "set", "a", "b", "{", "--as-json"], 2, "not JSON"),
    ],
)
def test_what_goes_wrong_is_a_sentence_and_a_code(folder: Path, words: list[str], code: int, sentence: str):
    done = remit(folder, *words)
    assert done.returncode == code, done.stdout + done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_what_agents_say_cannot_steer_a_terminal(folder: Path):
    done = remit(folder, "run", "team:rt", "broken", "x", "--store", "remit.db")
    shown = remit(folder, "show")
    flow = remit(folder, "flow")
    for output in (done.stdout, shown.stdout, flow.stdout):
        assert "\x1b" not in output
        assert "red" in output


def test_runs_and_show(folder: Path):
    ran(folder)
    table = remit(folder, "runs").stdout
    found = json.loads(remit(folder, "runs", "--json").stdout)
    assert found[0]["id"] in table
    assert (found[0]["state"], found[0]["tasks"], found[0]["refused"]) == ("completed", 2, 1)
    for name in (found[0]["id"], found[0]["id"][:14], found[0]["id"][-5:], "last"):
        shown = remit(folder, "show", name).stdout
        assert "lead asked 1 agent; 1 delegation refused (self)" in shown
        assert "notes/seen" in shown
    assert remit(folder, "show", "zzzz").returncode == 4
    assert remit(folder, "show", "x", "--workspace", "other").returncode == 4


@pytest.mark.parametrize(("format", "start"), [("text", ""), ("mermaid", "flowchart"), ("svg", "<svg")])
def test_flow_in_every_format(folder: Path, format: str, start: str):
    ran(folder)
    printed = remit(folder, "flow", "last", "--format", format)
    assert printed.stdout.startswith(start)
    assert "worker" in printed.stdout
    written = remit(folder, "flow", "last", "--format", format, "--output", "picture")
    assert "written to picture" in written.stdout
    assert (folder / "picture").read_text().strip() == printed.stdout.strip()


def test_history_by_agent_and_as_json(folder: Path):
    ran(folder)
    lines = remit(folder, "history", "--agent", "Worker").stdout.splitlines()
    assert len(lines) == 2
    events = json.loads(remit(folder, "history", "--json").stdout)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


def test_context_commands(folder: Path):
    assert "version 1" in remit(folder, "context", "set", "notes", "a", "hello").stdout
    assert "version 2" in remit(folder, "context", "set", "notes", "a", '{"x": 1}', "--as-json").stdout
    assert json.loads(remit(folder, "context", "get", "notes", "a").stdout) == {"x": 1}
    assert json.loads(remit(folder, "context", "get", "notes", "a", "--json").stdout)["version"] == 2
    assert "1  notes" in remit(folder, "context", "ls").stdout
    assert json.loads(remit(folder, "context", "ls", "notes", "--json").stdout)[0]["key"] == "a"
    assert remit(folder, "context", "rm", "notes", "a").returncode == 0
    assert remit(folder, "context", "rm", "notes", "a").returncode == 4
    assert remit(folder, "context", "get", "notes", "a").returncode == 4
    assert "0 expired entries" in remit(folder, "context", "cleanup").stdout
    assert "nothing in notes" in remit(folder, "context", "ls", "notes").stdout


def test_doctor_says_what_is_wrong(folder: Path):
    ran(folder)
    assert "remit.db is sound" in remit(folder, "doctor").stdout
    with sqlite3.connect(folder / "remit.db") as connection:
        connection.execute("UPDATE entry SET value = 'forged'")
        connection.execute("UPDATE event SET agent = 'someone' WHERE seq = 2")
    done = remit(folder, "doctor")
    assert done.returncode == 1
    assert "entry 'notes/seen' differs from the journal in value" in done.stdout
    assert "event 2 (entry.set) does not follow from event 1: it was changed after it was sealed" in done.stdout
    found = json.loads(remit(folder, "doctor", "--json").stdout)
    assert found["sound"] is False


def test_a_run_that_died_is_shown_as_lost_not_as_running(folder: Path):
    command = [
        sys.executable,
        "-m",
        "remit.cli",
        "run",
        "team:rt",
        "slow",
        "x",
        "--store",
        "remit.db",
        "--seconds",
        "0.5",
    ]
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    while "started" not in child.stdout.readline():
        assert child.poll() is None
    child.kill()
    child.communicate()
    found: list[dict] = []
    while not found or found[0]["state"] == "running":  # until its half second is over
        found = json.loads(remit(folder, "runs", "--json").stdout)
    assert found[0]["state"] == "lost"
    assert "left running by a process that is gone" in remit(folder, "doctor").stdout


def test_an_interrupt_is_recorded_and_ends_with_130(folder: Path):
    command = [sys.executable, "-m", "remit.cli", "run", "team:rt", "slow", "x", "--store", "remit.db"]
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    while "started" not in child.stdout.readline():
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    assert child.returncode == 130
    assert "Traceback" not in errors
    assert json.loads(remit(folder, "runs", "--json").stdout)[0]["state"] == "cancelled"


def test_the_demo_shows_the_main_job(folder: Path):
    done = remit(folder, "demo", "--pace", "0")
    assert done.returncode == 0
    for words in (
        "'coder' is already in this delegation (lead > coder > reviewer)",
        "at most 3 is allowed",
        "2 of 3 researchers answered",
        "codebase/auth",
        "remit doctor --store remit-demo.db",
    ):
        assert words in done.stdout
    assert "is sound" in remit(folder, "doctor", "--store", "remit-demo.db").stdout


def test_help_names_the_exit_codes(folder: Path):
    assert "Exit codes" in remit(folder, "--help").stdout
    assert remit(folder, "--version").stdout.startswith("remit 0.")
