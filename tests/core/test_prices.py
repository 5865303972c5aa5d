"""Prices: what tokens cost, exact and rounded up."""

from dataclasses import replace
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.prices import Price, Usage, cost, dollars, rough_tokens, worst
from remit.errors import BadInput

rates = st.integers(0, 10**9)
tokens = st.integers(0, 10**7)
prices = st.builds(
    Price,
    rates.map(dollars),
    rates.map(dollars),
    st.none() | rates.map(dollars),
    st.none() | rates.map(dollars),
    rates.map(dollars),
    st.none() | rates.map(dollars),
)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    plain, cached, short, hour = draw(tokens), draw(tokens), draw(tokens), draw(tokens)
    written = short + hour
    return Usage(plain + cached + written, draw(tokens), cached, written, draw(st.integers(0, 9)), hour)


def exact(price: Price, usage: Usage) -> Fraction:
    """What it costs as a fraction of a millionth, said without any of the code under test."""
    cached = price.input if price.cached_input is None else price.cached_input
    written = price.input if price.cache_written is None else price.cache_written
    hour = written if price.cache_written_1h is None else price.cache_written_1h
    million = 1_000_000
    return (
        Fraction((usage.input - usage.cached_input - usage.cache_written) * price.input, million)
        + Fraction(usage.cached_input * cached, million)
        + Fraction((usage.cache_written - usage.cache_written_1h) * written, million)
        + Fraction(usage.cache_written_1h * hour, million)
        + Fraction(usage.output * price.output, million)
        + usage.requests * price.request
    )


@pytest.mark.rule("prices.exact")
@pytest.mark.parametrize(
    ("usage", "millionths"),
    [
        (Usage(), 0),
        (Usage(1_000_000), 2_500_000),
        (Usage(1_000, 500), 2_500 + 5_000),
        (Usage(1_000, 500, cached_input=400), 1_500 + 500 + 5_000),
        (Usage(1_000, 500, cached_input=400, cache_written=600), 500 + 1_875 + 5_000),
        (Usage(1_000, 500, cache_written=600, cache_written_1h=400), 1_000 + 625 + 2_000 + 5_000),
        (Usage(output=1), 10),
        (Usage(1), 3),
        (Usage(3), 8),
        (Usage(1_000, requests=7), 2_500),
    ],
)
def test_a_usage_costs_what_its_parts_do_rounded_up(usage, millionths):
    price = Price(input="$2.50", output="$10", cached_input="$1.25", cache_written="3.125 USD", cache_written_1h="$5")

    assert cost(price, usage) == millionths


@pytest.mark.rule("prices.exact")
def test_every_request_is_paid_for_and_a_cache_costs_what_input_does_unless_it_is_said():
    price = Price("$1", "$2", request="$0.005")

    assert cost(price, Usage(10, 10, 4, 5, requests=3)) == 10 + 20 + 15_000


@pytest.mark.rule("prices.exact")
@given(prices, usages())
def test_a_cost_is_never_too_low_and_less_than_a_millionth_too_high(price, usage):
    assert cost(price, usage) == ceil(exact(price, usage))


@pytest.mark.rule("prices.worst")
@given(prices, usages(), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 4))
def test_no_call_within_its_limits_costs_more_than_the_worst_case(price, usage, more, longer, tries):
    one = replace(usage, requests=1)

    assert cost(price, one) * tries <= worst(price, usage.input + more, usage.output + longer, tries)


@pytest.mark.rule("prices.worst")
def test_the_worst_case_is_all_the_output_at_every_try_and_the_dearest_input():
    assert worst(Price("$3", "$15", "$0.30"), 1_000, 200) == 3_000 + 3_000
    assert worst(Price("$3", "$15", "$0.30", "$3.75"), 1_000, 200) == 3_750 + 3_000
    assert worst(Price("$3", "$15", "$0.30", "$3.75", cache_written_1h="$6"), 1_000, 200) == 6_000 + 3_000
    assert worst(Price("$3", "$15", request="$0.01"), 1_000, 200, tries=4) == 4 * (3_000 + 3_000 + 10_000)
    assert worst(Price("$1", "$1"), 1, 0, tries=3) == 3


@pytest.mark.rule("input.told")
@pytest.mark.parametrize("part", ["input", "output", "cached_input", "cache_written", "requests", "cache_written_1h"])
@pytest.mark.parametrize("wrong", [-1, None, 1.5, True, "7", 2**63])
def test_what_was_not_counted_is_not_a_usage(part, wrong):
    with pytest.raises(BadInput, match=f"usage: {part} is a whole number of at least 0"):
        Usage(**{part: wrong})


@pytest.mark.rule("input.told")
def test_what_a_cache_did_is_part_of_the_input():
    with pytest.raises(BadInput, match="5 from a cache and 6 put into one are more than 10, so add them to it"):
        Usage(10, cached_input=5, cache_written=6)
    with pytest.raises(BadInput, match="6 for an hour are more than 5, so add them to it"):
        Usage(10, cache_written=5, cache_written_1h=6)


@pytest.mark.rule("input.told", "credits.unit")
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"input": 2.5}, 'price: input: 2.50 could be dollars or millionths; write "\\$2.50"'),
        ({"output": "10"}, "price: output: 10 could be dollars or millionths"),
        ({"cached_input": "$-1"}, "price: cached_input: an amount is not negative"),
        ({"input": None}, "price: input is an amount such as"),
        ({"output": None}, "price: output is an amount such as"),
        ({"request": None}, "price: request is an amount such as"),
    ],
)
def test_a_price_is_made_of_amounts(wrong, sentence):
    with pytest.raises(BadInput, match=sentence):
        Price(**{"input": "$1", "output": "$1", **wrong})


@pytest.mark.rule("input.told")
def test_a_price_may_be_nothing_and_is_not_a_dictionary():
    free = Price(0, "$0")
    assert cost(free, Usage(10**9, 10**9)) == worst(free, 10**9, 10**9, tries=3) == 0

    with pytest.raises(BadInput, match=r"price takes Price\(\.\.\.\)"):
        cost({"input": 1}, Usage())  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match=r"usage takes Usage\(\.\.\.\), not None"):
        cost(free, None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match="tries is a whole number of at least 1"):
        worst(free, 1, 1, tries=0)
    with pytest.raises(BadInput, match="usage: output is a whole number"):
        worst(free, 1, -1)


@pytest.mark.rule("input.json")
def test_a_cost_that_a_store_cannot_hold_is_refused():
    with pytest.raises(BadInput, match="cost more than can be counted"):
        cost(Price("$999999999", 0), Usage(2**62))


@pytest.mark.parametrize(
    ("messages", "count"),
    [([], 0), ([""], 3), (["a"], 4), (["abcd"], 4), (["abcde"], 5), (["abcd", "abcde"], 9), (("äöü!x",), 5)],
)
def test_a_rough_count_is_a_token_for_four_characters_and_three_for_a_message(messages, count):
    assert rough_tokens(messages) == count


@pytest.mark.rule("input.told")
@pytest.mark.parametrize("wrong", ["hello", None, [{"content": "hello"}], [None]])
def test_a_rough_count_takes_texts(wrong):
    with pytest.raises(BadInput, match="rough_tokens takes a list of texts|a message must be text"):
        rough_tokens(wrong)
