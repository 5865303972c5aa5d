"""What starting up costs, and how often the disk is asked to keep something."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import Effort, Samples, Skipped, cpu_of, rounds

_HELLO = """
import remit
rt = remit.Runtime()
@rt.agent(asks="worker")
async def lead(turn): return await turn.delegate("worker", "go")
@rt.agent
async def worker(turn): return "ok"
remit.run(rt, "lead", "go")
"""
_DELEGATIONS = """
import asyncio
from team import team
async def main(times):
    with team("file") as runtime:
        await runtime.run("sequence", str(times))
asyncio.run(main({times}))
"""
_CALLS = 3  # share of time, seconds, microseconds a call, calls, errors if any, name


def importing(effort: Effort) -> Samples:
    return rounds(effort, lambda: cpu_of("import remit"))


def hello(effort: Effort) -> Samples:
    return rounds(effort, lambda: cpu_of(_HELLO))


def syncs(_effort: Effort) -> Samples:
    """Syncs for one durable delegation: what 200 more of them add to a process that does a few."""
    if shutil.which("strace") is None:
        raise Skipped("not counted: strace is not installed")
    return [(_syncs_of(210) - _syncs_of(10)) / 200]


def _syncs_of(times: int) -> int:
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        count = ["strace", "-f", "-c", "-e", "trace=fsync,fdatasync", "-o", str(report)]
        code = _DELEGATIONS.format(times=times)
        here = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
        done = subprocess.run([*count, sys.executable, "-c", code], env=here, capture_output=True, check=False)
        if done.returncode:
            raise Skipped("not counted: strace may not watch a process here")
        lines = [line.split() for line in report.read_text().splitlines()]
        return sum(int(line[_CALLS]) for line in lines if line and line[-1] in ("fsync", "fdatasync"))
