"""A workspace next to a bad neighbour: `make bench-server`.

The neighbour has 500 streams that nobody reads, a hook whose address never answers, and submits 10,000 tasks. The
other workspace reads the status of a task meanwhile, and shows a run of 1,000 tasks. What is found has a verdict.
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import page
from machine import Machine, sentence
from remit import Runtime, Turn
from remit.adapters.vault import fresh_master
from subjects.servers import server
from subjects.web import Connection, Serving, connections, make_keys, submit

BUSY, QUIET = "busy", "quiet"
STREAMS, SUBMITS, TASKS, WORKSPACES = 500, 10_000, 1_000, 100
_LOOKS = 300  # status reads of the quiet workspace before the burst
_BUFFER = 4_096  # bytes that a reader which does not read takes
_BURST = """
import asyncio, sys
from subjects.web import Serving, connections, submit
async def main(port, key, total):
    left = iter(range(total))
    async def some(one):
        for _ in left:
            await submit(one)
    async with connections(Serving(0, port, (key,))) as made:
        await asyncio.gather(*(some(one) for one in made))
asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
"""


class Finding(NamedTuple):
    """A figure and what we want it to be at most; None where we only look."""

    what: str
    unit: str
    figure: float
    limit: float | None = None

    @property
    def verdict(self) -> str:
        if self.limit is None:
            return ""
        return f"at most {page.number(self.limit)}: {'reached' if self.figure <= self.limit else 'missed'}"


class Looked(NamedTuple):
    """Milliseconds of status reads: median and slowest of 95 % by the clock, and median of the server's CPU."""

    median: float
    slow: float
    cpu: float

    @staticmethod
    def of(found: list[tuple[float, float]]) -> "Looked":
        walls, cpus = sorted(wall for wall, _ in found), [cpu for _, cpu in found]
        return Looked(statistics.median(walls), walls[int(len(walls) * 0.95)], statistics.median(cpus))


