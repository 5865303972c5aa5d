"""What remit adds to a model agent: the same agent bare, called by hand inside of a plain agent, and as an agent of
remit. Each run is two requests to the model with the call of a tool in between; processor time counts, because a real
model takes a thousand times as long."""

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import remit
from measure import AsyncCosts, Cost, Load, Subject, each, need
from remit.core.prices import Usage
from remit.core.recovery import Choice
from remit.engine.directory import AgentRules
from remit.ports.models import ModelAnswer, ModelCall

_KEY = "REMIT_BENCH_KEY"
_TASK = "Is it open on Sunday?"
_SERVER = """
import asyncio, sys
from remit.testing.models import Calls, Says, model_server
def script(request):
    return Says("It is open.") if request.messages[-1]["role"] == "tool" else Calls("look_up", {"day": "Sunday"})
async def main():
    async with model_server(script) as server:
        print(server.url, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
asyncio.run(main())
"""


async def look_up(day: str) -> str:
    """Look up when it is open."""
    return f"{day}: 9 to 5"


def bare(*, http: bool) -> Subject:
    """Microseconds of processor time for a run of an agent of pydantic-ai alone."""

    async def costs(load: Load) -> AsyncCosts:
        with _model(http=http) as model:
            agent = _agent(model)
            while True:
                yield await _cpu(load, lambda: agent.run(_TASK))

    return costs


def by_hand(*, http: bool) -> Subject:
    """The same agent, called in the body of a plain agent of remit: none of its requests is recorded."""

    async def costs(load: Load) -> AsyncCosts:
        with _model(http=http) as model, remit.Runtime() as runtime:
            agent = _agent(model)

            @runtime.agent
            async def desk(turn: remit.Turn) -> str:
                return (await agent.run(turn.task)).output

            while True:
                yield await _cpu(load, lambda: runtime.run("desk", _TASK))

    return costs


def ours(*, http: bool, guest: bool = False) -> Subject:
    """The same as an agent of remit, made of its parts or taken in as a guest."""

    async def costs(load: Load) -> AsyncCosts:
        with _model(http=http) as model:
            async with remit.Runtime() as runtime:
                if guest:
                    runtime.add(_agent(model), name="desk")
                elif http:  # by name, so that it makes the client itself
                    os.environ[_KEY] = "none"
                    where: Any = {"base_url": str(model.client.base_url), "keys": [_KEY]}
                    runtime.model_agent("desk", "openai-chat:gpt-5", tools=[look_up], max_tokens=1_000, **where)
                else:
                    runtime.model_agent("desk", model, tools=[look_up], max_tokens=1_000)
                while True:
                    yield await _cpu(load, lambda: runtime.run("desk", _TASK))

    return costs


def hops(answers: int) -> Subject:
    """Microseconds for a delegation under limits, in a run whose model has answered so often, 20 KB each."""

    async def costs(load: Load) -> AsyncCosts:
        count = load.of(answers, least=0)
        times = load.of(200)
        limits = remit.Bounds(tokens=100_000_000, members=50)
        with remit.Runtime(load.folder / f"hops-{answers}.db") as runtime:
            found: list[Cost] = []

            async def lead(turn: remit.Turn) -> str:
                for number in range(count):
                    await turn.model(_said_at_length(number))
                parts = itertools.count()
                found.append(await each(times, lambda: turn.delegate("worker", f"part {next(parts)}")))
                return "ok"

            runtime.add(remit.Card("lead", asks=["worker"]), lead, rules=AgentRules(iterations=answers + 1))

            @runtime.agent
            async def worker(_turn: remit.Turn) -> str:
                return "ok"

            while True:
                await runtime.run("lead", "go", within=limits)
                yield found.pop()

    return costs


async def _cpu(load: Load, run: Callable[[], Any]) -> Cost:
    await run()  # warm
    cost = await each(load.of(200), run)
    assert cost.cpu is not None
    return Cost(cost.cpu)


def _agent(model: Any) -> Any:
    (library,) = need("pydantic_ai")
    return library.Agent(model, tools=[look_up], model_settings={"max_tokens": 1_000})


@contextmanager
def _model(*, http: bool) -> Generator[Any]:
    """Give a model that is a function, or one that is a server in a process of its own."""
    if not http:
        yield _function()
        return
    models, providers = need("pydantic_ai.models.openai", "pydantic_ai.providers.openai")
    server = subprocess.Popen([sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = f"{server.stdout.readline().strip()}/v1"
        yield models.OpenAIChatModel("gpt-5", provider=providers.OpenAIProvider(base_url=url, api_key="none"))
    finally:
        server.communicate()


def _function() -> Any:
    messages, models = need("pydantic_ai.messages", "pydantic_ai.models.function")

    async def says(history: list[Any], _info: Any) -> Any:
        if len(history) > 1:
            return messages.ModelResponse(parts=[messages.TextPart("It is open.")])
        return messages.ModelResponse(parts=[messages.ToolCallPart("look_up", {"day": "Sunday"})])

    return models.FunctionModel(says)


def _said_at_length(number: int) -> ModelCall:
    async def send(*_: object) -> ModelAnswer:
        return ModelAnswer("x" * 20_000, "scripted", Usage(5_000, 5_000))

    return ModelCall(
        digest=f"request {number}",
        choices=(Choice("scripted"),),
        size=lambda _trim: 100,
        most=1_000,
        send=send,
        failure=lambda _error: None,
        tools=frozenset(),
    )
