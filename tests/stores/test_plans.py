"""How a database finds what is asked for: by an index made for the question, and without reading a whole workspace."""

import asyncio
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from postgres import Server
from remit.ports import View, Which
from remit.stores.queries import queries
from remit.stores.sqlite.database import SqliteDatabase
from remit.testing.clauses.making import NOW, child_remit, ending, first_remit, starting

QUERIES = queries()
VALUES = {name: 1 for query in QUERIES.values() for name in query.names}
# These read a whole workspace of their table on purpose: the table is small, or all of it is wanted.
WHOLE = {
    *("breakers", "cards", "workers", "namespaces"),
    "head",  # from its end, one row
    *("tally_mark", "tally_mark_put"),  # one row a workspace
}
# These put what they found in order: few rows, because a condition is narrow or few tasks are open.
SORTED = {
    *("below", "held", "late", "same_requests", "tasks_open", "tasks_of_run", "tasks_of_parent"),
    *("entries_recent", "entries_recent_from", "waiting", "orphans", "events_of_run", "events_of_session"),
}


@pytest.fixture
def database() -> Iterator[SqliteDatabase]:
    with closing(SqliteDatabase()) as database:
        yield database


def plan(database: SqliteDatabase, name: str) -> list[str]:
    query = QUERIES[name]
    rows = database.writer.connection.execute(f"EXPLAIN QUERY PLAN {query.sql}", query.fill(VALUES)).fetchall()
    return [row[3] for row in rows]


@pytest.mark.rule("store.apart")
@pytest.mark.parametrize("name", QUERIES)
def test_every_query_is_answered_through_an_index(database: SqliteDatabase, name: str):
    steps = plan(database, name)
    for step in steps:
        assert not re.match(r"SEARCH ", step) or "(workspace=?" in step, "another's rows are read as well"
        assert not re.match(r"SCAN (?!tree|queue|page|letters|news|mail|CONSTANT)", step), (
            "a table is read through, over all workspaces"
        )
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
        ("tasks", "SEARCH t USING INDEX task_began (workspace=? AND began<?)"),
        ("tasks_of_run", "SEARCH c USING INDEX task_parent (workspace=? AND parent=?)"),
        ("tasks_of_parent", "SEARCH t USING INDEX task_parent (workspace=? AND parent=?)"),
        ("task_page", "SEARCH task USING PRIMARY KEY (workspace=? AND id>?)"),
        ("entry_page", "SEARCH entry USING PRIMARY KEY (workspace=? AND (namespace,key)>(?,?))"),
        ("tally_rows", "SEARCH tally USING PRIMARY KEY (workspace=? AND width=? AND start>? AND start<?)"),
        ("tally_runs", "SEARCH tally_task USING INDEX tally_task_run (workspace=? AND at>? AND at<?)"),
        ("events_between", "SEARCH event USING PRIMARY KEY (workspace=? AND seq>? AND seq<?)"),
        ("events_of_run_before", "SEARCH event USING INDEX event_run (workspace=? AND run=? AND seq<?)"),
        ("due", "SEARCH t USING INDEX task_pending (workspace=? AND holder=?)"),
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
    "what is open": lambda view: view.tasks(Which(state="open")),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_larger_workspace_costs_no_more(database: SqliteDatabase, look: Callable[[View], object]):
    """Counted in instructions of SQLite's machine: the same in a workspace that is ten times as large."""
    asyncio.run(fill(database, 0, 50))
    small = instructions(database, look)
    asyncio.run(fill(database, 50, 500))
    assert instructions(database, look) <= small * 1.05


async def fill(database: SqliteDatabase, first: int, last: int) -> None:
    """Runs of three tasks, of which the first ten are open."""
    store = database.store("one")
    for number in range(first, last):
        root = first_remit(f"run{number}", session="s")
        parts = [child_remit(root, f"run{number}part{part}", holder="helper") for part in range(2)]
        await store.tx(root.id, starting(root, *parts))
        for remit in (*parts, root) if number >= 10 else ():
            await store.tx(f"end {remit.id}", ending(remit, at=NOW))


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


async def read(database: SqliteDatabase, look: Callable[[View], object]) -> object:
    return await database.store("one").read(look)


# -- PostgreSQL -----------------------------------------------------------------------------------------------------

OWN = {"done_of", "standings", "same_requests_of", "run_facts_of", "append"}  # of those only it has, what is about rows
ARRAYS = {"ops", "tasks", "keys", "runs"}
TABLES = {"event", "task", "run", "entry", "message", "breaker", "card", "worker", "tally", "tally_task", "tally_mark"}


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
