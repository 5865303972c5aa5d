"""What shared context costs in remit, the same queries on bare sqlite3, and langgraph's stores."""

import sqlite3
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import remit
from measure import AsyncCosts, Cost, Load, Subject, each, need, together
from remit.runtime.workspace import opening_of
from remit.types import Context
from subjects.team import team

ROWS = 1_000_000
LAST, PREFIXED = 5, 20
_COLUMNS = (
    "namespace, key, form, value, agent, created_at, updated_at, expires_at, "
    "version, digest, extension, trust, task, chain"
)
_VALUES = "'default', 'ns', ?, 'text', 'value', '', ?, ?, NULL, 1, '', NULL, 'trusted', '', '[]'"
_FILL = f"INSERT INTO entry (workspace, {_COLUMNS}) VALUES ({_VALUES})"
_FILL_GRAPHS = "INSERT INTO store (prefix, key, value, updated_at) VALUES (?, ?, ?, datetime(?, 'unixepoch'))"


def _key(number: int) -> str:
    return f"key-{number:09d}"


def _some(load: Load) -> str:
    """A key from the middle."""
    return _key(load.of(ROWS) // 2)


def _filled(load: Load) -> Path:
    """A store with many entries, made once for all who read it."""
    path = load.folder / "filled.db"
    if not path.exists():
        making = load.folder / "making.db"
        with remit.Workspace(making) as workspace:
            assert opening_of(workspace).database.lasting  # it is opened on first use
        _fill(making, _FILL, ((_key(n), n, n) for n in range(load.of(ROWS))))
        making.rename(path)
    return path


def _fill(path: Path, insert: str, rows: Iterable[tuple[Any, ...]]) -> None:
    with sqlite3.connect(path) as connection:
        connection.executemany(insert, rows)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


# -- remit -----------------------------------------------------------------------------------------------


def _reads(read: Callable[[Context, str], Any]) -> Subject:
    async def costs(load: Load) -> AsyncCosts:
        some = _some(load)
        with remit.Runtime(_filled(load)) as runtime:
            context = runtime.workspace.context()
            await read(context, some)
            while True:
                yield await each(load.of(2_000), lambda: read(context, some))

    return costs


get = _reads(lambda context, some: context.get("ns", some))
last = _reads(lambda context, _some: context.query("ns", LAST))
prefix = _reads(lambda context, some: context.query("ns", PREFIXED, prefix=some[:-3]))


async def sets_alone(load: Load) -> AsyncCosts:
    """Durable writes a second, one after the other."""
    with team(load.folder) as runtime:
        keys, context = count(), runtime.workspace.context()
        while True:
            cost = await each(load.of(1_000), lambda: context.set("ns", _key(next(keys)), "v"))
            yield Cost(1e6 / cost.value)


async def sets_together(load: Load) -> AsyncCosts:
    """Durable writes a second by a hundred writers at once."""
    times = load.of(200)
    with team(load.folder) as runtime:
        keys, context = count(), runtime.workspace.context()

        async def writer() -> None:
            for _ in range(times):
                await context.set("ns", _key(next(keys)), "v")

        while True:
            yield Cost(1e3 * 100 * times / (await together(100, writer)).value)


# -- the same on bare sqlite3 ----------------------------------------------------------------------------


@contextmanager
def _bare(load: Load) -> Generator[sqlite3.Connection]:
    connection = sqlite3.connect(_filled(load), isolation_level=None)
    yield connection
    connection.close()


def _selects(tail: str, given: Callable[[str], tuple[str, ...]]) -> Subject:
    sql = f"SELECT {_COLUMNS} FROM entry WHERE workspace = 'default' AND namespace = 'ns' {tail}"

    async def costs(load: Load) -> AsyncCosts:
        values = given(_some(load))
        with _bare(load) as connection:

            async def select() -> object:
                return connection.execute(sql, values).fetchall()

            while True:
                yield await each(load.of(2_000), select)

    return costs


bare_get = _selects("AND key = ?", lambda some: (some,))
bare_last = _selects(f"ORDER BY updated_at DESC LIMIT {LAST}", lambda _some: ())
bare_prefix = _selects(
    f"AND key >= ? AND key < ? ORDER BY key LIMIT {PREFIXED}", lambda some: (some[:-3], some[:-3] + "~")
)


# -- langgraph's stores ----------------------------------------------------------------------------------
# They find by the prefix of a namespace, not of a key: a thousand keys each are in a namespace of their own.


async def _graph_file(load: Load, library: Any) -> Path:
    path = load.folder / "graphs.db"
    if not path.exists():
        making = load.folder / "graphs-making.db"
        async with library.AsyncSqliteStore.from_conn_string(str(making)) as store:
            await store.setup()
        rows = ((f"ns.{_key(n)[:-3]}", _key(n), '{"v": "value"}', n) for n in range(load.of(ROWS)))
        _fill(making, _FILL_GRAPHS, rows)
        making.rename(path)
    return path


def _graph_reads(read: Callable[[Any, str], Any]) -> Subject:
    async def costs(load: Load) -> AsyncCosts:
        (library,) = need("langgraph.store.sqlite.aio")
        some = _some(load)
        async with library.AsyncSqliteStore.from_conn_string(str(await _graph_file(load, library))) as store:
            await store.setup()
            while True:
                yield await each(load.of(2_000), lambda: read(store, some))

    return costs


graph_get = _graph_reads(lambda store, some: store.aget(("ns", some[:-3]), some))
graph_last = _graph_reads(lambda store, _some: store.asearch(("ns",), limit=LAST))
graph_prefix = _graph_reads(lambda store, some: store.asearch(("ns", some[:-3]), limit=PREFIXED))
