"""PostgreSQL: several processes on one database, servers that go away, and what wakes workers."""

import asyncio
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from functools import partial

import psycopg
import pytest
from anyio import fail_after, to_thread
from procrastinate.jobs import Job

from deep import some
from inside import without
from postgres import OwnServer, Proxy
from programs import running
from remit.core.entry import Draft
from remit.core.kinds.tasks import (
    Claim,
    Queued,
    Requeue,
    claimed,
    ended,
    moved,
    requeued,
    started,
    submitted,
    tokens_used,
)
from remit.core.remit import place
from remit.core.values import Json
from remit.engine.upkeep.doctor import examine
from remit.errors import BadInput, NewerStore, NotAStore, NotFound, StoreBusy, StoreError
from remit.ports import FAULTS, NOTHING, Beat, Decision, Store, View, Wants
from remit.stores.postgres.address import Address, digest
from remit.stores.postgres.database import PostgresDatabase
from remit.stores.postgres.dispatcher import Procrastinate
from remit.stores.postgres.listening import Notices
from remit.stores.queries import OLDER, migrations
from remit.testing.clauses.making import NOW, answer_to, child_remit, entry_event, first_remit, journal, sound, value_of

pytestmark = pytest.mark.anyio

PATIENCE = 20.0

Open = Callable[..., PostgresDatabase]
SECOND = 1_000_000


@pytest.fixture
def opened(address: str) -> Iterator[Open]:
    """Opens the test's database, as often as it likes."""
    with ExitStack() as stack:
        yield lambda where=address, **given: stack.enter_context(closing(PostgresDatabase(where, **given)))


@pytest.fixture
def proxy(address: str, own_server: OwnServer) -> Iterator[Proxy]:
    with closing(Proxy(address)) as found:
        yield found


def adding(view: View) -> Decision[Json]:
    """Counts how often it was done, so that twice shows."""
    old = view.entry("notes", "total")
    total = old.value + 1 if old is not None and isinstance(old.value, int) else 1
    return Decision(total, (entry_event(view, Draft("notes", "total", total)),))


def rows(address: str, statement: str, *values: object) -> list[tuple]:
    with psycopg.connect(address, autocommit=True, options="-c search_path=remit") as connection:
        return connection.execute(statement, values).fetchall()


