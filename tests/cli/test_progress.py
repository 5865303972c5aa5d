"""What people see of the progress of a task: in the list of tasks, and in the growing tree."""

import asyncio
import json
from functools import partial
from io import StringIO
from pathlib import Path

import anyio
import pytest
from rich.console import Console

from commands import command as remit
from engine.helping import PATIENCE
from engine.test_progress import Working
from remit import Card
from remit.cli.screen import Screen
from remit.runtime.tasks import live_progress
from remit.runtime.workspace import opening_of
from teams import team

pytestmark = pytest.mark.anyio


@pytest.mark.rule("progress.heartbeat")
async def test_ps_shows_how_far_a_task_of_another_process_is(tmp_path: Path):
    working, said, told = Working(), "", {}
    with team(tmp_path / "remit.db", silence=0.3) as rt:
        rt.add(Card("a"), working)
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(rt.run, "a", "index the docs")
                while True:
                    said = (await asyncio.to_thread(remit, tmp_path, "ps")).stdout
                    if "3 of 10" in said:
                        break
                told = json.loads((await asyncio.to_thread(remit, tmp_path, "ps", "--json")).stdout)
                working.go.set()
    assert "[3 of 10 (30 %)]" in said
    assert told["tasks"][0]["progress"] == {"text": "3 of 10", "fraction": 0.3}


@pytest.mark.rule("progress.live")
async def test_the_growing_tree_shows_the_latest_report_while_the_task_runs():
    drawn = StringIO()
    console = Console(width=100, file=drawn)
    screen, working = Screen(), Working()
    with team() as rt:
        rt.add(Card("a"), working)
        async with anyio.create_task_group() as group:
            group.start_soon(rt.run, "a", "index the docs")
            await working.reported.wait()
            screen.add(await rt.workspace.journal.history())
            screen.progress = partial(live_progress, opening_of(rt.workspace))
            console.print(screen.picture())
            working.go.set()
        console.print(screen.picture())
    first, second = drawn.getvalue().splitlines()
    assert "3 of 10 (30 %)" in first
    assert "3 of 10" not in second
