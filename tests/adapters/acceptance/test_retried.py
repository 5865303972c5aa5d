"""A model's task that is tried again: what its model is told fits together, and nothing that was answered is asked
again."""

from typing import Any

import pytest

from adapters.places import KINDS, Place, came_back, join, priced, served, told
from engine.helping import ends, sound
from remit import Runtime, Turn
from remit.testing import FakeClock
from remit.testing.models import Calls, Fails, ModelRequest, Says

pytestmark = pytest.mark.anyio

DOWN = 4  # a request and three more after pauses: then the try has failed


def compiler(rt: Runtime) -> list[str]:
    """An agent that fails the first time and delivers ever after, and what it was asked."""
    asked: list[str] = []

    @rt.agent
    async def coder(turn: Turn) -> str:
        asked.append(turn.task)
        if len(asked) == 1:
            raise ValueError("compiler missing")
        return "delivered"

    return asked


def flaky(say: Any) -> Any:
    """A model that is down for a while when it is asked for the second time, and whose try fails of that."""
    seen: list[int] = []

    def script(asked: ModelRequest) -> Any:
        if came_back(asked) and len(seen) < DOWN:
            seen.append(1)
            return Fails(503)
        return say(asked)

    return script


def boss(asked: ModelRequest) -> Any:
    if came_back(asked):
        return Says(f"I was told: {told(asked)[-1]}")
    return Calls("call_agent", {"agent": "coder", "task": "compile"}, id="c1")


async def tried_twice(rt: Runtime, place: Place, clock: FakeClock) -> Any:
    outcome = await ends(clock, await rt.submit("boss", "go", credits="$1"))
    moves = [event.kind for event in await rt.workspace.journal.history(task=outcome.id)]
    assert moves.count("task.retrying") == 1, moves
    await sound(rt)
    return outcome.value, place.server.requests


@pytest.mark.rule("model.once", "tool.once")
@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_model_was_told_of_a_part_that_failed_stays_although_the_part_would_go_well_now(
    kind: str, clock: FakeClock
):
    async with served(flaky(boss)) as place, priced(system={"clock": clock}) as rt:
        asked = compiler(rt)
        join(rt, kind, place, "boss", asks=["coder"])
        value, requests = await tried_twice(rt, place, clock)
    assert "compiler missing" in value
    assert asked == ["compile"]
    first, *after = requests
    assert len(after) == DOWN + 1
    assert [request.messages for request in after] == [after[0].messages] * (DOWN + 1)
    assert after[0].messages[: len(first.messages)] == first.messages


@pytest.mark.rule("model.once", "talk.position")
async def test_a_prompt_that_would_be_another_now_is_not_sent_again(clock: FakeClock):
    """A prompt that is made of the time, or of anything that changes: the conversation goes on, and is paid once."""
    tries: list[str] = []

    def look() -> str:
        """Look."""
        return f"seen in {tries[-1]}"

    def model(asked: ModelRequest) -> Any:
        return Says(told(asked)[-1]) if came_back(asked) else Calls("look", {})

    async with served(flaky(model)) as place, priced(system={"clock": clock}) as rt:

        @rt.agent(model="openai-chat:m", tools=[look], base_url=place.url, keys=["PLACE_KEY"])
        async def boss(turn: Turn) -> str:
            tries.append(f"try {len(tries) + 1}")
            return tries[-1]

        value, requests = await tried_twice(rt, place, clock)
    assert value == "seen in try 1"
    assert tries == ["try 1", "try 2"]  # the function is called again: what it does besides must be accounted for
    assert [request.messages[0]["content"] for request in requests] == ["try 1"] * (2 + DOWN)
    assert [len(told(request)) for request in requests] == [0] + [1] * (1 + DOWN)
