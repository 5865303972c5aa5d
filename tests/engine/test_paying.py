"""Paying in a turn: calls that are held and settled, payments and effects that are paid once."""

from typing import Any

import anyio
import pytest

from bookkeeping import calls, correct, figures, told
from engine.helping import PATIENCE, Shaky, ends, quiet
from remit import Bounds, Refused, Runtime, Turn
from remit.core.prices import Usage
from remit.errors import BadInput, Conflict
from remit.testing import FakeClock

pytestmark = pytest.mark.anyio

CENT = 10_000


# -- a call -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("money.ends", "money.uncertain")
async def test_a_call_costs_what_is_said_nothing_if_it_was_not_sent_and_all_of_it_if_nobody_says(anywhere: Runtime):
    @anywhere.agent
    async def shop(turn: Turn) -> None:
        async with turn.paid_call("$0.05", tokens=4_096, why="photo", model="gpt-5") as call:
            call.cost("$0.013", tokens=900)
        async with turn.paid_call("$0.05", why="never sent") as call:
            call.not_sent()
        async with turn.paid_call("$0.05", why="unknown"):
            pass

    await anywhere.workspace.money.grant("$1", tokens=10_000)
    await anywhere.run("shop", "go")
    found = await calls(anywhere)
    assert [kind for kind, _ in found] == ["placed", "settled", "placed", "released", "placed", "settled"]
    first, _, last = (data for kind, data in found if kind != "placed")
    assert (first["costs"], first["model"], first.get("uncertain")) == (
        {"credits": 13_000, "tokens": 900},
        "gpt-5",
        None,
    )
    assert (last["costs"], last["uncertain"]) == ({"credits": 5 * CENT}, True)
    assert await figures(anywhere) == (1_000_000 - 63_000, 0, 63_000)
    [uncertain] = await anywhere.workspace.money.uncertain()
    assert (uncertain.why, uncertain.agent, uncertain.credits) == ("unknown", "shop", 5 * CENT)
    await correct(anywhere)


@pytest.mark.rule("money.ends")
async def test_what_is_only_held_is_released_also_when_the_block_ends_with_an_error(rt: Runtime):
    @rt.agent
    async def shop(turn: Turn) -> None:
        with pytest.raises(ValueError, match="before"):
            async with turn.paid_call("$0.05", why="a", start=False):
                raise ValueError("before it left")
        async with turn.paid_call("$0.05", why="b", start=False) as call:
            await call.start()
            await call.start()
            call.cost("$0.02")
        with pytest.raises(ValueError, match="after"):
            async with turn.paid_call("$0.05", why="c") as call:
                raise ValueError("after it left")
        with pytest.raises(Conflict, match="a paid call is entered once"):
            async with call:
                pass

    await rt.workspace.money.grant("$1")
    await rt.run("shop", "go")
    assert await told(rt) == ["placed", "released", "placed", "started", "settled", "placed", "settled"]
    assert (await figures(rt))[2] == 7 * CENT
    await correct(rt)


@pytest.mark.rule("money.three-words")
async def test_what_a_call_costs_in_a_unit_that_it_did_not_hold_is_charged_all_the_same(rt: Runtime):
    @rt.agent
    async def shop(turn: Turn) -> None:
        async with turn.paid_call("$0.05", why="photo") as call:
            call.cost("$0.01", tokens=900)

    await rt.workspace.money.grant("$1", tokens=10_000)
    await rt.run("shop", "go", within=Bounds(tokens=5_000))
    tokens = (await rt.workspace.money.account()).tokens
    assert tokens is not None
    assert tokens.spent == 900
    await correct(rt)


async def test_a_call_says_how_much_and_what_for(rt: Runtime):
    @rt.agent
    async def shop(turn: Turn) -> None:
        for wrong in ({}, {"why": "x"}, {"amount": 1, "why": "x"}, {"amount": "$0", "why": "x"}, {"amount": "$1"}):
            with pytest.raises(BadInput):
                turn.paid_call(**wrong)
        with pytest.raises(BadInput, match="either the maximum cost of the call or the usage"):
            turn.paid_call("$1", why="x", usage=Usage(1, 1))
        for amount in (1, True, "1", "-$1", 0, None):
            with pytest.raises(BadInput):
                await turn.spend(amount, why="x")  # pyright: ignore[reportArgumentType]
        with pytest.raises(BadInput):
            await turn.spend("$1", why="two\nlines")
        with pytest.raises(BadInput):
            await turn.once("x", print, estimate="nothing")

    await rt.run("shop", "go")
    assert await calls(rt) == []


