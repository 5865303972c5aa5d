"""PostgreSQL is restarted under load, connections are killed: nothing acknowledged is lost, and nothing done twice."""

from collections import Counter

import psycopg
import pytest
from anyio import fail_after, to_thread

from postgres import OwnServer
from workers.crew import PATIENCE, Crew, gone, sound

pytestmark = pytest.mark.anyio


@pytest.mark.rule("postgres.restart")
async def test_workers_outlive_their_server(crew: Crew, own_server: OwnServer):
    async def restart() -> None:
        await to_thread.run_sync(own_server.restart)

    await under_load(crew, restart, times=5)


@pytest.mark.rule("postgres.restart")
async def test_workers_outlive_their_connections(crew: Crew, address: str):
    def kill_some() -> None:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.6"
            )

    async def kill() -> None:
        await to_thread.run_sync(kill_some)

    await under_load(crew, kill, times=12)


async def under_load(crew: Crew, disturb, times: int) -> None:
    """Tasks are asked for and carried out all the time; there is progress between any two disturbances."""
    workers = [crew.start(), crew.start()]
    asker = crew.start("ask", agent="step", hands=0)
    await crew.ready(*workers, asker)
    for _ in range(times):
        await crew.until("acknowledged", len(crew.lines("acknowledged")) + 10)
        await crew.until("effect", len(crew.lines("effect")) + 10)
        await disturb()
    await crew.until("acknowledged", len(crew.lines("acknowledged")) + 10)
    crew.open("enough")
    assert await gone(asker) == 0
    with crew.runtime() as rt:
        acknowledged = {line.about for line in crew.lines("acknowledged")}
        with fail_after(2 * PATIENCE):
            for task in acknowledged:
                assert (await rt.workspace.task(task).wait()).state == "completed"
        assert await rt.workspace.tasks(state="open") == []
        events = await rt.workspace.history()
        kept = Counter(event.task for event in events if event.kind == "effect.done")
        assert set(kept.values()) == {1}
        assert kept.keys() >= acknowledged
        ended = Counter(event.task for event in events if event.kind == "task.completed")
        assert ended == kept
        assert [worker.poll() for worker in workers] == [None, None]
        assert {line.pid for line in crew.lines("effect")} == {worker.pid for worker in workers}
        await sound(rt)
