"""Captured screens of `remit show` and `remit ps` in a real terminal of 60, 80 and 120 columns.

REMIT_WRITE_SNAPSHOTS=1 writes them again; look at every change before you commit it.
"""

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic_ai.models.test import TestModel

from commands import command, plain_environment
from programs import Program, running
from remit import Command, Plan, Refused, Runtime, Step, Turn
from remit.testing import CountedIds, FakeClock
from teams import team
from terminals import in_terminal

KEPT = Path(__file__).parent / "snapshots"
WIDTHS = (60, 80, 120)
STORE = "remit.db"


def matches(name: str, folder: Path, *words: str, steady: bool = True) -> None:
    """Compare the screen at each width with the kept one. A run of real processes is not steady: its ids, times and
    process numbers are replaced."""
    for width in WIDTHS:
        seen = in_terminal(folder, *words, width=width, height=400)
        assert (seen.code, seen.cursor) == (0, True), seen.text
        assert all(len(line) <= width for line in seen.lines)
        text = re.sub(r"\.py:\d+ ?", ".py:… ", seen.text if steady else _steadied(seen.text))
        file = KEPT / f"{name}-{width}.txt"
        if os.environ.get("REMIT_WRITE_SNAPSHOTS"):
            file.write_text(f"{text.rstrip()}\n")
        assert f"{text.rstrip()}\n" == file.read_text(), f"{file.name} differs"


def _steadied(text: str) -> str:
    text = re.sub(r"\b3[a-z2-7]{15}\b", "i" * 16, text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "2026-11-17T12:00:00Z", text)
    text = re.sub(r"\b(here|process) \d+", r"\1 4711", text)
    text = re.sub(r"\b[\d.]+ (us|ms|s|min)\b|\bnow\b", "TIME", text)
    return re.sub(r" +", " ", text)


def made(folder: Path, build: Callable[[Runtime], None], agent: str) -> None:
    """Keep one run of a team, with counted ids and a clock that stands still."""
    with team(folder / STORE, clock=FakeClock(), ids=CountedIds()) as rt:
        build(rt)
        asyncio.run(rt.outcome(agent, "compare the offers of the suppliers and say which one is best for us"))


def planning(rt: Runtime) -> None:
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        steps = [Step(f"q{number}", f"Source {number}", agent="searcher") for number in range(40)]
        last = Step("digest", "Write the digest", agent="searcher", after=[step.id for step in steps])
        done = await turn.run_plan(Plan([*steps, last]))
        return f"{sum(step.state == 'completed' for step in done.steps.values())} of 41 steps"

    @rt.agent
    async def searcher(turn: Turn) -> str:
        if "Source 30" in turn.task:
            raise ValueError("the page is behind a paywall that asks for a subscription of the whole year")
        return "found"


def fanning_out(rt: Runtime) -> None:
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        found = await turn.delegate_all([("reader", f"read page {number}") for number in range(200)])
        return f"{sum(one.ok for one in found)} pages"

    @rt.agent
    async def reader(turn: Turn) -> str:
        if turn.task.endswith("7"):
            raise OSError("torn")
        return "read"


def handing_over(rt: Runtime) -> None:
    @rt.agent(asks=["clerk", "boss"])
    async def desk(turn: Turn) -> Command:
        for name in ("nobody", "desk"):
            try:
                await turn.delegate(name, "help me with this")
            except Refused:
                continue
        await turn.delegate("clerk", "look up the order")
        return Command("boss", {"phase": "refund"})

    @rt.agent
    async def clerk(turn: Turn) -> str:
        return "order 17"

    @rt.agent
    async def boss(turn: Turn) -> str:
        return "paid back"


def modelling(rt: Runtime) -> None:
    async def lookup(word: str) -> str:
        """Look up a word."""
        return f"{word} is on shelf three"

    async def broken(word: str) -> str:
        """Look up a word elsewhere."""
        raise KeyError(word)

    words = "The lamp is on shelf three, next to the brass candlesticks."
    model = TestModel(call_tools=["lookup", "broken"], custom_output_text=words)
    rt.model_agent("librarian", model, tools=[lookup, broken])


VIEWS = {
    "plan-of-41-steps": (planning, "lead"),
    "fan-out-of-200": (fanning_out, "lead"),
    "handoff-after-refusals": (handing_over, "desk"),
    "model-with-tools": (modelling, "librarian"),
}


@pytest.mark.rule("screen.snapshots")
@pytest.mark.parametrize("name", VIEWS)
def test_a_run_looks_as_it_did(tmp_path: Path, name: str):
    made(tmp_path, *VIEWS[name])
    matches(name, tmp_path, "show")


TEAM = """
import asyncio, pathlib
from remit import Runtime

rt = Runtime("remit.db")

@rt.agent
async def gravediggers_union(turn):
    first = not pathlib.Path("tried").exists()
    pathlib.Path("tried").touch()
    if first or turn.task.startswith("dig"):
        print("begun", flush=True)
        await asyncio.sleep(3600)
    return "taken over"
"""


def working(folder: Path) -> Program:
    return Program("-m", "remit.cli", "worker", "team:rt", "--concurrency", "1", "--heartbeat-timeout", "1.5",
                   cwd=folder, env=plain_environment())  # fmt: skip


def begun(worker: Program) -> None:
    assert any(line == "begun\n" for line in iter(worker.stdout.readline, ""))


@pytest.mark.rule("screen.snapshots")
def test_two_workers_look_as_they_did(tmp_path: Path):
    (tmp_path / "team.py").write_text(TEAM)
    for number in (1, 2, 3):
        command(tmp_path, "submit", "team:rt", "gravediggers-union", f"dig hole {number}")
    first, second = working(tmp_path), working(tmp_path)
    try:
        begun(first)
        begun(second)
        matches("two-workers", tmp_path, "ps", steady=False)
    finally:
        first.close()
        second.close()


@pytest.mark.rule("screen.snapshots")
def test_a_crash_that_was_taken_over_looks_as_it_did(tmp_path: Path):
    (tmp_path / "team.py").write_text(TEAM)
    command(tmp_path, "submit", "team:rt", "gravediggers-union", "find the treasure")
    first = working(tmp_path)
    begun(first)
    first.close()  # kill -9
    with running("-m", "remit.cli", "worker", "team:rt", "--heartbeat-timeout", "1.5", cwd=tmp_path,
                 env=plain_environment()):  # fmt: skip
        assert command(tmp_path, "wait").stdout == "taken over\n"
    matches("crash-taken-over", tmp_path, "show", steady=False)
