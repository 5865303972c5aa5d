"""Cancelling reaches what runs in other processes, down to the programs that they started."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit import Runtime
from workers.crew import PATIENCE, Crew, said, sound, until

pytestmark = pytest.mark.anyio

SOON = 2.0  # seconds


@asynccontextmanager
async def cancelled(rt: Runtime, task: str, number: int) -> AsyncIterator[None]:
    """Cancels a tree of so many tasks: soon, from the leaves up, and nothing is recorded after that."""
    began = time.monotonic()
    assert await rt.workspace.tasks.cancel(task) == number
    outcome = await rt.workspace.tasks.get(task).wait(PATIENCE)
    assert (outcome.state, time.monotonic() - began < SOON) == ("cancelled", True)
    yield
    events = await rt.workspace.journal.history(run=task)
    fence = max(event.seq for event in events if event.kind == "task.cancelling")
    assert [event.kind for event in events if event.seq > fence] == ["task.cancelled"] * number
    ended = {event.task: event.seq for event in events if event.kind == "task.cancelled"}
    for one in await rt.workspace.tasks.list():
        assert one.state == "cancelled"
        assert not one.parent or ended[one.id] < ended[one.parent]
    await sound(rt)


@pytest.mark.rule("postgres.cancel")
@pytest.mark.parametrize("asked_how", ["submit", "delegate"])
async def test_a_chain_in_other_processes_is_cancelled(crew: Crew, asked_how: str):
    """Each has one hand: what is submitted goes to the other."""
    await crew.ready(crew.start(hands=1), crew.start(hands=1))
    with crew.runtime() as rt:
        task = await rt.submit("one", asked_how)
        await crew.until("at", 2 if asked_how == "submit" else 1)
        at = {line.about: line.pid for line in crew.lines("at")}
        assert len(set(at.values())) == len(at)
        async with cancelled(rt, task.id, 3):
            left = {line.about: line.pid for line in await crew.until("left", len(at))}
            assert left == at


@pytest.mark.rule("postgres.cancel")
async def test_what_runs_in_the_foreground_of_another_process_is_cancelled(crew: Crew):
    process = crew.start("run", agent="one", task="delegate", hands=0)
    await crew.ready(process)
    await crew.until("at")
    with crew.runtime() as rt:
        (task,) = await rt.workspace.tasks.list(agent="one")
        async with cancelled(rt, task.id, 3):
            assert await said(process) == "cancelled"


@pytest.mark.rule("postgres.cancel")
async def test_programs_of_a_cancelled_task_are_gone_with_it(crew: Crew):
    await crew.ready(crew.start())
    with crew.runtime() as rt:
        task = await rt.submit("tool", "x")
        pids = await until(lambda: found if len(found := running(crew)) == 2 else None)
        async with cancelled(rt, task.id, 1):
            assert not any(map(alive, pids))


def running(crew: Crew) -> list[int]:
    path = crew.folder / "pids"
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
