"""Moving a workspace: kill -9 at each step, between files and servers."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from deep import some
from programs import ran
from remit.stores.moving import STEPS

HERE = Path(__file__).parent
# How many of the two databases take a write after a kill at this step; at all others it is none.
TAKERS = {"arriving": 1, "arrived": 1, "deleting": 1, "deleted": 1}


@pytest.fixture(params=some(["a file and a server", "two files", "two servers"]))
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    files = [str(tmp_path / "first.db"), str(tmp_path / "second.db")]
    if request.param == "two files":
        return files[0], files[1]
    new: Callable[[], str] = request.getfixturevalue("new_address")
    return (files[0] if request.param == "a file and a server" else new()), new()


@pytest.mark.long
@pytest.mark.rule("move.killed", "move.whole", "move.one-copy")
def test_a_move_that_is_killed_at_any_step_goes_on_and_loses_nothing(pair: tuple[str, str]):
    done = ran("-W", "error", HERE / "moves.py", *pair, *STEPS, timeout=280)  # one way and back, in turn
    before, *cases = [json.loads(line) for line in done.stdout.splitlines()] or [{}]
    assert [case["step"] for case in cases] == [*STEPS], done.stderr
    assert (before["pictures"], len(before["questions"]), before["wrong"]) == (["a picture"], 1, [])
    for case in cases:
        after = case.pop("after")
        assert (case["killed"], case["left"]) == (signal.SIGKILL, {}), case
        assert len(case["took"]) == TAKERS.get(case["step"], 0), case
        assert after["journal"][: len(before["journal"])] == before["journal"]
        assert len(after["journal"]) == len(before["journal"]) + len(case["took"])
        unchanged = ("money", "questions", "pictures", "wrong")
        assert [after[what] for what in unchanged] == [before[what] for what in unchanged]
        before = after
