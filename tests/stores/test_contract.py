"""Every store keeps the contract, and the contract finds the stores that do not."""

from collections.abc import Callable
from contextlib import suppress
from itertools import count

import pytest

from remit.errors import Conflict
from remit.ports import NOTHING, Database, Decided, Decision
from remit.stores.postgres.database import PostgresDatabase
from remit.stores.sqlite.database import SqliteDatabase
from remit.testing import CountedIds, check_store
from remit.testing.clauses import entries, journal, runs, tasks, transactions, workspaces
from remit.testing.contract import CLAUSES, check_clause, title

pytestmark = pytest.mark.anyio

Opener = Callable[[], Database]


@pytest.fixture(params=["memory", "file", "postgres"])
def open_database(request: pytest.FixtureRequest, tmp_path) -> Opener:
    numbers = count()
    if request.param == "memory":
        return SqliteDatabase
    if request.param == "postgres":
        new_address = request.getfixturevalue("new_address")
        return lambda: PostgresDatabase(new_address(secured=True))  # every other test opens it as its owner
    return lambda: SqliteDatabase(tmp_path / f"{next(numbers)}.db")


@pytest.mark.rule(
    "store.contract",
    "store.op",
    "store.atomic",
    "store.workspace",
    "postgres.apart",
    "lifecycle.table",
    "lifecycle.final",
    "journal.one-event",
    "journal.chain",
    "journal.history",
    "sink.harmless",
    "entry.prefix",
    "entry.recent",
    "entry.expiry",
    "message.once",
    "input.text",
)
@pytest.mark.parametrize("clause", CLAUSES, ids=title)
async def test_a_store_keeps_each_clause(clause, open_database: Opener):
    await check_clause(clause, open_database)


@pytest.mark.rule("store.contract")
async def test_all_clauses_together_are_the_contract():
    """As whoever writes another store would call it."""
    await check_store(SqliteDatabase)


def test_clauses_have_names_of_their_own():
    assert len({title(clause) for clause in CLAUSES}) == len(CLAUSES) > 25


# -- stores that break a promise ----------------------------------------------------------------------------


class Worse(SqliteDatabase):
    """A real store with one thing spoilt."""

    def __init__(self, spoil) -> None:
        super().__init__()
        self._spoil = spoil

    def store(self, workspace):
        return self._spoil(super().store(self._spoil.instead or workspace))


class Spoilt:
    instead = ""  # the workspace it takes for the one it was asked for

    def __init__(self, store) -> None:
        self._store = store
        self.workspace = store.workspace

    async def tx(self, op, decide, wants=NOTHING):
        return await self._store.tx(op, decide, wants)

    async def read(self, look):
        return await self._store.read(look)

    async def browse(self, look):
        return await self.read(look)

    def subscribe(self, sink):
        return self._store.subscribe(sink)


class ForgetsOperations(Spoilt):
    ids = CountedIds()

    async def tx(self, op, decide, wants=NOTHING):
        return await self._store.tx(self.ids.new(), decide)


class LosesFacts(Spoilt):
    async def tx(self, op, decide, wants=NOTHING):
        return await self._store.tx(op, lambda view: Decision(decide(view).answer, decide(view).events[:1]))


class IsDeaf(Spoilt):
    def subscribe(self, sink):
        return lambda: None


class MixesWorkspaces(Spoilt):
    instead = "everyone"


class FoldsCase(Spoilt):
    """Does not tell capital letters from small ones, as a store with LIKE would not."""

    async def read(self, look):
        return await self._store.read(lambda view: look(FoldedView(view)))


class FoldedView:
    def __init__(self, view) -> None:
        self._view = view

    def __getattr__(self, name):
        return getattr(self._view, name)

    def by_key(self, scope, now, limit):
        everything = self._view.by_key(type(scope)(scope.namespace), now, 10_000)
        return [one for one in everything if one.key.casefold().startswith(scope.prefix.casefold())][:limit]