def kill_writers(address: str) -> int:
    """As an administrator would, or a server that runs out of memory."""
    found = rows(
        address,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    return len(found)


async def healthy(database: PostgresDatabase) -> None:
    health = await examine(database, NOW)
    assert health.sound, health.findings


# -- several processes ------------------------------------------------------------------------------------------


@pytest.mark.rule("journal.chain", "store.op")
async def test_two_databases_take_turns_and_the_chain_stays_whole(opened: Open):
    one, two = (opened().store("w") for _ in range(2))
    with fail_after(30):
        asked = [answer_to((one, two)[n % 2], f"op {n % 150}", adding) for n in range(300)]
        answers = await asyncio.gather(*asked)
    assert await value_of(one, "notes", "total") == 150
    assert all(answers[n] == answers[n + 150] for n in range(150))
    assert len(await journal(two)) == 150
    await healthy(opened())


async def test_what_one_remembers_another_may_have_changed(opened: Open):
    """A writer answers from memory what it wrote itself; not if someone else has written since."""
    one, two = (opened().store("w") for _ in range(2))
    work = place(first_remit("work", session="s", holder="helper"))

    def standing(store: Store, op: str):
        return answer_to(store, op, lambda view: Decision(list(view.standing("work") or ())[:2]))

    await do(one, "submit", queued("work"))
    assert await standing(one, "look 1") == ["pending", 0]
    await do(two, "claim", claimed(work, "helper", NOW, Claim("me", 1, 1)))
    assert await standing(one, "look 2") == ["running", 1]
    await do(one, "stop", moved("task.cancelling", work, "helper", NOW, {}))
    assert await standing(two, "look 3") == ["cancelling", 1]
    bad = moved("task.cancelled", work, "helper", NOW, {})
    with pytest.raises(StoreError):  # it is undone after it was remembered
        await do(two, "half", bad, queued("work"))
    assert await standing(two, "look 4") == ["cancelling", 1]


async def test_two_databases_count_the_same_run(opened: Open):
    """Each remembers the figures, fetched in advance or counted by itself, and notices when the other has counted."""
    root = first_remit("root", session="s")
    stores = [opened().store("w") for _ in range(2)]
    await do(stores[0], "start", started(root, NOW))
    for number in range(10):
        store, wants = stores[number % 2], Wants(runs=("root",)) if number % 3 else NOTHING
        part = child_remit(root, f"part{number}", holder="helper")
        end = ended(part, "task.failed", NOW, {"tokens": 10})
        decision = Decision(None, (started(part, NOW), tokens_used(part, 10, NOW), end))
        await store.tx(f"part {number}", lambda _, decision=decision: decision, wants)
        assert (await store.tx("look", lambda view: Decision([*view.run("root")][2:5]), wants)).answer == [
            number + 2,
            0,
            10 * (number + 1),
        ]
    await healthy(opened())


async def test_batches_over_many_workspaces_do_not_deadlock(opened: Open):
    databases = [opened(), opened()]
    names = [f"workspace {n}" for n in range(12)]

    async def write(database: PostgresDatabase, turn: int) -> None:
        order = names if turn % 2 else names[::-1]
        await asyncio.gather(*(database.store(name).tx(f"{id(database)} {turn}", adding) for name in order))

    with fail_after(30):
        await asyncio.gather(*(write(database, turn) for turn in range(10) for database in databases))
    for name in names:
        assert await value_of(databases[0].store(name), "notes", "total") == 20
    assert databases[1].workspaces() == sorted(names)
    await healthy(databases[0])


def test_one_database_serves_one_event_loop_after_the_other(opened: Open):
    database = opened()
    heard: list[int] = []
    database.store("w").subscribe(lambda events: heard.extend(event.seq for event in events))
    for number in range(3):
        assert asyncio.run(_once(database.store("w"), f"op {number}")) == number + 1
    assert heard == [1, 2, 3]


async def _once(store: Store, op: str) -> Json:
    return (await store.tx(op, adding)).answer


# -- opening ----------------------------------------------------------------------------------------------------


def test_processes_that_start_at_once_make_one_store(new_address):
    address = new_address(empty=True)
    with ThreadPoolExecutor(4) as threads:
        databases = list(threads.map(lambda _: PostgresDatabase(address), range(4)))
    assert rows(address, "SELECT number FROM version") == [(max(migrations("postgres")),)]
    for database in databases:
        assert asyncio.run(_once(database.store("w"), "the same")) == 1
        database.close()


def test_a_newer_store_is_refused_and_left_as_it_is(address: str):
    with psycopg.connect(address) as connection:
        connection.execute("UPDATE remit.version SET number = 99")
    newest = max(migrations("postgres"))
    with pytest.raises(NewerStore, match=f"schema 99 and this remit knows up to {newest}; upgrade remit"):
        PostgresDatabase(address)
    assert rows(address, "SELECT number FROM version") == [(99,)]


@pytest.mark.rule("store.not-ours")
@pytest.mark.parametrize("migrate", [True, False])
def test_a_schema_of_remit_0_1_0_is_refused_and_left_as_it_is(new_address, migrate: bool):
    address = new_address(empty=True)
    tables = "SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = 'remit'"
    with psycopg.connect(address) as connection:
        connection.execute("CREATE SCHEMA remit")
        connection.execute("CREATE TABLE remit.version (number bigint NOT NULL)")
        connection.execute("INSERT INTO remit.version VALUES (1)")
        connection.execute("CREATE TABLE remit.task (workspace text, id text, status text, twin text)")
        connection.execute("INSERT INTO remit.task VALUES ('default', 'work', 'running', 'x')")
    before = sorted(rows(address, tables))
    sentence = f"{Address(address).where} {OLDER}; the database is unchanged"
    with pytest.raises(NotAStore, match=f"^{re.escape(sentence)}$"):
        PostgresDatabase(address, migrate=migrate)
    assert sorted(rows(address, tables)) == before
    assert rows(address, "SELECT number FROM version") == [(1,)]
    assert rows(address, "SELECT id, status FROM task") == [("work", "running")]


def test_a_schema_of_another_program_is_refused(new_address):
    address = new_address(empty=True)
    with psycopg.connect(address) as connection:
        connection.execute("CREATE SCHEMA remit")
        connection.execute("CREATE TABLE remit.money (amount int)")
    with pytest.raises(NotAStore, match="of another program; it was left as it is"):
        PostgresDatabase(address)


def test_a_store_is_not_made_where_none_is_wanted(new_address):
    address = new_address(empty=True)
    with pytest.raises(NotFound, match="no tables of this version"):
        PostgresDatabase(address, migrate=False)
    assert rows(address, "SELECT to_regnamespace('remit') IS NULL") == [(True,)]


@pytest.mark.parametrize(
    ("change", "kind", "sentence"),
    [
        ({"host": "/nowhere"}, StoreError, "no PostgreSQL server answers there"),
        ({"host": "127.0.0.1", "port": "1"}, StoreError, "no PostgreSQL server answers there"),
        ({"host": "no.such.host.invalid"}, StoreError, "no PostgreSQL server answers there"),
        ({"dbname": "no_such_database"}, NotAStore, "there is no such database"),
        ({"user": "no_such_user"}, StoreError, "there is no such user"),
    ],
)
def test_what_is_wrong_with_an_address_is_said(own_server: OwnServer, address: str, change, kind, sentence):
    with pytest.raises(kind, match=sentence) as caught:
        PostgresDatabase(psycopg.conninfo.make_conninfo(address, password="s3cret", **change))  # pyright: ignore[reportAttributeAccessIssue]
    assert "s3cret" not in str(caught.value)


def test_a_wrong_password_is_said_and_never_shown(own_server: OwnServer, address: str):
    with own_server.locked("remit_locked", "right"):
        where = psycopg.conninfo.make_conninfo(address, user="remit_locked", password="wr0ng")  # pyright: ignore[reportAttributeAccessIssue]
        with pytest.raises(StoreError, match="refuses the user or password") as caught:
            PostgresDatabase(where)
    assert "wr0ng" not in str(caught.value)
    assert "remit_locked:***@" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgresql://ann:secret@db.example:5433/team", "postgresql://ann:***@db.example:5433/team"),
        ("host=/run/pg user=ann password=secret dbname=team", "postgresql://ann:***@/team?host=/run/pg"),
        ("postgresql:///team", "postgresql:///team"),
        ("dbname=team host=::1", "postgresql://::1/team"),
    ],
)
def test_an_address_is_shown_without_its_password(given: str, shown: str):
    assert Address(given).where == shown


