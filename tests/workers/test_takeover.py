"""A worker process that is killed: another finishes what it had, and repeats nothing that was finished."""

import signal
from collections import Counter

import pytest

from remit.runtime.workspace import opening_of
from workers.crew import PATIENCE, Crew, gone, sound

pytestmark = pytest.mark.anyio

DONE = {"did": ["first", "DELEGATED", "SUBMITTED", "SPAWNED", "last"], "told": ["SPAWNED"]}
ONCE = {"delegated": 1, "submitted": 1, "spawned": 1}


@pytest.mark.rule("postgres.takeover")
@pytest.mark.parametrize("machine", ["same", "other"])
async def test_what_a_killed_worker_had_is_finished_by_another(crew: Crew, machine: str):
    """On the same machine the process table says that it is gone; of another machine only its silence does."""
    where = {} if machine == "same" else {"machine": "elsewhere"}
    first = crew.start(silence=1, **where)
    await crew.ready(first)
    with crew.runtime() as rt:
        task = await rt.submit("lead", "gate")
        assert {line.pid for line in await crew.until("middle")} == {first.pid}
        second = crew.start(silence=1)
        await crew.ready(second)
        first.kill()
        assert await gone(first) == -signal.SIGKILL
        assert [line.pid for line in await crew.until("middle", 2)] == [first.pid, second.pid]
        crew.open("gate")
        assert await task.result(PATIENCE) == DONE
        assert (await task.status()).attempt == 1  # the first time nobody is to blame
        assert crew.count("echo") == Counter(ONCE)
        assert crew.count("step") == Counter({"first": 1, "last": 1})
        kinds = [event.kind for event in await rt.workspace.journal.history(run=task.id) if event.task == task.id]
        assert kinds.count("task.lost") == kinds.count("task.completed") == 1
        await sound(rt)


@pytest.mark.rule("postgres.takeover")
async def test_what_ran_in_the_foreground_of_a_killed_process_is_finished_by_a_worker(crew: Crew):
    first = crew.start("run", agent="lead", task="gate")
    await crew.ready(first)
    await crew.until("middle")
    worker = crew.start()
    await crew.ready(worker)
    with crew.runtime() as rt:
        (status,) = await rt.workspace.tasks.list(agent="lead")
        first.kill()
        await gone(first)
        await crew.until("middle", 2)
        crew.open("gate")
        assert await rt.workspace.tasks.get(status.id).result(PATIENCE) == DONE
        assert crew.count("echo") == Counter(ONCE)
        await sound(rt)


@pytest.mark.rule("postgres.takeover")
async def test_a_worker_that_is_told_to_stop_hands_its_tasks_back(crew: Crew):
    first = crew.start()
    await crew.ready(first)
    with crew.runtime() as rt:
        task = await rt.submit("lead", "gate")
        await crew.until("middle")
        first.send_signal(signal.SIGTERM)
        assert await gone(first) == 0
        assert (await task.status()).state == "pending"
        assert await opening_of(rt.workspace).ground.store.read(lambda view: view.workers()) == []
        crew.open("gate")
        await crew.ready(crew.start())
        assert await task.result(PATIENCE) == DONE
        assert (await task.status()).attempt == 1
        assert crew.count("echo") == Counter(ONCE)
        assert crew.count("step") == Counter({"first": 1, "last": 1})
        await sound(rt)
