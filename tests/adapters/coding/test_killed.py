"""A worker with a coding agent is killed at a moment that is counted in model requests. Another worker goes on: nobody
is left, nothing is charged twice, and the model is told everything that the program's session lacks."""

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.coding.crews import KEY, LIKE, command_of
from deep import some
from programs import Program, ran, running
from remit import Workspace
from remit.testing.models import Calls, ModelReply, ModelRequest, Says, Slow, model_server

pytestmark = [pytest.mark.anyio, pytest.mark.long]
PATIENCE = 90
STEPS = 5
TEAM = """
import json, os, remit
from remit import Card
from remit.adapters.coding import claude_code, codex, gemini_cli
from remit.adapters.prices import KnownPrices, Price
from remit.settings import Serving, System

prices = KnownPrices(dict.fromkeys(("claude-x", "gpt-x", "gemini-x"), Price(input="$1", output="$2")))
rt = remit.Runtime("store.db", serving=Serving(heartbeat_timeout=1), system=System(prices=prices))
about = {"command": json.loads(os.environ["COMMAND"]), "cwd": "work", "home": "home", "keys": ["CODING_KEY"]}
if os.environ["PROGRAM"] == "claude":
    rt.add(Card("coder"), claude_code("anthropic:claude-x", allow=["Bash"], base_url=os.environ["MODEL"], **about))
elif os.environ["PROGRAM"] == "gemini":
    rt.add(Card("coder"), gemini_cli("google:gemini-x", base_url=os.environ["MODEL"], **about))
else:
    full = "danger-full-access"
    rt.add(Card("coder"), codex("openai:gpt-x", sandbox=full, base_url=os.environ["MODEL"] + "/v1", **about))
"""


class Heeding:
    """A model with so many commands to run, one after the other. It heeds what it is told of an earlier attempt: it
    does not repeat what is done, and looks before it repeats what was begun.

    The moment of the kill is when a request has come, whose answer is then not sent, or when the command of a request
    runs, which then does not end."""

    def __init__(self, marks: Path, moment: tuple[str, int]) -> None:
        self._marks = marks
        self._moment = moment
        self.reached = asyncio.Event()
        self.asked: list[str] = []
        self.is_killed = False

    def __call__(self, request: ModelRequest) -> ModelReply:
        told = json.dumps(request.body)
        self.asked.append(told)
        step = next((one for one in range(1, STEPS + 1) if f"result-{one}" not in told), None)
        if step is None:
            return Says("all is done")
        kind, number = self._moment
        is_moment = not self.is_killed and number == len(self.asked)
        begun = re.search(rf"BEGUN[^\n]*mark {step}\b", told.replace("\\n", "\n")) is not None
        reply = self._call(request, step, begun=begun, hangs=is_moment and kind == "running")
        if is_moment and kind == "asked":
            self.reached.set()
            return Slow(reply, PATIENCE)
        return reply

    def _call(self, request: ModelRequest, step: int, *, begun: bool, hangs: bool) -> Calls:
        look = f"grep -qx {step} {self._marks} || " if begun else ""
        wait = f"touch {self._marks}.running; sleep 60; echo late >> {self._marks}; " if hangs else ""
        command = f": mark {step}; {look}echo {step} >> {self._marks}; {wait}printf 'result-%s' {step}"
        if "input" in request.body:
            return Calls("exec_command", {"cmd": command, "yield_time_ms": 30_000})
        if "contents" in request.body:
            return Calls("run_shell_command", {"command": command})
        return Calls("Bash", {"command": command, "description": "step"})


class Place:
    """Where workers run: a folder with the team, and what they need."""

    def __init__(self, folder: Path, program: str, command: list[str], model: str) -> None:
        self.folder = folder
        (folder / "work").mkdir()
        (folder / "team.py").write_text(TEAM)
        about = {"COMMAND": json.dumps(command), "PROGRAM": program, "MODEL": model, "CODING_KEY": KEY}
        self._env = {**os.environ, **about, "COLUMNS": "200"}

    def worker(self) -> Any:
        words = ("-m", "remit", "worker", "team:rt", "--concurrency", "1")
        return running(*words, cwd=self.folder, env=self._env)

    def submit(self, task: str) -> str:
        words = ("-m", "remit", "submit", "team:rt", "coder", task, "--credits", "$2")
        return ran(*words, cwd=self.folder, env=self._env).stdout.split()[0]

    def left(self) -> list[str]:
        """The processes that belong to this place, other than ours."""
        return [one for one in _command_lines() if str(self.folder) in one]


def _command_lines() -> Iterator[str]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                yield (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue


async def _until(true: Callable[[], object]) -> None:
    with anyio.fail_after(PATIENCE):
        while not true():  # noqa: ASYNC110 - what it waits for is another process's
            await asyncio.sleep(0.02)


async def _kill(worker: Program, model: Heeding, marks: Path, moment: tuple[str, int]) -> None:
    if moment[0] == "asked":
        with anyio.fail_after(PATIENCE):
            await model.reached.wait()
    else:
        await _until(Path(f"{marks}.running").exists)
    worker.kill()
    model.is_killed = True


ALL = [(kind, number) for kind in ("asked", "running") for number in range(1, STEPS + 1)]
PROGRAMS = tuple(LIKE)
CASES = [
    *some((program, moment, False) for moment in (("asked", 3), ("running", 2)) for program in PROGRAMS),
    *((program, moment, True) for program in PROGRAMS for moment in ALL),
]


@pytest.mark.rule("coding.killed")
@pytest.mark.parametrize(
    ("program", "moment", "real"),
    CASES,
    ids=lambda one: {True: "real", False: "like"}.get(one) or (one if isinstance(one, str) else f"{one[0]}-{one[1]}"),
)
async def test_work_goes_on_after_a_kill_without_doing_anything_twice(
    program: str, moment: tuple[str, int], real: bool, tmp_path: Path
):
    marks = tmp_path / "marks"
    model = Heeding(marks, moment)
    async with model_server(model, strict=False) as server:
        place = Place(tmp_path, program, command_of(program, real), server.url)
        id_ = await asyncio.to_thread(place.submit, "do the five steps")
        with Workspace(tmp_path / "store.db") as workspace:
            task = workspace.tasks.get(id_)
            with place.worker() as first:
                await _kill(first, model, marks, moment)
                await _until(lambda: not place.left())
            known = len(model.asked)
            with place.worker():
                with anyio.fail_after(PATIENCE):
                    outcome = await task.wait()
            assert (outcome.state, outcome.value) == ("completed", "all is done")
            assert marks.read_text().split() == [str(one) for one in range(1, STEPS + 1)]
            _check_told(model.asked[known], moment)
            spent = (await workspace.money.spend()).total
            assert spent.calls == len(model.asked)


def _check_told(request: str, moment: tuple[str, int]) -> None:
    """The first request of the second attempt has every command of the first one, and every result that had reached
    the gateway, also if the model had not answered it."""
    kind, number = moment
    for step in range(1, number + (kind == "running")):
        assert f"mark {step}" in request
    for step in range(1, number):
        assert f"result-{step}" in request
