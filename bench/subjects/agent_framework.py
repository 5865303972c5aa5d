"""The same runs in agent-framework, with scripted models that answer at once."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from measure import Skipped, Work, need
from subjects.library import Pause, no_pause

Reply = Callable[[bool], Awaitable[list[Any]]]  # have the tools answered -> what the model says


def _agent(name: str, reply: Reply, **more: Any) -> Any:
    (library,) = need("agent_framework")

    class Scripted(library.FunctionInvocationLayer, library.BaseChatClient):
        def _inner_get_response(self, *, messages: Any, stream: bool, **_: Any) -> Any:
            return self._build_response_stream(self._update(messages)) if stream else self._whole(messages)

        async def _whole(self, messages: Any) -> Any:
            said = library.Message(role="assistant", contents=await reply(_answered(messages)))
            return library.ChatResponse(messages=[said])

        async def _update(self, messages: Any) -> Any:
            yield library.ChatResponseUpdate(role="assistant", contents=await reply(_answered(messages)))

    return library.Agent(client=Scripted(), name=name, **more)


def _answered(messages: Any) -> bool:
    return any(content.type == "function_result" for content in messages[-1].contents)


@asynccontextmanager
async def handoffs(length: int, folder: Path | None = None) -> AsyncGenerator[Work]:
    """A workflow remembers who had the task last, so that a second run of it begins there and has no handoff. So each
    run has a workflow of its own, and making it is part of the figure."""
    if folder is not None:
        raise Skipped("keeps checkpoints, not runs")
    library, teams = need("agent_framework", "agent_framework_orchestrations")

    def passes(number: int) -> Reply:
        async def reply(_answered: bool) -> list[Any]:
            name = f"handoff_to_holder_{number + 1}"
            return [library.Content.from_function_call(f"call-{number}", name, arguments={})]

        return reply

    async def last(_answered: bool) -> list[Any]:
        return [library.Content.from_text("ok")]

    apart = {"require_per_service_call_history_persistence": True}
    holders = [_agent(f"holder_{number}", passes(number), **apart) for number in range(length)]
    holders.append(_agent(f"holder_{length}", last, **apart))

    async def work() -> None:
        builder = teams.HandoffBuilder(
            participants=holders, termination_condition=lambda said: bool(said) and said[-1].text == "ok"
        )
        await builder.with_start_agent(holders[0]).build().run("go")

    yield work


def _asks(members: int, pause: Pause) -> Any:
    """A lead that asks as many workers at once, each of which is an agent as a tool."""
    (library,) = need("agent_framework")

    async def lead_says(answered: bool) -> list[Any]:
        await pause(2 if answered else 0)
        if answered:
            return [library.Content.from_text("ok")]
        given = {"task": "go"}
        return [library.Content.from_function_call(f"call-{n}", "worker", arguments=given) for n in range(members)]

    async def worker_says(_answered: bool) -> list[Any]:
        await pause(1)
        return [library.Content.from_text("ok")]

    return _agent("lead", lead_says, tools=[_agent("worker", worker_says).as_tool()])


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
