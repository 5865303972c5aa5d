"""`remit access`: keys for callers from outside."""

import json
from pathlib import Path
from typing import Any

import pytest

from commands import Said, command
from remit.core.access import parse_key


def remit(folder: Path, *words: str) -> Said:
    return command(folder, "access", *words)


def listed(folder: Path, *words: str) -> list[dict[str, Any]]:
    return json.loads(remit(folder, "ls", "--json", *words).stdout)


@pytest.mark.rule("access.commands", "access.once")
def test_a_key_is_printed_once_and_alone_and_the_access_is_listed_and_revoked(tmp_path: Path):
    made = remit(tmp_path, "make", "ci", "--scope", "run", "--scope", "approve", "--days", "30", "--by", "ann")
    assert made.returncode == 0
    key = parse_key(made.stdout.removesuffix("\n"))
    assert key is not None
    assert f"access {key.id} for ci: run, approve, until 2" in made.stderr
    assert f"To end it: remit access revoke {key.id}" in made.stderr
    assert made.stdout.strip() not in made.stderr

    bounded = remit(tmp_path, "make", "bot", "--bounds", '{"depth": 2}', "--agent", "coder", "--json")
    also = json.loads(bounded.stdout)
    assert (also["bounds"], also["agent"], also["expires_at"], parse_key(also["key"]) is not None) == (
        {"depth": 2},
        "coder",
        None,
        True,
    )
    assert [(one["name"], one["state"], one["made_by"] == "ann") for one in listed(tmp_path)] == [
        ("ci", "active", True),
        ("bot", "active", False),
    ]
    assert remit(tmp_path, "revoke", key.id).stdout == f"access {key.id} is revoked\n"
    assert json.loads(remit(tmp_path, "revoke", key.id, "--json").stdout) == {
        "id": key.id,
        "revoked": True,
        "changed": False,
    }
    assert [one["name"] for one in listed(tmp_path)] == ["bot"]
    table = remit(tmp_path, "ls", "--all").stdout
    assert f"{key.id}  ci    revoked  run, approve" in table
    history = command(tmp_path, "history").stdout
    assert f"'ci' ({key.id}), run and approve, until 20" in history
    assert "rmt_" not in f"{table}{history}"


@pytest.mark.rule("access.needed")
def test_a_server_that_other_machines_reach_needs_access_first(tmp_path: Path):
    said = command(tmp_path, "serve", "--host", "0.0.0.0", "--port", "0")
    assert said.returncode == 2
    assert "so the server needs keys first: `remit access make` makes one" in said.stderr


def test_a_team_is_served_from_its_own_store_without_workers_too(tmp_path: Path):
    (tmp_path / "team.py").write_text("import remit\nrt = remit.Runtime('own.db')\n")
    said = command(tmp_path, "serve", "team:rt", "--concurrency", "0", "--host", "0.0.0.0", "--port", "0")
    assert said.returncode == 2, "it needs keys first, as the store of the team has none"
    assert "so the server needs keys first" in said.stderr
    assert not [*tmp_path.glob("remit.db*")]


@pytest.mark.rule("access.commands")
@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["revoke", "a" * 16], 4, "there is no access 'aaaaaaaaaaaaaaaa'"),
        (["revoke", "rmt_mistaken"], 2, "the id of an access key has 16 characters"),
        (["make", "x", "--scope", "write"], 2, "write"),
        (["make", "x", "--days", "0"], 2, "--days must be a positive number"),
        (["make", "x", "--bounds", "{"], 2, """--bounds is JSON, such as '{"depth": 2}', or @bounds.json"""),
        (["make", "x", "--bounds", '{"dept": 2}'], 2, "bounds takes no 'dept'; did you mean depth"),
        (["make", ""], 2, "the name of an access key"),
    ],
)
def test_wrong_words_are_refused_with_a_sentence(tmp_path: Path, words: list[str], code: int, sentence: str):
    assert command(tmp_path, "db", "migrate").returncode == 0
    said = remit(tmp_path, *words)
    assert (said.returncode, sentence in said.stderr) == (code, True), said.stderr
    assert "rmt_mistaken" not in said.stderr
