"""What starting up costs, and how often the disk is asked to keep something."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import Cost, Costs, Load, Skipped, Subject, Usage, python

_CALLS = 3  # share of time, seconds, microseconds a call, calls, errors if any, name

_REMIT = """
import remit
rt = remit.Runtime()
@rt.agent(asks="worker")
async def lead(turn): return await turn.delegate("worker", "go")
@rt.agent
async def worker(turn): return "ok"
remit.run(rt, "lead", "go")
"""
_FLOOR = """
import asyncio, sqlite3
async def worker(): return "ok"
async def lead(): return await asyncio.create_task(worker())
asyncio.run(lead())
"""
# The other libraries run the very subjects that are measured elsewhere, once.
_PEER = """
import asyncio, logging, sys
sys.path.insert(0, {here!r})
logging.disable()
from subjects.{module} import delegation
async def main():
    async with delegation() as work:
        await work()
asyncio.run(main())
"""


def _started(code: str, figure: Callable[[Usage], float]) -> Callable[[Load], Costs]:
    def costs(_load: Load) -> Costs:
        python(code)  # its bytecode and its files are at hand from now on
        while True:
            usage = python(code)
            yield Cost(figure(usage), usage.cpu)

    return costs


def hello(module: str = "") -> Callable[[Load], Costs]:
    """Milliseconds from starting Python to the end of a run with a delegation."""
    if not module:
        return _started(_REMIT, lambda usage: usage.wall)
    return _started(_PEER.format(here=str(Path(__file__).parents[1]), module=module), lambda usage: usage.wall)


def hello_of(package: str, module: str) -> Subject:
    """The same of another library, if it is there."""

    def costs(load: Load) -> Costs:
        if find_spec(package) is None:
            raise Skipped("not installed")
        yield from hello(module)(load)

    return costs


floor_hello = _started(_FLOOR, lambda usage: usage.wall)
importing = _started("import remit", lambda usage: usage.cpu)
floor_importing = _started("import asyncio, sqlite3", lambda usage: usage.cpu)


# -- syncs -----------------------------------------------------------------------------------------------

_RUNS = """
import asyncio, sys
sys.path.insert(0, {here!r})
from pathlib import Path
from subjects.{module} import handoffs
async def main():
    async with handoffs(1, Path({folder!r})) as work:
        for _ in range({times}):
            await work()
asyncio.run(main())
"""
_DELEGATIONS = """
import asyncio, sys
sys.path.insert(0, {here!r})
from pathlib import Path
from subjects.team import team
async def main():
    with team(Path({folder!r})) as runtime:
        await runtime.run("sequence", "{times}")
asyncio.run(main())
"""


def _syncs(code: str, module: str, package: str) -> Subject:
    """Syncs for one more: what many of them add to a process that does a few."""

    def costs(load: Load) -> Costs:
        if find_spec(package) is None:
            raise Skipped("not installed")
        more = load.of(200)
        while True:
            few, many = (_counted(code, module, times) for times in (10, 10 + more))
            yield Cost((many - few) / more)

    return costs


def handoff_syncs(module: str, package: str = "remit") -> Subject:
    return _syncs(_RUNS, module, package)


delegation_syncs = _syncs(_DELEGATIONS, "team", "remit")


def _counted(code: str, module: str, times: int) -> int:
    if shutil.which("strace") is None:
        raise Skipped("not counted: strace is not installed")
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        count = ["strace", "-f", "-c", "-e", "trace=fsync,fdatasync", "-o", str(report)]
        script = code.format(here=str(Path(__file__).parents[1]), module=module, folder=folder, times=times)
        done = subprocess.run(
            [*count, sys.executable, "-c", script], env=os.environ, capture_output=True, check=False, timeout=120
        )
        if done.returncode:
            raise Skipped("not counted: strace may not watch a process here")
        lines = [line.split() for line in report.read_text().splitlines()]
        return sum(int(line[_CALLS]) for line in lines if line and line[-1] in ("fsync", "fdatasync"))
