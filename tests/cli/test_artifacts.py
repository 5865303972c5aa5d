"""`remit artifacts`: files go in, are listed, and come out whole, and nothing is overwritten."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from commands import Said, command, plain_environment

DATA = bytes(range(256)) * 20


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def artifacts(folder: Path, *words: str) -> Said:
    return command(folder, "artifacts", *words)


def piped(folder: Path, *words: str, data: bytes = b"") -> bytes:
    """What the command writes to a pipe, byte for byte."""
    called = [sys.executable, "-m", "remit.cli", "artifacts", *words]
    return subprocess.run(
        called, cwd=folder, env=plain_environment(), input=data, capture_output=True, check=True
    ).stdout


@pytest.mark.rule("artifact.command")
def test_a_file_is_put_in_listed_and_fetched(tmp_path: Path):
    (tmp_path / "data.bin").write_bytes(DATA)
    assert artifacts(tmp_path, "put", "data.bin").stdout == f"{digest(DATA)}\n"
    assert (
        piped(tmp_path, "put", "-", "--name", "note.txt", "--untrusted", data=b"a note")
        == f"{digest(b'a note')}\n".encode()
    )

    [note, data] = json.loads(artifacts(tmp_path, "ls", "--json").stdout)
    assert (note["name"], note["media_type"], note["trust"], note["size"]) == ("note.txt", "text/plain", "untrusted", 6)
    assert (data["digest"], data["agent"], data["run"]) == (digest(DATA), "", "")
    table = artifacts(tmp_path, "ls").stdout
    assert "5,120" in table
    assert "data.bin" in table

    assert piped(tmp_path, "get", digest(DATA), "-") == DATA
    short = digest(DATA)[:19]
    assert artifacts(tmp_path, "get", short, "copy.bin").stdout == "copy.bin: 5,120 bytes\n"
    assert (tmp_path / "copy.bin").read_bytes() == DATA
    assert artifacts(tmp_path, "get", digest(b"a note")[7:15]).stdout == "note.txt: 6 bytes\n"
    saved = json.loads(artifacts(tmp_path, "put", "data.bin", "--json").stdout)
    assert saved == {"digest": digest(DATA), "size": 5120, "name": "data.bin", "media_type": data["media_type"]}
    assert json.loads(artifacts(tmp_path, "ls", "--json", "--run", "none").stdout) == []


@pytest.mark.rule("artifact.command")
def test_nothing_is_overwritten_and_what_is_wrong_is_said(tmp_path: Path):
    assert "no artifacts" in command(tmp_path, "artifacts", "ls", "--store", ":memory:").stdout
    (tmp_path / "mine").write_text("mine")
    piped(tmp_path, "put", "-", "--name", ".profile", data=b"hidden")
    kept = artifacts(tmp_path, "get", digest(b"hidden"), "mine")
    assert (kept.returncode, kept.stderr) == (
        2,
        "remit: 'mine' exists already, and nothing is overwritten; name another file\n",
    )
    assert (tmp_path / "mine").read_text() == "mine"
    hidden = artifacts(tmp_path, "get", digest(b"hidden"))
    assert (hidden.returncode, hidden.stderr[:36]) == (2, "remit: '.profile' is a hidden file; ")
    gone = artifacts(tmp_path, "get", "0123")
    assert (gone.returncode, gone.stderr[:36]) == (4, "remit: there is no artifact '0123'; ")
    assert artifacts(tmp_path, "get", "sha256:zz").returncode == 4
    missing = artifacts(tmp_path, "put", "nowhere")
    assert (missing.returncode, missing.stderr) == (2, "remit: 'nowhere' cannot be read: No such file or directory\n")
    assert artifacts(tmp_path, "put", "-").returncode == 2


@pytest.mark.rule("artifact.command")
def test_a_run_shows_its_files(tmp_path: Path):
    (tmp_path / "team.py").write_text(
        "import remit\nrt = remit.Runtime('remit.db')\n@rt.agent\nasync def writer(turn):\n"
        "    return await turn.artifacts.save(b'all is well', 'report.txt')\n"
    )
    assert command(tmp_path, "run", "team:rt", "writer", "go").returncode == 0
    lines = command(tmp_path, "show").stdout.splitlines()
    assert f"report.txt  11 bytes by writer, {digest(b'all is well')[:19]}" in lines
    assert lines[lines.index("Files") + 2] == ""
