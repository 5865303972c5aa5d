"""Eight delegations at once under one token limit, in the other libraries that have such a limit.

Every delegation is one model call of 1,000 tokens, and all of them together may spend 2,000. The model that
delegates spends next to nothing. As real ones do, the calls take a moment, so all are under way before the first
is answered.
"""

import asyncio
from typing import Any

from measure import need
from pingpong import LEAD, WORKER, strands_agent, strands_call

MEMBERS, EACH, LIMIT = 8, 1_000, 2_000
_LATENCY = 0.05


class Purse:
    """Counts the tokens of the model calls that were sent: they are paid for, whatever becomes of the answer."""

    def __init__(self) -> None:
        self.spent = 0

    async def spend(self) -> None:
        self.spent += EACH
        await asyncio.sleep(_LATENCY)


async def pydantic_ai(purse: Purse) -> str:
    """Usage and limits are passed on to each delegation: as strict as it gets."""
    library, messages, models, usages = need(
        "pydantic_ai", "pydantic_ai.messages", "pydantic_ai.models.function", "pydantic_ai.usage"
    )

    def reply(parts: list[Any], tokens: int) -> Any:
        return messages.ModelResponse(parts=parts, usage=usages.RequestUsage(output_tokens=tokens))

    def lead_says(history: list[Any], _info: Any) -> Any:
        calls = [messages.ToolCallPart("ask", {}) for _ in range(MEMBERS)]
        return reply(calls if len(history) == 1 else [messages.TextPart("done")], 1)  # 0 would be estimated

    async def worker_says(_history: list[Any], _info: Any) -> Any:
        await purse.spend()
        return reply([messages.TextPart("done")], EACH)

    async def ask(ctx: library.RunContext) -> str:  # pyright: ignore[reportInvalidTypeForm] - it is imported late
        return (await worker.run("go", usage=ctx.usage, usage_limits=limits)).output

    limits = usages.UsageLimits(total_tokens_limit=LIMIT)
    worker = library.Agent(models.FunctionModel(worker_says))
    lead = library.Agent(models.FunctionModel(lead_says), tools=[library.Tool(ask, takes_ctx=True)])
    await lead.run("go", usage_limits=limits)
    return ""


async def strands(purse: Purse) -> str:
    """The limit is given to the one that delegates; agents as tools have no way to be told of it."""

    async def work(_answered: bool) -> tuple[list[Any], int]:
        await purse.spend()
        return [{"text": "done"}], EACH

    async def delegate(answered: bool) -> tuple[list[Any], int]:
        calls = [strands_call(name, number) for number, name in enumerate(names)]
        return [{"text": "done"}] if answered else calls, 1

    names = [f"{WORKER}{number}" for number in range(MEMBERS)]
    lead = strands_agent(LEAD, delegate, [strands_agent(name, work).as_tool() for name in names])
    result = await lead.invoke_async("go", limits={"total_tokens": LIMIT})
    return result.stop_reason if result.stop_reason.startswith("limit") else ""
