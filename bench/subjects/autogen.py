"""The same runs in autogen-core: two agents of its runtime that send messages, a layer below agents with models."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from measure import Work, need
from subjects.library import Pause, no_pause


@dataclass
class Ask:
    """What a lead is sent."""

    members: int


@dataclass
class Do:
    """What a worker is sent."""

    task: str


@asynccontextmanager
async def _team(members: int, pause: Pause) -> AsyncGenerator[Work]:
    (library,) = need("autogen_core")

    async def ask(self: Any, message: Any, ctx: Any) -> str:
        await pause(0)
        workers = [library.AgentId("worker", f"{self.id.key}-{number}") for number in range(message.members)]
        answers = await asyncio.gather(*[self.send_message(Do("go"), worker) for worker in workers])
        await pause(2)
        return answers[0]

    async def do(self: Any, message: Any, ctx: Any) -> str:
        await pause(1)
        return "ok"

    lead_type = type("Lead", (library.RoutedAgent,), {"ask": _handler(library, ask, Ask)})
    worker_type = type("Worker", (library.RoutedAgent,), {"do": _handler(library, do, Do)})
    runtime, numbers = library.SingleThreadedAgentRuntime(), count()
    await lead_type.register(runtime, "lead", lambda: lead_type("leads"))
    await worker_type.register(runtime, "worker", lambda: worker_type("works"))
    runtime.start()
    # A lead of its own for each run, as for each conversation.
    yield lambda: runtime.send_message(Ask(members), library.AgentId("lead", str(next(numbers))))
    await runtime.stop()


def _handler(library: Any, function: Any, takes: type) -> Any:
    """Have a function handle messages of a type; the library reads that from annotations."""
    function.__annotations__ = {"message": takes, "ctx": library.MessageContext, "return": str}
    return library.message_handler(function)


@asynccontextmanager
async def delegation(pause: Pause = no_pause, folder: Path | None = None) -> AsyncGenerator[Work]:
    assert folder is None
    async with _team(1, pause) as work:
        yield work


@asynccontextmanager
async def fan_out(members: int, seconds: float) -> AsyncGenerator[Work]:
    async def pause(stage: int) -> None:
        if stage == 1:
            await asyncio.sleep(seconds)

    async with _team(members, pause) as work:
        yield work
