"""Run as a program: carries a scenario out, kills it, has a new process carry on, and looks at what came of it.

    python lives.py FOLDER SCENARIO measure          how often each hook is reached when nothing goes wrong
    python lives.py FOLDER SCENARIO HOOK:TIME ...    SIGKILL when that hook is reached for that time
    python lives.py FOLDER SCENARIO HOOK:TIME+HOOK:TIME ...    the same to the process that carries on
    python lives.py FOLDER SCENARIO rival.HOOK:TIME ...    the same to the process that does the opposite beside it

Every life is a fork of this process, which never has a thread. Prints a line of JSON for each case: the case, how many
lives were killed, and what is broken.
"""

import asyncio
import contextlib
import gc
import hashlib
import json
import logging
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import remit
from remit.ports import Fault, Timer
from remit.runtime.workspace import opening_of, subscribe
from remit.settings import System
from remit.stores.postgres.database import PostgresDatabase
from remit.stores.sqlite.database import SqliteDatabase
from teams import empty_file, new_file, team
from torture.invariants import Death, broken, death, final, recorded, recorded_on, seen
from torture.scenarios import RIVAL, SCENARIOS, Scenario, World

SERVER = os.environ.get("REMIT_TORTURE_SERVER", "")  # a PostgreSQL database; a file for each case if it is empty
SECONDS = 15.0  # in which a life gets everything done; most take less than one
FASTER = 50
ALARM = 60  # after which it is killed from outside


class FastClock:
    """Time that passes faster than it does: rounds and retries come soon."""

    def __init__(self) -> None:
        self._began = time.time_ns() // 1_000

    def now(self) -> int:
        return self._began + self.ticks()

    def ticks(self) -> int:
        return time.monotonic_ns() // 1_000 * FASTER

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds / FASTER, call)


