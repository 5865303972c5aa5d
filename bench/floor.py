"""What the same thing costs with nothing but asyncio or sqlite3: no one can be below this."""

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import Effort, Samples, cpu_of, each, rounds, together

_VALUE = "v" * 200


async def _nothing() -> str:
    async with asyncio.timeout(300):  # noqa: ASYNC100 - what a deadline costs is the question
        return "ok"


async def _sleep() -> str:
    async with asyncio.timeout(300):
        await asyncio.sleep(0.02)
        return "ok"


def hop(effort: Effort) -> Samples:
    """A task with a deadline, awaited."""
    return rounds(effort, lambda: asyncio.run(each(effort.of(2_000), lambda: asyncio.create_task(_nothing()))))


def sleepers(effort: Effort) -> Samples:
    return rounds(effort, lambda: asyncio.run(together(effort.of(1_000), _sleep)))


def fan_out(effort: Effort) -> Samples:
    return rounds(effort, lambda: asyncio.run(together(50, _nothing)))


@contextmanager
def database() -> Iterator[sqlite3.Connection]:
    """A file with one table, as durable as a store."""
    with TemporaryDirectory() as folder:
        found = sqlite3.connect(Path(folder) / "floor.db", isolation_level=None)
        found.execute("PRAGMA journal_mode = WAL")
        found.execute("PRAGMA synchronous = FULL")
        found.execute("CREATE TABLE floor (id INTEGER PRIMARY KEY, value TEXT)")
        yield found
        found.close()


def _write(connection: sqlite3.Connection, batch: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for _ in range(batch):
        connection.execute("INSERT INTO floor (value) VALUES (?)", (_VALUE,))
    connection.execute("COMMIT")


def _commits(times: int, batch: int) -> float:
    """Seconds for one transaction."""
    with database() as connection:
        start = time.perf_counter()
        for _ in range(times):
            _write(connection, batch)
        return (time.perf_counter() - start) / times


def two_commits(effort: Effort) -> Samples:
    return rounds(effort, lambda: 2e6 * _commits(effort.of(500), 1))


def rows_alone(effort: Effort) -> Samples:
    return rounds(effort, lambda: 1 / _commits(effort.of(1_000), 1))


def rows_grouped(effort: Effort) -> Samples:
    return rounds(effort, lambda: 100 / _commits(effort.of(200), 100))


def start(effort: Effort) -> Samples:
    return rounds(effort, lambda: cpu_of("import asyncio, sqlite3"))


def hello(effort: Effort) -> Samples:
    return rounds(effort, lambda: cpu_of("import asyncio, sqlite3\nasync def f(): pass\nasyncio.run(f())"))
