"""kill -9 at every fault hook: what was acknowledged is there, and everything still fits together."""

import ast
import asyncio
import json
import re
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import remit
from deep import some
from programs import ran
from remit import stores
from remit.core.projection import Tables
from remit.errors import Conflict
from remit.ports import FAULTS, Database, Span, Store
from remit.runtime.workspace import opening_of
from remit.settings import System
from remit.stores.sqlite.database import SqliteDatabase
from remit.testing.clauses.making import answer_or_error, check_journal, raising

HERE = Path(__file__).parent
# At which times of each hook; a run is more varied.
TIMES = [
    ("sets", range(1, 4)),
    ("crowd", range(1, 4)),
    ("run", range(4, 11, 3)),
    ("messages", range(1, 2)),
    ("cleanup", range(1, 2)),
    ("run", range(1, 10, 2)),
    ("run", range(2, 11, 2)),
    ("messages", range(2, 4)),
    ("cleanup", range(2, 4)),
]


@pytest.mark.rule("store.crash", "journal.one-event", "journal.chain")
@pytest.mark.parametrize(("scenario", "times"), some(TIMES, 2))
def test_kill_9_loses_nothing_that_was_acknowledged(scenario: str, times: range, tmp_path: Path):
    cases = [f"{hook}:{time}" for hook in FAULTS for time in times]
    done = ran("-W", "error", HERE / "crash.py", tmp_path, scenario, *cases, timeout=100)
    ended = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    killed = [case for case, status in ended.items() if int(status) == signal.SIGKILL]
    assert killed == cases, f"every hook is reached every time; {ended} {done.stderr}"
    acknowledged = [asyncio.run(survives(tmp_path, case.replace(":", "-"))) for case in cases]
    assert sum(acknowledged) >= len(cases), "the scenarios got somewhere before they were killed"


@pytest.mark.rule("store.crash")
def test_the_store_has_exactly_the_fault_hooks_that_are_listed():
    found: list[str] = []
    for path in Path(stores.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and re.search(r"(^|[._])fault$", ast.unparse(node.func)):
                found += [arg.value for arg in node.args if isinstance(arg, ast.Constant)]  # pyright: ignore[reportAssignmentType]
    assert set(found) == set(FAULTS)


async def survives(folder: Path, case: str) -> int:
    """Reopens what a killed process left behind; says how much it had acknowledged."""
    acks = [json.loads(line) for line in (folder / f"{case}.acks").read_text().splitlines()]
    path = folder / f"{case}.db"
    with closing(SqliteDatabase(path)) as database:
        assert database.faulty() == []
        store = database.store("default")
        await store.read(check_journal)
        await check_acknowledged(store, acks)
        await goes_on(database)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]
    return len(acks)


async def check_acknowledged(store: Store, acks: list[list]) -> None:
    tables = await store.read(lambda view: view.tables())
    events = await store.read(lambda view: view.events(Span()))
    written = [event.data for event in events if event.kind == "entry.set"]
    for kind, *what in acks:
        match kind, what:
            case "op", [op, answer]:
                assert await answer_or_error(store, op, raising(Conflict("too late"))) == answer
            case "entry", [namespace, key, version, value]:
                assert tables["entry"][namespace, key]["version"] >= version
                found = [(one["version"], one["value"]) for one in written if one["key"] == key]
                assert (version, value) in found
            case "task", [task, state]:
                assert tables["task"][task,]["state"] == state
            case "sent", [text]:
                assert [row["text"] for row in tables["message"].values()].count(text) == 1
            case "taken", [ids]:
                assert all(tables["message"][one,]["taken_at"] is not None for one in ids)
            case "cleaned", [count, keys]:
                assert count == len(keys)
                assert not any(("passing", key) in tables["entry"] for key in keys)
            case _:
                pytest.fail(f"what is {kind} {what}?")
    check_whole(tables)


def check_whole(tables: Tables) -> None:
    """What belongs together was written together: a generation is there whole or gone whole."""
    passing = [key for namespace, key in tables["entry"] if namespace == "passing"]
    for generation in {key.split("/")[0] for key in passing}:
        assert sum(key.startswith(generation) for key in passing) == 3


async def goes_on(database: Database) -> None:
    """The next process works as if nothing had happened."""
    rt = remit.Runtime(database, system=System(check_clock=False))  # it was written by another clock

    @rt.agent
    async def next_one(turn: remit.Turn) -> str:
        await turn.context.set("notes", "after", "the crash")
        return await turn.context.get("notes", "after")

    assert await rt.run("next-one", "go on") == "the crash"
    await opening_of(rt.workspace).ground.store.read(check_journal)
