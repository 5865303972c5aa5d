"""Figures that are rolled up are those that the events tell: however they are sliced, and whatever comes in between."""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import remit
from core.histories import AGENTS, HOUR, ended_history, histories, history
from core.make import NOW, SECOND
from remit.core.events import Event, Unsealed
from remit.core.tally import WIDTHS, Counting, Figures, Window
from remit.engine.upkeep import tallying
from remit.errors import BadInput, StoreError
from remit.ports import Database, Decision, Span, Store
from remit.report.stats import Stats, stats, sum_of_agents
from remit.runtime.workspace import opening_of
from remit.stores.opening import database_at
from remit.stores.sqlite.database import SqliteDatabase
from remit.testing import FakeClock, pass_time
from teams import echo, team

DAY = 24 * HOUR
ALWAYS = Window()

moments = st.none() | st.integers(NOW - DAY, NOW + 20 * DAY)
windows = st.tuples(moments, moments, st.booleans()).map(lambda drawn: whole(*drawn))


def whole(since: int | None, until: int | None, rounded: bool) -> Window:
    """A time, sometimes of whole hours."""
    ends = [at if at is None or not rounded else at - at % HOUR for at in (since, until)]
    return Window(*ends)


async def write(store: Store, told: list[Unsealed]) -> list[Event]:
    for number, event in enumerate(told):
        await store.tx(f"{number}", lambda _view, event=event: Decision(None, (event,)))
    return await store.read(lambda view: view.events(Span()))


def expected(events: list[Event], window: Window, agent: str | None) -> Stats:
    """Count each event where it belongs, from the beginning."""
    found: defaultdict[str, Figures] = defaultdict(Figures)
    elsewhere = Figures()
    counting = Counting(lambda at, who: found[who] if window.holds(at) else elsewhere)
    for event in events:
        counting.add(event)
    runs = (run for run in counting.open_runs() if window.holds(run.at) and agent in (None, run.agent))
    return sum_of_agents(found, Counter(run.state for run in runs), agent or "")


async def asked(store: Store, window: Window = ALWAYS, agent: str | None = None) -> Stats:
    found = await tallying.figures(store, window, agent)
    return sum_of_agents(found.figures, found.open_runs, agent or "")


async def everything_agrees(store: Store, events: list[Event], window: Window) -> None:
    for agent in (None, *AGENTS):
        assert await asked(store, window, agent) == expected(events, window, agent)
        for width in WIDTHS:
            found = await tallying.figures_by(store, width, window, agent)
            assert found == by_time(events, width, window, agent)
            assert [*found] == sorted(found)


def by_time(events: list[Event], width: int, window: Window, agent: str | None) -> dict[int, dict[str, Figures]]:
    """The same for each hour or day."""
    found: defaultdict[tuple[int, str], Figures] = defaultdict(Figures)
    elsewhere = Figures()
    counting = Counting(lambda at, who: found[at - at % width, who] if window.holds(at) else elsewhere)
    for event in events:
        counting.add(event)
    series: defaultdict[int, dict[str, Figures]] = defaultdict(dict)
    for (start, who), figures in found.items():
        if agent in (None, who):
            series[start][who] = figures
    return series


