"""A task whose new holder fails goes back to the agent that handed it over, if the owner says so."""

from pathlib import Path
from typing import Any

import pytest

import remit
from remit import Bounds, Command, Runtime, Turn
from remit.errors import BadInput
from remit.settings import Policy, RetryPolicy

pytestmark = pytest.mark.anyio


def crew(rt: Runtime, **about: Any) -> list[str]:
    """A clerk that hands over to an expert that fails, and answers itself when the task comes back."""
    told: list[str] = []

    @rt.agent(asks="expert", **about)
    async def clerk(turn: Turn) -> object:
        told.append(await turn.prompt())
        if turn.handoff.failed:
            return f"done by hand, as {turn.handoff.failed}"
        return Command("expert", {"order": 5003})

    @rt.agent(**about)
    async def expert(turn: Turn) -> str:
        raise ValueError("no such form")

    return told


BACK = Policy(on_failed_handoff="back")


@pytest.mark.rule("handoff.given-back")
async def test_a_task_comes_back_with_why_its_new_holder_failed():
    rt = Runtime(policy=BACK)
    told = crew(rt)
    answer = await rt.run("clerk", "file it")
    assert answer.startswith("done by hand, as 'expert' failed: ValueError: no such form")
    assert "## expert failed, and the task is yours again\n\n'expert' failed: ValueError: no such form" in told[1]
    assert "5003" in told[1]  # what was handed over is still there


@pytest.mark.rule("handoff.given-back")
async def test_without_the_setting_the_task_has_failed():
    rt = Runtime()
    told = crew(rt)
    with pytest.raises(remit.Failed, match="'expert' failed: ValueError: no such form"):
        await rt.run("clerk", "file it")
    assert len(told) == 1


@pytest.mark.rule("handoff.given-back")
async def test_a_task_that_may_change_hands_no_more_has_failed():
    rt = Runtime(policy=BACK)
    crew(rt)
    with pytest.raises(remit.Failed, match="no such form"):
        await rt.run("clerk", "file it", within=Bounds(handoffs=1))


@pytest.mark.rule("handoff.given-back")
async def test_a_task_that_failed_without_a_handoff_has_failed():
    rt = Runtime(policy=BACK)
    crew(rt)
    with pytest.raises(remit.Failed, match="no such form"):
        await rt.run("expert", "file it")


@pytest.mark.rule("handoff.given-back")
async def test_a_task_that_came_back_does_so_when_it_is_run_again(tmp_path: Path):
    tries: list[str] = []
    rt = Runtime(tmp_path / "team.db", policy=BACK)

    @rt.agent(asks="expert", retry=RetryPolicy(first=0.01))
    async def clerk(turn: Turn) -> object:
        tries.append(turn.handoff.failed)
        if not turn.handoff.failed:
            return Command("expert")
        if len(tries) == 2:
            raise ConnectionError("away")
        return "done by hand"

    @rt.agent
    async def expert(turn: Turn) -> str:
        raise ValueError("no such form")

    async with rt, rt.serving():
        task = await rt.submit("clerk", "file it")
        assert await task.result() == "done by hand"
    first, second, third = tries
    assert first == ""
    assert second == third  # the record says it again
    assert "no such form" in third


@pytest.mark.rule("handoff.given-back")
def test_a_setting_that_is_neither_is_told():
    with pytest.raises(BadInput, match="on_failed_handoff is 'fail' or 'back', not 'retry'"):
        Policy(on_failed_handoff="retry")  # pyright: ignore[reportArgumentType] - what is tested
