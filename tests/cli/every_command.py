"""Every command, one after another in one process: `python every_command.py pipe|terminal|server ROWS RESULTS`.

In a pipe, standard output and standard error are two pipes. In a terminal, both are one. With a server, the commands
are given its address instead of the store, and print into pipes.
"""

import asyncio
import json
import os
import pty
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from remit import Plan, Step
from remit.cli.main import main
from remit.runtime.workspace import Workspace, opening_of
from remit.server.app import create_app
from remit.server.callers import TokenDoorkeeper
from remit.server.serve import PortServer, listening
from remit.server.tenants import Tenants

TEAM = """
from remit import Plan, Runtime, Step, Turn
from remit.settings import Serving

rt = Runtime("remit.db")

@rt.agent(asks="*")
async def lead(turn: Turn) -> str:
    await turn.context.set("notes", "seen", "a text of some length, which a narrow terminal has no room for at all")
    await turn.spend("$0.05", why="a call")
    await turn.artifacts.save(b"all is well", "report.txt")
    return await turn.delegate("worker", "read the contract of the supplier")

@rt.agent(can="read contracts", reads=["notes"])
async def worker(turn: Turn) -> str:
    return "nothing is missing"

@rt.agent
async def broken(turn: Turn) -> str:
    raise ValueError("no paper")
"""


async def prepare() -> dict[str, str]:
    """Fill the store. Return what the words of the rows refer to."""
    sys.path.insert(0, str(Path.cwd()))
    rt: Any = __import__("team").rt
    ids: dict[str, str] = {}
    async with rt:
        await rt.outcome("broken", "x")
        planned = await rt.submit_plan(Plan([Step("a", "A", agent="worker"), Step("b", "B", agent="worker")]))
        await planned.wait(30)
        ids["plan"] = planned.id
        await rt.run("lead", "go")
        [line, *_] = await rt.workspace.tasks.runs(1)
        ids["run"] = line.record.id
        [artifact, *_] = await rt.workspace.artifacts.list()
        ids["digest"] = artifact.artifact.digest
    return ids


def in_pipes(run: Callable[[], int]) -> dict[str, Any]:
    with reading(os.pipe()) as out, reading(os.pipe()) as err:
        code = on(out[1], err[1], run)
    return {"code": code, "out": out[0](), "err": err[0]()}


def in_terminal(run: Callable[[], int]) -> dict[str, Any]:
    with reading(pty.openpty()) as both:
        code = on(both[1], both[1], run)
    return {"code": code, "out": both[0](), "err": ""}


@contextmanager
def reading(ends: tuple[int, int]) -> Any:
    """Read one end in a thread while the body writes to the other; what was read is known afterwards."""
    source, sink = ends
    read: list[bytes] = []

    def drain() -> None:
        with suppress(OSError):  # a terminal whose other end is closed
            while part := os.read(source, 65_536):
                read.append(part)

    thread = threading.Thread(target=drain)
    thread.start()
    try:
        yield lambda: b"".join(read).decode(), sink
    finally:
        os.close(sink)
        thread.join()
        os.close(source)


def on(out: int, err: int, run: Callable[[], int]) -> int:
    """Run something whose standard output and standard error are these."""
    kept = os.dup(1), os.dup(2)
    before = sys.stdout, sys.stderr
    os.dup2(out, 1)
    os.dup2(err, 2)
    try:
        with open(1, "w", closefd=False) as sys.stdout, open(2, "w", closefd=False) as sys.stderr:
            return run()
    finally:
        sys.stdout, sys.stderr = before
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)


def command(words: list[str]) -> int:
    try:
        main(words)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def prepared() -> dict[str, str]:
    """Fill the store of this folder, unless it is a copy of one that has been filled."""
    kept = Path("ids.json")
    if not kept.exists():
        Path("team.py").write_text(TEAM)
        kept.write_text(json.dumps(asyncio.run(prepare())))
    return json.loads(kept.read_text())


@contextmanager
def served() -> Any:
    """A server of the store in this process, which commands find in their environment."""
    with Workspace("remit.db") as workspace, listening("127.0.0.1", 0) as socket:
        tenants = Tenants(opening_of(workspace).database, (workspace,))
        server = PortServer(create_app(tenants, TokenDoorkeeper("token", workspace.name)))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([socket])))
        thread.start()
        os.environ |= {"REMIT_SERVER": f"http://127.0.0.1:{socket.getsockname()[1]}", "REMIT_KEY": "token"}
        try:
            yield
        finally:
            server.end()
            thread.join()


def work(how: str, rows: list[list[str]]) -> list[dict[str, Any]]:
    ids = prepared()
    place = in_terminal if how == "terminal" else in_pipes
    told: list[dict[str, Any]] = []
    with served() if how == "server" else nullcontext():
        for row in rows:
            words = [word.format(**ids) if word.startswith("{") else word for word in row]
            told.append({"words": row, **place(lambda words=words: command(words))})
    return told


if __name__ == "__main__":
    mode, given, results = sys.argv[1:]
    Path(results).write_text(json.dumps(work(mode, json.loads(Path(given).read_text()))))
