"""kill -9 at any moment of a team of models and guests: nothing that was answered is asked again."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from remit.testing.doubles import PATIENCE
from remit.testing.models import Calls, ModelRequest, Says, model_server

pytestmark = pytest.mark.anyio

TESTS = Path(__file__).parents[2]
EXPECTED = 11  # requests, when nobody is killed
GUESTS = ("coder", "tester", "drawer", "planner")
WRITTEN = ["line of coder", "line of drawer"]
LONG = 10 * PATIENCE  # for a hundred processes, one after the other, on a machine that has other things to do
ONCE, OFTEN, KILLS = 12, 6, 30  # runs that are killed once and three times, and how many kills there are at least


def script(asked: ModelRequest) -> Any:
    """The boss asks one after the other; the coder and the drawer write a line each."""
    told = sum(message["role"] == "tool" for message in asked.messages)
    if asked.model == "boss" and told < len(GUESTS):
        return Calls("call_agent", {"agent": GUESTS[told], "task": f"part {told}"}, id=f"b{told}")
    if asked.model in ("coder", "drawer") and not told:
        return Calls("write", {"line": f"line of {asked.model}"}, id="w")
    return Says(f"{asked.model} is done")


def moments(reached: int) -> dict[str, list[int]]:
    """Spread kills over a run that reaches so many hooks; a life that takes over reaches some before it goes on."""
    once = {f"once{number}": [1 + number * reached // ONCE] for number in range(ONCE)}
    early = [1 + number * reached * 2 // OFTEN // 3 for number in range(OFTEN)]  # there is something left to do then
    often = {f"often{number}": [point, 40 + 4 * number, 76 - 4 * number] for number, point in enumerate(early)}
    return once | often


class Life(NamedTuple):
    """What came of a task through all the lives of its team: requests that the models saw, lines that were written, and
    what the last life found."""

    reached: int
    value: str
    unsound: list[str]
    answered: int
    uncertain: int
    kills: int
    requests: int
    written: list[str]


async def lived(folder: Path) -> AsyncIterator[tuple[str, list[int], Life]]:
    """Live each case through, and tell what came of it; the first is that of a run in peace."""
    async with model_server(script) as model:
        command = [sys.executable, "-m", "adapters.killing.lives", str(folder), f"{model.url}/v1"]
        async with await anyio.open_process(command, stderr=None, cwd=TESTS) as lives:
            assert lives.stdout is not None
            assert lives.stdin is not None
            lines = BufferedByteReceiveStream(lives.stdout)

            async def life(name: str) -> Life:
                before = len(model.requests)
                assert (await lines.receive_until(b"\n", 100)).decode() == name
                told = json.loads((folder / name / "told").read_text())
                written = (folder / name / "written").read_text().splitlines()
                return Life(**told, requests=len(model.requests) - before, written=written)

            with anyio.fail_after(LONG):
                whole = await life("whole")
                yield "whole", [], whole
                for name, points in moments(whole.reached).items():
                    await lives.stdin.send(f"{name} {' '.join(map(str, points))}\n".encode())
                    yield name, points, await life(name)
            await lives.stdin.aclose()


@pytest.mark.deep
@pytest.mark.timeout(LONG)
@pytest.mark.rule("model.once", "tool.once", "model.charged", "talk.position", "talk.begun")
async def test_whatever_is_killed_and_changed_goes_on_with_what_was_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BOSS_KEY", "k")
    killed = 0
    async with aclosing(lived(tmp_path)) as lives:
        async for name, points, life in lives:
            assert (life.value, life.unsound) == ("boss is done", []), name
            assert life.kills == len(points), name
            assert life.answered == EXPECTED, name
            assert EXPECTED <= life.requests <= EXPECTED + life.kills, name
            assert life.uncertain <= life.kills, name
            once, again = WRITTEN
            assert life.written.count(once) <= 1, name  # the model is told that it may have been written
            assert 1 <= life.written.count(again) <= 1 + life.kills, name  # this one says that it may be used again
            killed += life.kills
    assert killed >= KILLS
