"""The server over HTTP: what a request costs it, how late its readers hear of an event, and what a reader takes.

The server is `remit serve` in a process of its own, with all its layers and keys of its store. Requests come from this
process. What counts is the processor time of the server, so the figures do not depend on how fast this process asks.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias

from measure import AsyncCosts, Cost, Load, Skipped, Subject, need
from remit import Runtime, Turn, Workspace
from subjects.servers import server

KEYS = 4  # so that none of them makes more requests a second than a key may
CONNECTIONS = 32
STREAMS = 500
_PACE = 0.01  # seconds between two events whose readers are watched


class Serving(NamedTuple):
    """A server that was started: its process, where it listens, and keys for it."""

    process: int
    port: int
    keys: tuple[str, ...]

    @property
    def cpu(self) -> float:
        """Seconds of processor time that it has used so far, in all its threads."""
        return time.clock_gettime((~self.process << 3) | 2)  # what clock_getcpuclockid(3) returns

    @property
    def kilobytes(self) -> float:
        """Memory that it has now."""
        pages = int(Path(f"/proc/{self.process}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1024


# -- servers -------------------------------------------------------------------------------------------------


async def make_keys(store: str, workspace: str = "default", number: int = KEYS) -> tuple[str, ...]:
    """Make a workspace with an agent, and keys that may do everything in it."""
    with Runtime(store, workspace=workspace) as runtime:
        runtime.agent("worker")(_nothing)
        task = await runtime.submit("worker", "its worker publishes its card")
        await task.wait()
        while await runtime.workspace.journal.read(lambda view: view.card("worker")) is None:  # noqa: ASYNC110 - once
            await asyncio.sleep(0.005)
        access = runtime.workspace.access
        made = [await access.make(f"bench {one}", scopes="admin") for one in range(number)]
        return tuple(one.key.reveal() for one in made)


async def _nothing(_turn: Turn) -> str:
    return "ok"


@contextmanager
def serve(command: list[str], folder: Path, keys: tuple[str, ...]) -> Generator[Serving]:
    """Start a server, whose first line names its address, and end it afterwards."""
    if not Path("/proc/self/stat").exists():
        raise Skipped("this system does not tell how much processor time another process has used")
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "COLUMNS": "200"}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        words = process.stdout.readline().split()
        if len(words) < 2:
            raise Skipped("the server did not start")
        yield Serving(process.pid, int(words[1].rpartition(":")[2]), keys)
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def remit_serve(store: str, folder: Path, keys: tuple[str, ...]) -> Generator[Serving]:
    """`remit serve` on a store, without workers."""
    need("uvicorn", "starlette")
    command = [sys.executable, "-m", "remit", "serve", "--port", "0", "--concurrency", "0", "--store", store]
    with serve(command, folder, keys) as started:
        yield started


_FLOOR = """
import asyncio, json, sqlite3, sys, uuid
import uvicorn
from remit.server.serve import listening, run  # the same socket and the same loop; nothing else is remit's
db = sqlite3.connect(sys.argv[1])
db.execute("PRAGMA journal_mode=WAL")
db.execute("PRAGMA synchronous=FULL")
db.execute("CREATE TABLE IF NOT EXISTS tasks (id TEXT PRIMARY KEY, data TEXT)")
waiting = []
async def submit(receive):
    text = (await receive())["body"]
    done = asyncio.get_running_loop().create_future()
    if not waiting:
        asyncio.get_running_loop().call_soon(write)
    waiting.append((uuid.uuid4().hex, text.decode(), done))
    return await done
def write():
    db.executemany("INSERT INTO tasks VALUES (?, ?)", [(one, text) for one, text, _ in waiting])
    db.commit()
    for one, _, done in waiting:
        done.set_result(one)
    waiting.clear()
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    if scope["method"] == "POST":
        data = {"id": await submit(receive)}
    else:
        (text,) = db.execute("SELECT data FROM tasks WHERE id = ?", (scope["path"].rpartition("/")[2],)).fetchone()
        data = json.loads(text)
    body = json.dumps(data).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
async def main():
    with listening("127.0.0.1", 0) as socket:
        print("serving", f"http://127.0.0.1:{socket.getsockname()[1]}", flush=True)
        config = uvicorn.Config(app, http="httptools", ws="none", lifespan="off", log_level="error", access_log=False)
        await uvicorn.Server(config).serve([socket])
