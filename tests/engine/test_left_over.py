"""A program that changed between two attempts: what the first one finished and the second never asked for is told."""

import asyncio
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from engine.helping import PATIENCE, sound
from remit import Outcome, Runtime, Turn
from remit.report.flow.text import text
from remit.runtime.workspace import opening_of
from teams import echo

pytestmark = pytest.mark.anyio


async def two_lives(folder: Path, lead: Any) -> tuple[Outcome, list[str], str]:
    """Run `lead` until it waits in its first life, and to its end in the second; return what was left over."""
    store = folder / "team.db"

    def team(rt: Runtime, life: int, waits: asyncio.Event) -> None:
        rt.agent("old")(echo)

        @rt.agent("lead", asks="*")
        async def leads(turn: Turn) -> object:
            value = await lead(turn, life)
            if life == 1:
                waits.set()
                await asyncio.Event().wait()
            return value

    with anyio.fail_after(PATIENCE):
        waits = asyncio.Event()
        async with Runtime(store) as rt:
            await rt.workspace.money.grant("$1", op="g")
            team(rt, 1, waits)
            await rt.submit("lead", "go", key="k")
            await waits.wait()
            await rt.drain(0)
        async with Runtime(store) as rt:
            team(rt, 2, waits)
            outcome = await (await rt.submit("lead", "go", key="k")).wait()
            await sound(rt)
            events = await rt.workspace.journal.history()
            root = await rt.workspace.tree(outcome.id)
            assert root is not None
            left = [
                one for event in events if event.kind == "work.left" for one in cast("list[Any]", event.data["left"])
            ]
            return outcome, left, text(root, opening_of(rt.workspace).clock.now())


@pytest.mark.rule("effect.left-over")
async def test_a_delegation_that_is_no_longer_asked_for_is_told(tmp_path: Path):
    async def lead(turn: Turn, life: int) -> object:
        await turn.delegate("old", "the same")
        return await turn.delegate("old", "rent") if life == 1 else "nothing"

    outcome, left, shown = await two_lives(tmp_path, lead)
    assert outcome.value == "nothing"
    [one] = left
    assert one.startswith("'old' completed task ")
    assert one.endswith(": rent")
    assert "left over: 'old' completed task" in shown


@pytest.mark.rule("effect.left-over")
async def test_a_payment_that_is_no_longer_asked_for_is_told(tmp_path: Path):
    async def lead(turn: Turn, life: int) -> object:
        await turn.spend("$0.02", why="stamps")
        if life == 1:
            await turn.spend("$0.01", why="ink")
        return "done"

    outcome, left, shown = await two_lives(tmp_path, lead)
    assert (outcome.value, left) == ("done", ["$0.01 paid for ink"])
    assert "left over: $0.01 paid for ink" in shown


@pytest.mark.rule("effect.left-over")
async def test_a_payment_with_another_amount_is_refused_before_it_is_made(tmp_path: Path):
    async def lead(turn: Turn, life: int) -> object:
        await turn.spend("$0.01" if life == 1 else "$0.02", why="ink")
        return "done"

    outcome, left, _ = await two_lives(tmp_path, lead)
    assert (outcome.state, left) == ("failed", [])
    assert "$0.01 was paid for 'ink' when this task was run before" in str(outcome.error)


@pytest.mark.rule("effect.left-over")
async def test_payments_of_flows_beside_each_other_are_told_at_the_end(tmp_path: Path):
    async def lead(turn: Turn, life: int) -> object:
        amounts = ["$0.01", "$0.02"] if life == 1 else ["$0.03", "$0.02"]
        await asyncio.gather(*(turn.spend(amount, why="ink") for amount in amounts))
        return "done"

    outcome, left, _ = await two_lives(tmp_path, lead)
    assert (outcome.value, left) == ("done", ["$0.01 paid for ink"])


@pytest.mark.rule("effect.left-over")
async def test_nothing_is_left_over_of_a_program_that_does_the_same(tmp_path: Path):
    async def lead(turn: Turn, life: int) -> object:
        await turn.spend("$0.01", why="ink")
        await turn.delegate_all([("old", "a"), ("old", "a"), ("old", "b")])
        task = await turn.submit("old", "c")
        await task.result()
        return "done"

    outcome, left, _ = await two_lives(tmp_path, lead)
    assert (outcome.value, left) == ("done", [])