class Doom:
    """Kills the process when the hook is reached for that time; counts all of them."""

    def __init__(self, point: str = "", before: str = "") -> None:
        """`before` is what the hooks of this process begin with in the names of points."""
        hook, _, times = point.partition(":")
        ours = hook.startswith(before) and (before != "" or not hook.startswith(RIVAL))
        self._hook = hook.removeprefix(before) if ours else ""
        self._left = int(times or 0)
        self.reached: Counter[str] = Counter()

    def __call__(self, name: str) -> None:
        self.reached[name] += 1
        if name == self._hook:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class Files(NamedTuple):
    """Where a case is kept."""

    folder: Path
    name: str

    @property
    def store(self) -> Path:
        return self.folder / f"{self.name}.db"

    @property
    def world(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def report(self) -> Path:
        return self.folder / f"{self.name}.json"

    @property
    def rivals(self) -> Path:
        return self.folder / f"{self.name}.rival.json"

    @property
    def workspace(self) -> str:
        """On a server each case has a workspace of its own; the names of cases are too long for it."""
        case = hashlib.sha256(self.name.encode()).hexdigest()[:16]
        return f"{case}-{self.folder.name[-12:]}" if SERVER else "default"

    def opened(self, doom: Fault) -> SqliteDatabase | PostgresDatabase:
        return PostgresDatabase(SERVER, fault=doom) if SERVER else SqliteDatabase(new_file(self.store), fault=doom)

    def recorded(self) -> list[tuple[str, str, str, str]]:
        return recorded_on(SERVER, self.workspace) if SERVER else recorded(self.store)

    def remove(self) -> None:
        for path in self.folder.glob(f"{self.name}.*"):
            if path.is_dir():  # of its artifacts
                shutil.rmtree(path)
            else:
                path.unlink()


async def live(scenario: Scenario, rt: remit.Runtime, world: World) -> None:
    """Asks, and works until there is nothing left to do."""
    changed = asyncio.Event()
    stop = subscribe(rt.workspace, lambda _events: changed.set())
    async with asyncio.timeout(SECONDS):
        serving = asyncio.create_task(rt.serve())
        await asyncio.sleep(0)
        if await scenario.ask(rt, world):
            await serving
            serving = asyncio.create_task(rt.serve())
        while True:
            changed.clear()
            if not await rt.workspace.tasks.list(state="open"):
                break
            waiting = asyncio.create_task(changed.wait())
            await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if serving.done():
                serving.result()
                raise RuntimeError("the worker stopped although there is work")
    stop()
    serving.cancel()
    await asyncio.wait([serving])


def work(name: str, files: Files, doom: Doom, life: int, then: Callable[[remit.Runtime, World], Any]) -> None:
    """One life from its beginning to its end, if it gets that far."""
    scenario = SCENARIOS[name]()

    async def all_of_it() -> None:
        with closing(files.opened(doom)) as database:
            world = World(files.world, life, doom)
            world.note("life", os.getpid())
            how = {"concurrency": scenario.concurrency, "silence": 15 * FASTER, "workspace": files.workspace}
            rt = team(database, clock=FastClock(), short=scenario.short, **how)
            scenario.agents(rt, world)
            try:
                await live(scenario, rt, world)
                while scenario.disputed and [life] not in world.notes("alone"):  # noqa: ASYNC110
                    await asyncio.sleep(0.005)  # the note comes from another process
            except TimeoutError:
                open_ = [f"{one.task!r} is {one.state}" for one in await rt.workspace.tasks.list(state="open")]
                raise RuntimeError(f"not done in {SECONDS:g} s: {open_}") from None
            await then(rt, world)

    asyncio.run(all_of_it())


def oppose(name: str, files: Files, doom: Doom, life: int) -> None:
    """The life of whoever does the opposite, in a process without agents."""

    async def all_of_it() -> None:
        with closing(files.opened(doom)) as database:
            world = World(files.world, life, doom)
            workspace = remit.Workspace(database, files.workspace, system=System(clock=FastClock()))
            await SCENARIOS[name]().oppose(workspace, world)
        files.rivals.write_text(json.dumps(doom.reached))

    asyncio.run(all_of_it())


def forked(what: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(ALARM)
            what()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return pid


class Ended(NamedTuple):
    """How the process of a life ended, and the one that does the opposite, if there was one and it ended first."""

    status: int
    rival: int = 0


def lived(name: str, files: Files, life: int, point: str, then: Callable[[remit.Runtime, World], Any]) -> Ended:
    """Have a life lived in a fork, with its rival beside it. Who is left alone is told so."""
    main = forked(lambda: work(name, files, Doom(point), life, then))
    if not SCENARIOS[name]().disputed:
        return Ended(os.waitpid(main, 0)[1])
    rival = forked(lambda: oppose(name, files, Doom(point, RIVAL), life))
    pid, status = os.wait()
    if pid == main:
        os.kill(rival, signal.SIGKILL)
        os.waitpid(rival, 0)
        return Ended(status)
    with closing(World(files.world, life)) as world:
        world.note("alone")
    return Ended(os.waitpid(main, 0)[1], status)


def measure(folder: Path, name: str) -> dict[str, Any]:
    """An undisturbed run: how often each hook is reached, and how everything ends."""
    files = Files(folder, f"{name}-undisturbed")
    files.remove()

    async def report(rt: remit.Runtime, world: World) -> None:
        found = await opening_of(rt.workspace).ground.store.read(seen)
        wrong = await broken(rt, world, [], None)
        rivals = json.loads(files.rivals.read_text()) if files.rivals.exists() else {}
        assert isinstance(world.at, Doom)
        reached = {**world.at.reached, **{f"{RIVAL}{hook}": times for hook, times in rivals.items()}}
        files.report.write_text(json.dumps({"reached": reached, "final": final(found), "broken": wrong}))

    ended = lived(name, files, 1, "", report)
    if any(ended):
        raise RuntimeError(f"the undisturbed run of '{name}' ended with status {ended}")
    return json.loads(files.report.read_text())


def case(folder: Path, name: str, points: str, expected: Any) -> dict[str, Any]:
    """Life after life, each killed at its point; the last one is not, and is looked at."""
    files = Files(folder, f"{name}-{points.replace(':', '-')}")
    files.remove()
    deaths: list[Death] = []
    killed = 0
    for life, point in enumerate(points.split("+"), 1):
        ended = lived(name, files, life, point, _nothing)
        killed += ended.count(signal.SIGKILL)
        if not {*ended} <= {0, signal.SIGKILL}:
            return {"case": points, "killed": killed, "broken": [f"life {life} ended with status {ended}"]}
        if ended.status == signal.SIGKILL:
            deaths.append(death(files.recorded(), life))

    async def report(rt: remit.Runtime, world: World) -> None:
        compared = None if SCENARIOS[name]().varies else expected
        files.report.write_text(json.dumps(await broken(rt, world, deaths, compared)))

    last = lived(name, files, len(points.split("+")) + 1, "", report)
    wrong = [f"the last life ended with status {last}"] if any(last) else json.loads(files.report.read_text())
    if not wrong:
        files.remove()
    return {"case": points, "killed": killed, "broken": wrong}


async def _nothing(_rt: remit.Runtime, _world: World) -> None:
    """A life that was to be killed and got everything done before."""


def main(folder: Path, name: str, cases: list[str]) -> None:
    logging.getLogger("remit").setLevel(logging.ERROR)
    empty_file()  # made once, and copied in every life
    gc.freeze()  # what is imported stays; a look at it would copy it in every life
    measured = measure(folder, name)
    if cases == ["measure"]:
        print(json.dumps(measured), flush=True)
        return
    for points in cases:
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(case(folder, name, points, measured["final"])), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