run(main())
"""


@contextmanager
def floor_serve(folder: Path) -> Generator[Serving]:
    """A bare ASGI application on the same uvicorn: a row for each task, a commit for those that come together."""
    need("uvicorn")
    command = [sys.executable, "-c", _FLOOR, str(folder / f"floor-{time.time_ns()}.db")]
    with serve(command, folder, ("none",)) as started:
        yield started


@asynccontextmanager
async def on(where: str, load: Load) -> AsyncGenerator[tuple[Serving, str]]:
    """A server of this kind, and the store that it serves."""
    if where == "floor":
        with floor_serve(load.folder) as started:
            yield started, ""
    elif where == "PostgreSQL":
        with server(load.folder) as address, remit_serve(address, load.folder, await make_keys(address)) as started:
            yield started, address
    else:
        store = str(load.folder / f"served-{time.time_ns()}.db")
        with remit_serve(store, load.folder, await make_keys(store)) as started:
            yield started, store


# -- requests ------------------------------------------------------------------------------------------------


class Connection:
    """A connection that is kept, as cheap as possible for this process: one request after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str) -> None:
        self._reader = reader
        self._writer = writer
        self._head = f"Host: 127.0.0.1:{writer.get_extra_info('peername')[1]}\r\nAuthorization: Bearer {key}\r\n"

    async def ask(self, method: str, path: str, body: bytes = b"", more: str = "") -> bytes:
        """Return the body of the answer; an answer that is an error is raised."""
        if method == "POST":
            more += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self._writer.write(f"{method} {path} HTTP/1.1\r\n{self._head}{more}\r\n".encode() + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        answer = await self._reader.readexactly(length)
        if not head.startswith(b"http/1.1 20"):
            raise RuntimeError(answer.decode())
        return answer

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def connections(serving: Serving, number: int = CONNECTIONS) -> AsyncGenerator[list[Connection]]:
    made: list[Connection] = []
    try:
        for one in range(number):
            reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
            made.append(Connection(reader, writer, serving.keys[one % len(serving.keys)]))
        yield made
    finally:
        for each in made:
            each.close()


_NUMBERS = count()
Request: TypeAlias = Callable[[Connection, int], Awaitable[object]]


def submission(number: int) -> bytes:
    return b'{"agent": "worker", "task": "task %d"}' % number


async def submit(connection: Connection) -> str:
    return json.loads(await connection.ask("POST", "/v1/tasks", submission(next(_NUMBERS))))["id"]


def reads(where: str) -> Subject:
    """Status reads per second of the server's processor time."""

    async def costs(load: Load) -> AsyncCosts:
        async with on(where, load) as (serving, _):
            async with connections(serving) as made:
                tasks = [await submit(one) for one in made]
            while True:
                yield await _rate(serving, load.of(6_000), lambda one, number: _read(one, tasks, number))

    return costs


async def _read(connection: Connection, tasks: list[str], number: int) -> None:
    await connection.ask("GET", f"/v1/tasks/{tasks[number % len(tasks)]}")


def submits(where: str) -> Subject:
    """Durable submits per second of the server's processor time."""

    async def costs(load: Load) -> AsyncCosts:
        async with on(where, load) as (serving, _):
            while True:
                yield await _rate(serving, load.of(4_000), lambda one, _: submit(one))

    return costs


async def _rate(serving: Serving, total: int, request: Request) -> Cost:
    """Requests of all connections at once, per second of the server's processor time. A server closes connections that
    nobody uses while others are measured, so they are new."""
    left = iter(range(total))

    async def some(connection: Connection) -> None:
        for number in left:
            await request(connection, number)

    async with connections(serving) as made:
        cpu = serving.cpu
        await asyncio.gather(*(some(one) for one in made))
    return Cost(total / (serving.cpu - cpu))


# -- streams -------------------------------------------------------------------------------------------------

_LISTEN = "Accept: text/event-stream\r\n"


async def listen(serving: Serving, key: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a stream of all events from now on, and wait until it has begun."""
    reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
    head = f"Host: 127.0.0.1:{serving.port}\r\nAuthorization: Bearer {key}\r\n{_LISTEN}\r\n"
    writer.write(f"GET /v1/events HTTP/1.1\r\n{head}".encode())
    await reader.readuntil(b"retry: 1000\n\n")
    return reader, writer


async def _delays(reader: asyncio.StreamReader, number: int) -> list[float]:
    """Milliseconds between the time of each event and its arrival here."""
    found: list[float] = []
    while len(found) < number:
        line = await reader.readline()
        if line.startswith(b"data: ") and (at := json.loads(line[6:]).get("at")):
            found.append(time.time_ns() / 1e6 - at / 1e3)
    return found


def delay(where: str, *, apart: bool, share: float) -> Subject:
    """Milliseconds from the time of an event to its reader; `apart` if another process than the server writes it.
    `share` of the readers are as fast: a half is the median."""

    async def costs(load: Load) -> AsyncCosts:
        async with AsyncExitStack() as stack:
            serving, store = await stack.enter_async_context(on(where, load))
            reader, writer = await listen(serving, serving.keys[0])
            stack.callback(writer.close)
            opened = stack.enter_context(Workspace(store)) if apart else None
            while True:
                number = load.of(200)
                arriving = asyncio.create_task(_delays(reader, number))
                async with connections(serving, 1) as (writing,):
                    for _ in range(number):
                        await (submit(writing) if opened is None else opened.submit("worker", f"{next(_NUMBERS)}"))
                        await asyncio.sleep(_PACE)
                found = sorted(await arriving)
                yield Cost(found[min(number - 1, int(number * share))])

    return costs


async def stream_memory(load: Load) -> AsyncCosts:
    """Kilobytes of the server for each open stream. It is asked once: freed memory is used again."""
    number = load.of(STREAMS)
    async with on("SQLite", load) as (serving, _):
        async with connections(serving) as made:  # warm
            await asyncio.gather(*(submit(one) for one in made))
        before = serving.kilobytes
        opened = await asyncio.gather(*(listen(serving, serving.keys[0]) for _ in range(number)))
        try:
            yield Cost((serving.kilobytes - before) / number)
        finally:
            for _, writer in opened:
                writer.close()
