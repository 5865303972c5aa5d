"""Many workspaces on one database that their owner opened."""

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import psycopg
import pytest

from deep import some
from remit import Card, Runtime, Workspace, open_database
from remit.errors import BadInput
from remit.ports import Database
from remit.runtime.opening import own_opening
from remit.runtime.workspace import opening_of
from remit.settings import Serving, System
from remit.testing import Scripted
from teams import echo
from workers.crew import as_url

pytestmark = pytest.mark.anyio

PATIENCE = 30
KEY = "a key of many characters"


@pytest.mark.rule("database.shared")
async def test_closing_a_workspace_leaves_its_database_open(tmp_path: Path):
    with open_database(tmp_path / "team.db") as database:
        one, two = Workspace(database, "one"), Workspace(database, "two")
        await one.context().set("notes", "k", "of one")
        await two.context().set("notes", "k", "of two")
        one.close()
        assert await two.context().get("notes", "k") == "of two"
        async with Runtime(database, workspace="one") as rt:
            rt.add(Card("echo"), echo)
            task = await rt.submit("echo", "on the same database")
            assert await task.result(PATIENCE) == "on the same database"
        assert await one.context().get("notes", "k") == "of one", "a closed workspace is opened again on its next use"
        assert database.workspaces() == ["one", "two"]
    assert database.lasting


async def used(database: Database, name: str) -> tuple[Workspace, Callable[[], None]]:
    """Write, read, ask and listen in a workspace; it stays open, and is listened to."""
    workspace = Workspace(database, name)
    await workspace.context().set("notes", "k", name)
    await workspace.submit("nobody-yet", "wait for a worker")
    assert await workspace.context().get("notes", "k") == name
    assert await workspace.tasks.list()
    return workspace, opening_of(workspace).records.listen(lambda: None)


@pytest.mark.rule("database.flat")
@pytest.mark.parametrize("kind", some(["file", "postgres"]))
async def test_workspaces_on_one_database_cost_no_thread_file_or_connection(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
):
    address = str(tmp_path / "team.db") if kind == "file" else as_url(request.getfixturevalue("address"))

    def held() -> tuple[int, int, int]:
        files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0  # noqa: PTH112, PTH208
        return threading.active_count(), files, connections(address) if kind == "postgres" else 0

    with anyio.fail_after(PATIENCE), open_database(address) as database:
        published = Runtime(database, workspace="0", serving=Serving(concurrency=0))
        kept = [await used_by_all(published, database, str(number)) for number in range(5)]
        before = held()
        kept += [await used_by_all(published, database, str(number)) for number in range(5, 200)]
        # Their number does not matter; what somebody else needed for a moment may still be there.
        assert all(now <= then + 3 for now, then in zip(held(), before, strict=True))
        for workspace, stop in kept:
            stop()
            workspace.close()
        published.close()


async def used_by_all(runtime: Runtime, database: Database, name: str) -> tuple[Workspace, Callable[[], None]]:
    async with Runtime(database, workspace=name) as rt:  # its cards are known there from now on
        rt.add(Card("nobody-yet"), Scripted("done"))
        await opening_of(rt.workspace).engine.services.heartbeat.publish()
    return await used(database, name)


def connections(address: str) -> int:
    """How many connections others have to this server."""
    asked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(address) as connection:
        row = connection.execute(asked).fetchone()
        assert row is not None
        return row[0]


@pytest.mark.rule("database.shared")
async def test_a_database_signs_its_journals_with_the_key_that_opened_it(tmp_path: Path):
    with open_database(tmp_path / "signed.db", journal_key=KEY) as database:
        workspace = Workspace(database, system=System(journal_key=KEY))
        await workspace.context().set("notes", "k", "v")
        assert (await workspace.check()).sound
    with open_database(tmp_path / "plain.db") as database:
        workspace = Workspace(database, system=System(journal_key=KEY))
        with pytest.raises(BadInput, match="opened without a journal key; call open_database"):
            await workspace.context().set("notes", "k", "v")


@pytest.mark.rule("database.shared")
def test_a_database_is_opened_by_path_or_address_only(tmp_path: Path):
    with pytest.raises(BadInput, match="takes a path or a postgresql:// address, or a list, not a value of type int"):
        open_database(7)  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match="keep_events"):
        open_database(":memory:", keep_events=0)
    with pytest.raises(BadInput, match="create is True or False"):
        open_database(tmp_path / "team.db", create="no")  # pyright: ignore[reportArgumentType]
    assert not (tmp_path / "team.db").exists()


@pytest.mark.rule("database.shared")
async def test_a_database_in_memory_keeps_the_newest_events():
    with open_database(":memory:", keep_events=20) as database:
        async with Runtime(database, workspace="busy") as rt:
            rt.add(Card("echo"), echo)
            for number in range(600):
                await rt.run("echo", str(number))
            assert len(await rt.workspace.journal.history()) < 600


@pytest.mark.rule("workspace.reserved")
def test_names_of_remits_own_workspaces_are_refused_to_users(tmp_path: Path):
    for name in ("remit.hooks", "remit."):
        for make in (lambda name=name: Workspace(":memory:", name), lambda name=name: Runtime(workspace=name)):
            with pytest.raises(BadInput, match=r"names of workspaces that begin with 'remit\.' belong to remit itself"):
                make()
    assert Workspace(":memory:", "remit").name == "remit"
    assert Workspace(":memory:", "remits.own").name == "remits.own"


@pytest.mark.rule("workspace.reserved")
async def test_remit_itself_uses_its_own_workspaces(tmp_path: Path):
    with open_database(tmp_path / "team.db") as database:
        async with Runtime(own_opening(database, "remit.hooks")) as rt:
            rt.add(Card("echo"), echo)
            assert await rt.run("echo", "hello") == "hello"
            assert rt.at(serving=Serving(concurrency=2)).workspace.name == "remit.hooks"
        workspace = Workspace(own_opening(database, "remit.hooks"))
        assert [line.record.holder for line in await workspace.tasks.runs()] == ["echo"]
        workspace.close()
        assert (await asyncio.to_thread(database.workspaces)) == ["remit.hooks"]
