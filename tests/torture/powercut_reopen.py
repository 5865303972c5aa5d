"""The power is back, an hour later: remit opens what is left and has to finish everything."""

import asyncio
from pathlib import Path
from typing import Any

from remit.core.times import SECOND
from remit.engine.system import SystemClock
from remit.runtime.workspace import subscribe
from teams import team
from torture.powercut_check import looked_at
from torture.powercut_record import Told, agents

SECONDS = 10.0  # in which everything is done
WELL = ("completed", "cancelled")


class Later(SystemClock):
    """What the clock on the wall says after a long cut."""

    def now(self) -> int:
        return super().now() + 3_600 * SECOND


async def _finished(store: Path) -> list[str]:
    changed = asyncio.Event()
    async with team(store, clock=Later()) as rt:
        agents(rt, Told())
        subscribe(rt.workspace, lambda _events: changed.set())
        try:
            async with asyncio.timeout(SECONDS), rt.serving():
                while True:
                    changed.clear()  # before looking: something may happen meanwhile
                    if not await rt.workspace.tasks.list(state="open"):
                        break
                    await changed.wait()
        except TimeoutError:
            left = [f"{one.task!r} is {one.state}" for one in await rt.workspace.tasks.list(state="open")]
            return [f"not finished in {SECONDS:g} s: {', '.join(left)}"]
        health = await rt.workspace.check()
        ended = await rt.workspace.journal.read(lambda view: view.tables()["task"])
        wrong = [f"task {key[0]} is {row['state']}" for key, row in ended.items() if row["state"] not in WELL]
        return [*(finding.sentence for finding in health.findings), *wrong]


def reopened(store: Path, said: list[list[Any]]) -> list[str]:
    """A sentence for each promise that does not hold, with remit itself and then from outside."""
    if not store.exists():
        return []
    return [*asyncio.run(_finished(store)), *looked_at(store, said).all]
