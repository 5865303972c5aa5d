"""Between two lives a tool is renamed, and so gone, takes other arguments, is denied or wants approval: what it told is
told as it was, and a call that is still to be made is refused with a sentence, or approved first."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

from adapters.lives import Life, live_until, lived, submitted
from adapters.places import KEY, KEY_NAME, KINDS, join, served, told
from engine.helping import sound
from remit import Runtime
from remit.ports.turn import current_turn
from remit.testing.doubles import PATIENCE
from remit.testing.models import Calls, ModelRequest, Says

pytestmark = pytest.mark.anyio
CHANGES = ("renamed", "other arguments", "denied", "approved")
# How far the call of the tool has come when the first life ends: its model was told the result, the result is on record
# and the request with it is under way, or it is under way itself.
MOMENTS = ("told", "done", "begun")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


class Bench(NamedTuple):
    """A tool `step`, whose call the first life leaves at this moment, and `wait`, in which the first life may end."""

    moment: str
    life: Life
    used: list[str]
    notes: bool = True  # whether the tool has an effect inside

    async def step(self, number: int) -> str:
        """Go a step."""
        self.used.append(f"step {number}")
        if self.notes:
            turn: Any = current_turn()
            await turn.once("note", self.used.append, "noted")
        if self.moment == "begun":
            await self.life.hold()
        return f"step {number}"

    async def wait(self) -> str:
        """Wait."""
        if self.moment == "told":
            await self.life.hold()
        return "waited"

    async def script(self, asked: ModelRequest) -> Any:
        """Go a step, wait, and tell what came of both."""
        results = told(asked)
        if len(results) == 1 and self.moment == "done":
            await self.life.hold()
        if len(results) < 2:
            return Calls("wait", {}, id="c2") if results else Calls("step", {"number": 1}, id="c1")
        return Says(" | ".join(results))

    def tools(self, change: str) -> list[Callable[..., Any]]:
        async def stride(number: int) -> str:
            """Go a long step."""
            return await self.step(number)

        async def step(number: int, where: str) -> str:
            """Go a step somewhere."""
            return await self.step(number)

        if self.life.is_first or change in ("denied", "approved"):
            return [self.step, self.wait]
        return [stride if change == "renamed" else step, self.wait]

    def rules(self, change: str, again: str = "again") -> dict[str, Any]:
        repeat = {"wait": "again"}
        if self.life.is_first or change != "renamed":
            repeat["step"] = again
        named = {"denied": {"deny": ["step"]}, "approved": {"approve_tools": ["step"]}}
        return {"repeat": repeat, **({} if self.life.is_first else named.get(change, {}))}


async def approved(rt: Runtime) -> None:
    """Say yes to the one question that is asked."""
    with anyio.fail_after(PATIENCE):
        while not (asked := await rt.workspace.questions.list()):
            await anyio.lowlevel.checkpoint()
        await rt.workspace.questions.approve(asked[0].id)


@pytest.mark.rule("tool.once", "talk.gone")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("moment", MOMENTS[:2])
@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_tool_told_is_told_as_it_was_whatever_has_become_of_the_tool(
    tmp_path: Path, kind: str, moment: str, change: str
):
    bench, store = Bench(moment, Life(), []), tmp_path / "team.db"
    async with served(bench.script) as place:

        def team(rt: Runtime) -> None:
            join(rt, kind, place, tools=bench.tools(change), **bench.rules(change))

        await live_until(store, team, bench.life)
        async with lived(store, team) as (rt, outcome):
            assert outcome.value == "step 1 | waited", outcome
            assert await rt.workspace.questions.list() == []
            await sound(rt)
    assert bench.used == ["step 1", "noted"]


@pytest.mark.rule("talk.begun", "talk.gone")
@pytest.mark.parametrize("again", ["again", "tell"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_that_is_still_to_be_made_is_refused_with_a_sentence_or_approved_first(
    tmp_path: Path, kind: str, change: str, again: str
):
    """Unless the tool may be used again, the model is told that it may have been used, whatever has become of it."""
    notes = again == "tell" or change in ("denied", "approved")
    bench, store, said = Bench("begun", Life(), [], notes), tmp_path / "team.db", list[str]()
    async with served(bench.script) as place:

        def team(rt: Runtime) -> None:
            join(rt, kind, place, tools=bench.tools(change), **bench.rules(change, again))

        await live_until(store, team, bench.life)
        async with Runtime(store) as rt, anyio.create_task_group() as beside:
            team(rt)
            if change == "approved" and again == "again":
                beside.start_soon(approved, rt)
            with anyio.fail_after(PATIENCE):
                outcome = await (await submitted(rt)).wait()
            assert outcome.ok, outcome
            said.extend(str(outcome.value).split(" | "))
            await sound(rt)
    result, waited = said
    once = ["step 1", "noted"] if notes else ["step 1"]
    assert waited == "waited"
    if change == "approved" and again == "again":
        assert result == "step 1"
        assert bench.used == [*once, "step 1"]
        return
    assert bench.used == once
    assert result != "step 1"
    assert "step" in result or "where" in result  # which is missing
    if again == "tell":
        assert "'step' was begun before the task was interrupted and may have been done" in result