def test_what_is_no_address_is_said_without_repeating_it():
    with pytest.raises(BadInput, match="no address of a PostgreSQL database") as caught:
        PostgresDatabase("secret nonsense")
    assert "nonsense" not in str(caught.value)
    for address, hint in {
        "postgresql://ann@here/team?sslmoed=require": "/database; did you mean sslmode?",
        "postgresql://ann:nonsense%@here/team": "in a user or password, write % as %25, @ as %40",
        "postgresql://ann:x@here?nonsense=1@here/team": "in a user or password, write % as %25, @ as %40",
    }.items():
        with pytest.raises(BadInput, match="no address of a PostgreSQL database") as caught:
            Address(address)
        assert hint in str(caught.value)
        assert "nonsense" not in str(caught.value)


def test_without_its_packages_it_says_what_to_install():
    program = "import sys; sys.modules['psycopg'] = None; import remit.stores.postgres.database"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "install remit[postgres]" in done.stderr


# -- servers and connections that go away --------------------------------------------------------------------------


@pytest.mark.rule("store.op")
async def test_a_connection_killed_during_an_operation_is_replaced(opened: Open, address: str):
    store = opened().store("w")
    await store.tx("first", adding)
    killed: list[int] = []

    def decide(view: View) -> Decision[Json]:
        if not killed:
            killed.append(kill_writers(address))
        return adding(view)

    with fail_after(20):
        others = (answer_to(store, f"other {n}", adding) for n in range(10))
        answers = await asyncio.gather(*others, answer_to(store, "second", decide))
    assert sorted(map(int, answers)) == list(range(2, 13))
    assert await value_of(store, "notes", "total") == 12
    await sound(store)


