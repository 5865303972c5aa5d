"""Tasks with several lives, for tests of all kinds of agents alike: put back in the middle of a tool, and run again by
another runtime on the same store."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from engine.helping import sound
from remit import Outcome, Runtime
from remit.testing.clock import PATIENCE

Team = Callable[[Runtime], None]
Change = Callable[[Runtime], Any]


class Life:
    """Which life it is, and the moment at which the first one ends: `hold` waits there for ever."""

    def __init__(self) -> None:
        self.number = 1
        self.begun = asyncio.Event()

    @property
    def is_first(self) -> bool:
        return self.number == 1

    async def hold(self, until: int = 1) -> None:
        """Wait for ever, in every life up to this one."""
        if self.number <= until:
            self.begun.set()
            await asyncio.Event().wait()

    def next(self) -> None:
        self.number += 1
        self.begun = asyncio.Event()


class Lived(NamedTuple):
    rt: Runtime
    outcome: Outcome


async def live_until(store: Path, team: Team, life: Life, agent: str = "it") -> None:
    """Run a task until its life holds, and put it back into the queue, as a process does that stops."""
    with anyio.fail_after(PATIENCE):
        async with Runtime(store) as rt:
            team(rt)
            await rt.submit(agent, "go", key="k")
            await life.begun.wait()
            await rt.drain(0)
    life.next()


@asynccontextmanager
async def lived(store: Path, team: Team, agent: str = "it", change: Change | None = None) -> AsyncIterator[Lived]:
    """Run the same task to its end; `change` something before."""
    async with Runtime(store) as rt:
        if change is not None:
            await change(rt)
        team(rt)
        with anyio.fail_after(PATIENCE):
            outcome = await (await rt.submit(agent, "go", key="k")).wait()
        yield Lived(rt, outcome)


@asynccontextmanager
async def two_lives(
    store: Path, team: Team, life: Life, agent: str = "it", change: Change | None = None
) -> AsyncIterator[Lived]:
    """Run a task until its life holds, and again to its end. The store is sound afterwards."""
    await live_until(store, team, life, agent)
    async with lived(store, team, agent, change) as both:
        yield both
        await sound(both.rt)


def damage(
    store: Path, change: Callable[[dict[str, Any]], Mapping[str, Any]], position: int = 1, place: str = "/talk/"
) -> None:
    """Change the record of an answer behind remit's back, as if another version had written it."""
    with closing(sqlite3.connect(store)) as connection, connection:
        select = "SELECT seq, answer FROM event WHERE kind = 'model.answered' AND op LIKE ? ORDER BY seq"
        seq, answer = connection.execute(select, (f"%{place}/{position}",)).fetchone()
        kept = {**json.loads(answer), **change(json.loads(answer))}
        connection.execute("UPDATE event SET answer = ? WHERE seq = ?", (json.dumps(kept), seq))
