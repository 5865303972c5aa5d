"""Calls of one answer, of which an earlier attempt has made none, some or all: the missing ones are made, and the model
is told all results in the order of its calls."""

from pathlib import Path
from typing import Any

import pytest

from adapters.lives import Life, two_lives
from adapters.places import KEY, KEY_NAME, KINDS, join, served, told
from remit import Runtime
from remit.testing.models import Calls, ModelRequest, Says

pytestmark = pytest.mark.anyio
CALLS = (1, 2, 3, 4)
MADE: dict[str, tuple[int, ...]] = {"none": (), "one": (3,), "all but one": (1, 2, 4), "all": CALLS}
MAY_BE_DONE = "'step' was begun before the task was interrupted and may have been done"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


@pytest.mark.rule("tool.once", "talk.begun")
@pytest.mark.parametrize("repeat", ["again", "tell"])
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("kind", KINDS)
async def test_only_the_calls_of_an_answer_are_made_that_are_missing(tmp_path: Path, kind: str, made: str, repeat: Any):
    """In the first life these calls are made, and the others are begun; or all are, and the next request is sent."""
    missing = [number for number in CALLS if number not in MADE[made]]
    life, used = Life(holds=max(1, len(missing)), recorded=len(MADE[made])), []

    async def step(number: int) -> str:
        """Go a step."""
        used.append(number)
        if number in missing:
            await life.hold()
        return f"step {number}"

    async def script(asked: ModelRequest) -> Any:
        if results := told(asked):
            if not missing:
                await life.hold()
            return Says(" | ".join(results))
        first, *more = (Calls("step", {"number": number}, id=f"c{number}") for number in CALLS)
        return Calls(first.name, first.arguments, also=more, id=first.id)

    async with served(script) as place:

        def team(rt: Runtime) -> None:
            join(rt, kind, place, tools=[step], repeat={"step": repeat})

        async with two_lives(tmp_path / "team.db", team, life) as (_, outcome):
            results = str(outcome.value).split(" | ")
        again = missing if repeat == "again" else []
        assert sorted(used[: len(CALLS)]) == [*CALLS]
        assert sorted(used[len(CALLS) :]) == again
        assert len(results) == len(CALLS)
        for number, result in zip(CALLS, results, strict=True):
            assert (MAY_BE_DONE in result) if repeat == "tell" and number in missing else result == f"step {number}"
        assert len(place.server.requests) == 2 + (not missing)