@pytest.mark.rule("store.op")
async def test_a_connection_killed_before_its_commit_loses_nothing(opened: Open, address: str):
    killed: list[int] = []

    def fault(name: str) -> None:
        if name == "store.before-commit" and not killed:
            killed.append(kill_writers(address))

    store = opened(fault=fault).store("w")
    heard: list[int] = []
    store.subscribe(lambda events: heard.extend(event.seq for event in events))
    with fail_after(20):
        await asyncio.gather(*(store.tx(f"op {n}", adding) for n in range(20)))
    assert killed
    assert await value_of(store, "notes", "total") == 20
    assert heard == list(range(1, 21))
    await sound(store)


@pytest.mark.rule("store.op")
@pytest.mark.parametrize("answered", [True, False], ids=["after the server committed", "before the server got it"])
@pytest.mark.parametrize("many", [1, 20])
async def test_a_commit_whose_answer_is_lost_is_done_once(opened: Open, proxy: Proxy, answered: bool, many: int):
    store = opened(proxy.address).store("w")
    heard: list[int] = []
    store.subscribe(lambda events: heard.extend(event.seq for event in events))
    await store.tx("first", adding)
    for _ in range(1 if answered else 2):
        proxy.cut_at(b"COMMIT\0", answered=answered)
    with fail_after(20):
        answers = await asyncio.gather(*(answer_to(store, f"op {n}", adding) for n in range(many)))
    assert sorted(map(int, answers)) == list(range(2, many + 2))
    assert heard == list(range(1, many + 2))
    assert proxy.cuts_left == 0
    assert await value_of(store, "notes", "total") == many + 1
    await sound(store)


async def test_a_beat_whose_commit_is_lost_is_done_again(opened: Open, proxy: Proxy):
    store = opened(proxy.address).store("w")
    proxy.cut_at(b"COMMIT\0", answered=True)
    with fail_after(20):
        assert (await store.tx("beat", lambda _: Decision(7, (), Beat("me", "here", 7)))).answer == 7
    assert proxy.cuts_left == 0
    assert await store.read(lambda view: view.workers()) == [Beat("me", "here", 7)]


@pytest.mark.rule("store.atomic", "store.op")
async def test_a_server_that_restarts_is_waited_for(opened: Open, own_server: OwnServer):
    store = opened(patience=30).store("w")
    going = asyncio.Event()
    store.subscribe(lambda _: going.set())

    async def write(writer: int) -> None:
        for number in range(60):
            await store.tx(f"op {writer} {number}", adding)

    async def read() -> None:
        while not over.is_set():
            await value_of(store, "notes", "total")

    over = asyncio.Event()
    with fail_after(60):
        reading = asyncio.ensure_future(read())
        writing = asyncio.gather(*(write(writer) for writer in range(8)))
        await going.wait()
        await to_thread.run_sync(own_server.restart)
        await writing
        over.set()
        await reading
    assert await value_of(store, "notes", "total") == 480
    await sound(store)


async def test_a_server_that_stays_away_is_told_and_found_again_later(
    opened: Open, own_server: OwnServer, caplog: pytest.LogCaptureFixture
):
    store = opened(patience=0.3).store("w")
    await store.tx("first", adding)
    await value_of(store, "notes", "total")
    with fail_after(60):
        await to_thread.run_sync(own_server.stop)
        try:
            errors = await asyncio.gather(
                *(answer_to(store, f"op {n}", adding) for n in range(5)), return_exceptions=True
            )
            errors.append((await asyncio.gather(value_of(store, "notes", "total"), return_exceptions=True))[0])
        finally:
            await to_thread.run_sync(own_server.start)
        assert all(type(error) is StoreError for error in errors), errors
        assert "no PostgreSQL server answers there" in str(errors[0])
        assert "failed: No such file or directory)" in str(errors[0])  # the reason, not the question after it
        assert "asking again under the same operation is safe" in str(errors[0])
        assert (await store.tx("op 0", adding)).answer == 2
        assert await value_of(store, "notes", "total") == 2
    assert [record.getMessage() for record in caplog.records if record.name.startswith("psycopg")] == []  # we say it


