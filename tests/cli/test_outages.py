"""Commands that wait, and the server's own state, while the database is away."""

from collections.abc import Iterator
from contextlib import closing

import anyio
import pytest
from anyio import to_thread

from postgres import OwnServer
from remit import Workspace
from remit.cli.watch import StoreAway, wait_for_end
from remit.core.lifecycle import Record
from remit.stores.postgres.database import PostgresDatabase
from server.serving import app_of, client
from teams import echo, team

pytestmark = pytest.mark.anyio

PATIENCE = 60.0


@pytest.fixture
def owner(address: str) -> Iterator[Workspace]:
    """A workspace that soon notices that its database is away."""
    with closing(PostgresDatabase(address, patience=0.2)) as database, Workspace(database) as workspace:
        yield workspace


async def pending(address: str) -> str:
    """A task that stays pending, because no worker runs."""
    with team(address, hands=0) as rt:
        rt.agent("echo")(echo)
        return (await rt.submit("echo", "x")).id


async def record_of(owner: Workspace, task: str) -> Record:
    with anyio.fail_after(PATIENCE):
        return await owner.looks.task(task)


async def heard(capsys: pytest.CaptureFixture[str], sentence: str) -> str:
    """Wait until a command has said this on standard error; return all that it said since the last time."""
    said = ""
    with anyio.fail_after(PATIENCE):
        while sentence not in said:
            await anyio.sleep(0.02)
            said += capsys.readouterr().err
    return said


@pytest.mark.rule("cli.outage")
async def test_waiting_goes_on_through_an_outage_and_says_so_once(
    owner: Workspace, address: str, own_server: OwnServer, capsys: pytest.CaptureFixture[str]
):
    task = await pending(address)
    record = await record_of(owner, task)
    states: list[str] = []
    said = ""

    async def wait() -> None:
        states.append((await wait_for_end(owner, record, None, None))[0].record.state)

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await to_thread.run_sync(own_server.stop)
        try:
            said += await heard(capsys, "still waiting: ")
        finally:
            await to_thread.run_sync(own_server.start)
        said += await heard(capsys, "the store answers again")
        with team(address, hands=0) as rt:
            await rt.workspace.tasks.cancel(task)
    assert states == ["cancelled"]
    assert said.count("still waiting: ") == said.count("the store answers again") == 1


@pytest.mark.rule("cli.outage")
async def test_a_time_limit_holds_during_an_outage(owner: Workspace, address: str, own_server: OwnServer):
    record = await record_of(owner, await pending(address))
    await to_thread.run_sync(own_server.stop)
    try:
        with anyio.fail_after(PATIENCE), pytest.raises(StoreAway, match=record.id):
            await wait_for_end(owner, record, 1.5, None)
    finally:
        await to_thread.run_sync(own_server.start)


@pytest.mark.rule("http.ready")
async def test_the_server_says_soon_that_its_database_is_away(address: str, own_server: OwnServer):
    with closing(PostgresDatabase(address)) as database, Workspace(database) as owner:  # it waits ten seconds
        app = app_of(owner)
        async with client(app, "") as caller:
            assert (await caller.get("/readyz")).status_code == 200
            await to_thread.run_sync(own_server.stop)
            try:
                with anyio.fail_after(5):  # it should take 1.5 s
                    answer = await caller.get("/readyz")
            finally:
                await to_thread.run_sync(own_server.start)
            assert (answer.status_code, answer.json()["retryable"]) == (503, True)
