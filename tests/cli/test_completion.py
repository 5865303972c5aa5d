"""What a shell is offered: ids, agents, teams and stores, and nothing where there is nothing."""

from pathlib import Path

import pytest

from commands import command

TEAM = """
from remit import Runtime

rt = Runtime("remit.db")

@rt.agent(role="reads books")
async def reader(turn):
    return "read"
"""
FILE = """
[store]
path = "remit.db"
[agents.desk]
function = "team:desk"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "team.py").write_text(TEAM)
    return tmp_path


def offered(folder: Path, *words: str) -> dict[str, str]:
    """Return what the shell is offered for the last word, with its description."""
    said = command(folder, "__complete", *words)
    assert said.returncode == 0, said.stderr
    lines = said.stdout.split("begin\n", 1)[1].splitlines()
    return {line.partition("\t")[0]: line.partition("\t")[2] for line in lines if line and line != "end"}


@pytest.mark.rule("screen.completion")
def test_ids_are_offered_with_their_agents_and_tasks(folder: Path):
    run = command(folder, "submit", "team:rt", "reader", "the first chapter").stdout.strip()
    for words in (("show", ""), ("status", ""), ("cancel", ""), ("retry", ""), ("wait", ""), ("history", "--run", "")):
        found = offered(folder, *words)
        assert found["last"] == "the newest run", words
        assert found[run] == "reader: the first chapter"
    (folder / "remit.db").rename(folder / "other.db")
    assert list(offered(folder, "show", "")) == ["last"]
    assert run in offered(folder, "show", "--store", "other.db", "")


@pytest.mark.rule("screen.completion")
def test_agents_teams_and_stores_are_offered(folder: Path):
    assert offered(folder, "run", "")["./team.py:rt"] == "a runtime"
    assert offered(folder, "worker", "") == {"./team.py:rt": "a runtime"}
    (folder / "remit.toml").write_text(FILE)
    (folder / "pyproject.toml").touch()
    found = offered(folder, "run", "")
    assert set(found) == {"desk", "remit.toml", "./team.py:rt"}
    assert set(offered(folder, "run", "./team.py:rt", "")) == {"desk"}
    (folder / "shop.db").touch()
    assert "shop.db" in offered(folder, "runs", "--store", "")


@pytest.mark.rule("screen.completion")
def test_a_broken_folder_offers_nothing_and_does_not_fail(folder: Path):
    (folder / "remit.toml").write_text("[agents\n")
    (folder / "remit.db").write_text("not a store")
    assert list(offered(folder, "show", "--store", "remit.db", "")) == ["last"]
    assert offered(folder, "breaker", "trip", "") == {}