@pytest.mark.rule("postgres.hung")
@pytest.mark.parametrize("asks", ["writes", "reads"])
async def test_a_server_that_neither_answers_nor_hangs_up_is_given_up(opened: Open, proxy: Proxy, asks: str):
    store = opened(proxy.address, patience=2).store("w")
    await store.tx("first", adding)
    assert await value_of(store, "notes", "total") == 1
    proxy.stall()
    with fail_after(20), pytest.raises(StoreError, match=r"it has not answered for .* s, so the connection") as told:
        await (store.tx("op", adding) if asks == "writes" else value_of(store, "notes", "total"))
    assert told.value.retryable
    proxy.flow()
    with fail_after(20):
        assert (await store.tx("op", adding)).answer == 2, "the next try connects again, and the operation is done once"
        assert await value_of(store, "notes", "total") == 2
    await sound(store)


async def test_who_holds_the_journal_for_too_long_is_not_waited_for(opened: Open, address: str):
    database = opened(patience=0.2)
    store = database.store("w")
    with psycopg.connect(address) as other:
        key = int.from_bytes(bytes.fromhex(digest("w")[:16]), signed=True)
        other.execute("SELECT pg_advisory_xact_lock(%s)", (key,))
        with fail_after(10):
            errors = await asyncio.gather(
                *(answer_to(store, f"op {n}", adding) for n in range(9)), return_exceptions=True
            )
    assert all(isinstance(error, StoreBusy) for error in errors)
    assert (await store.tx("op 1", adding)).answer == 1


@pytest.mark.parametrize("hook", some(FAULTS[:-1], 2))
async def test_a_batch_that_fails_is_tried_again_one_by_one(opened: Open, hook: str):
    left = [2]

    def fault(name: str) -> None:
        if name == hook and left[0]:
            left[0] -= 1
            raise StoreError("on purpose")

    store = opened(fault=fault).store("w")
    with fail_after(20):
        asked = (answer_to(store, f"op {n}", adding) for n in range(20))
        answers = await asyncio.gather(*asked, return_exceptions=True)
    failed = [answer for answer in answers if isinstance(answer, Exception)]
    assert len(failed) <= 2
    assert all(type(error) is StoreError for error in failed)
    again = await asyncio.gather(*(answer_to(store, f"op {n}", adding) for n in range(20)))
    assert sorted(map(int, again)) == list(range(1, 21))
    await sound(store)


async def test_a_store_that_is_closed_says_so(address: str):
    gate = threading.Event()
    database = PostgresDatabase(address, fault=lambda name: gate.wait(10) if name == "store.before-commit" else None)
    store = database.store("w")
    first = asyncio.ensure_future(answer_to(store, "first", adding))
    later = [asyncio.ensure_future(answer_to(store, f"later {n}", adding)) for n in range(3)]
    await asyncio.sleep(0)
    closing_ = threading.Thread(target=database.close)
    closing_.start()
    gate.set()
    with fail_after(10):
        found = await asyncio.gather(first, *later, return_exceptions=True)
    closing_.join()
    for answer in found:
        assert isinstance(answer, int) or str(answer) == "the store was closed"
    with pytest.raises(StoreError, match="the store is closed"):
        await store.tx("after", adding)
    with pytest.raises(StoreError, match="the store is closed"):
        await value_of(store, "notes", "total")


# -- listening ----------------------------------------------------------------------------------------------------


class Rung:
    """Counts, and can be waited for."""

    def __init__(self) -> None:
        self.times = 0
        self._event = asyncio.Event()

    def __call__(self) -> None:
        self.times += 1
        self._event.set()

    async def once(self) -> None:
        with fail_after(10):
            await self._event.wait()
        self._event.clear()


