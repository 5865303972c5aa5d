"""Credits: whole millionths of a dollar, written as people write money."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.credits import DOLLAR, credits, dollars  # noqa: A004 - the word of the domain
from remit.errors import BadInput


@pytest.mark.parametrize(
    ("written", "millionths"),
    [
        ("$0.50", 500_000),
        ("$1", DOLLAR),
        (" $12.345678 ", 12_345_678),
        ("$0.000001", 1),
        ("$0", 0),
        ("0.5", 500_000),
        (0, 0),
        (250, 250),
        (None, None),
    ],
)
def test_credits_are_read_as_people_write_them(written, millionths):
    assert credits(written) == millionths


@pytest.mark.parametrize(
    "written",
    [
        "",
        "$",
        "$-1",
        "-$1",
        "$1.2345678",
        "$.5",
        "1,000",
        "\u20ac1",
        "$1e3",
        "$1 000",
        -1,
        0.5,
        True,
        [],
        b"$1",
    ],
)
def test_anything_else_is_refused_and_told_how_to_write_it(written):
    with pytest.raises(BadInput, match=r'credits are written "\$0.50" or as whole millionths of a dollar, not'):
        credits(written)


@pytest.mark.rule("input.json")
def test_more_credits_than_a_store_can_hold_are_refused():
    with pytest.raises(BadInput, match="credits"):
        credits(2**63)


@given(st.integers(0, 10**15 - 1))
def test_what_is_said_in_dollars_reads_back_as_the_same_credits(amount):
    assert credits(dollars(amount)) == amount


@pytest.mark.parametrize(
    ("amount", "said"),
    [(0, "$0.00"), (500_000, "$0.50"), (1, "$0.000001"), (12_340_000, "$12.34"), (1_234_500, "$1.2345")],
)
def test_dollars_have_two_places_and_more_only_where_needed(amount, said):
    assert dollars(amount) == said
