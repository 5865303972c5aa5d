"""How a database finds what is asked for: by an index made for the question, and without reading a whole workspace."""

import asyncio
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any, TypeVar

import psycopg
import pytest

from postgres import Server
from remit.core.events import Event
from remit.core.kinds.money import SPENDS
from remit.core.kinds.tasks import Begun, Queued
from remit.core.lifecycle import Record
from remit.core.remit import Remit
from remit.core.times import SECOND
from remit.ports import Span, View, Which
from remit.stores.queries import queries
from remit.stores.sqlite.connection import _needs_late_indexes  # pyright: ignore[reportPrivateUsage]
from remit.stores.sqlite.database import SqliteDatabase
from remit.stores.sqlite.schema import add_late_indexes
from remit.testing.clauses.making import NOW, child_remit, ending, first_remit, queueing, starting

T = TypeVar("T")

QUERIES = queries()
VALUES = {name: 1 for query in QUERIES.values() for name in query.names}
# These read a whole workspace of their table on purpose: the table is small, or all of it is wanted.
WHOLE = {
    *("breakers", "cards", "coolings", "workers", "namespaces", "ids_ending", "secrets", "schedules", "hooks"),
    "accesses",
    *("head", "chapter_begin", "chapter_end"),  # from one of its ends, one row
    *("tally_mark", "tally_mark_put"),  # one row a workspace
    *("artifact_count", "artifact_bytes"),  # sums over all of them
}
# These put what they found in order: few rows, because a condition is narrow or few tasks are open.
SORTED = {
    *("below", "tasks_of_worker", "due", "front", "same_requests", "tasks_open", "tasks_of_run", "tasks_of_parent"),
    *("entries_recent", "entries_recent_from", "waiting", "orphans", "events_of_run", "events_of_session"),
    *("events_of_session_latest", "tasks_of_session", "runs_of_session"),
}


@pytest.fixture
def database() -> Iterator[SqliteDatabase]:
    with closing(SqliteDatabase()) as database:
        add_late_indexes(database.writer.connection)
        yield database


def plan(database: SqliteDatabase, name: str) -> list[str]:
    query = QUERIES[name]
    rows = database.writer.connection.execute(f"EXPLAIN QUERY PLAN {query.sql}", query.fill(VALUES)).fetchall()
    return [row[3] for row in rows]


def test_no_query_is_planned_again_each_time_it_runs(database: SqliteDatabase):
    """SQLite does so when a value decides which partial index may be used: that takes longer than the answer."""
    connection = database.writer.connection
    planned: list[int] = []

    def planning(*_: object) -> int:
        planned.append(1)
        return sqlite3.SQLITE_OK

    connection.set_authorizer(planning)
    again: list[str] = []
    for name, query in QUERIES.items():
        if query.sql.startswith(("SELECT", "WITH")):
            connection.execute(query.sql, query.fill(VALUES)).fetchall()
            planned.clear()
            connection.execute(query.sql, query.fill(dict.fromkeys(VALUES, 2))).fetchall()
            again += [name] if planned else []
    assert again == []


def test_a_store_in_memory_has_the_indexes_of_a_query_before_it_runs(database: SqliteDatabase):
    with closing(SqliteDatabase()) as early:
        for name in QUERIES:
            assert _needs_late_indexes(name) or plan(early, name) == plan(database, name), name


