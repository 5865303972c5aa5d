"""The screen while a run is drawn: text of others goes above the tree, and Ctrl-C leaves it clean."""

import re
from pathlib import Path

import pytest

from commands import plain_environment
from programs import ran
from terminals import in_terminal

TEAM = """
import asyncio, logging, sys, threading
import remit

logging.basicConfig(level=logging.INFO)  # its handler keeps the stream that it finds here
http = logging.getLogger("httpx")
kept = sys.stderr
rt = remit.Runtime()

@rt.agent(asks="*")
async def lead(turn):
    http.info("HTTP Request: POST https://example.test/%s", "v1/" * 30)
    print("half a line", end="", flush=True)
    await asyncio.gather(turn.delegate("coder", "part one"), turn.delegate("coder", "part two"))
    print(" and the rest")
    print("kept stream", file=kept)
    return "done"

@rt.agent
async def coder(turn):
    for number in range(5):
        await asyncio.sleep(0.02)
        http.info("answer %d for %s", number, turn.task)
    return "ok"

@rt.agent(asks="*")
async def slow(turn):
    await turn.delegate("sleeper", "wait here")

@rt.agent
async def sleeper(turn):
    await asyncio.sleep(3600)

@rt.agent
async def deaf(turn):
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            print("deaf heard it")

named = threading.Event()

class Heard(logging.Handler):
    def emit(self, record):
        if "blocks the event loop" in record.getMessage():
            named.set()

logging.getLogger("remit").addHandler(Heard())

async def tool_like():
    named.wait(60)

@rt.agent
async def hog(turn):
    await asyncio.gather(tool_like())
    return "let go"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "team.py").write_text(TEAM)
    return tmp_path


@pytest.mark.rule("screen.above")
@pytest.mark.parametrize("width", [60, 80, 120])
def test_logs_and_prints_go_above_the_tree_and_each_is_there_once(folder: Path, width: int):
    seen = in_terminal(folder, "run", "team:rt", "lead", "x", width=width)
    assert (seen.code, seen.cursor) == (0, True)
    for words in [f"INFO:httpx:answer {number} for part {part}" for number in range(5) for part in ("one", "two")]:
        assert seen.lines.count(words) == 1
    assert "INFO:httpx:HTTP Request: POST https://example.test/" + "v1/" * 30 in "".join(seen.lines)
    assert seen.lines.count("half a line and the rest") == 1
    assert seen.lines.count("kept stream") == 1
    trees = [number for number, line in enumerate(seen.lines) if re.match(r"[◐✓] lead", line)]
    assert len(trees) == 1
    assert all("INFO" not in line for line in seen.lines[trees[0] :])


@pytest.mark.rule("screen.above")
def test_in_a_pipe_logs_stay_on_standard_error(folder: Path):
    said = ran("-m", "remit.cli", "run", "team:rt", "lead", "x", cwd=folder, env=plain_environment())
    assert said.stdout == "half a line and the rest\ndone\n"
    assert said.stderr.count("INFO:httpx:answer 4 for part two") == 1


@pytest.mark.rule("screen.interrupt")
def test_ctrl_c_leaves_the_tree_its_end_and_nothing_else(folder: Path):
    seen = in_terminal(folder, "run", "team:rt", "slow", "x", typed=[("sleeper", "\x03")])
    assert (seen.code, seen.cursor) == (130, True)
    assert seen.lines[0] == "cancelling the run; press Ctrl-C again to stop at once"
    assert re.fullmatch(r"⊖ slow  x  [\d.]+ m?s", seen.lines[1])
    assert sum("⊖ slow" in line for line in seen.lines) == 1
    assert not any("^C" in line or "◐" in line for line in seen.lines)
    assert "Traceback" not in seen.text


@pytest.mark.rule("screen.interrupt")
def test_a_third_ctrl_c_ends_at_once_and_shows_the_cursor(folder: Path):
    typed = [("deaf", "\x03"), ("deaf heard it", "\x03"), ("^C", "\x03")]
    seen = in_terminal(folder, "run", "team:rt", "deaf", "x", typed=typed)
    assert (seen.code, seen.cursor) == (130, True)
    assert "Traceback" not in seen.text


@pytest.mark.rule("screen.interrupt")
def test_ctrl_c_ends_watching(folder: Path):
    ran("-m", "remit.cli", "run", "team:rt", "coder", "x", "-s", "remit.db", cwd=folder, env=plain_environment())
    seen = in_terminal(folder, "watch", "--all", typed=[("nothing is open", "\x03")])
    assert (seen.code, seen.cursor, seen.lines) == (130, True, ["nothing is open", "", ""][: len(seen.lines)])


@pytest.mark.long
@pytest.mark.rule("screen.blocks")
@pytest.mark.parametrize("store", [[], ["--store", "remit.db"]])
def test_an_agent_that_blocks_the_loop_is_named_after_five_seconds(folder: Path, store: list[str]):
    seen = in_terminal(folder, "run", "team:rt", "hog", "x", *store, width=200)
    assert seen.code == 0
    [said] = [line for line in seen.lines if "blocks the event loop" in line]
    assert re.search(r"'hog' blocks the event loop since [5-9] s: tool_like, .*team\.py:\d+; ", said)
