"""Commands whose standard streams are closed, full, or of an encoding with few characters."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from commands import plain_environment
from deep import some
from programs import PATIENCE, running

TEAM = """
from remit import Runtime

rt = Runtime("remit.db")

@rt.agent
async def echo(turn):
    return turn.task

@rt.agent
async def closer(turn):
    import sys
    sys.stdout.close()
    sys.stderr.close()
    return "closed both"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "team.py").write_text(TEAM)
    return tmp_path


def redirected(folder: Path, how: str, *words: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    """Run `remit` from a shell that redirects its streams."""
    command = ["sh", "-c", f'exec "$@" {how}', "sh", sys.executable, "-m", "remit.cli", *words]
    environment = {**plain_environment(), **env}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=PATIENCE, check=False)


@pytest.mark.parametrize("how", some(["<&- >&- 2>&-", ">&-", "2>&-"]))
def test_a_closed_stream_does_not_stop_a_command(folder: Path, how: str):
    done = redirected(folder, how, "run", "team:rt", "echo", "hello")
    assert done.returncode == 0, done
    assert done.stdout == (b"" if " >&-" in f" {how}" else b"hello\n")
    assert b"echo: hello" in redirected(folder, "", "history").stdout


def test_an_agent_cannot_close_the_streams_of_a_command(folder: Path):
    done = redirected(folder, "", "run", "team:rt", "closer", "now")
    assert (done.returncode, done.stdout) == (0, b"closed both\n")
    assert b"closer worked alone" in done.stderr


def test_a_worker_goes_on_after_an_agent_that_closes_its_streams(folder: Path):
    with running("-m", "remit.cli", "worker", "team:rt", cwd=folder, env=plain_environment()) as worker:
        worker.stdout.readline()
        for agent in ("closer", "echo"):
            done = redirected(folder, "", "submit", agent, "x", "--store", "remit.db", "--wait")
            assert done.returncode == 0, done
        while "echo" not in (line := worker.stdout.readline()):
            assert line


@pytest.mark.parametrize("words", [["--version"], ["run", "team:rt", "echo", "hello"]])
def test_a_full_disk_under_the_output_is_a_sentence(folder: Path, words: list[str]):
    done = redirected(folder, ">/dev/full", *words)
    assert done.returncode == 1
    assert b"remit: the output could not be written: No space left on device; " in done.stderr
    assert b"Traceback" not in done.stderr


def test_an_encoding_with_few_characters_gets_the_others_escaped(folder: Path):
    narrow = {"PYTHONIOENCODING": "ascii"}
    done = redirected(folder, "", "run", "team:rt", "echo", "grüße 🎈", **narrow)
    assert done.returncode == 0, done
    assert done.stdout == rb"gr\u00fc\u00dfe \ud83c\udf88" + b"\n"
    shown = redirected(folder, "", "show", "last", "--json", **narrow)
    assert json.loads(shown.stdout)["task"] == "grüße 🎈"
