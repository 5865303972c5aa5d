"""`remit keys`: keys go in by a pipe or a prompt, and come out nowhere."""

import base64
import json
import os
import pty
import subprocess
import sys
from getpass import getuser
from pathlib import Path

import pytest

from adapters.test_vault import NEW, NEW_ID, OLD, OLD_ID, forms
from commands import Said, command, plain_environment
from core.test_secret import CANARY
from programs import ran


def remit(folder: Path, *words: str, value: str = "", master: str = OLD, **more: str) -> Said:
    """Run `remit keys` with a master key, and with a value on its standard input."""
    environment = plain_environment() | more
    if master:
        environment["REMIT_MASTER_KEY"] = master
    done = ran("-m", "remit.cli", "keys", *words, cwd=folder, env=environment, said=value)
    said = (done.stdout + done.stderr).encode()
    assert not any(form in said for text in (CANARY, OLD, NEW) for form in forms(text))
    return done


@pytest.mark.rule("keys.write-only", "keys.rotate", "keys.told")
def test_a_key_is_put_in_listed_encrypted_again_and_removed(tmp_path: Path):
    put = remit(tmp_path, "set", "OpenAI", "--by", "ann", value=f"{CANARY}\n")
    assert put.stdout == f"the key 'openai' is stored, encrypted with master key {OLD_ID}\n"
    told = json.loads(remit(tmp_path, "ls", "--json", master="").stdout)
    assert [(key["name"], key["key_id"], type(key["set_at"])) for key in told] == [("openai", OLD_ID, int)]
    table = remit(tmp_path, "ls", master="").stdout
    assert table.split()[:4] == ["key", "master", "key", "encrypted"]
    assert "openai" in table

    assert "nothing changed" in remit(tmp_path, "rotate").stdout
    assert remit(tmp_path, "rotate", master=f"{NEW},{OLD}").stdout.startswith("1 key encrypted again")
    assert json.loads(remit(tmp_path, "rotate", "--json", master=NEW).stdout) == {"encrypted_again": 0}
    assert json.loads(remit(tmp_path, "ls", "--json").stdout)[0]["key_id"] == NEW_ID

    history = command(tmp_path, "history", "--json")
    assert CANARY not in history.stdout
    assert [event["data"].get("by") for event in json.loads(history.stdout)] == ["ann", f"terminal:{getuser()}"]

    again = json.loads(remit(tmp_path, "set", "anthropic", "--json", value=CANARY, master=NEW).stdout)
    assert (again["name"], again["key_id"]) == ("anthropic", NEW_ID)
    assert "the key 'openai' is deleted" in remit(tmp_path, "rm", "OPENAI", master="").stdout
    assert json.loads(remit(tmp_path, "rm", "anthropic", "--json").stdout) == {"name": "anthropic", "removed": True}
    assert "no keys stored" in remit(tmp_path, "ls").stdout
    gone = remit(tmp_path, "rm", "openai")
    assert (gone.returncode, gone.stderr) == (
        4,
        "remit: there is no key 'openai'; `remit keys ls` shows those there are\n",
    )
    for file in tmp_path.iterdir():
        assert not any(form in file.read_bytes() for form in forms(CANARY))


@pytest.mark.rule("keys.write-only")
def test_a_key_is_no_argument(tmp_path: Path):
    done = remit(tmp_path, "set", "openai", "not-a-place-for-it", value=CANARY)
    assert done.returncode == 2
    assert not (tmp_path / "remit.db").exists()


@pytest.mark.rule("keys.master", "secret.value")
@pytest.mark.parametrize(
    ("value", "master", "sentence"),
    [
        ("", OLD, "a secret is not empty"),
        (CANARY * 1_000, OLD, "at most 8,192 bytes"),
        (CANARY, "", "none is set: set REMIT_MASTER_KEY to what `remit keys master` prints"),
        (CANARY, "nonsense", "master key 1 of 1 is not 32 bytes in base64"),
    ],
)
def test_what_cannot_be_kept_is_said_in_a_sentence(tmp_path: Path, value: str, master: str, sentence: str):
    done = remit(tmp_path, "set", "openai", value=value, master=master)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.rule("keys.master")
def test_a_fresh_master_key_is_printed_alone_and_how_to_use_it_beside(tmp_path: Path):
    done = remit(tmp_path, "master", master="")
    made = done.stdout.removesuffix("\n")
    assert len(base64.b64decode(made, validate=True)) == 32
    assert "REMIT_MASTER_KEY" in done.stderr
    assert "remit keys rotate" in done.stderr
    file = tmp_path / "master"
    file.write_text(done.stdout)
    file.chmod(0o600)
    put = remit(tmp_path, "set", "openai", value=CANARY, master="", REMIT_MASTER_KEY_FILE=str(file))
    assert put.returncode == 0
    assert not list(tmp_path.glob("*.log"))


@pytest.mark.rule("keys.write-only")
def test_at_a_terminal_a_key_is_asked_for_and_not_shown(tmp_path: Path):
    environment = plain_environment() | {"REMIT_MASTER_KEY": OLD}
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "remit.cli", "keys", "set", "openai"],
        cwd=tmp_path,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,  # so that there is no other terminal to ask at
    )
    os.close(theirs)
    said = b""
    while b"(not shown): " not in said:
        said += os.read(ours, 1_024)
    os.write(ours, f"{CANARY}\n".encode())
    try:
        while chunk := os.read(ours, 1_024):
            said += chunk
    except OSError:  # it has ended
        pass
    os.close(ours)
    assert child.wait(60) == 0
    assert b"the key 'openai' is stored" in said
    assert CANARY.encode() not in said
