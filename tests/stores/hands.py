"""Run as a program: a process with a worker on a file, and a log outside of it.

python hands.py work FILE LOG NAME COUNT STALL   submits COUNT tasks and works; after STALL of them it gets no further
                                                 until a line comes on stdin; ends when nothing is open any more
python hands.py limit FILE LOG                   works on while its files cannot grow, and after they can again
python hands.py hold FILE                        holds the file for writing until a line comes on stdin
"""

import asyncio
import json
import os
import resource
import sqlite3
import sys
from pathlib import Path

import remit
from remit.errors import StoreError
from remit.runtime.workspace import subscribe
from remit.settings import Pace, Serving

BIG = "x" * 50_000


class Log:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def __call__(self, *what: object) -> None:
        os.write(self._file, json.dumps(what).encode() + b"\n")


async def line() -> None:
    """Until someone says something; stdin is not read by a thread, which would keep the process alive."""
    come = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, come.set)
    await come.wait()
    asyncio.get_running_loop().remove_reader(sys.stdin)


async def until_done(rt: remit.Runtime) -> None:
    changed = asyncio.Event()
    stop = subscribe(rt.workspace, lambda _events: changed.set())
    async with asyncio.timeout(60):
        while await rt.workspace.tasks.list(state="open"):
            try:
                async with asyncio.timeout(0.2):  # others work on them too
                    await changed.wait()
            except TimeoutError:
                continue
            finally:
                changed.clear()
    stop()


async def work(file: Path, log: Log, name: str, count: int, stall: int) -> None:
    with remit.Runtime(file, serving=Serving(concurrency=8)) as rt:
        go = asyncio.Event()
        done = 0

        @rt.agent
        async def clerk(turn: remit.Turn) -> str:
            nonlocal done
            if done >= stall:
                log("stalled", name)
                await go.wait()
            done += 1
            await turn.once("send", lambda: log("effect", turn.task, name))  # who does it is no part of what is done
            return turn.task

        async def one(number: int) -> None:
            task = await rt.submit("clerk", f"{name} {number}", key=f"{name} {number}")
            log("ack", f"{name} {number}", task.id)

        await asyncio.gather(*(one(number) for number in range(count)))
        log("submitted", name)
        await line()
        go.set()
        await until_done(rt)
        await rt.drain(5)


async def limit(file: Path, log: Log) -> None:
    with remit.Runtime(file, serving=Serving(pace=Pace(poll_interval=0.05, retry_store=(0.02,)))) as rt:

        @rt.agent(writes=["notes"])
        async def clerk(turn: remit.Turn) -> str:
            await turn.context.set("notes", turn.task, BIG)
            return turn.task

        serving = asyncio.create_task(rt.serve())
        await asyncio.sleep(0)
        await rt.submit("clerk", "before")
        await until_done(rt)
        most = max(path.stat().st_size for path in file.parent.glob(f"{file.name}*")) + len(BIG)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        said = ""
        for number in range(40):
            try:
                await rt.submit("clerk", f"task {number}")
                log("ack", f"task {number}")
                await rt.workspace.context().set("filler", str(number), BIG)
            except StoreError as error:
                said = str(error)
                break
        await rt.workspace.tasks.list()  # reading goes on
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await rt.submit("clerk", "after")
        await until_done(rt)
        ended = {one.task: one.state for one in await rt.workspace.tasks.list()}
        findings = [finding.sentence for finding in (await rt.workspace.check()).findings]
        print(json.dumps({"said": said, "ended": ended, "findings": findings, "serving": not serving.done()}))
        serving.cancel()
        await asyncio.wait([serving])


def hold(file: Path) -> None:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    print("held", flush=True)
    sys.stdin.readline()
    connection.execute("ROLLBACK")
    print("let go", flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["work", file, log, name, count, stall]:
            asyncio.run(work(Path(file), Log(Path(log)), name, int(count), int(stall)))
        case ["limit", file, log]:
            asyncio.run(limit(Path(file), Log(Path(log))))
        case ["hold", file]:
            hold(Path(file))
        case _:
            sys.exit(__doc__)