@pytest.mark.rule("money.expires")
async def test_what_is_held_and_does_not_start_in_15_minutes_is_released(rt: Runtime, clock: FakeClock):
    inside, go = anyio.Event(), anyio.Event()

    @rt.agent
    async def slow(turn: Turn) -> str:
        async with turn.paid_call("$0.05", why="late", start=False) as call:
            inside.set()
            await go.wait()
            with pytest.raises(Refused, match="it was held for too long without starting; hold it again"):
                await call.start()
        return "done"

    await rt.workspace.money.grant("$1")
    task = await rt.submit("slow", "x", timeout=3_600)
    await inside.wait()
    clock.advance(899)
    await quiet()
    assert await told(rt) == ["placed"]
    for _ in range(600):
        if await told(rt) != ["placed"]:
            break
        clock.advance(1)
        await anyio.lowlevel.checkpoint()
    go.set()
    assert await task.result(PATIENCE) == "done"
    assert await told(rt) == ["placed", "released"]
    await correct(rt)


# -- paid once ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("money.once")
async def test_a_payment_is_found_again_by_what_it_is_for_and_how_often(anywhere: Runtime, clock: FakeClock):
    tried: list[int] = []

    @anywhere.agent
    async def shop(turn: Turn) -> str:
        for _ in range(2):
            await turn.spend("$0.02", why="stamp")
        await turn.spend("$0.03", why="stamp")
        tried.append(1)
        if len(tried) == 1:
            raise Shaky
        if len(tried) == 2:
            raise ValueError("for good")
        await turn.spend("$0.02", why="stamp")
        return "sent"

    await anywhere.workspace.money.grant("$1")
    task = await anywhere.submit("shop", "x")
    assert (await ends(clock, task)).state == "failed"
    again = await task.retry()
    assert (await ends(clock, again)).value == "sent"
    assert len(tried) == 3
    assert [data["costs"]["credits"] for _, data in await calls(anywhere)] == [2 * CENT, 2 * CENT, 3 * CENT, 2 * CENT]
    assert (await figures(anywhere))[2] == 9 * CENT
    await correct(anywhere)


@pytest.mark.rule("money.once")
async def test_an_effect_with_an_estimate_is_paid_once_and_a_call_that_is_made_again_again(
    anywhere: Runtime, clock: FakeClock
):
    did: list[str] = []

    async def photo(what: str, paid: Any) -> str:
        did.append(what)
        paid.cost("$0.03")
        return f"photo of {what}"

    def plain() -> str:
        did.append("plain")
        return "plain"

    @anywhere.agent
    async def shop(turn: Turn) -> list[str]:
        found = [
            await turn.once("photo", photo, "a tree", estimate="$0.05"),
            await turn.once("plain", plain, estimate="$0.01"),
        ]
        async with turn.paid_call("$0.05", why="call") as call:
            call.cost("$0.01")
        if len(did) == 2:
            did.append("failed")
            raise Shaky
        return found

    await anywhere.workspace.money.grant("$1")
    assert (await ends(clock, await anywhere.submit("shop", "x"))).value == ["photo of a tree", "plain"]
    assert did == ["a tree", "plain", "failed"]
    assert await told(anywhere) == ["placed", "settled"] * 4
    assert (await figures(anywhere))[2] == 3 * CENT + CENT + 2 * CENT
    await correct(anywhere)


@pytest.mark.rule("money.once", "money.uncertain")
async def test_an_effect_that_was_not_sent_costs_nothing_and_one_that_fails_is_uncertain(rt: Runtime):
    def unsent(paid: Any) -> str:
        paid.not_sent()
        return "from the cache"

    def broken() -> None:
        raise ConnectionError("no line")

    @rt.agent
    async def shop(turn: Turn) -> str:
        with pytest.raises(ConnectionError):
            await turn.once("broken", broken, estimate="$0.04")
        return await turn.once("photo", unsent, estimate="$0.05")

    await rt.workspace.money.grant("$1")
    assert await rt.run("shop", "go") == "from the cache"
    assert await told(rt) == ["placed", "settled", "placed", "released"]
    assert [hold.why for hold in await rt.workspace.money.uncertain()] == ["broken"]
    await correct(rt)


@pytest.mark.rule("money.once")
async def test_what_a_turn_uses_counts_at_once_and_against_what_it_may_use(rt: Runtime):
    @rt.agent
    async def thinks(turn: Turn) -> None:
        await turn.report_tokens(1_500)
        await turn.report_tokens(1_500)

    await rt.workspace.money.grant(tokens=10_000)
    no = await rt.outcome("thinks", "x", within=Bounds(tokens=2_000))
    assert "this run has used 3,000 of 2,000 tokens" in str(no.error)
    tokens = (await rt.workspace.money.account()).tokens
    assert tokens is not None
    assert (tokens.spent, tokens.overrun, tokens.state) == (3_000, 0, "open")
    await correct(rt)