async def test_a_bell_rings_for_what_another_writes_and_not_for_our_own(opened: Open):
    mine, other = opened(poll=60), opened()
    bell, stranger = Rung(), Rung()
    stop = mine.store("w").listen(bell)
    await bell.once()  # it listens; whoever comes now is not told so
    mine.store("elsewhere").listen(stranger)
    bell.times = 0
    await mine.store("w").tx("own", adding)
    await other.store("w").tx("other", adding)
    await bell.once()
    assert bell.times == 1, "our own write came before the other's, and did not ring"
    assert stranger.times == 0
    await other.store("elsewhere").tx("other", adding)
    await stranger.once()
    stop()
    await other.store("w").tx("unheard", adding)
    await other.store("elsewhere").tx("heard", adding)
    await stranger.once()
    assert bell.times == 1


async def test_a_bell_that_is_stopped_while_all_are_rung_stays_silent(opened: Open):
    store, first = opened(poll=60).store("w"), Rung()
    stops = [store.listen(first)]
    await first.once()  # it listens
    rung: list[int] = []

    def ring(number: int) -> None:
        rung.append(number)
        for stop in stops[1:3]:
            stop()

    last = Rung()
    stops += [*(store.listen(partial(ring, number)) for number in range(2)), store.listen(last)]
    await opened().store("w").tx("other", adding)
    await last.once()
    assert rung == [0]
    for stop in stops:
        stop()


async def test_a_bell_rings_for_what_another_process_writes(opened: Open, address: str):
    bell = Rung()
    stop = opened(poll=60).store("w").listen(bell)
    await bell.once()
    program = (
        "import asyncio, sys; from contextlib import closing\n"
        "from remit.stores.postgres.database import PostgresDatabase\n"
        "from remit.testing.clauses.making import putting; from remit.core.entry import Draft\n"
        "with closing(PostgresDatabase(sys.argv[1])) as database:\n"
        "    asyncio.run(database.store('w').tx('op', putting(Draft('notes', 'a', 1))))\n"
    )
    with running("-c", program, address) as other:
        await bell.once()
        assert await to_thread.run_sync(other.wait, 20) == 0
    stop()


async def test_a_bell_rings_now_and_then_and_after_the_connection_was_lost(opened: Open, address: str):
    bell = Rung()
    stop = opened(poll=0.05).store("w").listen(bell)
    for _ in range(3):
        await bell.once()
    kill_writers(address)
    bell.times = 0
    await bell.once()
    stop()


# -- what wakes workers -------------------------------------------------------------------------------------------


def jobs(address: str) -> list[tuple]:
    return rows(
        address,
        "SELECT split_part(queueing_lock, '/', 2), status::text, scheduled_at IS NOT NULL, queue_name"
        " FROM procrastinate_jobs ORDER BY id",
    )


def queued(task: str, *, after: int = 0):
    return submitted(first_remit(task, session="s", holder="helper"), NOW, Queued("submit", 60, 3, NOW + after))


async def do(store: Store, op: str, *facts) -> None:
    await store.tx(op, lambda _: Decision(None, facts))


async def test_what_is_due_now_has_one_job_together_and_what_is_due_later_one_of_its_own(opened: Open, address: str):
    store = opened().store("w")
    work = place(first_remit("work", session="s", holder="helper"))
    now, later = ("", "todo", False, digest("w")), ("work", "todo", True, digest("w"))
    await do(store, "submit", queued("work"))
    assert jobs(address) == [now]
    await do(store, "two", queued("a"), queued("b"))
    assert jobs(address) == [now], "whoever is woken claims all of it"
    await do(store, "claim", claimed(work, "helper", NOW, Claim("me", 1, 1)))
    await do(store, "retry", requeued("task.retrying", work, "helper", NOW, Requeue("", 2, NOW + SECOND, 1, 1), {}))
    assert jobs(address) == [now, later]
    await do(store, "stop", moved("task.cancelling", work, "helper", NOW, {}))
    assert jobs(address) == [now]
    await do(opened().store("other"), "submit", queued("work"))
    assert jobs(address) == [now, ("", "todo", False, digest("other"))], "each workspace has its own"
    await healthy(opened())


