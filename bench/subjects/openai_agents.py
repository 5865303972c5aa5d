"""The same runs in openai-agents, with scripted models that answer at once."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from measure import Work, need
from subjects.library import Pause, no_pause


def _model(reply: Callable[[bool], Any]) -> Any:
    """A model; `reply` is told whether its tools have answered, and is awaited for what it says."""
    library, items, usage = need("agents", "agents.items", "agents.usage")
    library.set_tracing_disabled(True)

    class Scripted(library.Model):
        async def get_response(self, *_: Any, input: Any, **__: Any) -> Any:
            answered = isinstance(input, list) and input[-1].get("type") == "function_call_output"
            return items.ModelResponse(output=await reply(answered), usage=usage.Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    return Scripted()


def _text() -> Any:
    (types,) = need("openai.types.responses")
    said = types.ResponseOutputText(text="ok", type="output_text", annotations=[])
    return types.ResponseOutputMessage(id="0", content=[said], role="assistant", status="completed", type="message")


def _call(name: str, number: int = 0, given: str = "{}") -> Any:
    (types,) = need("openai.types.responses")
    id_ = f"call-{number}"
    return types.ResponseFunctionToolCall(id=id_, call_id=id_, name=name, arguments=given, type="function_call")


@asynccontextmanager
async def handoffs(length: int, folder: Path | None = None) -> AsyncGenerator[Work]:
    (library,) = need("agents")

    def says(output: Any) -> Any:
        async def reply(_answered: bool) -> list[Any]:
            return [output]

        return _model(reply)

    holder = library.Agent(name=f"holder_{length}", model=says(_text()))
    for number in reversed(range(length)):
        call = _call(f"transfer_to_{holder.name}", number)
        holder = library.Agent(name=f"holder_{number}", model=says(call), handoffs=[holder])
    if folder is None:
        yield lambda: library.Runner.run(holder, "go")
        return
    with TemporaryDirectory(dir=folder) as place:
        numbers = count()

        async def work() -> None:
            session = library.SQLiteSession(f"run {next(numbers)}", Path(place) / "sessions.db")
            await library.Runner.run(holder, "go", session=session)
            session.close()

        yield work


def _asks(members: int, pause: Pause) -> Any:
    """A lead that asks as many workers at once, each of which is an agent as a tool."""
    (library,) = need("agents")
    calls = [_call("worker", number, '{"input": "go"}') for number in range(members)]

    async def lead_says(answered: bool) -> list[Any]:
        await pause(2 if answered else 0)
        return [_text()] if answered else calls

    async def worker_says(_answered: bool) -> list[Any]:
        await pause(1)
        return [_text()]

    worker = library.Agent(name="worker", model=_model(worker_says))
    return library.Agent(name="lead", model=_model(lead_says), tools=[worker.as_tool("worker", "ask the worker")])


@asynccontextmanager
async def delegation(pause: Pause = no_pause, folder: Path | None = None) -> AsyncGenerator[Work]:
    assert folder is None
    (library,) = need("agents")
    lead = _asks(1, pause)
    yield lambda: library.Runner.run(lead, "go")


@asynccontextmanager
async def fan_out(members: int, seconds: float) -> AsyncGenerator[Work]:
    (library,) = need("agents")

    async def pause(stage: int) -> None:
        if stage == 1:
            await asyncio.sleep(seconds)

    lead = _asks(members, pause)
    yield lambda: library.Runner.run(lead, "go")
