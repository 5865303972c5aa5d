"""What a task, an event, a stream and a workspace cost, and whether a task costs the same in many workspaces over
several databases: `make bench-scale`, or `ARGS="--workspaces 100"` for less.

The same runs go to one database and to four, as files and as databases of one PostgreSQL. A process does all of it, so
the figures of CPU are those of remit and its driver; the server's own CPU is not in them.
"""

import argparse
import asyncio
import gc
import resource
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psycopg
from psycopg.conninfo import make_conninfo

import remit
from remit.ports import Database
from remit.runtime.opening import open_database
from remit.runtime.workspace import Workspace, opening_of
from subjects.servers import server

DATABASES = 4
TASKS = 300  # in one workspace
AT_ONCE = 16  # workspaces with a run at the same time
EACH = 2  # runs of a workspace
STREAMS = 500


class Cost(NamedTuple):
    """What something took: seconds of CPU of this process, and of the clock."""

    cpu: float
    wall: float


class Spread(NamedTuple):
    """A run of many workspaces over some databases."""

    where: str
    databases: int
    workspaces: int
    first: Cost  # of a run in each new workspace
    cost: Cost  # of the runs after it
    lives: list[int]  # workspaces of each database


@contextmanager
def measured(into: list[Cost]) -> Iterator[None]:
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    yield
    into.append(Cost(time.process_time() - cpu, time.perf_counter() - wall))


def memory() -> int:
    """Return the resident memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


async def answer(turn: remit.Turn) -> str:
    return turn.task


async def spread(addresses: list[str], where: str, workspaces: int) -> Spread:
    """Run tasks in many workspaces, a few at a time."""
    taken: list[Cost] = []
    with open_database(addresses if len(addresses) > 1 else addresses[0]) as database:
        await _all(database, [f"warm-{number}" for number in range(AT_ONCE)], 1)
        names = [f"team-{number}" for number in range(workspaces)]
        for runs in (1, EACH):  # the first run of a new workspace also finds a place for it
            with measured(taken):
                await _all(database, names, runs)
        members = getattr(database, "members", {"": database})
        lives = [sum(name.startswith("team-") for name in one.workspaces()) for one in members.values()]
    first, later = taken
    found = Spread(where, len(addresses), workspaces, first, later, lives)
    print(found, file=sys.stderr, flush=True)
    return found


async def _all(database: Database, names: list[str], runs: int) -> None:
    left = iter(names)

    async def line() -> None:
        for name in left:
            with remit.Runtime(database, workspace=name) as rt:
                rt.agent(answer)
                for _ in range(runs):
                    await rt.run("answer", "a task of some words")

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(line())


async def single(address: str, size: Callable[[], int]) -> dict[str, str]:
    """Measure a task, an event, a stream and a workspace of one database."""
    taken: list[Cost] = []
    with open_database(address) as database, remit.Runtime(database, workspace="one") as rt:
        rt.agent(answer)
        await rt.run("answer", "first")
        store = opening_of(rt.workspace).records
        before, events = size(), await store.read(lambda view: view.head().seq)
        with measured(taken):
            for _ in range(TASKS):
                await rt.run("answer", "a task of some words")
        grown, more = size() - before, await store.read(lambda view: view.head().seq) - events
        context = rt.workspace.context()
        before = size()
        with measured(taken):
            for number in range(TASKS):
                await context.set("notes", f"key {number}", "a value of some words")
        noted = size() - before
        told = {
            "events per task": f"{more / TASKS:.1f}",
            "CPU per task": f"{1000 * taken[0].cpu / TASKS:.2f} ms",
            "time per task, one after the other": f"{1000 * taken[0].wall / TASKS:.2f} ms",
            "bytes per task": f"{grown / TASKS:,.0f}",
            "CPU per single event": f"{1000 * taken[1].cpu / TASKS:.2f} ms",
            "bytes per single event": f"{noted / TASKS:,.0f}",
        }
        told |= {**await _workspaces(database), **await _streams(rt)}
        print(told, file=sys.stderr, flush=True)
        return told


async def _streams(rt: remit.Runtime) -> dict[str, str]:
    """Measure readers that follow the journal, each on its own."""
    taken: list[Cost] = []
    head = await opening_of(rt.workspace).records.read(lambda view: view.head().seq)
    gc.collect()
    before = memory()
    follows = [rt.workspace.journal.follow(after=head) for _ in range(STREAMS)]
    async with asyncio.TaskGroup() as group:
        reading = [group.create_task(one.next(60)) for one in follows]
        await asyncio.sleep(0)
        with measured(taken):
            await rt.run("answer", "heard by all")
            await asyncio.gather(*reading)
    used = memory() - before
    for one in follows:
        await one.aclose()
    return {
        "memory per stream": f"{used / STREAMS / 1024:.1f} KiB",
        "CPU per stream and wake-up": f"{1000 * taken[0].cpu / STREAMS:.2f} ms",
    }


async def _workspaces(database: Database) -> dict[str, str]:
    gc.collect()
    before, opened = memory(), list[Workspace]()
    for number in range(STREAMS):
        workspace = Workspace(database, f"idle-{number}")
        await workspace.context().set("notes", "key", 1)
        opened.append(workspace)
    return {"memory per open workspace": f"{(memory() - before) / len(opened) / 1024:.1f} KiB"}


def file_size(path: Path) -> int:
    """Return the size of a file, with what its write-ahead log still has."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint")
    return path.stat().st_size