async def test_a_job_is_there_only_if_its_task_is(opened: Open, address: str):
    """In one transaction: what is rolled back takes its job along."""
    left = [True]

    def fault(name: str) -> None:
        if name == "store.before-commit" and left.pop():
            left.append(False)
            raise StoreError("on purpose")

    store = opened(fault=fault).store("w")
    with pytest.raises(StoreError, match="on purpose"):
        await do(store, "submit", queued("work"))
    assert jobs(address) == []
    assert await journal(store) == []
    await do(store, "submit", queued("work"))
    assert len(jobs(address)) == 1


class Woken:
    """A worker that claims whatever is due, as the engine does."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.claims: list[str] = []
        self.times = 0
        self._event = asyncio.Event()

    async def __call__(self) -> None:
        self.times += 1
        self.claims += (await self._store.tx(f"claim {id(self)} {self.times}", self._decide)).answer
        self._event.set()

    def _decide(self, view: View) -> Decision[list[str]]:
        due = view.due("helper", "me", NOW + 3600 * SECOND, 100)
        where = [place(first_remit(one.id, session="s", holder="helper")) for one in due]
        return Decision([one.id for one in due], [claimed(at, "helper", NOW, Claim("me", 1, 1)) for at in where])

    async def until(self, *claims: str) -> None:
        with fail_after(20):
            while sorted(self.claims) != sorted(claims):
                self._event.clear()
                await self._event.wait()


async def stopped(serving: "asyncio.Task[None]") -> None:
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


async def test_the_dispatcher_wakes_for_what_is_there_and_for_what_comes(opened: Open, address: str):
    database = opened()
    store = database.store("w")
    await do(store, "early", queued("early"))
    await do(database.store("another"), "other", queued("other"))
    woken = Woken(store)
    serving = asyncio.create_task(database.dispatcher("w").serve(woken))
    await woken.until("early")
    await do(store, "later", queued("later"))
    await woken.until("early", "later")
    await do(store, "many", *(queued(f"many{n}") for n in range(30)))
    await woken.until("early", "later", *(f"many{n}" for n in range(30)))
    await stopped(serving)
    assert digest("another") in {job[3] for job in jobs(address) if job[1] == "todo"}
    assert woken.times < 10, "one claim takes all that is due"


async def test_a_scheduled_job_wakes_only_later(opened: Open):
    database = opened()
    store = database.store("w")
    woken = Woken(store)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await do(store, "soon", queued("soon", after=SECOND))
    serving = asyncio.create_task(database.dispatcher("w").serve(woken))
    await woken.until("soon")
    assert loop.time() - began >= 1.0
    assert woken.times == 1
    await stopped(serving)


looked = asyncio.Event()


async def hears_nothing(*_given: object, **_named: object) -> list[Job]:
    """Look for stalled jobs, and lose the cancellation that comes meanwhile."""
    looked.set()
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    return []


@pytest.mark.rule("postgres.stops")
async def test_the_dispatcher_stops_though_a_cancellation_gets_lost_in_a_pool(opened: Open):
    """As it does when it comes while a connection is handed out: whoever waited for that goes on with it."""
    database = opened()
    looked.clear()
    with without("procrastinate.manager:JobManager.get_stalled_jobs", hears_nothing):
        serving = asyncio.create_task(database.dispatcher("w").serve(Woken(database.store("w"))))
        with fail_after(20):
            await looked.wait()
        serving.cancel()
        await asyncio.wait([serving], timeout=10)
        assert serving.cancelled()


@pytest.mark.parametrize("again", [False, True])
async def test_a_job_of_a_worker_that_is_gone_is_rescued(opened: Open, address: str, again: bool):
    """Its process was killed while it had the job: by and by another gets it."""
    database = opened()
    store = database.store("w")
    await do(store, "submit", queued("work"))
    rows(address, "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 hour') RETURNING id")
    gone = "SELECT id FROM procrastinate_fetch_job_v2(NULL, (SELECT max(id) FROM procrastinate_workers))"
    assert rows(address, gone)
    if again:  # there is a new job meanwhile, so the old one has no place to go back to
        await do(store, "another", queued("new"))
    assert [job[1] for job in jobs(address)] == ["doing", "todo"][: 1 + again]
    woken = Woken(store)
    waker = Procrastinate(Notices(Address(address), lambda: 0, 0.5, lambda _: None), "w", heartbeat=0.1, stalled=1.0)
    serving = asyncio.create_task(waker.serve(woken))
    await woken.until("work", *["new"][:again])
    await stopped(serving)


async def test_who_is_stopped_while_it_is_woken_leaves_the_job_for_another(opened: Open, address: str):
    database = opened()
    store = database.store("w")
    await do(store, "submit", queued("work"))
    reached = asyncio.Event()

    async def hangs() -> None:
        reached.set()
        await asyncio.Event().wait()

    serving = asyncio.create_task(database.dispatcher("w").serve(hangs))
    with fail_after(20):
        await reached.wait()
    assert [job[1] for job in jobs(address)] == ["doing"]
    await stopped(serving)
    assert [job[1] for job in jobs(address)] == ["todo"]
    woken = Woken(store)
    serving = asyncio.create_task(database.dispatcher("w").serve(woken))
    await woken.until("work")
    await stopped(serving)


async def test_the_dispatcher_outlives_its_server(opened: Open, own_server: OwnServer, caplog):
    database = opened(patience=30)
    store = database.store("w")
    woken = Woken(store)
    serving = asyncio.create_task(database.dispatcher("w").serve(woken))
    await do(store, "before", queued("before"))
    await woken.until("before")
    with fail_after(60), caplog.at_level(logging.INFO):
        await to_thread.run_sync(own_server.restart)
        await do(store, "after", queued("after"))
        await woken.until("before", "after")
    await stopped(serving)
    loud = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert not loud, [record.getMessage() for record in loud]


async def test_a_worker_that_cannot_look_looks_again(opened: Open, caplog):
    database = opened()
    store = database.store("w")
    woken = Woken(store)
    failures = [StoreError("on purpose"), StoreError("on purpose")]

    async def due() -> None:
        if failures:
            raise failures.pop()
        await woken()

    await do(store, "submit", queued("work"))
    serving = asyncio.create_task(database.dispatcher("w").serve(due))
    await woken.until("work")
    await stopped(serving)
    assert [record.levelname for record in caplog.records if record.name == "remit"] == ["WARNING"] * 2


# -- long looks -----------------------------------------------------------------------------------------------------


class Endless:
    """A look that asks for ever, unless it is stopped."""

    def __init__(self) -> None:
        self.begun, self.stopped = threading.Event(), threading.Event()

    def __call__(self, view: View) -> None:
        self.begun.set()
        try:
            while True:
                view.head()
        except BaseException:
            self.stopped.set()
            raise


@pytest.mark.rule("store.browse")
@pytest.mark.parametrize("close", [True, False])
async def test_a_long_look_stops_when_nobody_waits_for_it_or_the_store_is_closed(opened: Open, close: bool):
    database, look = opened(), Endless()
    waiting = asyncio.ensure_future(database.store("one").browse(look))
    assert await asyncio.to_thread(look.begun.wait, PATIENCE)
    if close:
        database.close()
    else:
        waiting.cancel()
    assert await asyncio.to_thread(look.stopped.wait, PATIENCE)
    with pytest.raises(StoreError if close else asyncio.CancelledError):
        await waiting


@pytest.mark.rule("store.browse")
async def test_short_looks_do_not_wait_behind_long_ones(opened: Open):
    """More long looks than there are connections for them."""
    store, go_on = opened().store("one"), threading.Event()

    def look(view: View) -> int:
        assert go_on.wait(PATIENCE)
        return view.head().seq

    waiting = [asyncio.ensure_future(store.browse(look)) for _ in range(5)]
    assert (await store.read(lambda view: view.head())).seq == 0
    go_on.set()
    assert await asyncio.gather(*waiting) == [0] * 5