class Watched(NamedTuple):
    """A server that tells how it is."""

    serving: Serving
    process: subprocess.Popen[str]

    def told(self) -> dict[str, float]:
        """Return what it tells of the time since it was last asked."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("tell\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@contextmanager
def watched(store: str, keys: tuple[str, ...]) -> Generator[Watched]:
    environment = {**os.environ, "REMIT_MASTER_KEY": fresh_master().reveal(), "REMIT_HOOK_NETWORKS": "127.0.0.0/8"}
    command = [sys.executable, str(Path(__file__).with_name("watched.py")), store]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline().rpartition(":")[2])
        yield Watched(Serving(process.pid, port, keys), process)
    finally:
        process.communicate()


# -- the neighbour -------------------------------------------------------------------------------------------


async def _lead(turn: Turn, tasks: int) -> str:
    for number in range(tasks):
        await turn.delegate("helper", f"part {number}")
    return "done"


async def _help(_turn: Turn) -> str:
    return "ok"


async def make_run(store: str, tasks: int) -> str:
    """Make a run with so many tasks in the quiet workspace, and return its id."""
    with Runtime(store, workspace=QUIET) as runtime:

        @runtime.agent(asks=["helper"])
        async def lead(turn: Turn) -> str:
            return await _lead(turn, tasks - 1)

        runtime.agent("helper")(_help)
        await runtime.run("lead", "a large run")
        (first,) = await runtime.workspace.tasks.list(agent="lead")
        return first.run


@asynccontextmanager
async def hanging() -> AsyncGenerator[int]:
    """The port of an address that accepts everything and never answers."""

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.CancelledError):  # the end of this process's loop
            while await reader.read(65_536):
                pass
        writer.close()

    async with await asyncio.start_server(hang, "127.0.0.1", 0) as listening:
        yield listening.sockets[0].getsockname()[1]


def stalled(serving: Serving, key: str, number: int) -> list[socket.socket]:
    """Open streams from the first event on that nobody reads."""
    head = f"Host: 127.0.0.1:{serving.port}\r\nAuthorization: Bearer {key}\r\nAccept: text/event-stream\r\n"
    made: list[socket.socket] = []
    for _ in range(number):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        one.connect(("127.0.0.1", serving.port))
        one.sendall(f"GET /v1/events HTTP/1.1\r\n{head}Last-Event-ID: 0\r\n\r\n".encode())
        made.append(one)
    for one in made:
        one.recv(64)  # the stream has begun
    return made


async def burst(serving: Serving, key: str, total: int) -> None:
    """Submit tasks from another process, as fast as 32 connections can."""
    command = [sys.executable, "-c", _BURST, str(serving.port), key, str(total)]
    process = await asyncio.create_subprocess_exec(*command, cwd=Path(__file__).parent)
    if await process.wait():
        raise SystemExit("the burst failed")


# -- the other workspace -------------------------------------------------------------------------------------


class Looks:
    """Status reads: the milliseconds of each, by the clock and in processor time of the server."""

    def __init__(self, serving: Serving, connection: Connection, task: str) -> None:
        self._serving = serving
        self._connection = connection
        self._task = task

    async def some(self, number: int) -> Looked:
        return Looked.of([await self._one() for _ in range(number)])

    async def during(self, work: asyncio.Task[None]) -> Looked:
        found: list[tuple[float, float]] = []
        while not work.done():
            found.append(await self._one())
            await asyncio.sleep(0.005)
        await work
        return Looked.of(found)

    async def _one(self) -> tuple[float, float]:
        wall, cpu = time.perf_counter(), self._serving.cpu
        await self._connection.ask("GET", f"/v1/tasks/{self._task}")
        return (time.perf_counter() - wall) * 1e3, (self._serving.cpu - cpu) * 1e3


async def measured(store: str, share: float) -> list[Finding]:
    """Measure everything on a store."""
    streams, submits, tasks = (max(2, int(full * share)) for full in (STREAMS, SUBMITS, TASKS))
    (busy,), (quiet,) = await make_keys(store, BUSY, 1), await make_keys(store, QUIET, 1)
    run = await make_run(store, tasks)
    with watched(store, (quiet,)) as one:
        async with connections(one.serving, 1) as (connection,), hanging() as port:
            task = await submit(connection)
            looks = Looks(one.serving, connection, task)
            before = await looks.some(_LOOKS)
            started = one.told()
            await _hook(one.serving, busy, port)
            hooked = one.told()
            opened = stalled(one.serving, busy, streams)
            listened = one.told()
            during = await looks.during(asyncio.create_task(burst(one.serving, busy, submits)))
            crowded = one.told()
            for _ in range(5):
                await connection.ask("GET", f"/v1/runs/{run}")
            shown = one.told()
            for each in opened:
                each.close()
            await asyncio.sleep(2)
            left = one.told()
        many = await _in_many_workspaces(store, one, max(2, int(WORKSPACES * share)))
    return [
        Finding("status read of the other workspace, quiet: median", "ms", before.median),
        Finding("the same during the burst: median", "ms", during.median),
        Finding("the same during the burst: slowest of 95 %", "ms", during.slow),
        Finding("factor between the medians, by the clock", "x", during.median / before.median, 2),
        Finding("processor time of the server until the answer, quiet: median", "ms", before.cpu),
        Finding("the same during the burst: median", "ms", during.cpu),
        Finding("longest hold of the loop while the first hook is added, processor time", "ms", hooked["used_ms"], 50),
        Finding("longest hold of the loop while the streams are opened, processor time", "ms", listened["used_ms"], 50),
        Finding("longest hold of the loop in the burst, processor time", "ms", crowded["used_ms"], 50),
        Finding("longest hold of the loop in the burst, by the clock", "ms", crowded["held_ms"]),
        Finding(
            f"longest hold of the loop while a run of {tasks:,} tasks is shown, processor time",
            "ms",
            shown["used_ms"],
            50,
        ),
        Finding("longest hold of the loop meanwhile, by the clock", "ms", shown["held_ms"]),
        Finding("longest hold of the loop while the readers leave, processor time", "ms", left["used_ms"], 50),
        Finding("memory at the start", "MB", started["mb"]),
        Finding("memory at the end of the burst", "MB", crowded["mb"]),
        Finding("memory after the readers have left", "MB", left["mb"]),
        *many,
    ]


async def _hook(serving: Serving, key: str, port: int) -> None:
    body = json.dumps({"url": f"http://127.0.0.1:{port}/hook", "kinds": ["task.*"]}).encode()
    async with connections(serving._replace(keys=(key,)), 1) as (connection,):
        await connection.ask("POST", "/v1/hooks", body)


async def _in_many_workspaces(store: str, one: Watched, number: int) -> list[Finding]:
    """Use some workspaces, then many, as often in all, and compare what the process has: a pool of threads grows with
    what happens at once."""
    keys = [(await make_keys(store, f"ws{each}", 1))[0] for each in range(number)]
    told: list[dict[str, float]] = []
    for some in (keys[: number // 10] * 10, keys):
        for key in some:
            async with connections(one.serving._replace(keys=(key,)), 1) as (connection,):
                await submit(connection)
                stalled(one.serving, key, 1)[0].close()
        told.append(one.told())
    few, all_ = told
    return [
        Finding(f"threads more in {number} workspaces than in {number // 10}", "", all_["threads"] - few["threads"], 0),
        Finding("files more", "", all_["files"] - few["files"], 0),
    ]


def markdown(found: dict[str, list[Finding]]) -> str:
    rows: list[list[str]] = []
    for each in zip(*found.values(), strict=True):
        figures = [f"{page.number(one.figure)} {one.unit}".strip() for one in each]
        rows.append([each[0].what, *figures, each[0].verdict.partition(":")[0], _together(each)])
    return page.table(["what", *found, "aim", "verdict"], rows, ("aim", "verdict"))


def _together(each: tuple[Finding, ...]) -> str:
    said = dict.fromkeys(one.verdict.partition(": ")[2] for one in each)
    return " / ".join(one for one in said if one)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the load")
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL, too")
    parser.add_argument("--page", action="store_true", help="put the table into docs/performance.md too")
    given = parser.parse_args()
    machine, share = Machine(), 0.05 if given.quick else 1.0
    found: dict[str, list[Finding]] = {}
    with TemporaryDirectory(prefix="remit-bench-") as folder:
        Path(folder).chmod(0o755)  # a database server runs as another user if we are root
        found["SQLite"] = asyncio.run(measured(str(Path(folder) / "store.db"), share))
        if given.postgres:
            with server(Path(folder)) as address:
                found["PostgreSQL"] = asyncio.run(measured(address, share))
    told: dict[str, Any] = machine.told()
    body = f"{sentence(told)}\n\n{markdown(found)}"
    if given.page:
        page.write("neighbours", body)
    print(body)
    missed = [one for each in found.values() for one in each if "missed" in one.verdict]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
