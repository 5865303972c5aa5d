"""kill -9 at any moment of a team of models and guests: nothing that was answered is asked again."""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from remit.testing.clock import PATIENCE
from remit.testing.models import Calls, ModelRequest, Says, model_server

pytestmark = pytest.mark.anyio

LIVES = Path(__file__).parent / "lives.py"
EXPECTED = 7  # requests, when nobody is killed
MOMENTS, OFTEN = 20, 3


def script(asked: ModelRequest) -> Any:
    """The boss asks the coder and then the tester; the coder writes two lines."""
    told = sum(message["role"] == "tool" for message in asked.messages)
    if asked.model == "boss" and told < 2:
        return Calls("call_agent", {"agent": ("coder", "tester")[told], "task": f"part {told}"}, id=f"boss{told}")
    if asked.model == "coder" and told < 2:
        return Calls("write", {"line": f"line {told}"}, id=f"coder{told}")
    return Says(f"{asked.model} is done")


class Life(NamedTuple):
    """What came of a task through all the lives of its team: requests that the models saw, lines that were written, and
    what the last life found."""

    reached: int
    value: str
    unsound: list[str]
    answered: int
    uncertain: int
    requests: int
    written: list[str]


async def lived(folder: Path, cases: dict[str, list[int]]) -> dict[str, Life]:
    """Live each case through, and tell what came of it."""
    found: dict[str, Life] = {}
    given = [f"{name}={','.join(map(str, points))}" for name, points in cases.items()]
    async with model_server(script) as model:
        command = [sys.executable, str(LIVES), str(folder), f"{model.url}/v1", *given]
        async with await anyio.open_process(command, stderr=None) as lives:
            assert lives.stdout is not None
            lines = BufferedByteReceiveStream(lives.stdout)
            before = 0
            with anyio.fail_after(PATIENCE * 4):
                for name in cases:
                    assert (await lines.receive_until(b"\n", 100)).decode() == name
                    told = json.loads((folder / name / "told").read_text())
                    written = (folder / name / "written").read_text().splitlines()
                    found[name] = Life(**told, requests=len(model.requests) - before, written=written)
                    before = len(model.requests)
    return found


@pytest.mark.rule("model.once", "tool.once", "model.charged")
async def test_whatever_is_killed_goes_on_with_what_was_answered(memory_folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BOSS_KEY", "k")
    (memory_folder / "whole").mkdir()
    (memory_folder / "killed").mkdir()
    whole = (await lived(memory_folder / "whole", {"whole": []}))["whole"]
    assert (whole.requests, whole.answered, whole.written) == (EXPECTED, EXPECTED, ["line 0", "line 1"])

    step = whole.reached // MOMENTS
    cases = {f"once{point}": [point] for point in range(1, whole.reached, step)}
    cases |= {f"often{point}": [point, 60, 45] for point in range(20, whole.reached, whole.reached // OFTEN)}
    for name, life in (await lived(memory_folder / "killed", cases)).items():
        kills = len(cases[name])
        assert (life.value, life.unsound) == ("boss is done", []), name
        assert life.answered == EXPECTED, name
        assert life.requests <= EXPECTED + kills, name
        assert life.uncertain <= kills, name
        assert sorted({*life.written}) == ["line 0", "line 1"], name
        assert len(life.written) <= 2 + kills, (
            name
        )  # it may be killed after the tool has written and before that is kept