@pytest.mark.rule("store.apart")
@pytest.mark.parametrize("name", QUERIES)
def test_every_query_is_answered_through_an_index(database: SqliteDatabase, name: str):
    steps = plan(database, name)
    for step in steps:
        assert not re.match(r"SEARCH ", step) or "(workspace=?" in step, "another's rows are read as well"
        assert not re.match(
            r"SCAN (?!tree|queue|page|letters|news|mail|fresh|again|t$|CONSTANT|3 CONSTANT ROWS)", step
        ), "a table is read through, over all workspaces"
        assert "BLOOM FILTER" not in step, "all tasks are read to find a few"
        assert "AUTOMATIC" not in step, "an index is built for one question"
        assert name in WHOLE or not step.endswith("USING PRIMARY KEY (workspace=?)"), "a workspace is read through"
    assert name in SORTED or not any("TEMP B-TREE FOR ORDER BY" in step for step in steps), "what is found is sorted"


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("below", "SEARCH c USING INDEX task_parent (workspace=? AND parent=?)"),
        ("of_run", "SEARCH c USING INDEX task_parent (workspace=? AND parent=?)"),
        ("run", "SEARCH r USING PRIMARY KEY (workspace=? AND id=?) LEFT-JOIN"),
        ("runs", "SEARCH t USING INDEX task_root (workspace=? AND began<?)"),
        ("tasks", "SEARCH t USING INDEX task_began (workspace=? AND began>? AND began<?)"),
        ("tasks_gone", "SEARCH t USING INDEX task_gone (workspace=? AND state=? AND began<?)"),
        ("tasks_of_session", "SEARCH task USING INDEX task_session (workspace=? AND session=?)"),
        ("runs_of_session", "SEARCH t USING INDEX task_session (workspace=? AND session=?)"),
        ("events_latest", "SEARCH event USING PRIMARY KEY (workspace=? AND seq>? AND seq<?)"),
        ("events_of_run_latest", "SEARCH event USING INDEX event_run (workspace=? AND run=? AND seq>? AND seq<?)"),
        ("tasks_of_run", "SEARCH c USING INDEX task_parent (workspace=? AND parent=?)"),
        ("tasks_of_parent", "SEARCH t USING INDEX task_parent (workspace=? AND parent=?)"),
        ("task_page", "SEARCH task USING PRIMARY KEY (workspace=? AND id>?)"),
        ("entry_page", "SEARCH entry USING PRIMARY KEY (workspace=? AND (namespace,key)>(?,?))"),
        ("tally_rows", "SEARCH tally USING PRIMARY KEY (workspace=? AND width=? AND start>? AND start<?)"),
        ("tally_runs", "SEARCH tally_task USING INDEX tally_task_run (workspace=? AND at>? AND at<?)"),
        ("events_between", "SEARCH event USING PRIMARY KEY (workspace=? AND seq>? AND seq<?)"),
        ("events_of_run_before", "SEARCH event USING INDEX event_run (workspace=? AND run=? AND seq<?)"),
        ("due", "SEARCH task USING INDEX task_pending (workspace=? AND holder=? AND ready_at=?)"),
        ("due", "SEARCH task USING INDEX task_pending (workspace=? AND holder=? AND ready_at>? AND ready_at<?)"),
        ("has_due", "SEARCH task USING INDEX task_pending (workspace=? AND holder=? AND ready_at=?)"),
        ("front", "SEARCH task USING INDEX task_first (workspace=?)"),
        ("front", "SEARCH task USING INDEX task_later (workspace=? AND ready_at>? AND ready_at<?)"),
        ("next_due", "SEARCH task USING INDEX task_later (workspace=? AND ready_at>?)"),
        ("late", "SEARCH task USING INDEX task_until (workspace=? AND until<?)"),
    ],
)
def test_a_query_uses_the_index_that_is_made_for_it(database: SqliteDatabase, name: str, step: str):
    assert step in plan(database, name)


LOOKS: dict[str, Callable[[View], object]] = {
    "what is below a task": lambda view: view.below("run7part1"),
    "the tasks of a run": lambda view: (view.of_run("run7"), view.tasks(Which(run="run7"))),
    "the parts of a task": lambda view: view.tasks(Which(parent="run7")),
    "the figures of a run": lambda view: view.run("run7"),
    "a page of tasks": lambda view: view.tasks(Which(limit=10, before=100)),
    "a page of one agent's tasks": lambda view: view.tasks(Which(agent="helper", limit=10)),
    "a page of runs": lambda view: view.runs(10, 100),
    "how runs stand": lambda view: view.vitals(["run7", "run8"]),
    "a page of an asker's tasks": lambda view: view.tasks(Which(asker="lead", limit=10)),
    "a page of runs by their text": lambda view: view.run_lines(Which(text="run", limit=10)),
    "what is open": lambda view: view.tasks(Which(state="open")),
    "what failed": lambda view: view.tasks(Which(state="failed")),
    "what one agent died of": lambda view: view.tasks(Which(state="dead", agent="helper")),
    "the latest events": lambda view: view.events(Span(latest=True, limit=20)),
    "the latest events of an agent": lambda view: view.events(Span(agent="helper", latest=True, limit=10)),
    "the latest events of a session": lambda view: view.events(Span(session="s0", latest=True, limit=10)),
    "a run by the beginning of its id": lambda view: view.ids_like("run7", 1, runs=True),
}


def test_a_larger_workspace_costs_no_more(database: SqliteDatabase):
    """Counted in instructions of SQLite's machine: the same in a workspace that is ten times as large."""
    asyncio.run(fill(database, 0, 50))
    small = costs(database, LOOKS)
    asyncio.run(fill(database, 50, 500))
    large = costs(database, LOOKS)
    assert {look: (small[look], large[look]) for look in LOOKS if large[look] > small[look] * 1.05} == {}


