"""The same runs in pydantic-ai: an agent whose tool runs a second agent. It has no handoffs."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from measure import Work, need
from subjects.library import Pause, no_pause


def _asks(members: int, pause: Pause) -> Any:
    library, messages, models = need("pydantic_ai", "pydantic_ai.messages", "pydantic_ai.models.function")

    def reply(parts: list[Any]) -> Any:
        return messages.ModelResponse(parts=parts)

    async def lead_says(history: list[Any], _info: Any) -> Any:
        answered = len(history) > 1
        await pause(2 if answered else 0)
        calls = [messages.ToolCallPart("ask", {}) for _ in range(members)]
        return reply([messages.TextPart("ok")] if answered else calls)

    async def worker_says(_history: list[Any], _info: Any) -> Any:
        await pause(1)
        return reply([messages.TextPart("ok")])

    worker = library.Agent(models.FunctionModel(worker_says))
    lead = library.Agent(models.FunctionModel(lead_says))

    @lead.tool_plain
    async def ask() -> str:
        return (await worker.run("go")).output

    return lead


@asynccontextmanager
async def delegation(pause: Pause = no_pause, folder: Path | None = None) -> AsyncGenerator[Work]:
    assert folder is None
    lead = _asks(1, pause)
    yield lambda: lead.run("go")


@asynccontextmanager
async def fan_out(members: int, seconds: float) -> AsyncGenerator[Work]:
    async def pause(stage: int) -> None:
        if stage == 1:
            await asyncio.sleep(seconds)

    lead = _asks(members, pause)
    yield lambda: lead.run("go")
