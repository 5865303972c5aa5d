"""What shared context costs in remit, and the same queries on bare sqlite3."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import remit
from measure import Effort, Samples, each, together
from remit.types import Context
from team import team

_COLUMNS = (
    "namespace, key, form, value, agent, created_at, updated_at, expires_at, "
    "version, digest, extension, trust, task, chain"
)
_VALUES = "'default', 'ns', ?, 'text', 'value', '', ?, ?, NULL, 1, '', NULL, 'inside', '', '[]'"
_FILL = f"INSERT INTO entry (workspace, {_COLUMNS}) VALUES ({_VALUES})"


class _Filled:
    """A store with many entries, made once for all jobs that read it."""

    def __init__(self, rows: int) -> None:
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "filled.db"
        self.some = key(rows // 2)
        with remit.Workspace(self.path) as workspace:
            assert workspace.database.lasting  # it is opened on first use
        with sqlite3.connect(self.path) as connection:
            connection.executemany(_FILL, ((key(n), n, n) for n in range(rows)))
        connection.close()


def key(number: int) -> str:
    return f"key-{number:09d}"


@cache
def _filled(rows: int) -> _Filled:
    return _Filled(rows)


def _reads(effort: Effort, read: Callable[[Context, str], object]) -> Samples:
    filled = _filled(effort.of(1_000_000))

    async def all_rounds() -> Samples:
        with remit.Runtime(filled.path) as runtime:
            context = runtime.workspace.context()
            return [await each(1_000, lambda: read(context, filled.some)) for _ in range(effort.rounds)]

    return asyncio.run(all_rounds())


def get(effort: Effort) -> Samples:
    return _reads(effort, lambda context, some: context.get("ns", some))


def last_five(effort: Effort) -> Samples:
    return _reads(effort, lambda context, _some: context.query("ns", 5))


def prefix(effort: Effort) -> Samples:
    return _reads(effort, lambda context, some: context.query_by_prefix("ns", some[:-3], 20))


# -- writes ------------------------------------------------------------


def sets_alone(effort: Effort) -> Samples:
    """Durable writes a second, one after the other."""
    times = effort.of(1_000)

    async def all_rounds() -> Samples:
        with team("file") as runtime:
            keys = _keys()
            context = runtime.workspace.context()
            costs = [await each(times, lambda: context.set("ns", next(keys), "v")) for _ in range(effort.rounds)]
            return [1e6 / cost for cost in costs]

    return asyncio.run(all_rounds())


def sets_together(effort: Effort) -> Samples:
    """Durable writes a second by a hundred writers at once."""
    times = effort.of(200)

    async def all_rounds() -> Samples:
        with team("file") as runtime:
            keys = _keys()
            context = runtime.workspace.context()

            async def writer() -> None:
                for _ in range(times):
                    await context.set("ns", next(keys), "v")

            return [1e3 * 100 * times / await together(100, writer) for _ in range(effort.rounds)]

    return asyncio.run(all_rounds())


def _keys() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield key(number)


# -- the same on bare sqlite3 ------------------------------------------------------------


@contextmanager
def _bare(rows: int) -> Iterator[tuple[sqlite3.Connection, str]]:
    filled = _filled(rows)
    connection = sqlite3.connect(filled.path, isolation_level=None)
    yield connection, filled.some
    connection.close()


def _selects(effort: Effort, tail: str, given: Callable[[str], tuple[str, ...]]) -> Samples:
    sql = f"SELECT {_COLUMNS} FROM entry WHERE workspace = 'default' AND namespace = 'ns' {tail}"
    with _bare(effort.of(1_000_000)) as (connection, some):
        values = given(some)

        async def select() -> object:
            return connection.execute(sql, values).fetchall()

        return [asyncio.run(each(1_000, select)) for _ in range(effort.rounds)]


def bare_get(effort: Effort) -> Samples:
    return _selects(effort, "AND key = ?", lambda some: (some,))


def bare_last_five(effort: Effort) -> Samples:
    return _selects(effort, "ORDER BY updated_at DESC LIMIT 5", lambda _some: ())


def bare_prefix(effort: Effort) -> Samples:
    return _selects(effort, "AND key >= ? AND key < ? ORDER BY key LIMIT 20", lambda s: (s[:-3], s[:-3] + "~"))
