"""kill -9 at any moment of a conversation, of every kind of agent, and something changes before the agent goes on:
nothing that was answered is asked or paid again, and no tool is used twice that does not say that it may be."""

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from adapters.killing.talkers import NEWS, Case
from adapters.places import KINDS, told
from remit.testing.doubles import PATIENCE
from remit.testing.models import Calls, ModelRequest, ModelServer, Says, model_server

pytestmark = pytest.mark.anyio

TESTS = Path(__file__).parents[1]
CHANGES = ("context", "instructions", "tools", "news", "clock")
REQUESTS, TOOLS = 4, 4  # when nobody is killed
AGAIN = (2, 4)  # the tools that may be used again
HOOKS, KILLS = 7, 13  # moments in the store that are tried, and how many kills of each kind there are at least
SIDE_BY_SIDE = 8  # they wait most of the time until a dead process is given up
LONG = 10 * PATIENCE


class Models:
    """The model of all conversations, which show it their names as keys. It kills whoever is to die while it asks."""

    def __init__(self, folder: Path) -> None:
        self.asked: Counter[str] = Counter()
        self.deaths: dict[str, int] = {}
        self._folder = folder

    def __call__(self, asked: ModelRequest) -> Any:
        self.asked[asked.key] += 1
        if self.asked[asked.key] == self.deaths.get(asked.key):
            os.kill(int((self._folder / asked.key / "process").read_text()), signal.SIGKILL)
        results = told(asked)
        match len(results):
            case 0:
                return Calls("note", {"number": 1}, id="c1")
            case 1:
                return Calls("again", {"number": 2}, id="c2", also=[Calls("note", {"number": 3}, id="c3")])
            case 3:
                return Calls("again", {"number": 4}, id="c4")
            case _:
                return Says(" | ".join(results))


def cases(kind: str, reached: int) -> Iterator[Case]:
    """Spread kills over a conversation that reaches so many hooks, with each change in turn."""
    hooks = [{"hook": 1 + number * reached * 9 // 10 // HOOKS} for number in range(HOOKS)]
    tools = [{"tool": number + 1} for number in range(TOOLS)]
    requests = [{"request": number + 1} for number in range(REQUESTS)]
    changes = cycle(CHANGES)
    for _ in range(KINDS.index(kind)):
        next(changes)  # so that a moment meets another change in another kind
    for number, (moment, change) in enumerate(zip([*hooks, *tools, *requests], changes, strict=False)):
        yield Case(f"{kind}-{number}-{change}", kind, change, **moment)


def check(case: Case, home: Path, model: ModelServer) -> bool:
    """Check what came of a conversation; tell whether it was killed."""
    lived = json.loads((home / "told").read_text())
    killed = (home / "killed").read_text() == "True"
    assert lived["unsound"] == [], case
    asked = [request for request in model.requests if request.key == case.name]
    assert REQUESTS <= len(asked) <= REQUESTS + (killed and not case.tool), case
    check_money(case, lived, killed)
    check_tools(case, lived["value"].split(" | "), (home / "used").read_text().split(), killed)
    heard = [str(request.messages).count(NEWS) for request in asked]
    assert heard == sorted(heard), case  # what was told stays told
    assert max(heard) <= (case.change == "news"), case
    return killed


def check_money(case: Case, lived: dict[str, Any], killed: bool) -> None:
    """Each answer is paid once, and of what was under way it is on record that nobody knows."""
    certain = [one["costs"]["credits"] for one in lived["settled"] if not one.get("uncertain")]
    assert len(lived["answered"]) == REQUESTS, case
    assert sorted(certain) == sorted(one["cost"] for one in lived["answered"]), case
    assert len(lived["settled"]) - len(certain) <= killed, case


def check_tools(case: Case, results: list[str], used: list[str], killed: bool) -> None:
    """The answer is as without a kill, but for a tool that was begun: it is used again if it may be, or the model is
    told that it may have been used."""
    assert len(results) == TOOLS, case
    for number, result in enumerate(results, 1):
        times = used.count(str(number))
        if number in AGAIN:
            assert result == f"did {number}", case
            assert 1 <= times <= 1 + killed, case
        elif result == f"did {number}":
            assert times == 1, case
        else:
            assert "was begun before the task was interrupted and may have been done" in result, case
            assert times <= killed, case


class Talkers(NamedTuple):
    """The program in which the conversations live."""

    process: Any
    lines: BufferedByteReceiveStream

    async def done(self) -> None:
        assert await self.lines.receive_until(b"\n", 100) == b"done"

    async def live(self, some: Iterable[Case]) -> None:
        await self.process.stdin.send(f"{json.dumps([*some])}\n".encode())
        await self.done()


@pytest.mark.deep
@pytest.mark.timeout(LONG)
@pytest.mark.rule("talk.position", "talk.begun", "talk.news", "model.once", "tool.once", "model.charged")
async def test_a_conversation_that_is_killed_and_changed_asks_pays_and_does_nothing_twice(tmp_path: Path):
    models, killed = Models(tmp_path), Counter[str]()
    async with model_server(models) as model:
        command = [sys.executable, "-m", "adapters.killing.talkers", str(tmp_path), f"{model.url}/v1"]
        async with await anyio.open_process(command, stderr=None, cwd=TESTS) as process:
            assert process.stdout is not None
            talkers = Talkers(process, BufferedByteReceiveStream(process.stdout))
            await talkers.done()
            whole = {kind: json.loads((tmp_path / kind / "told").read_text()) for kind in KINDS}
            assert {one["value"] for one in whole.values()} == {"did 1 | did 2 | did 3 | did 4"}
            every = [case for kind in KINDS for case in cases(kind, whole[kind]["reached"])]
            models.deaths.update({case.name: case.request for case in every})
            for first in range(0, len(every), SIDE_BY_SIDE):
                some = every[first : first + SIDE_BY_SIDE]
                await talkers.live(some)
                for case in some:
                    killed[case.kind] += check(case, tmp_path / case.name, model)
            await process.stdin.aclose()
        heard = sum(NEWS in str(request.messages) for request in model.requests)
    assert min(killed[kind] for kind in KINDS) >= KILLS
    assert heard
