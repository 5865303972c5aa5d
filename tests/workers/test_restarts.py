"""PostgreSQL is restarted under load, connections are killed: nothing acknowledged is lost, and nothing done twice."""

from collections import Counter
from contextlib import closing

import psycopg
import pytest
from anyio import Event, fail_after, to_thread

from deep import some
from postgres import OwnServer
from remit import Turn
from remit.stores.postgres.database import PostgresDatabase
from teams import team
from workers.crew import PATIENCE, Crew, gone, sound, until

pytestmark = pytest.mark.anyio


@pytest.mark.rule("postgres.restart")
@pytest.mark.parametrize("times", some([2, 5]))
async def test_workers_outlive_their_server(crew: Crew, own_server: OwnServer, times: int):
    async def restart() -> None:
        await to_thread.run_sync(own_server.restart)

    await under_load(crew, restart, times)


@pytest.mark.rule("postgres.restart")
@pytest.mark.parametrize("times", some([4, 12]))
async def test_workers_outlive_their_connections(crew: Crew, address: str, times: int):
    def kill_some() -> None:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.6"
            )

    async def kill() -> None:
        await to_thread.run_sync(kill_some)

    await under_load(crew, kill, times)


@pytest.mark.rule("end.kept")
async def test_what_ends_while_the_server_is_away_is_recorded_when_it_is_back(
    address: str, own_server: OwnServer, caplog: pytest.LogCaptureFixture
):
    begun: list[str] = []
    go = Event()
    with closing(PostgresDatabase(address, patience=0.2)) as database, team(database) as rt:

        @rt.agent
        async def coder(turn: Turn) -> str:
            begun.append(turn.task)
            await go.wait()
            return turn.task

        tasks = [await rt.submit("coder", text) for text in "abc"]
        with fail_after(60):
            await until(lambda: True if len(begun) == 3 else None)
            await to_thread.run_sync(own_server.stop)
            try:
                go.set()
                await until(lambda: True if caplog.text.count("could not be recorded, trying again") == 3 else None)
            finally:
                await to_thread.run_sync(own_server.start)
            assert [await task.result(PATIENCE) for task in tasks] == ["a", "b", "c"]
        assert sorted(begun) == ["a", "b", "c"]
        assert {(await task.status()).attempt for task in tasks} == {1}
        await rt.drain(0)
        await sound(rt)


@pytest.mark.rule("serve.waits")
async def test_a_worker_that_is_started_before_its_server_waits_for_it(crew: Crew, own_server: OwnServer):
    with crew.runtime() as rt:
        task = await rt.submit("echo", "x")
        await to_thread.run_sync(own_server.stop)
        try:
            worker = crew.start()
            await crew.ready(worker)
        finally:
            await to_thread.run_sync(own_server.start)
        assert await task.result(PATIENCE) == "X"
        assert worker.poll() is None


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
                assert (await rt.workspace.tasks.get(task).wait()).state == "completed"
        assert await rt.workspace.tasks.list(state="open") == []
        events = await rt.workspace.journal.history()
        kept = Counter(event.task for event in events if event.kind == "effect.done")
        assert set(kept.values()) == {1}
        assert kept.keys() >= acknowledged
        ended = Counter(event.task for event in events if event.kind == "task.completed")
        assert ended == kept
        assert [worker.poll() for worker in workers] == [None, None]
        assert {line.pid for line in crew.lines("effect")} == {worker.pid for worker in workers}
        await sound(rt)
