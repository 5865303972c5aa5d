"""What requests to models cost, over HTTP, for every kind of agent: what nobody counted, what never left, what was cut
off, and what could not be paid."""

import asyncio
from typing import Any

import pytest

from adapters.places import IMPATIENT, KINDS, Place, closed_port, join, priced, served
from engine.helping import sound
from remit import Outcome, Runtime, Turn
from remit.testing import FakeClock
from remit.testing.models import Says, Slow

pytestmark = pytest.mark.anyio

kinds = pytest.mark.parametrize("kind", KINDS)
SOON = 1  # second of a task: none is left for a pause
LATE = Slow(Says("too late"), 60)


def agent(rt: Runtime, kind: str, place: Place, **about: Any) -> None:
    """An agent that asks with the client of the place, also if it is native."""
    if kind == "native":
        rt.model_agent("it", place.of_pydantic("m"), **about)
    else:
        join(rt, kind, place, **about)


async def ledger(rt: Runtime) -> list[tuple[int, int, bool]]:
    """For each hold: what was held, what was charged, and whether that is uncertain."""
    history: list[Any] = await rt.workspace.journal.history()
    placed = [event.data["amounts"]["credits"] for event in history if event.kind == "hold.placed"]
    ended = [event for event in history if event.kind in ("hold.settled", "hold.released")]
    assert len(placed) == len(ended)
    await sound(rt)
    return [
        (held, event.data.get("costs", {}).get("credits", 0), bool(event.data.get("uncertain")))
        for held, event in zip(placed, ended, strict=True)
    ]


async def ran(rt: Runtime, **how: Any) -> Outcome:
    return await rt.outcome("it", "go", credits="$1", **how)


@pytest.mark.rule("model.paid")
@kinds
async def test_what_was_counted_is_charged(kind: str):
    async with served([Says("here", usage=(100, 20))]) as place, priced() as rt:
        agent(rt, kind, place)
        assert (await ran(rt)).value == "here"
        ((held, charged, uncertain),) = await ledger(rt)
        assert (charged, uncertain) == (100 + 2 * 20, False)
        assert held > charged


@pytest.mark.rule("model.uncounted", "pydantic.usage")
@pytest.mark.filterwarnings("ignore::pydantic_ai.exceptions.UsageExtractionFailedWarning")
@kinds
@pytest.mark.parametrize("usage", ["missing", "negative", (10**12, 1)], ids=["missing", "negative", "absurd"])
async def test_what_nobody_counted_costs_all_that_was_held(kind: str, usage: Any):
    async with served([Says("here", usage=usage)]) as place, priced() as rt:
        agent(rt, kind, place)
        assert (await ran(rt)).value == "here"
        ((held, charged, uncertain),) = await ledger(rt)
        assert (charged, uncertain) == (held, True)


@pytest.mark.rule("model.charged")
@kinds
async def test_a_connection_that_is_refused_costs_nothing(kind: str, clock: FakeClock):
    async with served([]) as place, priced(system={"clock": clock}) as rt:
        agent(rt, kind, place.at(f"http://127.0.0.1:{closed_port()}/v1"))
        outcome = await ran(rt, timeout=SOON)
        assert "connection" in str(outcome.error)
        ((held, charged, uncertain),) = await ledger(rt)
        assert held > 0
        assert (charged, uncertain) == (0, False)


@pytest.mark.rule("model.charged")
@kinds
async def test_an_answer_that_does_not_come_in_time_costs_all_that_was_held(kind: str, clock: FakeClock):
    async with served([LATE], timeout=IMPATIENT) as place, priced(system={"clock": clock}) as rt:
        agent(rt, kind, place)
        assert "timeout" in str((await ran(rt, timeout=SOON)).error)
        ((held, charged, uncertain),) = await ledger(rt)
        assert (charged, uncertain) == (held, True)


@pytest.mark.rule("model.charged")
@kinds
@pytest.mark.parametrize("how", ["cancelled", "out of time"])
async def test_a_request_that_is_cut_off_costs_all_that_was_held(kind: str, how: str, clock: FakeClock):
    async with served([LATE]) as place, priced(system={"clock": clock}) as rt:
        agent(rt, kind, place)
        run = asyncio.ensure_future(ran(rt, timeout=60))
        await place.server.asked(1)
        if how == "cancelled":
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
        else:
            clock.advance(61)
            assert (await run).state == "timed-out"
        ((held, charged, uncertain),) = await ledger(rt)
        assert (charged, uncertain) == (held, True)


@pytest.mark.rule("prices.unknown")
@kinds
async def test_a_model_without_a_price_is_not_asked_where_money_is_limited(kind: str):
    async with served([]) as place, priced("another") as rt:
        agent(rt, kind, place.at("http://models.invalid/v1"))
        outcome = await ran(rt)
        assert "the price of" in str(outcome.error)
        assert place.server.requests == []
        assert await ledger(rt) == []


@pytest.mark.rule("prices.unknown")
@kinds
async def test_a_model_on_this_machine_costs_nothing_unless_it_is_priced(kind: str):
    async with served([Says("free of charge", usage=(10, 5))]) as place, priced("another") as rt:
        agent(rt, kind, place)
        assert (await ran(rt)).value == "free of charge"


@pytest.mark.rule("model.paid", "model.fits")
@kinds
async def test_eight_at_once_are_all_paid_from_what_one_of_them_holds(kind: str):
    async with served(lambda _: Says("here", usage=(100, 20))) as place, priced() as rt:
        agent(rt, kind, place)

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[object]:
            return [one.value for one in await turn.delegate_all([("it", f"part {number}") for number in range(8)])]

        outcome = await rt.outcome("lead", "go", credits="$0.0083")
        assert outcome.value == ["here"] * 8
        figures = await ledger(rt)
        assert sum(charged for _, charged, _ in figures) == 8 * 140
        assert len(place.server.requests) == 8
