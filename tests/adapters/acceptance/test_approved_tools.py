"""A tool that a person has to approve, three agents deep: through kill -9, without any process, from another process,
and for longer than every default time."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.places import KINDS, Place, came_back, join, priced, served
from engine.helping import sound
from engine.people import running, the_question
from remit import Bounds, Runtime
from remit.core.question import Inquiry
from remit.errors import Conflict
from remit.settings import Serving
from remit.testing import FakeClock
from remit.testing.doubles import PATIENCE
from remit.testing.models import Calls, ModelRequest, Says

pytestmark = pytest.mark.anyio

DAYS = 3 * 86_400
LINE = {"lead": "middle", "middle": "it"}
EXPECTED = 6  # requests: two of each


def script(asked: ModelRequest) -> Any:
    """Each delegates to the next; the last deploys. All answer with what they were told."""
    if came_back(asked):
        return Says(f"{asked.model}({asked.text})")
    if asked.model in LINE:
        return Calls("call_agent", {"agent": LINE[asked.model], "task": "deploy"}, id=asked.model)
    return Calls("deploy", {"env": "prod"}, id="d")


def line(rt: Runtime, kind: str, place: Place, deployed: Callable[[str], object]) -> None:
    """Three agents in a row; the last has a tool that a person has to approve."""

    def deploy(env: str) -> str:
        """Deploy."""
        deployed(env)
        return f"deployed to {env}"

    join(rt, "native", place, "lead", model="lead", asks=["middle"])
    join(rt, "openai-agents", place, "middle", model="middle", asks=["it"])
    join(rt, kind, place, model="it", tools=[deploy], approve_tools=["deploy"])


class Home:
    """A store on a file, and processes that are lives of the team: forks, which have imported everything already."""

    def __init__(self, folder: Path, kind: str, place: Place) -> None:
        self.store = folder / "team.db"
        self.deployed = folder / "deployed"
        self._told = folder / "told"
        self._kind, self._place = kind, place

    def begin(self) -> int:
        """Start a process that has the line work on its task, or go on with it; gives its id."""
        child = os.fork()
        if not child:
            end = 1
            try:
                self._told.write_text(json.dumps(asyncio.run(self._life())))
                end = 0
            finally:
                os._exit(end)
        return child

    async def result(self, child: int) -> Any:
        """Wait until a process has ended by itself, and tell what came of the task."""
        with anyio.fail_after(PATIENCE):
            _, status = await anyio.to_thread.run_sync(os.waitpid, child, 0, abandon_on_cancel=True)
        assert status == 0
        return json.loads(self._told.read_text())

    async def _life(self) -> Any:
        serving = Serving(heartbeat_timeout=0.5)
        async with priced("lead", "middle", "it", store=self.store, serving=serving, bounds=Bounds(depth=3)) as rt:
            line(rt, self._kind, self._place, self._note)
            async with rt.serving():
                return await (await rt.submit("lead", "go", key="once", credits="$1")).result(PATIENCE)

    def _note(self, env: str) -> None:
        with self.deployed.open("a") as file:
            file.write(f"{env}\n")


def kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


async def asked(owner: Runtime) -> Inquiry:
    """Wait for the question of another process."""
    with anyio.fail_after(PATIENCE):
        async with owner.workspace.journal.follow(after=0) as follow:
            while not (found := await owner.workspace.questions.list()):
                await follow.next()
    return found[0]


@pytest.mark.rule("tool.approval", "tool.once", "model.once", "ask.parked", "ask.once", "answer.first")
@pytest.mark.parametrize("kind", KINDS)
async def test_killed_while_it_waits_answered_where_no_process_is_and_done_as_it_was_approved(
    kind: str, tmp_path: Path
):
    async with served(script) as place:
        home = Home(tmp_path, kind, place)
        child = home.begin()
        with Runtime(home.store) as owner:
            question = await asked(owner)
            kill(child)
            await owner.workspace.questions.approve(question.id, by="ann", value={"env": "test"})
            with pytest.raises(Conflict, match="ann"):
                await owner.workspace.questions.approve(question.id, by="bob", value={"env": "prod"})
        assert await home.result(home.begin()) == "lead(middle(it(deployed to test)))"
        assert home.deployed.read_text() == "test\n"
        assert len(place.server.requests) == EXPECTED
        with Runtime(home.store) as owner:
            kinds = [event.kind for event in await owner.workspace.journal.history()]
            assert [kinds.count(f"question.{what}") for what in ("asked", "answered", "used")] == [1, 1, 1]
            await sound(owner)


@pytest.mark.rule("tool.approval", "ask.answered")
async def test_an_answer_from_another_process_is_heard_at_once(tmp_path: Path):
    async with served(script) as place:
        home = Home(tmp_path, "native", place)
        child = home.begin()
        with Runtime(home.store) as owner:
            await owner.workspace.questions.approve((await asked(owner)).id, by="ann")
        assert await home.result(child) == "lead(middle(it(deployed to prod)))"
        assert home.deployed.read_text() == "prod\n"
        assert len(place.server.requests) == EXPECTED


@pytest.mark.rule("tool.approval", "ask.clock")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_person_may_take_longer_than_any_time_that_nobody_said(kind: str, clock: FakeClock):
    deployed: list[str] = []
    async with (
        served(script) as place,
        priced("lead", "middle", "it", system={"clock": clock}, bounds=Bounds(depth=3)) as rt,
    ):
        line(rt, kind, place, deployed.append)
        async with running(rt, "lead", credits="$1") as outcome:
            question = await the_question(rt)
            assert question.shows["arguments"] == {"env": "prod"}
            assert question.chain == "lead > middle > it"
            clock.advance(DAYS)
            assert [one.id for one in await rt.workspace.questions.list()] == [question.id]
            await rt.workspace.questions.approve(question.id, by="ann", value={"env": "test"})
        assert outcome.result().value == "lead(middle(it(deployed to test)))"
        assert deployed == ["test"]
        assert len(place.server.requests) == EXPECTED
        await sound(rt)
