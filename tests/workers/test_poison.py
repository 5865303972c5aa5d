"""A task that kills its process, beside others that do no harm: they are finished, and it is dead in the end."""

import anyio
import pytest

from deep import some
from workers.crew import PATIENCE, Crew, gone, sound

pytestmark = pytest.mark.anyio

ATTEMPTS = 2
MOST = 3 + ATTEMPTS  # deaths: twice with all, once with a few, then it is known who it is


@pytest.fixture(params=some(["crew_on_file", "crew"]))
def team_of(request: pytest.FixtureRequest) -> Crew:
    return request.getfixturevalue(request.param)


@pytest.mark.rule("crash.neighbours", "crash.poison")
@pytest.mark.case("resume/poison")
async def test_neighbours_of_a_poison_are_finished_and_it_is_dead(team_of: Crew):
    async def always() -> None:
        """One worker after the other, as an init system starts them again."""
        while True:
            await gone(team_of.start(), patience=4 * PATIENCE)

    with team_of.runtime() as rt:
        others = [await rt.submit("gated", f"gate {n}", attempts=ATTEMPTS) for n in range(4)]
        poison = await rt.submit("poison", "x", attempts=ATTEMPTS)
        outcome = None
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(always)
            await team_of.until("died", 2)
            for number in range(4):
                team_of.open(f"gate {number}")
            outcome = await poison.wait(3 * PATIENCE)
            assert [await task.result(3 * PATIENCE) for task in others] == [f"gate {n}" for n in range(4)]
            group.cancel_scope.cancel()
        assert outcome is not None
        assert outcome.state == "dead"
        assert "the process that carried it out died" in str(outcome.error)
        assert len(team_of.lines("died")) <= MOST
        await sound(rt)