RARE_LOOKS: dict[str, Callable[[View], object]] = {
    "the first events": lambda view: view.events(Span(kinds=frozenset({"task.started"}), limit=10, before=100)),
    "the events of an agent that never was": lambda view: view.events(Span(agent="nobody", limit=10)),
    "the events of a kind that never was": lambda view: view.events(Span(kinds=frozenset({"task.died"}), limit=10)),
    "the latest of a rare kind": lambda v: v.events(Span(kinds=frozenset({"task.failed"}), limit=10, latest=True)),
    "the charges": lambda view: view.events(Span(kinds=SPENDS, limit=1_000)),
    "the events since then": lambda view: view.events(Span(since=NOW + 1, limit=10)),
    "the latest events until then": lambda view: view.events(Span(until=NOW, limit=10, latest=True)),
    "the tasks of an agent that never was": lambda view: view.tasks(Which(agent="nobody")),
    "the tasks that an agent has ended that never was": lambda v: v.tasks(Which(agent="nobody", state="completed")),
    "what a prune may find": lambda view: view.last_before(NOW),
    "the tasks that an agent asked for that never was": lambda view: view.tasks(Which(asker="nobody")),
    "the tasks of a person who never was": lambda view: view.tasks(Which(by="nobody")),
    "the runs with a tag that never was": lambda view: view.run_lines(Which(tag="none")),
    "the tasks since then": lambda view: view.tasks(Which(since=NOW + 1)),
    "the runs until then": lambda view: view.run_lines(Which(until=NOW)),
}


@pytest.mark.rule("journal.chapters")
def test_what_is_rare_costs_a_row_for_each_chapter_of_the_journal(database: SqliteDatabase):
    """In a journal with four times as many chapters: what it costs more are some instructions for each of them."""
    asyncio.run(fill(database, 0, 400))
    small, before = costs(database, RARE_LOOKS), chapters(database)
    asyncio.run(fill(database, 400, 1_600))
    large, more = costs(database, RARE_LOOKS), chapters(database) - before
    assert before >= 2
    assert more >= 3 * before
    behind = 1_024 * 40  # events behind the last chapter, of which there may be more or fewer
    allowed = behind + 60 * more
    assert {look: (small[look], large[look]) for look in RARE_LOOKS if large[look] > small[look] + allowed} == {}


@pytest.mark.rule("journal.chapters")
def test_a_rare_agent_is_found_in_the_chapters_that_have_it(database: SqliteDatabase):
    """By a look at the events of one chapter and of what is behind the last one, wherever in the journal that is."""
    asyncio.run(fill(database, 0, 200))
    rare = first_remit("once", session="s", holder="rare")
    asyncio.run(begun_and_ended(database, rare))
    asyncio.run(fill(database, 200, 1_000))

    def look(view: View) -> tuple[list[tuple[Record, str]], list[Event]]:
        return view.tasks(Which(agent="rare")), view.events(Span(agent="rare"))

    tasks, events = asyncio.run(read(database, look))
    assert [record.id for record, _ in tasks] == ["once"]
    assert [event.kind for event in events] == ["task.started", "task.completed"]
    assert instructions(database, look) < 4 * 2 * 1_024 * 40


async def begun_and_ended(database: SqliteDatabase, remit: Remit) -> None:
    store = database.store("one")
    await store.tx(remit.id, starting(remit))
    await store.tx(f"end {remit.id}", ending(remit, at=NOW))


def chapters(database: SqliteDatabase) -> int:
    return len(asyncio.run(read(database, lambda view: view.chapters(0, 1_000))))


QUEUE_LOOKS: dict[str, Callable[[View], object]] = {
    "who is first of all queues": lambda view: view.front(NOW, 10),
    "who is first of one queue": lambda view: view.due("agent0", "", NOW, 10),
    "whether anything stands in a queue": lambda view: view.has_due("agent0", NOW),
    "whether anything stands in a queue in which all is due later": lambda view: view.has_due("patient", NOW),
    "what is due next": lambda view: view.next_due(NOW),
    "what is late": lambda view: view.late(NOW + 1, 10),
}


@pytest.mark.rule("queue.growth")
@pytest.mark.parametrize("priorities", [1, 201], ids=["one priority", "all priorities"])
def test_a_longer_queue_costs_no_more(database: SqliteDatabase, priorities: int):
    """However much is pending, for however many agents and priorities, and however much of it is due later."""
    asyncio.run(queue(database, 0, 20, priorities))
    small = costs(database, QUEUE_LOOKS)
    asyncio.run(queue(database, 20, 1_000, priorities))
    large = costs(database, QUEUE_LOOKS)
    assert {look: (small[look], large[look]) for look in QUEUE_LOOKS if large[look] > small[look] * 1.05} == {}


