"""Fitting a request into what is left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.money import LEAST_OUTPUT, fitting


def cost(tokens: int) -> int:
    return 10 + 2 * tokens


@pytest.mark.rule("model.fits")
@pytest.mark.parametrize(
    ("left", "most", "fits"),
    [(10_000, 4_096, 4_096), (2_010, 4_096, 1_000), (522, 4_096, 256), (521, 4_096, 256), (0, 4_096, 256), (0, 9, 9)],
)
def test_as_many_tokens_as_can_be_paid_but_not_fewer_than_an_answer_needs(left: int, most: int, fits: int):
    assert fitting(cost, left, most) == fits


@pytest.mark.rule("model.fits")
@given(st.integers(0, 20_000), st.integers(1, 8_000))
def test_what_fits_is_paid_and_one_more_would_not_be(left: int, most: int):
    fits = fitting(cost, left, most)
    least = min(LEAST_OUTPUT, most)
    assert least <= fits <= most
    assert cost(fits) <= left or fits == least
    assert fits == most or cost(fits + 1) > left
