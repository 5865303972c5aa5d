"""Prices are there when the package is: a limit of money works at once, and a model on this machine costs nothing."""

from typing import Any

import pytest

from adapters.places import KEY, KEY_NAME, KINDS, data_of, join, served
from engine.helping import sound
from remit import Bounds, Runtime
from remit.adapters.prices import KnownPrices, Price
from remit.settings import Limit, Policy, System
from remit.testing.models import Says

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


@pytest.mark.rule("prices.installed")
@pytest.mark.parametrize(
    ("made", "asked"),
    [
        ({}, {"credits": "$0.5"}),
        ({"policy": Policy(limits=[Limit("day", credits="$5")])}, {}),
        ({"bounds": Bounds(credits="$1")}, {}),
    ],
    ids=["credits", "limit", "bounds"],
)
async def test_money_can_be_limited_without_a_word_about_prices(made: dict[str, Any], asked: dict[str, Any]):
    async with served([Says("hi", usage=(1_000, 1_000))]) as place, Runtime(**made) as rt:
        join(rt, "native", place, model="gpt-4o")
        assert await rt.run("it", "hello", **asked) == "hi"
        assert [one["costs"]["credits"] for one in await data_of(rt, "hold.settled")] == [12_500]
        await sound(rt)


@pytest.mark.rule("prices.installed")
async def test_the_list_is_not_loaded_before_money_is_limited():
    async with served([Says("a"), Says("b"), Says("c")]) as place, Runtime() as rt:
        join(rt, "native", place, model="gpt-4o")
        await rt.run("it", "hello")
        await rt.run("it", "hello", within=Bounds(tokens=100_000))
        await rt.run("it", "hello", credits="$1")
        assert ["cost" in one for one in await data_of(rt, "model.answered")] == [False, False, True]


@pytest.mark.rule("prices.loopback")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_model_on_this_machine_costs_nothing(kind: str):
    async with served([Says("hi", usage=(1_000, 1_000))]) as place, Runtime() as rt:
        join(rt, kind, place, model="a-model-of-my-own")
        assert await rt.run("it", "hello", credits="$0.01") == "hi"
        assert [one["costs"] for one in await data_of(rt, "hold.settled")] == [{"tokens": 2_000}]
        await sound(rt)


@pytest.mark.rule("prices.loopback")
async def test_unless_it_is_priced():
    prices = KnownPrices({"openai-chat:mine": Price(input="$1", output="$2")})
    async with served([Says("hi", usage=(1_000, 1_000))]) as place, Runtime(system=System(prices=prices)) as rt:
        join(rt, "native", place, model="mine")
        await rt.run("it", "hello", credits="$1")
        assert [one["costs"]["credits"] for one in await data_of(rt, "hold.settled")] == [3_000]