def server_size(address: str) -> int:
    with psycopg.connect(address, autocommit=True) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        assert row is not None
        return int(row[0])


def new_databases(address: str, mark: str, number: int) -> list[str]:
    made = [f"scale_{mark}_{one}" for one in range(number)]
    with psycopg.connect(address, autocommit=True) as connection:
        for name in made:
            connection.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0".encode())
    return [make_conninfo(address, dbname=name) for name in made]


def shown(singles: dict[str, dict[str, str]], spreads: list[Spread]) -> str:
    names = [*next(iter(singles.values()))]
    lines = [f"| | {' | '.join(singles)} |", f"|---|{'---|' * len(singles)}"]
    lines += [f"| {name} | {' | '.join(one[name] for one in singles.values())} |" for name in names]
    lines += [
        "",
        "| where | databases | workspaces in each | CPU of a first run | CPU of a later run | later runs/s |",
        "|---|---|---|---|---|---|",
    ]
    for one in spreads:
        each = ", ".join(map(str, one.lives))
        runs = one.workspaces * EACH
        first, later = 1000 * one.first.cpu / one.workspaces, 1000 * one.cost.cpu / runs
        rate = runs / one.cost.wall
        lines.append(f"| {one.where} | {one.databases} | {each} | {first:.2f} ms | {later:.2f} ms | {rate:,.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspaces", type=int, default=1_000)
    parser.add_argument("--no-postgres", action="store_true")
    given = parser.parse_args()
    singles: dict[str, dict[str, str]] = {}
    spreads: list[Spread] = []
    with TemporaryDirectory(prefix="remit-scale-") as name:
        folder = Path(name)
        file = folder / "single.db"
        singles["SQLite"] = asyncio.run(single(str(file), lambda: file_size(file)))
        for number in (1, DATABASES):
            files = [str(folder / f"{len(spreads)}-{one}.db") for one in range(number)]
            spreads.append(asyncio.run(spread(files, "SQLite", given.workspaces)))
        if not given.no_postgres:
            folder.chmod(0o755)
            with server(folder) as address:
                [own] = new_databases(address, "single", 1)
                singles["PostgreSQL"] = asyncio.run(single(own, lambda: server_size(own)))
                for number in (1, DATABASES):
                    made = new_databases(address, str(len(spreads)), number)
                    spreads.append(asyncio.run(spread(made, "PostgreSQL", given.workspaces)))
    print(shown(singles, spreads))


if __name__ == "__main__":
    main()
