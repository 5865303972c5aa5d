"""What the same thing costs with nothing but asyncio and sqlite3: no one can be below this."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import AsyncCosts, Cost, Costs, Load, Work, each
from subjects.library import Pause, no_pause

_VALUE = "v" * 200


async def _nothing() -> str:
    async with asyncio.timeout(300):  # noqa: ASYNC100 - what a deadline costs is the question
        return "ok"


@asynccontextmanager
async def handoffs(length: int, folder: Path | None = None) -> AsyncGenerator[Work]:
    """A task with a deadline for each holder; on a file, a row for each change, synced once."""

    async def work() -> None:
        for _ in range(length + 1):
            await asyncio.create_task(_nothing())
        if connection is not None:
            write(connection, length + 2)

    if folder is None:
        connection = None
        yield work
    else:
        with database(folder) as connection:
            yield work


@asynccontextmanager
async def delegation(pause: Pause = no_pause, folder: Path | None = None) -> AsyncGenerator[Work]:
    assert folder is None

    async def worker() -> str:
        async with asyncio.timeout(300):
            await pause(1)
            return "ok"

    async def lead() -> str:
        async with asyncio.timeout(300):
            await pause(0)
            answer = await asyncio.create_task(worker())
            await pause(2)
            return answer

    yield lambda: asyncio.create_task(lead())


@asynccontextmanager
async def fan_out(members: int, seconds: float) -> AsyncGenerator[Work]:
    async def member() -> str:
        async with asyncio.timeout(300):
            await asyncio.sleep(seconds)
            return "ok"

    yield lambda: asyncio.gather(*[member() for _ in range(members)])


async def hop(load: Load) -> AsyncCosts:
    """A task with a deadline, awaited."""
    while True:
        yield await each(load.of(2_000), lambda: asyncio.create_task(_nothing()))


# -- files -----------------------------------------------------------------------------------------------


@contextmanager
def database(folder: Path) -> Generator[sqlite3.Connection]:
    """A file with one table, as durable as a store."""
    with TemporaryDirectory(dir=folder) as place:
        found = sqlite3.connect(Path(place) / "floor.db", isolation_level=None)
        found.execute("PRAGMA journal_mode = WAL")
        found.execute("PRAGMA synchronous = FULL")
        found.execute("CREATE TABLE floor (id INTEGER PRIMARY KEY, value TEXT)")
        yield found
        found.close()


def write(connection: sqlite3.Connection, rows: int) -> None:
    """Write rows in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    for _ in range(rows):
        connection.execute("INSERT INTO floor (value) VALUES (?)", (_VALUE,))
    connection.execute("COMMIT")


def _commits(load: Load, times: int, rows: int) -> Generator[float]:
    """Seconds for one transaction, again and again."""
    with database(load.folder) as connection:
        while True:
            start = time.perf_counter()
            for _ in range(times):
                write(connection, rows)
            yield (time.perf_counter() - start) / times


def two_commits(load: Load) -> Costs:
    """Microseconds for a row at the start and one at the end."""
    for seconds in _commits(load, load.of(500), 1):
        yield Cost(seconds * 2e6)


def rows_alone(load: Load) -> Costs:
    """Rows a second, each synced."""
    for seconds in _commits(load, load.of(1_000), 1):
        yield Cost(1 / seconds)


def rows_grouped(load: Load) -> Costs:
    """Rows a second, a hundred synced at a time."""
    for seconds in _commits(load, load.of(200), 100):
        yield Cost(100 / seconds)
