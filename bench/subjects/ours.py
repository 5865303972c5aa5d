"""The runs that are measured, in remit."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import remit
from measure import Work
from subjects.library import Pause, no_pause
from subjects.team import runtime_at


@asynccontextmanager
async def handoffs(length: int, folder: Path | None = None) -> AsyncGenerator[Work]:
    with runtime_at(folder) as runtime:
        for number in range(length):
            runtime.agent(f"holder {number}", asks="*")(_passing(number))
        runtime.agent(f"holder {length}")(_last)
        yield lambda: runtime.run("holder 0", "go")


def _passing(number: int):
    async def holder(_turn: remit.Turn) -> remit.Command:
        return remit.Command(f"holder {number + 1}", {"phase": "go"})

    return holder


async def _last(_turn: remit.Turn) -> str:
    return "ok"


@asynccontextmanager
async def delegation(pause: Pause = no_pause, folder: Path | None = None) -> AsyncGenerator[Work]:
    async def lead(turn: remit.Turn) -> str:
        await pause(0)
        answer = await turn.delegate("worker", "go")
        await pause(2)
        return answer

    async def worker(_turn: remit.Turn) -> str:
        await pause(1)
        return "ok"

    with runtime_at(folder) as runtime:
        runtime.agent(asks="*")(lead)
        runtime.agent(worker)
        yield lambda: runtime.run("lead", "go")


@asynccontextmanager
async def fan_out(members: int, seconds: float) -> AsyncGenerator[Work]:
    async def lead(turn: remit.Turn) -> int:
        outcomes = await turn.delegate_all([("worker", "go")] * members)
        assert all(outcome.ok for outcome in outcomes)
        return len(outcomes)

    async def worker(_turn: remit.Turn) -> str:
        await asyncio.sleep(seconds)
        return "ok"

    with runtime_at(None) as runtime:
        runtime.agent(asks="*")(lead)
        runtime.agent(worker)
        yield lambda: runtime.run("lead", "go")
