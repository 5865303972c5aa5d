"""remit inside other programs: a notebook whose cells run again, a web server whose clients hang up, pools."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from jupyter_client.manager import KernelManager

import remit
from page_blocks import ROOT, blocks
from remit.testing.doubles import PATIENCE

CELLS = [block for block in blocks("python") if block.page == ROOT / "docs/guide/inside.md" and "cell" in block.skipped]
TEAM = """
@rt.tool
def look_up(order: int) -> str:
    return "{}"

@rt.guard
def office_hours(hop):
    return None

@rt.around
async def timing(turn, go):
    return f"{{await go()}}, {}"
"""


POOLS = """
import asyncio, multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
import remit

rt = remit.Runtime("team.db")


@rt.agent
async def clerk(turn):
    return turn.task


def work(number):
    return remit.run(rt, "clerk", str(number))


def alone(number):
    with rt.at() as mine:
        return remit.run(mine, "clerk", str(number))


async def main():
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool, ThreadPoolExecutor(2) as threads:
        submitted = await rt.submit("clerk", "later")
        forked = await loop.run_in_executor(pool, work, 1)  # while this loop uses the runtime
        others = [loop.run_in_executor(threads, alone, number) for number in (2, 3)]
        return [await submitted.result(), forked, *[await other for other in others], await rt.run("clerk", "here")]


if __name__ == "__main__":
    print(work(0))
    for way in ("fork", "spawn", "forkserver"):
        with ProcessPoolExecutor(2, multiprocessing.get_context(way)) as pool:
            print(way, *pool.map(work, range(3)))
    for _ in range(2):
        print(*asyncio.run(main()))
    print(work(4))
"""


class Notebook:
    """A kernel: the answer of a cell is its value, or its error."""

    def __init__(self, folder: Path) -> None:
        self._manager = KernelManager(connection_file=str(folder / "kernel.json"))
        self._manager.start_kernel(cwd=str(folder), env={**os.environ, "IPYTHONDIR": str(folder / "profile")})
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=PATIENCE)

    def run(self, cell: str) -> str:
        said: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            if message["msg_type"] == "execute_result":
                said.append(message["content"]["data"]["text/plain"])
            if message["msg_type"] == "error":
                said.append(f"{message['content']['ename']}: {message['content']['evalue']}")

        self._client.execute_interactive(cell, output_hook=hear, timeout=PATIENCE)
        return "".join(said)

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


@pytest.mark.rule("runtime.notebook")
def test_the_cells_of_a_notebook_run_again_as_they_were_and_changed(tmp_path: Path):
    notebook = Notebook(tmp_path)
    try:
        runtime, agent, ask = (cell.code for cell in CELLS)
        for _ in range(2):  # from the first cell to the last, twice
            assert [notebook.run(runtime), notebook.run(agent), notebook.run(ask)] == ["", "", CELLS[-1].output.strip()]
        assert notebook.run(agent.replace("on its way", "late")) == ""
        assert notebook.run(ask) == "'order 1 is late'"
        assert notebook.run("await (await rt.submit('clerk', 'order 2')).result()") == "'order 2 is late'"
        assert notebook.run("[match.card.name for match in await rt.workspace.agents.find('clerk')]") == "['clerk']"
        assert [notebook.run(TEAM.format("a", "early")), notebook.run(TEAM.format("b", "timed"))] == ["", ""]
        assert notebook.run(ask) == "'order 1 is late, timed'"
        assert notebook.run("remit.run(rt, 'clerk', 'order 3')").startswith(
            "BadInput: an event loop is already running"
        )
    finally:
        notebook.close()


@pytest.mark.rule("runtime.fork", "runtime.threads")
def test_loops_threads_and_pools_of_processes_use_one_runtime_before_during_and_after(tmp_path: Path):
    (tmp_path / "pools.py").write_text(POOLS)

    command = [sys.executable, "pools.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)

    expected = ["0", "fork 0 1 2", "spawn 0 1 2", "forkserver 0 1 2", *["later 1 2 3 here"] * 2, "4"]
    assert done.stdout.splitlines() == expected, done.stderr


def web(rt: remit.Runtime) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with rt:
            yield

    app = FastAPI(lifespan=lifespan)

    async def ask() -> dict[str, str]:
        return {"answer": await rt.run("clerk", "ask")}

    async def watch() -> StreamingResponse:
        async def lines() -> AsyncIterator[str]:
            async for one in rt.stream("clerk", "watch"):
                yield f"{one}\n"

        return StreamingResponse(lines())

    app.get("/ask")(ask)
    app.get("/watch")(watch)
    return app


@pytest.mark.rule("runtime.web")
def test_a_client_that_hangs_up_cancels_a_streamed_run_and_no_other():
    rt = remit.Runtime()
    ended: list[str] = []

    async def main() -> None:
        at_work, free, changed = asyncio.Event(), asyncio.Event(), asyncio.Event()

        @rt.agent
        async def clerk(turn: remit.Turn) -> str:
            at_work.set()
            try:
                await free.wait()
            finally:
                ended.append(f"{turn.task}: {'done' if free.is_set() else 'cancelled'}")
                changed.set()
            return "done"

        door = socket.create_server(("127.0.0.1", 0))  # clients may come before the server has started
        server = uvicorn.Server(uvicorn.Config(web(rt), log_level="error"))
        serving = asyncio.create_task(server.serve([door]))
        for path in ("/ask", "/watch"):
            at_work.clear()
            _, writer = await asyncio.open_connection(*door.getsockname())
            writer.write(f"GET {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
            await at_work.wait()
            writer.close()
        await changed.wait()
        assert ended == ["watch: cancelled"]
        changed.clear()
        free.set()
        await changed.wait()
        server.should_exit = True
        await serving

    asyncio.run(asyncio.wait_for(main(), PATIENCE))
    assert ended == ["watch: cancelled", "ask: done"]
