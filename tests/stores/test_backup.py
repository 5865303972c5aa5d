"""Backups: made while a store is used, put back elsewhere, and what is worth knowing before one needs them."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import psycopg
import pytest

from postgres import OwnServer
from remit import Card, Runtime, Turn
from remit.core.entry import Draft
from remit.engine.upkeep.doctor import examine
from remit.errors import BadInput, NewerStore, NotAStore, NotFound
from remit.stores.opening import database_at
from remit.stores.postgres.database import PostgresDatabase
from remit.stores.sqlite.database import SqliteDatabase, back_up
from remit.stores.sqlite.files import advice
from remit.stores.sqlite.schema import newest
from remit.testing.clauses.making import NOW, putting
from teams import echo, team
from workers.crew import as_url

pytestmark = pytest.mark.anyio

PATIENCE = 30


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "team.db"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "copy.db"


async def healthy(where: Path | str) -> int:
    """How many events a sound store has."""
    with closing(database_at(where)) as database:
        health = await examine(database, NOW)
        assert health.sound, health.findings
        return health.events


# -- a file -------------------------------------------------------------------------------------------------------


def by_ourselves(source: Path, target: Path) -> None:
    back_up(source, target)


def by_vacuum(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("VACUUM INTO ?", (str(target),))


def by_backup(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as connection, closing(sqlite3.connect(target)) as other:
        connection.backup(other)


@pytest.mark.rule("store.backup")
@pytest.mark.parametrize("copying", [by_ourselves, by_vacuum, by_backup])
async def test_a_copy_of_a_file_that_is_written_to_is_sound(path: Path, copy: Path, copying: Callable[..., None]):
    """Each way that the page on operating names, while a process writes as fast as it can."""
    with closing(SqliteDatabase(path)) as database:
        store = database.store("w")
        enough, some = threading.Event(), asyncio.Event()

        async def write() -> None:
            number = 0
            while not enough.is_set():
                number += 1
                await store.tx(f"write {number}", putting(Draft("notes", "a", "x" * 500 + str(number))))
                if number == 5:
                    some.set()

        writing = asyncio.create_task(write())
        await some.wait()
        for number in range(5):
            target = copy.with_name(f"{number}.db")
            await asyncio.to_thread(copying, path, target)
            assert await healthy(target) >= 5
        enough.set()
        await writing


@pytest.mark.rule("store.backup")
async def test_what_is_only_in_the_wal_is_in_the_copy_too(path: Path, copy: Path):
    with closing(SqliteDatabase(path)) as database:
        await database.store("w").tx("op", putting(Draft("notes", "a", 1)))
        assert back_up(path, copy) == newest()
        assert stat.S_IMODE(os.stat(copy).st_mode) == 0o600  # noqa: PTH116
        assert await healthy(copy) == 1


@pytest.mark.rule("store.backup")
@pytest.mark.parametrize("end", ["", "-wal", "-journal"])
def test_a_backup_overwrites_nothing(path: Path, copy: Path, end: str):
    database_at(path).close()
    there = copy.with_name(copy.name + end)
    there.write_text("precious")
    with pytest.raises(BadInput, match="is there already, and a backup overwrites nothing"):
        back_up(path, copy)
    assert there.read_text() == "precious"
    assert copy.exists() == (not end)


@pytest.mark.rule("store.backup")
def test_a_backup_does_not_change_the_store(path: Path, copy: Path):
    """It is what one does before a newer remit brings it up to date, so it must not do that itself."""
    database_at(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 12")
    assert back_up(path, copy) == 12
    for file in (path, copy):
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("PRAGMA user_version").fetchone()[0] == 12


@pytest.mark.rule("store.backup")
@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, NotFound),
        (b"", NotFound),
        (b"no database at all, but some text " * 100, NotAStore),
        ("PRAGMA user_version = 99", NewerStore),
        ("CREATE TABLE theirs (a)", NotAStore),
    ],
)
def test_what_cannot_be_copied_is_said_and_leaves_nothing_behind(path: Path, copy: Path, content, error):
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        if error is NewerStore:
            database_at(path).close()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(content)
    with pytest.raises(error):
        back_up(path, copy)
    assert not copy.exists()


def test_a_copy_needs_a_folder(path: Path, tmp_path: Path):
    database_at(path).close()
    with pytest.raises(BadInput, match="is not a folder"):
        back_up(path, tmp_path / "nowhere" / "copy.db")


# -- putting it back ------------------------------------------------------------------------------------------------


def join(rt: Runtime, done: list[str], go: anyio.Event, inside: anyio.Event) -> None:
    async def payer(turn: Turn) -> str:
        """Pays first, and then takes long."""
        await turn.once("pay", done.append, turn.task)
        inside.set()
        await go.wait()
        return f"paid {turn.task}"

    rt.add(Card("payer"), payer)
    rt.add(Card("echo"), echo)


@pytest.mark.rule("store.backup")
async def test_after_a_restore_what_ran_is_taken_up_and_what_came_later_is_not_known(path: Path, copy: Path):
    done: list[str] = []
    inside, never = anyio.Event(), anyio.Event()
    with team(path, hands=2) as before:
        join(before, done, never, inside)
        await (await before.submit("echo", "early")).result()
        running = await before.submit("payer", "the rent")
        with anyio.fail_after(PATIENCE):
            await inside.wait()
        back_up(path, copy)
        later = await before.submit("echo", "later")
        await later.result()
    go = anyio.Event()
    go.set()
    with team(copy, hands=2, silence=0.5) as restored:
        join(restored, done, go, anyio.Event())
        with anyio.fail_after(PATIENCE):
            async with restored.serving():
                assert await restored.workspace.tasks.get(running.id).result() == "paid the rent"
        assert done == ["the rent"], "what was on record by then is not done again"
        with pytest.raises(NotFound):
            await restored.workspace.tasks.get(later.id).status()
    assert await healthy(copy)


# -- a server -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("store.backup")
async def test_a_dump_of_the_schema_is_put_back_and_works(own_server: OwnServer, address: str, new_address, copy: Path):
    """As the page on operating says, with the tools of the server itself."""
    with closing(PostgresDatabase(address)) as database:
        await database.store("w").tx("op", putting(Draft("notes", "a", 1)))
    tools = own_server.tools
    restored = new_address(empty=True)
    dump = [str(tools / "pg_dump"), "--schema=remit", "--format=custom", f"--file={copy}", address]
    restore = [str(tools / "pg_restore"), "--no-owner", f"--dbname={restored}", str(copy)]
    for command in (dump, restore):
        await asyncio.to_thread(subprocess.run, command, check=True, timeout=PATIENCE)
    assert await healthy(as_url(restored)) == 1
    rt = team(as_url(restored), hands=1)
    rt.add(Card("echo"), echo)
    with anyio.fail_after(PATIENCE):
        async with rt, rt.serving():
            assert await (await rt.submit("echo", "goes on")).result() == "goes on"


# -- advice -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("doctor.advice")
@pytest.mark.parametrize(
    ("version", "mended"),
    [
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 45, 0), False),
        ((3, 50, 6), False),
        ((3, 50, 7), True),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 53, 0), True),
        ((4, 0, 0), True),
    ],
)
def test_an_sqlite_with_the_wal_reset_bug_is_named(version: tuple[int, int, int], mended: bool):
    found = advice(version)
    assert bool(found) != mended
    assert mended or "3.51.3 or newer" in found[0]


@pytest.mark.rule("doctor.advice")
async def test_advice_is_no_finding_and_breaks_nothing(path: Path):
    with closing(SqliteDatabase(path)) as database:
        health = await examine(database, NOW)
        assert (health.sound, health.findings) == (True, [])
        assert health.advice == advice(sqlite3.sqlite_version_info)
    with closing(SqliteDatabase()) as memory:
        assert (await examine(memory, NOW)).advice == []


@pytest.mark.rule("doctor.advice")
async def test_tables_of_an_older_procrastinate_are_named(address: str):
    with closing(PostgresDatabase(address)) as database:
        assert (await examine(database, NOW)).advice == []
        with psycopg.connect(address, options="-c search_path=remit") as connection:
            connection.execute("DROP FUNCTION procrastinate_retry_job_v2 CASCADE")
        health = await examine(database, NOW)
        assert health.sound
        assert "made by an older version of it, and has no procrastinate_retry_job_v2" in health.advice[0]
