"""What a turn knows of its task, and the dependencies that the runtime was given."""

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.models.test import TestModel

from engine.helping import ends
from remit import Failed, Runtime, Turn
from remit.settings import Serving
from remit.testing import FakeClock

pytestmark = pytest.mark.anyio


@dataclass
class Deps:
    name: str


@pytest.mark.rule("turn.facts")
async def test_a_turn_knows_its_task_session_person_and_attempt(rt: Runtime):
    seen: list[Any] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        seen.append((turn.session, turn.by, turn.attempt))
        await turn.delegate("worker", "part")
        return turn.id

    @rt.agent
    def worker(turn: Turn) -> None:
        seen.append((turn.session, turn.by, turn.attempt))

    outcome = await rt.outcome("lead", "go", session="monday", by="Ada")
    assert outcome.value == outcome.id
    assert seen == [("monday", "Ada", 1)] * 2


@pytest.mark.rule("turn.facts")
async def test_an_attempt_is_counted(rt: Runtime, clock: FakeClock):
    @rt.agent
    async def flaky(turn: Turn) -> int:
        if turn.attempt == 1:
            raise ConnectionError("once")
        return turn.attempt

    task = await rt.submit("flaky", "go", attempts=2)
    assert (await ends(clock, task)).value == 2
    assert (await task.status()).attempt == 2


@pytest.mark.rule("turn.deps")
async def test_every_turn_has_the_deps_of_its_runtime():
    deps = Deps("one")
    with Runtime(deps=deps) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn[Deps]) -> list[Any]:
            assert turn.deps is deps
            return [await turn.delegate("plain", "x"), await turn.delegate("guest", "x")]

        @rt.agent
        def plain(turn: Turn[Deps]) -> str:
            assert rt.turn.deps is deps
            return turn.deps.name

        guest = Agent(TestModel(call_tools=["name"]), name="guest", deps_type=Deps)

        @guest.tool
        async def name(context: RunContext[Deps]) -> str:
            assert context.deps is deps
            return context.deps.name

        rt.add(guest, deps=lambda turn: turn.deps)
        assert await rt.run("lead", "go") == ["one", '{"name":"one"}']
        with rt.at(":memory:", serving=Serving(concurrency=2)) as there:
            assert await there.run("plain", "go") == "one"


@pytest.mark.rule("turn.deps")
async def test_a_runtime_without_deps_says_what_to_pass(rt: Runtime):
    @rt.agent
    async def lead(turn: Turn) -> Any:
        return turn.deps

    with pytest.raises(Failed, match=r"this runtime has no deps: pass Runtime\(deps=...\)"):
        await rt.run("lead", "go")
