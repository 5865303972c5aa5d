"""What each thing may cost, in what can be counted exactly: statements, transactions, pages written, functions called,
files that are walked through and bytecodes.

Whoever makes something dearer raises its budget here, in the open, and says why. Whoever makes it cheaper lowers it.
"""

import asyncio
import gc
import json
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

from remit import Command, Runtime, Turn
from remit.runtime.workspace import opening_of
from remit.testing import FakeClock
from teams import team

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[1]
TIMES = 20  # of each, one after the other: what happens now and then is spread over them
PAGE = 2_048
NUMBERS = count()


@dataclass
class Counted:
    """What was done, in all."""

    statements: list[str] = field(default_factory=list[str])
    calls: int = 0

    def of(self, *beginnings: str) -> int:
        return sum(statement.startswith(beginnings) for statement in self.statements)

    def reads(self) -> int:
        """How many read, each as often as it belongs to every time: on a slow machine there are some in between that
        look for what other processes do."""
        return sum(round(number / TIMES) * TIMES for number in self._read().values())

    def told(self) -> str:
        """Which they are, the rarest last."""
        return "".join(
            f"\n{number} x {' '.join(statement.split())}" for statement, number in self._read().most_common()
        )

    def _read(self) -> Counter[str]:
        read = (one for one in self.statements if one.startswith(("SELECT", "WITH")))
        return Counter(re.sub(r"'[^']*'|[0-9]+", "?", one) for one in read)


@contextmanager
def counting(rt: Runtime) -> Iterator[Counted]:
    """Count what SQLite is told and which functions are called, on the thread of the loop. What other tests left behind
    is not collected meanwhile: it may call functions when it goes. It is not collected before either, which takes ten
    times as long as the rest once thousands of tests have run."""
    counted = Counted()
    database: Any = opening_of(rt.workspace).database
    connections: set[sqlite3.Connection] = {database.writer.connection, database.reader.connection}

    def called(_frame: FrameType, event: str, _arg: object) -> None:
        counted.calls += event == "call"

    for connection in connections:
        connection.set_trace_callback(counted.statements.append)
    before = sys.getprofile()
    gc.disable()
    sys.setprofile(called)
    try:
        yield counted
    finally:
        sys.setprofile(before)
        gc.enable()
        for connection in connections:
            connection.set_trace_callback(None)


def agents(rt: Runtime) -> None:
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        for number in range(int(turn.task)):
            await turn.delegate("worker", f"part {number}")
        return "done"

    @rt.agent(asks="*")
    async def fan(turn: Turn) -> str:
        await turn.delegate_all([("worker", f"part {number}") for number in range(int(turn.task))])
        return "done"

    @rt.agent
    async def worker(turn: Turn) -> str:
        return "done"

    @rt.agent(asks="*")
    async def sender(turn: Turn) -> Command:
        return Command("worker", {"phase": "next"})


async def delegations(rt: Runtime) -> None:
    await rt.run("lead", str(TIMES))


async def fan_out(rt: Runtime) -> None:
    await rt.run("fan", str(TIMES))


async def runs(rt: Runtime) -> None:
    for _ in range(TIMES):
        await rt.run("worker", "x")


async def handoffs(rt: Runtime) -> None:
    for _ in range(TIMES):
        await rt.run("sender", "x")


async def submissions(rt: Runtime) -> None:
    for _ in range(TIMES):
        await (await rt.submit("worker", f"task {next(NUMBERS)}")).wait()


async def entries(rt: Runtime) -> None:
    context = rt.workspace.context()
    for number in range(TIMES):
        await context.set("notes", f"key {number % 5}", number)


Job = Callable[[Runtime], Awaitable[None]]


class Budget(NamedTuple):
    """For one of each: statements, transactions and pages on a file, functions called in memory."""

    reads: float
    writes: float
    transactions: float  # each with one sync
    pages: float
    calls: float


BUDGETS: dict[Job, Budget] = {
    delegations: Budget(reads=0, writes=5.2, transactions=2.1, pages=19, calls=250),
    fan_out: Budget(reads=0, writes=4.25, transactions=0.2, pages=3.5, calls=296),
    runs: Budget(reads=0, writes=4, transactions=2, pages=18, calls=234),
    handoffs: Budget(reads=0, writes=7, transactions=3, pages=26, calls=452),
    submissions: Budget(reads=7, writes=4, transactions=2, pages=21, calls=402),
    entries: Budget(reads=1, writes=2, transactions=1, pages=6, calls=79),
}


def within(what: str, measured: float, budget: float, which: str = "") -> None:
    each = measured / TIMES
    assert each <= budget, f"{what}: {each:.2f} each, and {budget} are allowed{which}"


