"""Credits: whole millionths of a dollar inside; whoever writes an amount says its unit."""

import math
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remit.core.prices import DOLLAR, MOST, amount, credits, dollars  # noqa: A004 - the word of the domain
from remit.errors import BadInput

amounts = st.integers(0, MOST)


@pytest.mark.rule("credits.unit")
@pytest.mark.parametrize(
    ("written", "millionths"),
    [
        ("$0.50", 500_000),
        ("$1", DOLLAR),
        (" $12.345678 ", 12_345_678),
        ("$0.000001", 1),
        ("$0012", 12 * DOLLAR),
        ("0.50 USD", 500_000),
        ("0.50USD", 500_000),
        ("  3   usd ", 3 * DOLLAR),
        ("1.5Usd", 1_500_000),
        ("$999999999.999999", MOST),
        ("$0", 0),
        ("0", 0),
        ("0.00", 0),
        ("0 USD", 0),
        (0, 0),
        (0.0, 0),
        (None, None),
    ],
)
def test_credits_are_read_as_people_write_them(written, millionths):
    assert credits(written) == millionths


@pytest.mark.rule("credits.unit")
@pytest.mark.parametrize(
    ("bare", "said"),
    [
        (1, "1"),
        ("1", "1"),
        (250, "250"),
        (0.5, "0.50"),
        ("0.5", "0.50"),
        (" 2.345 ", "2.345"),
        (1.0, "1"),
        (1e-6, "0.000001"),
        ("007", "7"),
    ],
)
def test_a_number_without_a_unit_is_refused_with_both_readings(bare, said):
    sentence = f'credits: {said} could be dollars or millionths; write "${said}" or "{said} USD"'

    with pytest.raises(BadInput) as no:
        credits(bare)

    assert str(no.value) == sentence


@pytest.mark.rule("credits.unit")
@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (True, "True is not an amount; write"),
        (False, "False is not an amount; write"),
        (math.nan, "nan is not an amount, and None is no limit"),
        (math.inf, "inf is not an amount, and None is no limit"),
        (-math.inf, "-inf is not an amount, and None is no limit"),
        (-1, "an amount is not negative: -1"),
        (-0.5, "an amount is not negative: -0.5"),
        ("-1", "an amount is not negative: '-1'"),
        ("$-1", "an amount is not negative"),
        ("-$1", "an amount is not negative"),
        ("-1 USD", "an amount is not negative"),
        ("$1.2345678", "an amount has at most 6 decimal places"),
        ("1.0000000 USD", "an amount has at most 6 decimal places"),
        (0.1 + 0.2, "an amount has at most 6 decimal places"),
        (5e-324, "an amount has at most 6 decimal places"),
        ("$1000000000", r"an amount is less than \$1,000,000,000"),
        ("$" + "9" * 5_000, r"an amount is less than \$1,000,000,000"),
        (10**4_000, r"an amount is less than \$1,000,000,000"),
        (1e300, r"an amount is less than \$1,000,000,000"),
    ],
)
def test_what_cannot_be_an_amount_is_refused_for_what_it_is(written, sentence):
    with pytest.raises(BadInput, match=f"credits: {sentence}") as no:
        credits(written)

    assert len(str(no.value)) < 200


@pytest.mark.rule("credits.unit")
@pytest.mark.parametrize(
    "written",
    [
        "",
        "$",
        "USD",
        "$.5",
        "$5.",
        "1,000 USD",
        "\u20ac1",
        "1 EUR",
        "$1e3",
        "$1 000",
        "$1 USD",
        "\u0661 USD",
        "1 U\u017fD",
        "nan",
        [],
        b"$1",
    ],
)
def test_anything_else_is_refused_and_told_how_to_write_it(written):
    with pytest.raises(BadInput, match=r'credits: an amount is written "\$0.50" or "0.50 USD", not'):
        credits(written)


@pytest.mark.rule("input.json")
def test_more_credits_than_a_store_can_hold_are_refused():
    with pytest.raises(BadInput, match="credits"):
        credits(2**63)


@pytest.mark.rule("credits.unit")
@given(amounts)
def test_what_is_said_in_dollars_reads_back_as_the_same_credits(millionths):
    said = dollars(millionths)

    assert credits(said) == credits(f" {said[1:]} USD") == credits(f"{said[1:]}usd ") == millionths


@pytest.mark.rule("credits.unit")
@given(amounts.filter(bool))
def test_no_amount_is_taken_without_its_unit(millionths):
    for bare in (millionths, dollars(millionths)[1:]):
        with pytest.raises(BadInput):
            credits(bare)


@pytest.mark.rule("credits.unit")
@given(st.text() | st.integers() | st.floats() | st.booleans())
@example(-(10**5_000))
@example(10**5_000)
def test_whatever_is_written_is_an_amount_or_a_sentence(written):
    with suppress(BadInput):
        assert 0 <= (credits(written) or 0) <= MOST


@pytest.mark.rule("credits.unit")
def test_an_amount_that_is_needed_is_neither_nothing_nor_left_out():
    assert amount("$0.02", "spend") == 20_000

    for nothing in (None, 0, "$0", "0"):
        with pytest.raises(BadInput, match="spend: an amount of more than nothing is needed, such as"):
            amount(nothing, "spend")
    with pytest.raises(BadInput, match="spend: 2 could be dollars or millionths"):
        amount(2, "spend")


@pytest.mark.parametrize(
    ("millionths", "said"),
    [(0, "$0.00"), (500_000, "$0.50"), (1, "$0.000001"), (12_340_000, "$12.34"), (1_234_500, "$1.2345")],
)
def test_dollars_have_two_places_and_more_only_where_needed(millionths, said):
    assert dollars(millionths) == said
