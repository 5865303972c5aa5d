"""Two lives of one task: what the first process does until it dies, and what the second one makes of it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from engine.helping import PATIENCE, doomed, happened, named, sound, take_over
from remit import Runtime
from teams import team

Crew = Callable[[Runtime, "Stage"], None]


class Stage:
    """Two processes on one file. What the first does is played until `crash`, and by the second from the beginning."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.crashed = anyio.Event()
        self.never = anyio.Event()
        self.first = True

    async def crash(self) -> None:
        """In the first process: the end, as far as anyone can tell."""
        if self.first:
            self.crashed.set()
            await self.never.wait()


@asynccontextmanager
async def played(
    tmp_path, clock, crew: Crew, stage: Stage, before: Callable[[Runtime], Awaitable[None]] | None = None
) -> AsyncIterator[Runtime]:
    """The second process, right after it has taken over; `before` the first does anything, the store is prepared."""
    dead, heir = doomed(tmp_path / "team.db", clock), team(tmp_path / "team.db", clock=clock)
    with dead, heir:
        if before is not None:
            await before(heir)
        crew(dead, stage)
        await dead.submit("lead", "go", session="s")
        await happened(stage.crashed)
        stage.first = False
        crew(heir, stage)
        await take_over(heir, clock, dead)
        yield heir
        await sound(heir)


async def result(rt: Runtime) -> object:
    return await rt.workspace.tasks.get(await named(rt, "lead")).result(PATIENCE)
