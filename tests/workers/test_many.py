"""Many tasks and several workers: each is carried out once, and never more at a time than allowed."""

import asyncio
from collections import Counter
from collections.abc import Iterable

import anyio
import pytest

from workers.crew import PATIENCE, Crew, Line, sound

pytestmark = pytest.mark.anyio


def most_at_once(lines: Iterable[Line]) -> int:
    running = most = 0
    for line in sorted(lines, key=lambda one: one.at):
        running += 1 if line.kind == "begin" else -1
        most = max(most, running)
    return most


@pytest.mark.rule("postgres.once")
async def test_three_workers_share_what_there_is_within_the_limits(crew: Crew):
    workers = [crew.start(hands=4, concurrency=6) for _ in range(3)]
    await crew.ready(*workers)
    with crew.runtime(concurrency=6) as rt:
        wanted = [("narrow" if n % 3 == 0 else "busy", f"number {n}") for n in range(120)]
        tasks = await asyncio.gather(*(rt.submit(agent, text) for agent, text in wanted))
        with anyio.fail_after(2 * PATIENCE):
            results = [await task.result() for task in tasks]
        assert results == [text for _, text in wanted]
        assert crew.count("end") == Counter(f"{agent} {text}" for agent, text in wanted)
        assert crew.count("begin") == crew.count("end")
        lines = crew.lines("begin", "end")
        assert {line.pid for line in lines} == {worker.pid for worker in workers}
        assert most_at_once(line for line in lines if line.about.startswith("narrow")) <= 2
        assert most_at_once(lines) <= 6
        for worker in workers:
            assert most_at_once(line for line in lines if line.pid == worker.pid) <= 4
        claims = Counter(event.task for event in await rt.workspace.journal.history() if event.kind == "task.claimed")
        assert claims == Counter(task.id for task in tasks)
        await sound(rt)


@pytest.mark.rule("postgres.once")
async def test_what_was_spawned_is_announced_once_wherever_it_ran(crew: Crew):
    await crew.ready(*(crew.start(hands=2) for _ in range(3)))
    with crew.runtime() as rt:
        tasks = [await rt.submit("parent", f"family {n}") for n in range(6)]
        for n, task in enumerate(tasks):
            assert await task.result(PATIENCE) == [f"FAMILY {n}/{child}" for child in range(3)]
        assert await rt.workspace.tasks.orphans() == []
        assert set(crew.count("echo").values()) == {1}
        assert len(crew.count("echo")) == 18
        await sound(rt)


@pytest.mark.rule("postgres.once")
async def test_two_processes_that_ask_for_the_same_get_the_same(crew: Crew):
    await crew.ready(crew.start(), crew.start("same_requests", hands=0), crew.start("same_requests", hands=0))
    crew.open("go")
    acknowledged = await crew.until("acknowledged", 40)
    assert set(Counter(line.about for line in acknowledged).values()) == {2}
    with crew.runtime() as rt:
        tasks = await rt.workspace.tasks.list(agent="step")
        assert {task.id for task in tasks} == {line.about for line in acknowledged}
        for task in tasks:
            await rt.workspace.tasks.get(task.id).result(PATIENCE)
        assert crew.count("effect") == Counter(f"twin {n}" for n in range(20))
        await sound(rt)
