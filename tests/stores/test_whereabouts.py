"""Files that are removed, moved or replaced while a store is open, and backups that are put back."""

import gc
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from anyio import to_thread

from forking import in_a_fork
from programs import ran
from remit.core.entry import Draft
from remit.errors import StoreError
from remit.ports.views import Beat
from remit.stores.opening import database_at
from remit.stores.sqlite.connection import connect
from remit.stores.sqlite.database import SqliteDatabase
from remit.stores.sqlite.schema import pragmas
from remit.testing.clauses.making import putting, sound, value_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "team.db"


@pytest.fixture
def database(path: Path) -> Iterator[SqliteDatabase]:
    with closing(SqliteDatabase(path)) as opened:
        yield opened


async def write(database: SqliteDatabase, number: int) -> None:
    await database.store("w").tx(f"write {number}", putting(Draft("notes", "a", number)))


def beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def content(path: Path) -> bytes:
    return path.read_bytes()


def put(one: Path, there: Path) -> None:
    one.replace(there)


async def kept(path: Path) -> object:
    """What another process finds: this one's connections are not looked at."""
    program = (
        "import asyncio, sys; from remit.stores.opening import database_at\n"
        "from remit.testing.clauses.making import value_of\n"
        "print(asyncio.run(value_of(database_at(sys.argv[1]).store('w'), 'notes', 'a')))"
    )
    other = await to_thread.run_sync(ran, "-c", program, path)
    return other.stdout.strip() or other.stderr


@pytest.mark.rule("store.wal")
@pytest.mark.parametrize("ends", [["-wal"], ["-wal", "-shm"], ["-shm"]])
async def test_a_file_beside_it_that_was_removed_is_noticed_and_what_was_acknowledged_is_saved(
    path: Path, database: SqliteDatabase, ends: list[str]
):
    for number in range(20):
        await write(database, number)
    for end in ends:
        beside(path, end).unlink()
    for _ in range(2):
        with pytest.raises(
            StoreError, match=rf"{ends[0]} beside it was removed .* has been saved .* run `remit doctor`"
        ):
            await write(database, 99)
    assert await kept(path) == "19"
    with closing(SqliteDatabase(path)) as again:
        await sound(again.store("w"))


@pytest.mark.rule("store.wal")
async def test_a_wal_that_was_replaced_is_noticed_and_nothing_is_written_to_it(path: Path, database: SqliteDatabase):
    await write(database, 1)
    wal = beside(path, "-wal")
    copy = path.with_name("copy")
    shutil.copy(wal, copy)
    put(copy, wal)
    before = content(wal)
    with pytest.raises(StoreError, match=r"-wal beside it was replaced .* may be lost"):
        await write(database, 2)
    assert content(wal) == before


@pytest.mark.rule("store.wal")
async def test_a_process_that_finds_no_shm_makes_another_and_the_first_acknowledges_nothing_more(
    path: Path, database: SqliteDatabase
):
    for number in range(20):
        await write(database, number)
    beside(path, "-shm").unlink()
    assert await kept(path) == "19"  # it makes a new one
    for _ in range(2):
        with pytest.raises(StoreError, match=r"-shm beside it was replaced .* may be lost"):
            await write(database, 99)
    assert await kept(path) == "19"


@pytest.mark.rule("store.wal")
@pytest.mark.parametrize("end", ["-wal", "-shm"])
async def test_a_file_that_goes_while_a_commit_is_on_its_way_is_not_acknowledged(path: Path, end: str):
    gone: list[str] = []

    def fault(name: str) -> None:
        if name == "store.before-commit" and gone == ["wanted"]:
            beside(path, end).unlink()
            gone.append("done")

    with closing(SqliteDatabase(path, fault=fault)) as database:
        await write(database, 1)
        gone.append("wanted")
        with pytest.raises(StoreError, match="was removed"):
            await write(database, 2)
        assert gone == ["wanted", "done"]


@pytest.mark.rule("store.wal")
async def test_a_wal_is_not_put_into_a_file_that_somebody_wrote_to_without_it(path: Path, database: SqliteDatabase):
    """Both files beside it went, and another process created new ones before we looked: they are not ours to change."""
    await write(database, 1)
    for end in ("-wal", "-shm"):
        beside(path, end).unlink()
    os.utime(path)
    before = content(path)
    with pytest.raises(StoreError, match=r"was removed .* may be lost"):
        await write(database, 2)
    assert content(path) == before


@pytest.mark.rule("store.wal")
async def test_a_file_that_was_replaced_is_not_written_to(path: Path, database: SqliteDatabase):
    await write(database, 1)
    other = path.with_name("other.db")
    database_at(other).close()
    moved = path.with_name("moved.db")
    put(path, moved)
    put(other, path)
    with pytest.raises(StoreError, match="moved, removed or replaced"):
        await write(database, 2)
    put(moved, path)
    await write(database, 3)  # it was put back
    assert await value_of(database.store("w"), "notes", "a") == 3


def test_what_is_put_back_beside_an_older_wal_says_what_to_do(path: Path):
    """SQLite would take the old pages for newer ones; where it finds the file malformed, the way out is told."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 5000)
    with pytest.raises(StoreError, match="remove the files -wal and -shm and restore it once more"):
        database_at(path)


@pytest.mark.rule("store.power")
def test_a_mac_is_told_to_have_its_disk_write():
    assert "synchronous = FULL" in pragmas("linux")
    assert not [one for one in pragmas("linux") if "fullfsync" in one]
    assert {"fullfsync = ON", "checkpoint_fullfsync = ON"} < set(pragmas("darwin"))
    with closing(sqlite3.connect(":memory:")) as connection:  # they are settings that SQLite knows
        for pragma in pragmas("darwin"):
            connection.execute(f"PRAGMA {pragma}")
        names = [one.partition(" ")[0] for one in pragmas("darwin")]
        assert [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names] == [2, -32768, 1, 1]


@pytest.mark.rule("store.folder")
async def test_a_store_stays_where_it_was_opened_when_the_process_changes_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Agents change the folder of their process; the path that was given is relative to the folder before."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with closing(SqliteDatabase("team.db")) as opened:
        await write(opened, 1)
        os.chdir("elsewhere")
        await write(opened, 2)
        assert await opened.store("w").browse(lambda view: view.head().seq) == 2
        pulse = opened.pulse("w")
        assert pulse is not None
        pulse.write(Beat("one", "here", 1))
        pulse.close()
        with closing(opened.contents("w").begin()) as saving:
            saving.write(b"a file")
            digest = saving.keep().digest
        assert [one.digest for one in opened.contents("w").stored()] == [digest]
        assert in_a_fork(lambda: "a child") == "a child"  # the file is opened again after it
        await write(opened, 3)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert await kept(tmp_path / "team.db") == "3"


def test_a_connection_that_could_not_be_opened_is_not_closed(tmp_path: Path):
    with pytest.raises(StoreError, match="cannot be opened"):
        connect(str(tmp_path / "missing" / "team.db"))
    gc.collect()  # an error in a finalizer fails the test
