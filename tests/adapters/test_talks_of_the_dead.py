"""A process that has lost its task without knowing asks no model and uses no tool, wherever its conversation is."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from agents import Agent as OpenAIAgent
from agents import function_tool
from langchain.agents import create_agent
from langchain.agents.middleware import dynamic_prompt
from pydantic_ai import Agent

from adapters.places import KEY, KEY_NAME, Place, served, told
from engine.helping import PATIENCE, doomed, happened, quiet, sound, take_over
from remit import Runtime
from remit.adapters.langgraph import Middleware
from remit.testing import FakeClock
from remit.testing.models import Calls, ModelRequest, Says
from teams import team

pytestmark = pytest.mark.anyio
GUESTS = ("pydantic-ai", "openai-agents", "langgraph")
# The zombie stops before its request of this number; in its first attempt at the task, or in its second, when the first
# two answers are on record.
MOMENTS = {"at its first request": (1, 1), "at news": (2, 1), "at recall": (2, 2), "after the record": (3, 2)}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


class Grave:
    """What a process does before each request and in each tool: the dead one stops there, and goes on when told."""

    def __init__(self, request: int = 0, tool: int = 0) -> None:
        self.stopped = anyio.Event()
        self.goes_on = anyio.Event()
        self.used: list[int] = []
        self._request = request
        self._tool = tool
        self._asked = 0

    async def instructions(self) -> str:
        self._asked += 1
        if self._asked == self._request:
            await self._stop()
        return "Be brief."

    async def step(self, number: int) -> str:
        """Go a step."""
        self.used.append(number)
        return f"step {number}"

    async def before(self, _turn: Any, call: Any) -> None:
        """Be called before a tool is used."""
        if call.arguments["number"] == self._tool:
            await self._stop()

    async def _stop(self) -> None:
        self.stopped.set()
        await self.goes_on.wait()


def join(rt: Runtime, kind: str, place: Place, grave: Grave) -> None:
    """Add a guest that says before each request what it is told."""
    about: dict[str, Any] = {"repeat": {"step": "again"}, "before": [grave.before]}
    match kind:
        case "pydantic-ai":
            rt.add(
                Agent(place.of_pydantic("m"), tools=[grave.step], instructions=grave.instructions), name="it", **about
            )
        case "openai-agents":

            async def instructions(_context: Any, _agent: Any) -> str:
                return await grave.instructions()

            tools: list[Any] = [function_tool(grave.step)]
            rt.add(OpenAIAgent("it", instructions=instructions, model=place.of_openai("m"), tools=tools), **about)
        case _:

            @dynamic_prompt
            async def prompt(_: Any) -> str:
                return await grave.instructions()

            graph = create_agent(place.chat("m"), [grave.step], middleware=[prompt, Middleware()])
            rt.add(graph, name="it", **about)


def script(asked: ModelRequest) -> Any:
    """Go steps 1 and 2, and tell what came of them."""
    number = len(told(asked)) + 1
    return Calls("step", {"number": number}, id=f"c{number}") if number < 3 else Says(" ".join(told(asked)))


async def outlived(folder: Path, clock: FakeClock, kind: str, grave: Grave, attempt: int) -> tuple[int, list[int]]:
    """Have a process lose its task at a grave in this attempt, another one finish the task, and then the first go on.
    Return how many requests left altogether, and the tools that the first process used afterwards."""
    store = folder / "team.db"
    async with served(script) as place:
        if attempt > 1:
            first = Grave(request=3)
            with team(store, clock=clock) as rt:
                join(rt, kind, place, first)
                await rt.submit("it", "go", key="k")
                await happened(first.stopped)
                await rt.drain(0)
        with doomed(store, clock) as dead, team(store, clock=clock) as heir:
            heirs = Grave()
            join(dead, kind, place, grave)
            join(heir, kind, place, heirs)
            dead.lend()
            task = await dead.submit("it", "go", key="k")
            await happened(grave.stopped)
            await take_over(heir, clock, dead)
            assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == "step 1 step 2"
            left, used = len(place.server.requests), len(grave.used)
            grave.goes_on.set()
            await quiet()
            await sound(heir)
            return len(place.server.requests) - left, grave.used[used:]


@pytest.mark.rule("talk.fence")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", GUESTS)
async def test_a_process_that_has_lost_its_task_asks_no_model(tmp_path: Path, clock: FakeClock, kind: str, moment: str):
    request, attempt = MOMENTS[moment]
    assert await outlived(tmp_path, clock, kind, Grave(request), attempt) == (0, [])


@pytest.mark.rule("talk.fence")
@pytest.mark.parametrize("kind", GUESTS)
async def test_a_process_that_has_lost_its_task_uses_no_tool(tmp_path: Path, clock: FakeClock, kind: str):
    assert await outlived(tmp_path, clock, kind, Grave(tool=2), 1) == (0, [])