class ChangesHistory(Spoilt):
    async def read(self, look):
        return await self._store.read(lambda view: look(RewrittenView(view)))


class RewrittenView(FoldedView):
    def events(self, span):
        return [event._replace(text=event.text.replace("text", "test")) for event in self._view.events(span)]


class LetsAnyMovePass(Spoilt):
    """Takes a conflict for success, as a store that does not look would."""

    async def tx(self, op, decide, wants=NOTHING):
        try:
            return await self._store.tx(op, decide, wants)
        except Conflict:
            return Decided(None)


class WritesHalfADecision(Spoilt):
    """Appends what comes before a move that the table does not have."""

    async def tx(self, op, decide, wants=NOTHING):
        try:
            return await self._store.tx(op, decide, wants)
        except Conflict:
            with suppress(Conflict):
                await self._store.tx(f"{op} half", lambda view: Decision(None, decide(view).events[:1]))
            raise


class Remembers(Spoilt):
    """Has a memory of its own, which it should not have."""

    def __init__(self, store) -> None:
        super().__init__(store)
        self.memory = {}


class KeepsAsides(Remembers):
    async def tx(self, op, decide, wants=NOTHING):
        answer, aside = await self._store.tx(op, decide, wants)
        return Decided(answer, self.memory.setdefault(op, aside))


class CountsLate(Remembers):
    """Shows the figures of a run as they were when it was first looked at."""

    async def read(self, look):
        return await self._store.read(lambda view: look(LateView(view, self.memory)))


class LateView(FoldedView):
    def __init__(self, view, memory) -> None:
        super().__init__(view)
        self._memory = memory

    def run(self, run):
        return self._memory.setdefault(run, self._view.run(run))


class PagesByNumber(Remembers):
    """Counts how many it has shown, as a store with OFFSET would."""

    async def read(self, look):
        return await self._store.read(lambda view: look(NumberedView(view, self.memory)))


class NumberedView(LateView):
    def runs(self, limit, before=None):
        start = 0 if before is None else self._memory["shown"]
        self._memory["shown"] = start + limit
        return self._view.runs(10_000)[start : start + limit]


@pytest.mark.rule("store.contract")
@pytest.mark.parametrize(
    ("spoil", "clause", "sentence"),
    [
        (ForgetsOperations, transactions.answers_again, "the same operation id gives the same answer"),
        (LosesFacts, transactions.events_commit_together, "the number of events"),
        (IsDeaf, journal.sinks_hear_everything_once_in_order, "what a sink heard"),
        (MixesWorkspaces, workspaces.workspaces_never_cross, "does not show in another"),
        (FoldsCase, entries.a_prefix_is_literal, "the keys that begin with"),
        (ChangesHistory, journal.the_journal_tells_the_tables, "is not what was sealed"),
        (LetsAnyMovePass, tasks.every_move_is_one_of_the_table, "is a Conflict, got None"),
        (WritesHalfADecision, tasks.every_move_is_one_of_the_table, "the journal after moves"),
        (KeepsAsides, transactions.what_is_said_aside_is_given_once, "that was done before has no aside"),
        (CountsLate, runs.the_figures_of_a_run_are_told_one_by_one, "the figures of a run after event 2"),
        (PagesByNumber, tasks.runs_are_listed_page_by_page, "the runs page by page"),
    ],
)
async def test_the_contract_finds_a_store_that_breaks_it(spoil, clause, sentence):
    with pytest.raises(AssertionError, match=f"^{title(clause)}: .*{sentence}"):
        await check_clause(clause, lambda: Worse(spoil))


def test_counted_ids_look_like_ids_and_sort_in_order():
    ids = CountedIds()
    made = [ids.new() for _ in range(2_000)]
    assert made == sorted(set(made))
    assert all(len(one) == 16 and set(one) <= set("abcdefghijklmnopqrstuvwxyz234567") for one in made)
    assert made[0] == CountedIds().new() != CountedIds(2).new() == made[1]