async def queue(database: SqliteDatabase, first: int, last: int, priorities: int = 1) -> None:
    """For each of many agents one task that is due, behind one of an agent that only has what is due later."""
    store = database.store("one")
    for number in range(first, last):
        for holder, wait in (("patient", 60 * SECOND + number), (f"agent{number}", 0)):
            work = first_remit(f"{holder} {number}", session="s", holder=holder)
            queued = Queued("submit", 60 * SECOND, 3, NOW + wait if wait else 0)
            begun = Begun(priority=number % priorities - priorities // 2)
            await store.tx(work.id, queueing(work, queued=queued, begun=begun))


@pytest.mark.rule("workspace.lists")
def test_the_tasks_of_a_session_cost_no_more_wherever_among_all_they_are(database: SqliteDatabase):
    """In a workspace three times as large. What is looked at first, the latest tasks, is there in both."""

    def look(view: View) -> object:
        return view.tasks(Which(session="s3", limit=10))

    asyncio.run(fill(database, 0, 400))
    small = instructions(database, look)
    asyncio.run(fill(database, 400, 1_200))
    assert instructions(database, look) <= small * 1.05
    assert small < 100_000


@pytest.mark.rule("workspace.lists")
def test_a_session_that_is_all_there_is_costs_a_page(database: SqliteDatabase):
    def look(view: View) -> object:
        return view.tasks(Which(session="s", limit=10))

    asyncio.run(fill(database, 0, 50, session="s"))
    small = instructions(database, look)
    asyncio.run(fill(database, 50, 500, session="s"))
    assert instructions(database, look) <= small * 1.05


async def fill(database: SqliteDatabase, first: int, last: int, session: str = "") -> None:
    """Runs of three tasks in sessions of ten, unless all are in one; the first ten are open, and one has failed."""
    store = database.store("one")
    for number in range(first, last):
        root = first_remit(f"run{number}", session=session or f"s{number // 10}")
        parts = [child_remit(root, f"run{number}part{part}", holder="helper") for part in range(2)]
        await store.tx(root.id, starting(root, *parts))
        for remit in (*parts, root) if number >= 10 else ():
            kind = "task.failed" if number == 20 else "task.completed"
            await store.tx(f"end {remit.id}", ending(remit, kind, at=NOW))


def costs(database: SqliteDatabase, looks: Mapping[str, Callable[[View], object]]) -> dict[str, int]:
    return {name: instructions(database, look) for name, look in looks.items()}


def instructions(database: SqliteDatabase, look: Callable[[View], object]) -> int:
    connection: sqlite3.Connection = database.writer.connection
    counted = 0
    asyncio.run(read(database, look))  # what was only counted so far is written before anyone reads

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    connection.set_progress_handler(count, 1)
    try:
        asyncio.run(read(database, look))
    finally:
        connection.set_progress_handler(None, 1)
    return counted


async def read(database: SqliteDatabase, look: Callable[[View], T]) -> T:
    return await database.store("one").read(look)


# -- PostgreSQL -----------------------------------------------------------------------------------------------------

OWN = {"done_of", "standings", "same_requests_of", "run_facts_of", "append"}  # of those only it has, what is about rows
ARRAYS = {"ops", "tasks", "keys", "runs"}
TABLES = {
    "event",
    "task",
    "run",
    "entry",
    "message",
    "breaker",
    "card",
    "worker",
    "tally",
    "tally_task",
    "tally_mark",
    "chapter",
}


@pytest.fixture(scope="module")
def explaining(postgres: Server) -> Iterator[psycopg.Connection]:
    """A connection on which the planner takes an index wherever there is one, as it would with many rows."""
    where = postgres.database()
    with psycopg.connect(where, options="-c search_path=remit,pg_temp -c enable_seqscan=off") as connection:
        yield connection
    postgres.drop(where)


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from nodes(part)


@pytest.mark.rule("store.apart")
@pytest.mark.parametrize("name", sorted({*QUERIES, *OWN}))
def test_every_statement_on_postgresql_is_answered_through_an_index_that_begins_with_the_workspace(
    explaining: psycopg.Connection, name: str
):
    own = queries("%s", "postgres")
    query = own.get(name) or queries("%s")[name]
    values = ["{1}" if place in ARRAYS and name in OWN else "1" for place in query.names]
    with explaining.transaction(force_rollback=True):
        row = explaining.execute(f"EXPLAIN (FORMAT JSON) {query.sql}".encode(), values).fetchone()
    assert row is not None
    for node in nodes(row[0][0]["Plan"]):
        if node.get("Relation Name") not in TABLES:
            continue
        assert node["Node Type"] != "Seq Scan", "a table is read through, over all workspaces"
        if node["Node Type"] in ("Index Scan", "Index Only Scan"):
            assert "workspace" in node.get("Index Cond", ""), "another's rows are read as well"


# What workers ask again and again, and how many rows of tasks each may read, however many there are.
EACH_SECOND = {"front": 20, "has_due": 2, "due": 20, "next_due": 1, "late": 10, "tasks_of_worker": 31, "cancelling": 0}
EACH_SECOND |= {"unseen": 4, "working": 40, "resuming": 0, "running": 31, "open_tasks": 40}
EACH_SECOND |= {"prunable": 8, "roots": 10, "below": 8, "of_run": 8}
FIGURES = {"now": 5_000_000, "limit": 10, "losses": 5, "after": 0, "before": 3_000_000}
WORDS = {"holder": "a7", "worker": "w1", "run": "t400", "task": "t400"}
# Of 20,000 tasks 30 are at work, 4,000 pending, and half of these not before long.
TASKS = """
INSERT INTO task (workspace, id, run, parent, session, holder, state, asked_how, led_as, worker, fence, attempt,
                  failures, asked_at, ready_at, until, ended_at, began, ended, dedup_key, origin, losses)
SELECT 'w', 't' || n, 't' || n - n % 4, CASE WHEN n % 4 = 0 THEN '' ELSE 't' || n - n % 4 END, 's', 'a' || n % 300,
       CASE WHEN n > 16000 THEN 'pending' WHEN n BETWEEN 101 AND 130 THEN 'running' ELSE 'completed' END, 'submit', '',
       CASE WHEN n > 16000 THEN '' WHEN n BETWEEN 101 AND 130 THEN 'w1' ELSE 'w' || n % 5 END, 0, 0, 0, n,
       CASE WHEN n > 18000 THEN 9000000 + n ELSE 0 END, 90000000 + n,
       CASE WHEN n > 16000 OR n BETWEEN 101 AND 130 THEN NULL ELSE 2000000 + n END, n,
       CASE WHEN n > 16000 OR n BETWEEN 101 AND 130 THEN NULL ELSE n END, '',
       CASE WHEN n % 100 = 0 THEN 't' || n - 1 ELSE '' END, 0
FROM generate_series(1, 20000) AS n
"""
EVENTS = """
INSERT INTO event (workspace, seq, kind, at, run, session, task, agent, data, hash)
SELECT 'w', n, 'task.started', n, 't' || n - n % 4, 's', 't' || n, 'a' || n % 300, '{}', n::text
FROM generate_series(1, 20000) AS n
"""


@pytest.fixture(scope="module")
def crowded(postgres: Server) -> Iterator[psycopg.Connection]:
    """A workspace with many tasks, whose server knows that, and makes its plans without knowing what is asked for."""
    where = postgres.database()
    with psycopg.connect(where, autocommit=True, options="-c search_path=remit,pg_temp") as connection:
        connection.execute("ALTER TABLE task DISABLE TRIGGER USER")
        connection.execute(EVENTS)
        connection.execute(TASKS)
        connection.execute("ANALYZE event, task")
        connection.execute("SET plan_cache_mode = force_generic_plan")
        yield connection
    postgres.drop(where)


@pytest.mark.rule("queue.growth")
@pytest.mark.parametrize("name", EACH_SECOND)
def test_what_workers_ask_postgresql_each_second_reads_few_tasks(crowded: psycopg.Connection, name: str):
    query = queries("%s", "postgres").get(name) or queries("%s")[name]
    types = ", ".join("bigint" if place in FIGURES else "text" for place in query.names)
    words = {place: f"'{word}'" for place, word in WORDS.items()}
    given = ", ".join(str(FIGURES.get(place, words.get(place, "'w'"))) for place in query.names)
    numbers = iter(range(1, 99))
    numbered = re.sub("%s", lambda _: f"${next(numbers)}", query.sql)
    crowded.execute(f"PREPARE asked ({types}) AS {numbered}".encode())
    try:
        row = crowded.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE asked ({given})".encode()).fetchone()
    finally:
        crowded.execute("DEALLOCATE asked")
    assert row is not None
    touched = [node for node in nodes(row[0][0]["Plan"]) if node.get("Relation Name") == "task"]
    rows = sum((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"] for node in touched)
    assert rows <= EACH_SECOND[name]
