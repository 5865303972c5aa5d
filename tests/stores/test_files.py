"""What gets in the way: files that are no store, other processes, a full disk, rows changed by hand."""

import asyncio
import os
import re
import sqlite3
import stat
from collections.abc import Awaitable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import anyio
import pytest

import remit
from programs import Program, ran
from remit.core.entry import Draft
from remit.core.events import Event
from remit.core.projection import Tables
from remit.errors import BadInput, NewerStore, NotAStore, NotFound, StoreBusy, StoreError
from remit.ports import Decision, Span, Store, View
from remit.runtime.workspace import opening_of
from remit.stores.queries import OLDER, migrations
from remit.stores.sqlite.database import SqliteDatabase
from remit.stores.sqlite.schema import APPLICATION_ID, OBJECTS, newest
from remit.testing.clauses.making import (
    answer_or_error,
    answer_to,
    check_journal,
    entry_event,
    journal,
    putting,
    value_of,
)

OTHER = Path(__file__).parent / "other.py"
BIG = "x" * 4_000
T = TypeVar("T")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "team.db"


@pytest.fixture
def database(path: Path) -> Iterator[SqliteDatabase]:
    with closing(SqliteDatabase(path, busy_seconds=0.05)) as found:
        yield found


def sql(path: Path, *statements: str) -> None:
    """As another program would."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def left_as_it_is(path: Path, error: type[Exception], match: str) -> None:
    """Opening is refused with that sentence; the file and its folder are as before."""
    before, folder = path.read_bytes(), sorted(path.parent.iterdir())
    with pytest.raises(error, match=match):
        SqliteDatabase(path)
    assert path.read_bytes() == before
    assert sorted(path.parent.iterdir()) == folder


Content = tuple[Tables, list[Event]]


def content(view: View) -> Content:
    return view.tables(), view.events(Span())


def fill(path: Path, count: int = 50) -> Content:
    async def write(rt: remit.Runtime) -> Content:
        await asyncio.gather(*(rt.workspace.context().set("notes", str(n), BIG) for n in range(count)))
        return await opening_of(rt.workspace).ground.store.read(content)

    with remit.Runtime(path) as rt:
        return asyncio.run(write(rt))


# -- files that are none ------------------------------------------------------------------------------------


@pytest.mark.rule("store.not-ours")
@pytest.mark.parametrize(
    "content",
    [
        b"hello\n",
        b"\0" * 5_000,
        b"SQLite format 3",
        b"SQLite format 4\0" + b"x" * 4_080,
        b"SQLite format 3\0" + b"x" * 4_080,
        b"PK\x03\x04" + b"x" * 100,
    ],
    ids=["text", "zeros", "beginning", "other-format", "only-the-magic", "zip"],
)
def test_what_is_no_database_is_refused(path: Path, content: bytes):
    path.write_bytes(content)
    left_as_it_is(path, NotAStore, "not a")


@pytest.mark.rule("store.not-ours")
@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE songs (title)"],
        ["CREATE TABLE event (title)", "PRAGMA user_version = 1"],
        ["PRAGMA application_id = 77", "CREATE TABLE songs (title)"],
        ["PRAGMA application_id = 77"],
        ["PRAGMA user_version = 1"],
        ["PRAGMA user_version = 12"],
    ],
    ids=["tables", "our-table-name", "named", "named-and-empty", "numbered-and-empty", "numbered-high"],
)
def test_the_database_of_another_program_is_refused(path: Path, statements: list[str]):
    sql(path, *statements)
    left_as_it_is(path, NotAStore, "another program")


def test_a_new_store_has_the_tables_and_estimates_that_the_migrations_make(path: Path):
    """`whole.sql` is made of the migrations: `make docs` writes it."""
    fill(path)
    estimates = "SELECT tbl, idx, stat FROM sqlite_stat1 ORDER BY tbl, idx"
    with closing(sqlite3.connect(":memory:")) as migrated, closing(sqlite3.connect(path)) as new:
        for step in migrations("sqlite").values():
            migrated.executescript(step)
        for rows in (OBJECTS, estimates):
            assert new.execute(rows).fetchall() == migrated.execute(rows).fetchall()


@pytest.mark.rule("store.newer")
@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_file_from_the_future_is_refused(path: Path, mode: str):
    fill(path)
    newer = max(migrations("sqlite")) + 1
    sql(path, f"PRAGMA user_version = {newer}", f"PRAGMA journal_mode = {mode}")
    left_as_it_is(path, NewerStore, f"schema {newer} and this remit knows up to {newer - 1}; upgrade")


@pytest.mark.rule("store.not-ours")
@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
@pytest.mark.parametrize("version", [1, 3, 9])
def test_a_file_of_remit_0_1_0_is_refused(path: Path, version: int, mode: str):
    """Its tables had other names and columns; no later version reads them, and none may spoil them."""
    sql(
        path,
        "CREATE TABLE event (workspace TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (workspace, seq)) STRICT",
        "CREATE TABLE task (workspace TEXT NOT NULL, id TEXT NOT NULL, status TEXT NOT NULL, twin TEXT) STRICT",
        "INSERT INTO task VALUES ('default', 'work', 'running', 'x')",
        f"PRAGMA application_id = {APPLICATION_ID}",
        f"PRAGMA user_version = {version}",
        f"PRAGMA journal_mode = {mode}",
    )
    sentence = f"{path} {OLDER}; the file is unchanged"
    left_as_it_is(path, NotAStore, f"^{re.escape(sentence)}$")
    assert "was made by remit 0.1.0" in sentence
    assert "start with a new store" in sentence


@pytest.mark.rule("store.not-ours")
def test_a_folder_is_no_store(tmp_path: Path):
    with pytest.raises(NotAStore, match="is a folder"):
        SqliteDatabase(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.rule("store.not-ours")
def test_no_store_is_made_where_there_is_no_folder(tmp_path: Path):
    with pytest.raises(NotAStore, match="is not a folder"):
        SqliteDatabase(tmp_path / "none" / "team.db")
    (tmp_path / "file").touch()
    with pytest.raises(NotAStore, match="is not a folder"):
        SqliteDatabase(tmp_path / "file" / "team.db")


@pytest.mark.rule("store.not-ours")
def test_a_pipe_is_no_store(path: Path):
    os.mkfifo(path)
    with pytest.raises(NotAStore, match="regular file"):
        SqliteDatabase(path)


def test_what_must_exist_is_not_made(path: Path):
    with pytest.raises(NotFound, match="there is no store at"):
        SqliteDatabase(path, create=False)
    assert not path.exists()


@pytest.mark.rule("input.half-written")
def test_a_read_only_file_is_refused(path: Path):
    fill(path)
    path.chmod(0o444)
    left_as_it_is(path, StoreError, r"read-only; .*chmod u\+w")


@pytest.mark.anyio
@pytest.mark.rule("store.read-only")
@pytest.mark.parametrize("open_elsewhere", [False, True])
async def test_a_read_only_file_can_be_looked_at_and_not_written(path: Path, open_elsewhere: bool):
    writer = SqliteDatabase(path)
    await writer.store("default").tx("one", lambda view: Decision(1, (entry_event(view, Draft("notes", "a", 1)),)))
    if not open_elsewhere:  # its last writer has left no log
        writer.close()
    await anyio.Path(path).chmod(0o400)
    with closing(SqliteDatabase(path, create=False)) as database:
        store = database.store("default")
        assert await store.read(lambda view: view.head().seq) == 1
        assert await store.browse(lambda view: view.head().seq) == 1
        with pytest.raises(StoreError, match="read-only; remit needs to write to it"):
            await store.tx("two", lambda view: Decision(1, (entry_event(view, Draft("notes", "b", 1)),)))
        if open_elsewhere:  # changes by others are seen
            await writer.store("default").tx(
                "b", lambda view: Decision(1, (entry_event(view, Draft("notes", "c", 1)),))
            )
        assert await store.read(lambda view: view.head().seq) == 1 + open_elsewhere
    writer.close()


@pytest.mark.rule("store.read-only")
def test_a_read_only_file_with_an_older_schema_says_what_to_do(path: Path):
    fill(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {newest() - 1}")
    path.chmod(0o400)
    with pytest.raises(StoreError, match=r"the file is read-only, so it cannot be migrated; copy it to a folder"):
        SqliteDatabase(path, create=False)


@pytest.mark.rule("input.text")
@pytest.mark.parametrize("name", ["te\0am.db", "\0", "team.db\0"])
def test_a_path_with_nul_is_refused(tmp_path: Path, name: str):
    with pytest.raises(BadInput, match="NUL"):
        SqliteDatabase(f"{tmp_path}/{name}")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_becomes_a_store(path: Path):
    path.touch()
    fill(path, 1)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)


@pytest.mark.rule("store.private")
@pytest.mark.anyio
async def test_a_new_file_is_its_owners_only(path: Path):
    before = os.umask(0)
    try:
        with remit.Runtime(path) as rt:
            await rt.workspace.context().set("notes", "a", 1)
            files = sorted(path.parent.iterdir())
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files}
    finally:
        os.umask(before)
    assert modes == {"team.db": 0o600, "team.db-shm": 0o600, "team.db-wal": 0o600}
    assert [file.name for file in path.parent.iterdir()] == ["team.db"], "closed, it is one file"


@pytest.mark.parametrize("kept", [17, 99, 512, 4_096, 4_097, 8_192, 20_000, 60_000, -4_096, -1])
def test_a_truncated_file_is_told_as_such(path: Path, kept: int):
    """Every way to use it works or raises StoreError; the damage is found, or nothing is missing."""
    before = fill(path)
    with path.open("r+b") as file:
        file.truncate(kept if kept > 0 else path.stat().st_size + kept)

    async def look(database: SqliteDatabase) -> bool:
        store = database.store("default")
        found = await answer_or_damage(store.read(content))
        broken = bool(database.faulty()) or await is_broken(store)
        await answer_or_damage(store.tx("op", putting(Draft("notes", "new", 1))))
        return broken or found == before

    try:
        with closing(SqliteDatabase(path)) as database:
            assert asyncio.run(look(database))
    except StoreError as error:
        assert "damaged" in str(error) or "not a" in str(error)  # noqa: PT017 - not raising is as good


async def is_broken(store: Store) -> bool:
    """Whether the file cannot be read, or its journal says that something was changed."""
    try:
        await store.read(check_journal)
    except (AssertionError, StoreError):
        return True
    return False


async def answer_or_damage(asked: Awaitable[T]) -> T | None:
    try:
        return await asked
    except StoreError as error:
        assert "damaged" in str(error)  # noqa: PT017 - not raising is as good
        return None


# -- other processes ----------------------------------------------------------------------------------------


def started(*arguments: object) -> Program:
    return Program("-W", "error", OTHER, *arguments)


def test_processes_that_open_a_new_file_at_once_all_get_it(tmp_path: Path):
    others = [started("open", tmp_path) for _ in range(3)]
    try:
        assert [other.stdout.readline() for other in others] == ["ready\n"] * 3
        for number in range(40):
            for other in others:
                other.stdin.write(f"{number}\n")
                other.stdin.flush()
            assert [other.stdout.readline() for other in others] == ["ok\n"] * 3, f"at the {number}th file"
    finally:
        for other in others:
            other.communicate(timeout=20)
    for number in range(40):
        with closing(SqliteDatabase(tmp_path / f"{number}.db")) as database:
            assert database.faulty() == []


@pytest.mark.rule("store.atomic", "journal.chain", "journal.one-event")
@pytest.mark.anyio
async def test_two_processes_write_the_same_file(path: Path):
    others = [started("write", path, name, 100) for name in ("left", "right")]
    with SqliteDatabase(path, busy_seconds=60) as database, remit.Runtime(database) as rt:
        for number in range(50):
            await rt.workspace.context().set("own", str(number), number)
        for other in others:
            other.communicate(timeout=60)
            assert other.returncode == 0
        assert [len(await rt.workspace.context().query(name, 1_000)) for name in ("left", "right", "own")] == [
            100,
            100,
            50,
        ]
        await rt.workspace.context().set("own", "after", "the others")
        await opening_of(rt.workspace).ground.store.read(check_journal)
        assert len(await rt.workspace.journal.history()) == 251


@pytest.mark.anyio
async def test_a_file_held_by_another_process_is_busy_and_then_is_not(path: Path, database: SqliteDatabase):
    store = database.store("default")
    await store.tx("before", putting(Draft("notes", "before", 1)))
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        crowd = [answer_or_error(store, f"op {n}", putting(Draft("notes", str(n), n))) for n in range(5)]
        answers = await asyncio.gather(*crowd)
        assert [type(answer) for answer in answers] == [StoreBusy] * 5
        assert "another process has been writing for 0.05 s" in str(answers[0])
        assert await value_of(store, "notes", "before") == 1, "reading goes on"
        holder.execute("ROLLBACK")
    await asyncio.gather(*(store.tx(f"op {n}", putting(Draft("notes", str(n), n))) for n in range(5)))
    assert len(await journal(store)) == 6
    await store.read(check_journal)


@pytest.mark.anyio
async def test_who_waits_for_another_process_gets_its_turn(path: Path):
    with closing(SqliteDatabase(path, busy_seconds=60)) as database:
        store = database.store("default")
        with closing(sqlite3.connect(path, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            waiting = asyncio.ensure_future(answer_to(store, "op", putting(Draft("notes", "a", 1), answer="done")))
            for _ in range(5):
                await asyncio.sleep(0)
            assert not waiting.done()
            holder.execute("COMMIT")
        assert await asyncio.wait_for(waiting, 10) == "done"


def test_opening_a_new_file_that_another_process_holds_is_busy(path: Path):
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreBusy, match="another process holds the file"):
            SqliteDatabase(path, busy_seconds=0.05)
        holder.execute("ROLLBACK")
    SqliteDatabase(path).close()


# -- a full disk --------------------------------------------------------------------------------------------


@pytest.mark.rule("store.atomic")
def test_a_disk_without_room_for_the_files_beside_it_is_said(path: Path):
    fill(path)
    program = (
        "import resource, signal, sys; from remit.stores.sqlite.database import SqliteDatabase\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, 16_384))\n"
        "SqliteDatabase(sys.argv[1])"
    )
    done = ran("-c", program, path)
    assert f"{path}: the file {path}-shm beside it cannot be made larger; the disk may be full" in done.stderr


@pytest.mark.rule("store.atomic", "input.half-written")
@pytest.mark.anyio
async def test_a_full_disk_is_a_clear_error_and_nothing_is_half_written(path: Path, database: SqliteDatabase):
    store = database.store("default")
    await store.tx("before", putting(Draft("notes", "before", 1), answer="done"))
    (pages,) = database.writer.connection.execute("PRAGMA page_count").fetchone()
    database.writer.connection.execute(f"PRAGMA max_page_count = {pages + 30}")
    crowd = [answer_or_error(store, f"op {n}", putting(Draft("notes", str(n), BIG), answer=n)) for n in range(60)]
    answers = await asyncio.gather(*crowd)
    written = [number for number, answer in enumerate(answers) if answer == number]
    failed = [answer for answer in answers if not isinstance(answer, int)]
    assert written
    assert failed
    assert {str(error) for error in failed} == {f"{path}: the disk is full; make room and try again"}
    assert all(isinstance(error, StoreError) for error in failed)
    await store.read(check_journal)
    keys = [key for _, key in (await store.read(lambda view: view.tables()))["entry"]]
    assert sorted(keys) == sorted(["before", *map(str, written)]), "what was acknowledged is there, nothing else"
    assert (await store.tx("before", putting(Draft("notes", "x", BIG)))).answer == "done", "what was done answers again"

    database.writer.connection.execute("PRAGMA max_page_count = 1073741823")
    again = [answer_to(store, f"op {n}", putting(Draft("notes", str(n), BIG), answer=n)) for n in range(60)]
    assert await asyncio.gather(*again) == list(range(60))
    assert len(await journal(store)) == 61
    await store.read(check_journal)


# -- a hand that changes rows -------------------------------------------------------------------------------


@pytest.mark.rule("journal.chain", "journal.one-event")
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE event SET data = replace(data, 'first', 'worst') WHERE seq = 1",
        "UPDATE event SET at = at + 1 WHERE seq = 2",
        "UPDATE event SET agent = 'someone-else' WHERE seq = 2",
        "UPDATE event SET kind = 'task.failed' WHERE kind = 'task.completed'",
        "UPDATE event SET run = 'another' WHERE seq = 3",
        "UPDATE event SET session = 'another' WHERE seq = 3",
        "UPDATE event SET task = 'another' WHERE seq = 3",
        "UPDATE event SET op = 'another' WHERE seq = 1",
        "UPDATE event SET answer = '7' WHERE seq = 1",
        "UPDATE event SET hash = 'x' || substr(hash, 2) WHERE seq = 2",
        "DELETE FROM event WHERE seq = 1",
        "DELETE FROM event WHERE seq = 3",
        "DELETE FROM event WHERE seq = (SELECT max(seq) FROM event)",
        """INSERT INTO event
        SELECT workspace, seq + 100, kind, at, run, session, task, agent, data, NULL, NULL, hash
        FROM event WHERE seq = 1""",
        "UPDATE entry SET value = 'forged' WHERE key = 'a'",
        "UPDATE entry SET expires_at = 1",
        "UPDATE entry SET agent = 'someone-else'",
        "UPDATE entry SET trust = 'untrusted'",
        "DELETE FROM entry",
        "UPDATE task SET state = 'failed'",
        "UPDATE task SET holder = 'someone-else'",
        "DELETE FROM task",
        "UPDATE run SET tasks = tasks + 1",
        "UPDATE run SET members = 'someone'",
        "UPDATE run SET refusals = 7, tokens = 9",
        "DELETE FROM run",
        "INSERT INTO card SELECT workspace, 'added', data, 1 FROM (SELECT workspace, data FROM event LIMIT 1)",
        "UPDATE message SET text = 'forged'",
        "UPDATE message SET taken_at = NULL, taken_by = NULL",
        "DELETE FROM message",
        """INSERT INTO entry
        SELECT workspace, namespace, 'added', form, value, agent, created_at, updated_at, expires_at,
               version, digest, extension, trust, task, chain
        FROM entry WHERE key = 'a'""",
    ],
)
@pytest.mark.anyio
async def test_a_row_changed_by_hand_is_found(path: Path, change: str):
    with remit.Runtime(path) as rt:

        @rt.agent(asks=["helper"])
        async def lead(turn: remit.Turn) -> str:
            await turn.context.set("notes", "a", "written")
            await turn.send("helper", "hello")
            return await turn.delegate("helper", "help")

        @rt.agent
        async def helper(turn: remit.Turn) -> int:
            return len(await turn.inbox())

        await rt.workspace.context().set("notes", "first", "first")
        assert await rt.run("lead", "work") == 1
        await opening_of(rt.workspace).ground.store.read(check_journal)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(change).rowcount > 0
        connection.commit()
    found = r"not what was sealed|holds what the journal tells"
    with closing(SqliteDatabase(path)) as database, pytest.raises(AssertionError, match=found):
        await database.store("default").read(check_journal)
