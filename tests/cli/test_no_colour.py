"""Commands that read, in a terminal without colours."""

import re
from pathlib import Path

import pytest

from commands import command
from terminals import in_terminal

TEAM = """
from remit import Runtime

rt = Runtime("remit.db")

@rt.agent(asks="*")
async def lead(turn):
    await turn.context.set("notes", "seen", "a text of some length, which a narrow terminal has no room for at all")
    await turn.spend("$0.05", why="a call")
    return await turn.delegate("worker", "read the contract of the supplier")

@rt.agent(can="read contracts", reads=["notes"])
async def worker(turn):
    return "nothing is missing"

@rt.agent
async def broken(turn):
    raise ValueError("no paper")
"""
_COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m|\x1b\[[0-9;]*9[0-7][0-9;]*m")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("commands")
    (made / "team.py").write_text(TEAM)
    assert command(made, "run", "team:rt", "broken", "x").returncode == 1
    assert command(made, "run", "team:rt", "lead", "go").returncode == 0
    return made


@pytest.mark.rule("screen.commands")
@pytest.mark.parametrize("words", ["show", "runs", "ps --all", "stats"])
def test_no_color_is_heeded_and_lines_fit_the_terminal(folder: Path, words: str):
    plain = in_terminal(folder, *words.split(), width=60, NO_COLOR="1")
    assert not _COLOUR.search(plain.raw)
    assert all(len(line) <= 60 for line in plain.lines)
    assert _COLOUR.search(in_terminal(folder, *words.split(), width=60).raw)
