"""What waits for the end of a transaction: whoever reads in the same one sees it, and what does not balance is refused
where it happens."""

from contextlib import closing

import pytest

from remit.core.events import Place, Unsealed
from remit.core.kinds.money import ledger_event
from remit.core.money import ACCOUNT
from remit.core.values import Json
from remit.errors import StoreError
from remit.ports import Decision, Span, Store, View
from remit.runtime.workspace import opening_of
from remit.stores.journal import BATCH, reads_delayed
from remit.stores.queries import queries
from remit.stores.sqlite.database import SqliteDatabase
from remit.testing.clauses.making import NOW, ending, first_remit, starting
from teams import team

pytestmark = pytest.mark.anyio

HERE = Place("t1", "s1", "t1")
PURSE = {"credits": [[ACCOUNT]]}


def event(kind: str, **data: object) -> Unsealed:
    return ledger_event(kind, HERE, "coder", 1, {**data})


def granted(amount: int) -> Unsealed:
    return event("account.granted", unit="credits", amount=amount, first=True, why="", by="")


def placed(hold: str, amount: int) -> Unsealed:
    said = {"purse": PURSE, "fence": 1, "until": 9, "why": "a call", "state": "started"}
    return event("hold.placed", hold=hold, amounts={"credits": amount}, **said)


def settled(hold: str, amount: int, cost: int) -> Unsealed:
    said = {"purse": PURSE, "why": "a call", "costs": {"credits": cost}}
    return event("hold.settled", hold=hold, amounts={"credits": amount}, **said)


async def write(store: Store, op: str, *events: Unsealed) -> None:
    await store.tx(op, lambda _view: Decision(None, events))


def figures(view: View) -> tuple[int, int, int]:
    lease = view.lease(ACCOUNT, "credits")
    assert lease is not None
    return lease.available, lease.reserved, lease.spent


@pytest.mark.rule("money.balanced")
async def test_decisions_in_one_transaction_see_rows_that_are_not_written_yet():
    with team() as rt:
        store = opening_of(rt.workspace).ground.store
        await write(store, "grant", granted(100))
        await write(store, "place", placed("h1", 10), placed("h2", 20))
        await write(store, "settle", settled("h1", 10, 4))
        seen: list[object] = []

        def look(view: View) -> Decision[None]:
            seen.append((view.on_hold("credits"), view.metered("workspace", "", "credits", ""), figures(view)))
            seen.append([hold.id for hold in view.holds("t1")])
            seen.append([lease.available for lease in view.leases(("", ""), 10)])
            return Decision(None)

        await store.tx("look", look)
        assert seen == [(20, 4, (76, 20, 4)), ["h2"], [76]]
        await write(store, "settle the other", settled("h2", 20, 20))
        assert await store.read(lambda view: (figures(view), view.holds("t1"))) == ((76, 0, 24), [])


@pytest.mark.rule("money.balanced")
async def test_what_does_not_balance_is_refused_at_once_and_takes_nothing_else_with_it():
    with team() as rt:
        store = opening_of(rt.workspace).ground.store
        await write(store, "grant", granted(100))
        await write(store, "place", placed("h1", 60))
        with pytest.raises(StoreError):
            await write(store, "too much", placed("h2", 41))
        await write(store, "what is left", placed("h3", 40))
        assert await store.read(lambda view: ([hold.id for hold in view.holds("t1")], figures(view))) == (
            ["h1", "h3"],
            (0, 100, 0),
        )


def test_every_question_about_what_may_be_unwritten_is_known():
    about = {
        name for name in queries() if name.startswith(("hold", "lease", "meter", "on_hold")) and "SELECT" in sql(name)
    }
    assert all(map(reads_delayed, about | {"run", "runs", "run_page", "standing"}))
    assert not any(map(reads_delayed, ("record", "event", "breaker", "entry")))


def sql(name: str) -> str:
    return queries()[name].sql


# -- in memory, statements wait ---------------------------------------------------------------------------


@pytest.mark.parametrize("between", [0, 2 * BATCH], ids=["in one transaction", "transactions apart"])
@pytest.mark.rule("store.op", "store.atomic")
async def test_in_memory_an_id_that_is_taken_is_noticed_at_once(between: int):
    with closing(SqliteDatabase()) as database:
        store = database.store("one")
        await store.tx("begin", starting(first_remit("t1", session="s")))
        for number in range(between):
            await store.tx(f"begin {number}", starting(first_remit(f"other {number}", session="s")))
        await store.tx("begin", starting(first_remit("t2", session="s")))  # the same operation: nothing happens
        with pytest.raises(StoreError, match="UNIQUE"):
            await store.tx("begin again", starting(first_remit("t1", session="s")))
        await store.tx("begin a third", starting(first_remit("t3", session="s")))
        tasks = await store.read(lambda view: [view.standing(task) is not None for task in ("t1", "t2", "t3")])
        assert tasks == [True, False, True]
        assert len(await store.read(lambda view: view.events(Span()))) == between + 2
        assert database.faulty() == []
        assert database.workspaces() == ["one"]


@pytest.mark.rule("memory.flat", "store.op")
async def test_in_memory_ids_are_known_after_thousands_were_dropped():
    with closing(SqliteDatabase()) as database:
        database.keep(10)
        store = database.store("one")
        many = 30 * BATCH
        for number in range(many):
            await store.tx(f"begin {number}", starting(first_remit(f"t{number}", session="s")))
            await store.tx(f"end {number}", ending(first_remit(f"t{number}", session="s"), at=NOW))
        assert len(await store.read(lambda view: view.events(Span()))) < 8 * BATCH
        await store.tx(f"begin {many - 1}", starting(first_remit("another", session="s")))  # the same operation
        assert await store.read(lambda view: view.record("another")) is None
        await store.tx("begin 0", starting(first_remit("t0", session="s")))  # it was dropped
        assert await store.read(lambda view: view.record("t0")) is not None
        assert database.faulty() == []


def has_late_indexes(database: SqliteDatabase) -> bool:
    return database.reader.rows("SELECT count(*) FROM sqlite_master WHERE name = 'task_began'") == [(1,)]


@pytest.mark.rule("speed.budget")
async def test_in_memory_late_indexes_come_with_the_first_query_that_needs_them():
    with closing(SqliteDatabase()) as database:
        store = database.store("one")
        begin = starting(first_remit("t1", session="s"))

        def look_and_begin_again(view: View) -> Decision[Json]:
            assert [record.id for record in view.roots(0, 5)] == ["t1"]
            assert has_late_indexes(database)
            return begin(view)

        await store.tx("begin", begin)
        assert await store.read(lambda view: view.record("t1")) is not None
        assert not has_late_indexes(database)
        with pytest.raises(StoreError, match="UNIQUE"):
            await store.tx("begin again", look_and_begin_again)
        assert not has_late_indexes(database)  # its transaction was rolled back
        assert [record.id for record in await store.read(lambda view: view.roots(0, 5))] == ["t1"]
        assert has_late_indexes(database)
        assert database.faulty() == []


@pytest.mark.rule("speed.budget", "memory.flat")
async def test_in_memory_late_indexes_come_before_old_events_are_dropped():
    with closing(SqliteDatabase()) as database:
        database.keep(BATCH)
        store = database.store("one")
        for number in range(BATCH):
            assert not has_late_indexes(database)
            await store.tx(f"begin {number}", starting(first_remit(f"t{number}", session="s")))
        assert has_late_indexes(database)