@pytest.mark.rule("speed.budget")
@pytest.mark.parametrize("job", BUDGETS)
async def test_what_is_written_to_a_file_stays_within_its_budget(job: Job, tmp_path: Path):
    budget = BUDGETS[job]
    with team(tmp_path / "team.db", clock=FakeClock(), silence=86_400) as rt:
        agents(rt)
        await job(rt)
        log = tmp_path / "team.db-wal"
        database: Any = opening_of(rt.workspace).database
        database.writer.connection.execute("PRAGMA wal_autocheckpoint = 0")
        before = log.stat().st_size
        with counting(rt) as counted:
            await job(rt)
        within("statements that read", counted.reads(), budget.reads, counted.told())
        within("statements that write", counted.of("INSERT", "UPDATE", "DELETE"), budget.writes)
        within("transactions", counted.of("BEGIN IMMEDIATE"), budget.transactions)
        within("pages written", (log.stat().st_size - before) / (PAGE + 24), budget.pages)


@pytest.mark.rule("speed.budget")
@pytest.mark.parametrize("job", BUDGETS)
async def test_the_functions_that_are_called_stay_within_their_budget(job: Job):
    with team(clock=FakeClock()) as rt:
        agents(rt)
        await job(rt)
        with counting(rt) as counted:
            await job(rt)
        within("functions called", counted.calls, BUDGETS[job].calls)


class Walk(NamedTuple):
    """What `docs/walk.py` counts on the way of one of each, in memory: only what is remit's own."""

    calls: int
    files: int
    changes: int  # of file
    bytecodes: int  # of Python 3.11: others count otherwise


WALKS = {
    "a delegation": Walk(189, 33, 149, 5_738),
    "an entry": Walk(66, 21, 55, 1_822),
    "a submitted task, until it is in the queue": Walk(137, 40, 95, 3_761),
    "a submitted task, until it has ended": Walk(276, 49, 194, 7_321),
    "a model agent, two requests and a tool call": Walk(996, 77, 653, 27_617),
}


@pytest.mark.rule("speed.budget")
def test_the_walks_are_no_longer_than_the_page_on_design_says():
    done = subprocess.run([sys.executable, ROOT / "docs" / "walk.py", "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    walked = {name: Walk(*figures) for name, figures in json.loads(done.stdout).items()}
    counted = Walk._fields if sys.version_info[:2] == (3, 11) else ("files",)
    longer = {
        f"{name}: {what}": (getattr(walk, what), getattr(WALKS[name], what))
        for name, walk in walked.items()
        for what in counted
        if getattr(walk, what) > getattr(WALKS[name], what)
    }
    assert not longer, "(walked, allowed): save elsewhere on the way, or let only workspaces pay that use the change"
    assert walked.keys() == WALKS.keys()
    page = (ROOT / "docs" / "design.md").read_text()
    for name, walk in WALKS.items():
        assert f"| {name} | {walk.calls:,} | {walk.files} | {walk.changes} | {walk.bytecodes:,} |" in page


HELLO = """
import asyncio, remit
rt = remit.Runtime()
@rt.agent
async def hello(turn: remit.Turn) -> str:
    return "hi"
asyncio.run(rt.run("hello", "x"))
"""
SYNCHRONOUS = HELLO.replace("asyncio.run(rt.run(", "remit.run(rt, ").replace('"x"))', '"x")')
COMMAND = "from contextlib import suppress; from remit.cli.main import main\nwith suppress(SystemExit): main({!r})\n"
# Modules of remit that are imported, so that a start costs what is used and nothing else.
IMPORTED = {
    "import remit": ("import remit", 1),
    "a hello in memory": (HELLO, 107),
    "a hello in memory, with remit.run": (SYNCHRONOUS, 111),
    "remit --version": (COMMAND.format(["--version"]), 4),
    "remit ps": (COMMAND.format(["ps"]), 92),
    "remit show": (COMMAND.format(["show", "last"]), 101),
}


@pytest.mark.rule("speed.budget")
@pytest.mark.parametrize("start", IMPORTED)
def test_a_start_imports_only_what_it_uses(start: str, tmp_path: Path):
    with team(tmp_path / "remit.db") as rt:
        agents(rt)
        asyncio.run(delegations(rt))
    code, budget = IMPORTED[start]
    code += "\nimport sys; print(*(name for name in sys.modules if name.split('.')[0] == 'remit'), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    imported = done.stderr.splitlines()[-1].split()
    assert len(imported) <= budget, "\n".join(imported)
