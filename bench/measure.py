"""How a figure is taken: a subject is set up once, and then gives a cost whenever it is asked for one.

A subject is a generator: what it does before its first `yield` is not measured, and each `yield` is one cost. Async
ones run on one event loop, which stands still while others are measured.
"""

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

_PATIENCE = 5.0  # seconds that one cost may take where the load can be cut


class Skipped(Exception):
    """There is nothing to measure here, and the text says why."""


class Cost(NamedTuple):
    """What one try took, in the unit of its job; and the same in processor time of this process where that is known."""

    value: float
    cpu: float | None = None


class Load(NamedTuple):
    """What a subject is given: its share of the full load, and a folder that all subjects of its job share."""

    share: float
    folder: Path

    def of(self, full: int, least: int = 10) -> int:
        return max(least, int(full * self.share))


class Effort(NamedTuple):
    """How hard to try: rounds per figure, and the share of the full load."""

    rounds: int
    share: float


FULL = Effort(7, 1.0)
QUICK = Effort(3, 0.1)
TINY = Effort(1, 0.005)  # does it still run?

Work: TypeAlias = Callable[[], Awaitable[object]]
Costs: TypeAlias = Generator[Cost]
AsyncCosts: TypeAlias = AsyncGenerator[Cost]
Subject: TypeAlias = Callable[[Load], Costs | AsyncCosts]


def need(*modules: str) -> list[Any]:
    """Import the modules of a peer, or skip it if it is not there."""
    try:
        return [import_module(module) for module in modules]
    except ImportError as error:
        raise Skipped("not installed") from error


async def each(times: int, work: Work, *, seconds: float = _PATIENCE) -> Cost:
    """Microseconds for one of `times`, one after the other; of fewer if they take too long."""
    gc.collect()
    done = 0
    wall, cpu = time.perf_counter(), time.process_time()
    while done < times and time.perf_counter() - wall < seconds:
        await work()
        done += 1
    return Cost((time.perf_counter() - wall) / done * 1e6, (time.process_time() - cpu) / done * 1e6)


async def together(times: int, work: Work) -> Cost:
    """Milliseconds for all of `times` at once."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*[work() for _ in range(times)])
    return Cost((time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3)


class Usage(NamedTuple):
    """What a child process took: milliseconds by the clock and of processor time, and megabytes at its peak."""

    wall: float
    cpu: float
    peak: float


# A process counts the memory of the one it was forked from as its own until it runs its program. So a small one starts
# it, and tells how it went on a pipe.
_STARTER = """
import json, os, sys, time
start = time.perf_counter()
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
told = (time.perf_counter() - start) * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3, usage.ru_maxrss / 1024
os.write(int(sys.argv[1]), json.dumps(told).encode())
sys.exit(os.waitstatus_to_exitcode(status) and 1)
"""


def child(command: list[str]) -> Usage:
    """Run a process from start to end; one that fails is skipped, with its last words."""
    # As users run it: with the bytecode of earlier runs at hand.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    reading, writing = os.pipe()
    with os.fdopen(reading) as told:
        starter = [sys.executable, "-I", "-S", "-c", _STARTER, str(writing), *command]
        done = subprocess.run(starter, capture_output=True, env=environment, pass_fds=[writing], check=False)
        os.close(writing)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise Skipped(f"it failed: {said.splitlines()[-1][:100] if said else 'no word'}")
        return Usage(*json.loads(told.read()))


def python(code: str) -> Usage:
    """Run code in a Python of its own."""
    return child([sys.executable, "-c", code])


def written() -> int:
    """Bytes that this process has written so far."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError as error:
        raise Skipped("this system does not count what a process writes") from error
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def resident() -> float:
    """Kilobytes of memory that this process has now."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError as error:
        raise Skipped("this system does not tell how much memory a process has") from error
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024