@pytest.fixture(params=["memory", "file", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    places = {"memory": ":memory:", "file": str(tmp_path / "team.db")}
    where = places.get(request.param) or request.getfixturevalue("address")
    with closing(database_at(where)) as database:
        yield database


# -- as the events tell ---------------------------------------------------------------------------------------


@pytest.mark.rule("stats.same")
@settings(max_examples=60)
@given(histories, st.lists(st.integers(1, 40), max_size=8), windows)
def test_what_is_rolled_up_in_slices_and_what_is_newer_is_what_the_events_tell(told, sizes, window):
    async def check() -> None:
        with closing(SqliteDatabase()) as database:
            store = database.store("home")
            events = await write(store, told)
            for size in sizes:
                await tallying.roll_up(store, 1, size)
            await everything_agrees(store, events, window)

    asyncio.run(check())


@pytest.mark.anyio
@pytest.mark.rule("stats.same")
async def test_figures_are_the_same_on_every_database(database: Database):
    store = database.store("home")
    events = await write(store, history(3, 300))
    times = sorted(event.at for event in events)
    middle = Window(times[50] + 1, times[250])
    for _ in range(30):
        await tallying.roll_up(store, 1, 7)

    assert await store.read(lambda view: view.tallied()) == 210
    await everything_agrees(store, events, ALWAYS)
    await everything_agrees(store, events, middle)
    await tallying.roll_up_all(store)
    assert await store.read(lambda view: view.tallied()) == 300
    await everything_agrees(store, events, middle)


@pytest.mark.anyio
@pytest.mark.rule("stats.same")
async def test_a_turn_that_began_before_the_time_asked_for_has_all_its_time(rt: remit.Runtime, clock: FakeClock):
    @rt.agent
    async def slow(turn: remit.Turn) -> str:
        clock.advance(250)
        return "done"

    start = clock.now()
    await rt.outcome("slow", "think")
    await tallying.roll_up_all(opening_of(rt.workspace).ground.store)
    found = await rt.workspace.stats(since=moment(start + 240 * SECOND))

    assert (found.events, found.agents["slow"].times.total, found.runs) == (1, 250 * SECOND, Counter(completed=1))


def moment(at: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)


# -- once -----------------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.rule("stats.once")
async def test_of_two_processes_that_roll_up_at_once_one_does(tmp_path: Path):
    with closing(SqliteDatabase(tmp_path / "a.db")) as one, closing(SqliteDatabase(tmp_path / "a.db")) as two:
        stores = [database.store("home") for database in (one, two)]
        events = await write(stores[0], history(5, 200))
        while await stores[0].read(lambda view: view.tallied()) < 200:
            await asyncio.gather(*(tallying.roll_up(store, 1, size) for store in stores for size in (9, 20)))
        for store in stores:
            await everything_agrees(store, events, ALWAYS)


@pytest.mark.anyio
@pytest.mark.rule("stats.once")
@pytest.mark.parametrize("place", ["store.decided", "store.before-commit", "store.after-commit"])
async def test_a_slice_that_is_cut_off_is_written_whole_or_not_at_all(tmp_path: Path, place: str):
    failing = False

    def fault(name: str) -> None:
        if failing and name == place:
            raise StoreError("cut off")

    with closing(SqliteDatabase(tmp_path / "a.db", fault=fault)) as database:
        store = database.store("home")
        events = await write(store, history(5, 100))
        await tallying.roll_up(store, 1, 30)
        failing = True
        with pytest.raises(StoreError):
            await tallying.roll_up(store, 1, 30)
        failing = False
        await everything_agrees(store, events, ALWAYS)
        await tallying.roll_up(store, 1, 30)
        await everything_agrees(store, events, ALWAYS)


# -- in use ---------------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.rule("stats.pruned")
async def test_figures_outlive_the_runs_that_are_pruned(rt: remit.Runtime, clock: FakeClock):
    @rt.agent(asks="*")
    async def lead(turn: remit.Turn) -> str:
        return await turn.delegate("coder", "a part")

    rt.add(remit.Card("coder"), echo)
    for _ in range(3):
        await rt.outcome("lead", "old")
    clock.advance(5 * 86_400)
    await rt.outcome("lead", "young")
    before = await rt.workspace.stats()

    assert await rt.workspace.prune(4) == 3
    after = await rt.workspace.stats()

    assert (after.events, after.runs) == (before.events + 1, Counter(completed=4))
    assert (after.agents, after.latency, after.tasks) == (before.agents, before.latency, 8)
    assert stats(await rt.workspace.journal.history()).tasks == 2  # all that the events still tell
    assert (await rt.workspace.check()).sound


@pytest.mark.anyio
async def test_pruning_nothing_rolls_nothing_up(rt: remit.Runtime):
    rt.add(remit.Card("echo"), echo)
    await rt.outcome("echo", "young")

    assert await rt.workspace.prune(4) == 0
    assert await rt.workspace.journal.read(lambda view: view.tallied()) == 0


@pytest.mark.anyio
@pytest.mark.rule("stats.workers")
async def test_workers_roll_up_now_and_then(rt: remit.Runtime, clock: FakeClock):
    rt.add(remit.Card("echo"), echo)
    used = Unsealed("tokens.used", clock.now(), {"tokens": 1}, agent="echo")
    many = tallying.SLICE + tallying.ENOUGH
    await opening_of(rt.workspace).ground.store.tx("many", lambda _view: Decision(None, (used,) * many))
    rt.lend()

    async def done() -> bool:
        return await rt.workspace.journal.read(lambda view: view.tallied()) >= many

    await pass_time(clock, done)
    assert (await rt.workspace.stats()).agents["echo"].tokens == many


@pytest.mark.long
@pytest.mark.anyio
@pytest.mark.rule("stats.flat")
async def test_asking_costs_the_same_however_long_the_journal_is():
    """Counted in instructions of SQLite's machine, which are those of reading rows."""
    with closing(SqliteDatabase()) as database:
        store = database.store("home")

        async def grow(runs: int) -> None:
            told = [event._replace(at=NOW + event.at % DAY) for event in ended_history(8, 100)]
            for number in range(runs):
                named = [_renamed(event, f"{runs}.{number}") for event in told]
                await store.tx(f"grow {runs} {number}", lambda _view, named=named: Decision(None, named))

        async def cost(window: Window) -> int:
            await asked(store, window)
            return await instructions(database, lambda: asked(store, window))

        await grow(10)
        await tallying.roll_up_all(store)
        small = await cost(ALWAYS)
        await grow(200)
        await tallying.roll_up_all(store)
        assert (await asked(store)).events > 20_000
        assert await cost(ALWAYS) <= small * 1.2


@pytest.mark.anyio
async def test_few_events_are_counted_and_not_written(rt: remit.Runtime):
    rt.add(remit.Card("echo"), echo)
    await rt.outcome("echo", "hello")

    assert (await rt.workspace.stats()).tasks == 1
    assert await rt.workspace.journal.read(lambda view: view.tallied()) == 0


@pytest.mark.anyio
@pytest.mark.rule("stats.read-only")
async def test_figures_of_a_store_that_may_not_be_written_to_are_counted(tmp_path: Path):
    with closing(SqliteDatabase(tmp_path / "a.db")) as database:
        events = await write(database.store("home"), history(5, tallying.ENOUGH))

    def fault(name: str) -> None:
        if name == "store.begin":
            raise StoreError("attempt to write a readonly database")

    with closing(SqliteDatabase(tmp_path / "a.db", fault=fault)) as database:
        await everything_agrees(database.store("home"), events, ALWAYS)
        assert await database.store("home").read(lambda view: view.tallied()) == 0


# -- what cannot be counted -----------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_an_event_that_cannot_be_read_is_named_and_holds_no_worker_up(tmp_path: Path, clock: FakeClock, caplog):
    with team(tmp_path / "team.db", clock=clock) as rt:
        store = opening_of(rt.workspace).ground.store
        spoilt = Unsealed("hop.refused", clock.now(), {}, agent="lead")
        await store.tx("spoilt", lambda _view: Decision(None, (spoilt,) * tallying.ENOUGH))
        with pytest.raises(StoreError, match=r"event 1 of 'default' cannot be read \(KeyError: 'rule'\); run"):
            await rt.workspace.stats()
        rt.lend()

        async def told() -> bool:
            return "the figures of 'default' could not be rolled up: event 1" in caplog.text

        with caplog.at_level(logging.WARNING):
            await pass_time(clock, told)


@pytest.mark.anyio
async def test_what_cannot_be_counted_is_pruned_all_the_same(rt: remit.Runtime, clock: FakeClock, caplog):
    rt.add(remit.Card("echo"), echo)
    spoilt = Unsealed("hop.refused", clock.now(), {}, agent="lead")
    await opening_of(rt.workspace).ground.store.tx("spoilt", lambda _view: Decision(None, (spoilt,)))
    await rt.outcome("echo", "old")
    clock.advance(5 * 86_400)
    with caplog.at_level(logging.WARNING):
        assert await rt.workspace.prune(4) == 1
    assert "could not be rolled up: event 1" in caplog.text


@pytest.mark.anyio
async def test_times_that_no_clock_tells_are_no_reason_to_fail(rt: remit.Runtime):
    odd = Unsealed("tokens.used", -(2**63), {"tokens": 1}, agent="lead")
    await opening_of(rt.workspace).ground.store.tx("odd", lambda _view: Decision(None, (odd,) * tallying.ENOUGH))

    with pytest.raises(StoreError, match="the figures of 'default' cannot be written"):
        await tallying.roll_up(opening_of(rt.workspace).ground.store)
    assert (await rt.workspace.stats()).events == 0  # it is not within any time


@pytest.mark.anyio
async def test_a_tally_that_says_nonsense_is_a_sentence():
    with closing(SqliteDatabase()) as database:
        store = database.store("home")
        await write(store, history(5, 30))
        await tallying.roll_up_all(store)
        database.writer.connection.execute("UPDATE tally SET data = '[1]'")
        with pytest.raises(StoreError, match="the tally of 'home' cannot be read .*; delete the rows of tally"):
            await asked(store)


@pytest.mark.anyio
async def test_times_that_make_no_sense_are_refused(rt: remit.Runtime):
    now = moment(NOW)
    with pytest.raises(BadInput, match="since must be before until"):
        await rt.workspace.stats(since=now, until=now)
    with pytest.raises(BadInput, match="since needs a time zone"):
        await rt.workspace.stats(since=now.replace(tzinfo=None))
    with pytest.raises(BadInput, match="did you mean agent"):
        await rt.workspace.stats(agnet="echo")  # pyright: ignore[reportCallIssue]


def _renamed(event: Unsealed, name: str) -> Unsealed:
    ids = {field: f"{name}/{value}" for field in ("run", "task") if (value := getattr(event, field))}
    data = {**event.data, "parent": f"{name}/{event.data['parent']}"} if event.data.get("parent") else event.data
    return event._replace(**ids, data=data)


async def instructions(database: SqliteDatabase, ask) -> int:
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    database.writer.connection.set_progress_handler(count, 1)
    try:
        await ask()
    finally:
        database.writer.connection.set_progress_handler(None, 1)
    return counted


# -- series ---------------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.rule("spend.series", "stats.series")
async def test_spending_and_figures_are_series_that_pruning_keeps(anywhere: remit.Runtime, clock: FakeClock):
    rt = anywhere

    @rt.agent
    async def buyer(turn: remit.Turn) -> None:
        async with turn.paid_call("$0.08", why="a photo", model=turn.task) as call:
            call.cost("$0.05")
        await turn.spend("$0.01", why="stamps")

    for model in ("big", "small", "big"):
        await rt.run("buyer", model)
    looks = rt.workspace.looks
    points = await looks.spend()
    assert [(one.agent, one.model, one.credits, one.calls) for one in points] == [
        ("buyer", "", 30_000, 3),
        ("buyer", "big", 100_000, 2),
        ("buyer", "small", 50_000, 1),
    ]
    for by in ("day", "agent", "model"):
        lines = (await rt.workspace.money.spend(by)).lines
        series = await looks.spend(by)
        assert {(getattr(one, by), one.credits, one.tokens, one.calls) for one in series} == {
            (line.name, line.credits, line.tokens, line.calls) for line in lines
        }
    [hour] = await looks.stats()
    [day] = await looks.stats("day")
    assert hour.stats == day.stats
    assert (hour.stats.tasks, hour.stats.runs, hour.stats.credits) == (3, Counter(completed=3), 180_000)
    assert (hour.start % HOUR, day.start % DAY) == (0, 0)
    clock.advance(5 * 24 * 3_600)
    assert await rt.workspace.prune(4) == 3
    assert await looks.spend() == points
    assert await looks.stats("day", agent="nobody") == []


@pytest.mark.anyio
@pytest.mark.rule("stats.series")
async def test_a_series_by_hour_has_a_month_at_most(rt: remit.Runtime, clock: FakeClock):
    rt.add(remit.Card("echo"), echo)
    await rt.run("echo", "x")
    clock.advance(3 * 24 * 3_600)
    await rt.run("echo", "y")
    looks, now = rt.workspace.looks, moment(clock.now())
    assert [point.stats.tasks for point in await looks.stats()] == [1]
    assert [point.stats.tasks for point in await looks.stats(since=now - timedelta(days=5))] == [1, 1]
    assert [point.stats.tasks for point in await looks.stats("day")] == [1, 1]
    with pytest.raises(BadInput, match="covers at most 31 days; give a later since, or pass by='day'"):
        await looks.stats(since=now - timedelta(days=32))
    with pytest.raises(BadInput, match="by"):
        await looks.stats("week")  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match="by"):
        await looks.spend("day,run")  # pyright: ignore[reportArgumentType]
