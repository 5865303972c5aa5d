"""Processes that work on one database, and the file that tells what they did."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import anyio
from anyio import to_thread
from psycopg.conninfo import conninfo_to_dict

from programs import Program
from remit import Runtime
from teams import team
from workers import member

T = TypeVar("T")

PATIENCE = 20  # seconds after which what does not come is not waited for any more


def as_url(address: str) -> str:
    """An address as a runtime takes it."""
    given = {name: str(value) for name, value in conninfo_to_dict(address).items() if value is not None}
    return f"postgresql:///{quote(given.pop('dbname'))}?{urlencode(given)}"


class Line(NamedTuple):
    """What an agent noted: what, about whom or what, in which process and when."""

    kind: str
    about: str
    pid: int
    at: int


class Crew:
    """Starts processes of `member.py`, and ends them all."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address = address
        self.folder = folder
        self._started: list[Program] = []

    def runtime(self, **how: object) -> Runtime:
        """One that does nothing itself."""
        rt = team(self.address, hands=0, **how)
        member.join(rt, self.folder)
        return rt

    def start(self, job: str = "work", **how: object) -> Program:
        words = [f"{name}={value}" for name, value in how.items()]
        self._started.append(Program(Path(member.__file__), job, self.address, self.folder, *words))
        return self._started[-1]

    async def ready(self, *processes: Program) -> None:
        for one in processes:
            assert await said(one) == "ready"

    def open(self, gate: str) -> None:
        (self.folder / gate).touch()

    def lines(self, *kinds: str) -> list[Line]:
        log = self.folder / "log"
        found = [line.rsplit(" ", 2) for line in log.read_text().splitlines()] if log.exists() else []
        whole = [Line(*words.split(" ", 1), int(pid), int(at)) for words, pid, at in found]  # pyright: ignore[reportCallIssue]
        return [line for line in whole if not kinds or line.kind in kinds]

    def count(self, kind: str) -> Counter[str]:
        """How often each was noted."""
        return Counter(line.about for line in self.lines(kind))

    async def until(self, kind: str, number: int = 1) -> list[Line]:
        """As soon as there are so many lines of a kind."""
        return await until(lambda: found if len(found := self.lines(kind)) >= number else None)

    def close(self) -> str:
        """Ends everyone; what they complained of."""
        for one in self._started:
            one.kill()
        return "".join(one.communicate()[1] for one in self._started)


async def said(process: Program) -> str:
    """The next line a process prints."""
    with anyio.fail_after(PATIENCE):
        return (await to_thread.run_sync(process.stdout.readline, abandon_on_cancel=True)).strip()


async def gone(process: Program, patience: float = PATIENCE) -> int:
    return await until(process.poll, patience)


async def until(look: Callable[[], T | None], patience: float = PATIENCE) -> T:
    """For what nobody tells of."""
    with anyio.fail_after(patience):
        while (found := look()) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return found


async def sound(rt: Runtime) -> None:
    health = await rt.workspace.check()
    assert health.sound, [finding.sentence for finding in health.findings]
