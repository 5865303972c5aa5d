"""Own failures of a model open its breaker, of whatever kind its agent is; those of others do not."""

import itertools
from typing import Any

import pytest

from adapters.places import KEY, KEY_NAME, KINDS, join, priced, served
from remit import Runtime, Turn
from remit.testing.models import Calls, Fails, ModelReply, Says

pytestmark = [pytest.mark.anyio, pytest.mark.rule("breaker.own-failures")]

kinds = pytest.mark.parametrize("kind", KINDS)
NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


def look(number: int) -> str:
    """Look."""
    return f"page {number}"


def fresh() -> ModelReply:
    return Calls("look", {"number": next(NUMBERS)})


FAILURES: dict[str, Any] = {
    "out of requests": fresh,
    "stopped for repeating": lambda: Calls("look", {"number": 1}),
    "unknown tools": lambda: Calls("teleport", {}),
    "rejected requests": lambda: Fails(400, message="no"),
    "no answer": lambda: Fails(401, message="no"),
}


async def states(rt: Runtime, name: str = "it", times: int = 4, **how: Any) -> list[str]:
    return [(await rt.outcome(name, f"task {number}", **how)).state for number in range(times)]


@kinds
@pytest.mark.parametrize("why", FAILURES)
async def test_three_failures_of_its_own_open_the_breaker_of_a_model(kind: str, why: str):
    iterations = 4 if why == "out of requests" else 50
    async with served(lambda _request: FAILURES[why]()) as place, Runtime() as rt:
        join(rt, kind, place, tools=[look], iterations=iterations)
        assert await states(rt) == ["failed"] * 3 + ["refused"]
        assert (await rt.workspace.agents.breakers())["it"].state == "open"


async def test_answers_that_never_fit_their_form_open_the_breaker():
    async with served(lambda _request: Calls("final_result", {"response": "many"})) as place, Runtime() as rt:
        join(rt, "native", place, output=int)
        assert await states(rt) == ["failed"] * 3 + ["refused"]


@kinds
async def test_money_that_is_missing_does_not(kind: str):
    async with served(lambda _request: fresh()) as place, priced() as rt:
        join(rt, kind, place, tools=[look])
        assert "refused" not in await states(rt, credits="$0.000001")
        assert await rt.workspace.agents.breakers() == {}


async def test_insisting_on_what_a_person_rejects_stops_a_task_and_opens_no_breaker():
    async with served(lambda _request: Calls("look", {"number": 1})) as place, Runtime() as rt:
        join(rt, "native", place, tools=[look], approve_tools=["look"])

        async def rejected() -> str:
            task = await rt.submit("it", "go")
            async for events in rt.workspace.journal.follow(after=0):
                for event in events:
                    if event.kind == "question.asked" and event.task == task.id:
                        await rt.workspace.questions.reject(str(event.data["question"]), why="no")
                    if event.kind in ("task.failed", "task.died") and event.task == task.id:
                        return str(event.data["error"])
            raise AssertionError

        async with rt.serving():
            for _ in range(3):
                assert "was stopped: it was refused again and again" in await rejected()
        assert await rt.workspace.agents.breakers() == {}


@kinds
async def test_a_cancel_and_the_failure_of_another_do_not(kind: str):
    async with served(lambda request: Says("done") if len(request.messages) > 2 else ASKS) as place, Runtime() as rt:

        @rt.agent
        async def worker(turn: Turn) -> str:
            raise ValueError

        join(rt, kind, place, asks=["worker"])
        assert await states(rt, times=2) == ["completed"] * 2
        assert [*await rt.workspace.agents.breakers()] == ["worker"]


ASKS = Calls("call_agent", {"agent": "worker", "task": "go"})
