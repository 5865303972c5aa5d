"""Checks of what callers give: each says what is wrong and what to write instead."""

import pytest

from remit.core.bounds import Bounds
from remit.core.checks import between, limit, of_type, whole
from remit.errors import BadInput


@pytest.mark.parametrize(("given_", "least"), [(None, 0), (0, 0), (7, 0), (1, 1), (2**63 - 1, 0)])
def test_a_whole_number_is_taken_as_it_is(given_, least):
    assert whole(given_, "depth", least=least) == given_


@pytest.mark.parametrize("given_", [0, -1, 1.0, "1", True, [1]])
def test_a_number_below_the_least_or_not_whole_is_refused(given_):
    with pytest.raises(BadInput, match="concurrency is a whole number of at least 1 or None, not"):
        whole(given_, "concurrency", least=1)


@pytest.mark.rule("input.json")
@pytest.mark.parametrize("given_", [2**63, pytest.param(10**5000, id="enormous")])
def test_a_number_that_no_store_can_hold_is_refused(given_):
    with pytest.raises(BadInput, match="tokens"):
        whole(given_, "tokens")


@pytest.mark.parametrize("given_", [1, 50, 10_000])
def test_a_limit_is_a_whole_number(given_):
    assert limit(given_) == given_


@pytest.mark.parametrize("given_", [0, -1, 10_001, 1.0, "5", True, None])
def test_a_limit_out_of_range_is_refused(given_):
    with pytest.raises(BadInput, match="limit is a whole number from 1 to 10,000, not"):
        limit(given_)


def test_a_value_of_the_right_type_is_given_back_as_it_is():
    bounds = Bounds(depth=2)

    assert of_type(bounds, Bounds, "bounds takes Bounds(...)") is bounds


@pytest.mark.parametrize("given_", [None, 3, {"depth": 2}, Bounds])
def test_a_value_of_another_type_is_refused_with_what_is_taken(given_):
    with pytest.raises(BadInput, match=r"bounds takes Bounds\(\.\.\.\), not "):
        of_type(given_, Bounds, "bounds takes Bounds(...)")


@pytest.mark.parametrize("given_", [-1, 11, 1.0, True, None])
def test_a_number_out_of_its_range_is_refused(given_):
    assert between(10, "retries", 0, 10) == 10
    with pytest.raises(BadInput, match="retries is a whole number from 0 to 10, not"):
        between(given_, "retries", 0, 10)
