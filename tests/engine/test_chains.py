"""Idempotency keys are derived from what led to an effect: from a copy of the store it is done under the same key."""

import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, sound
from remit import Plan, Runtime, Step, Turn
from remit.settings import Serving

pytestmark = pytest.mark.anyio


class Bank:
    """What was charged, under which keys."""

    def __init__(self) -> None:
        self.charged: dict[str, list[str]] = {}

    async def charge(self, what: str, *, idempotency_key: str) -> str:
        self.charged.setdefault(what, []).append(idempotency_key)
        return f"charged {what}"

    def keys(self) -> list[str]:
        return [key for keys in self.charged.values() for key in keys]


def team(rt: Runtime, bank: Bank, failing: bool = False) -> None:
    fails = [failing]

    @rt.agent
    async def payer(turn: Turn) -> str:
        paid = await turn.once("charge", bank.charge, turn.task)
        await turn.once("charge", bank.charge, f"fee of {turn.task}")
        return paid

    @rt.agent(asks="*")
    async def mid(turn: Turn) -> Any:
        value = await turn.delegate("payer", turn.task)
        if fails.pop() if fails else False:
            raise ConnectionError("again, please")
        return value

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> Any:
        await turn.once("charge", bank.charge, "own")
        await turn.delegate("mid", "delegated")
        await turn.delegate("mid", "delegated")
        await turn.delegate_all([("payer", "together"), ("mid", "at once")])
        await (await turn.submit("payer", "submitted")).result(PATIENCE)
        await (await turn.spawn("payer", "spawned")).result(PATIENCE)
        plan = Plan([Step("a", "first step", agent="payer"), Step("b", "second step", agent="payer", after=["a"])])
        (await turn.run_plan(plan)).states()
        return "done"


async def carried_out(store: Path | str, key: str = "", *, failing: bool = False, workspace: str = "default") -> Bank:
    bank = Bank()
    with anyio.fail_after(PATIENCE):
        async with Runtime(store, workspace=workspace) as rt:
            team(rt, bank, failing)
            if key:
                task = await rt.submit("lead", "go", key=key)
            else:
                for found in await rt.workspace.tasks.list(agent="lead"):
                    assert await rt.workspace.tasks.get(found.id).result() == "done"
                return bank
            assert await task.result() == "done"
            await sound(rt)
    return bank


@pytest.mark.rule("effect.key-restored")
async def test_a_run_that_is_asked_for_again_after_a_restore_has_the_same_keys():
    first, again = await carried_out(":memory:", "order 7"), await carried_out(":memory:", "order 7")
    assert again.charged == first.charged
    keys = first.keys()
    assert len({*keys}) == len(keys) == 17, "another key for every effect"
    other = await carried_out(":memory:", "order 8")
    elsewhere = await carried_out(":memory:", "order 7", workspace="other")
    assert not {*keys} & {*other.keys(), *elsewhere.keys()}


@pytest.mark.rule("effect.key-restored")
async def test_parts_begun_after_the_copy_are_done_again_under_the_same_keys(tmp_path: Path):
    with Runtime(tmp_path / "team.db", serving=Serving(concurrency=0)) as rt:
        team(rt, Bank())
        await rt.submit("lead", "go")
        await rt.submit("lead", "go", session="another")  # meant to be done twice
    for name in ("one", "two"):
        shutil.copy(tmp_path / "team.db", tmp_path / f"{name}.db")
    one, two = [await carried_out(tmp_path / f"{name}.db") for name in ("one", "two")]
    assert {what: {*keys} for what, keys in one.charged.items()} == {
        what: {*keys} for what, keys in two.charged.items()
    }
    assert len({*one.keys()}) == len(one.keys()) == 34


@pytest.mark.rule("effect.key-restored")
async def test_a_part_that_is_tried_again_keeps_its_keys():
    plain, failed = await carried_out(":memory:", "order 7"), await carried_out(":memory:", "order 7", failing=True)
    assert failed.charged == plain.charged
