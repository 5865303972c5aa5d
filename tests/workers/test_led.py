"""A worker that leads a plan or a team is killed: another goes on with it, and repeats nothing that was finished."""

import signal
from collections import Counter
from typing import Any

import pytest

from deep import some
from remit import Plan, Step
from workers.crew import PATIENCE, Crew, gone, sound
from workers.member import PAINTING

pytestmark = pytest.mark.anyio

STEPS: list[Any] = PAINTING["steps"]


@pytest.fixture(params=some(["crew", "crew_on_file"]))
def anywhere(request: pytest.FixtureRequest) -> Crew:
    """A crew on PostgreSQL, and one on SQLite."""
    return request.getfixturevalue(request.param)


@pytest.mark.rule("plan.resumed", "team.resumed")
@pytest.mark.parametrize("led", ["plan", "team"])
async def test_what_a_killed_worker_led_is_finished_by_another(anywhere: Crew, led: str):
    crew = anywhere
    first = crew.start(silence=1)
    await crew.ready(first)
    with crew.runtime() as rt:
        if led == "plan":
            task = await rt.submit_plan(Plan([Step(**step) for step in STEPS]))
        else:
            task = await rt.submit_team("a picture", "boss")
        assert [line.about for line in await crew.until("did", 2)] == ["sketch", "gate"]
        second = crew.start(silence=1)
        await crew.ready(second)
        first.kill()
        assert await gone(first) == -signal.SIGKILL
        assert [line.pid for line in await crew.until("did", 3)] == [first.pid, first.pid, second.pid]
        crew.open("gate")
        outcome = await task.plan_outcome(PATIENCE)
        assert [step.value for step in outcome.steps.values()] == ["SKETCH", "GATE", "FRAME"]
        assert crew.count("did") == Counter({"sketch": 1, "gate": 2, "frame": 1})
        if led == "team":
            assert await task.result() == 3
            assert crew.count("asked") == Counter({"plan": 1, "synthesis": 1})
        assert (await task.status()).attempt == 1  # the first time nobody is to blame
        await sound(rt)
