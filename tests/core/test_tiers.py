"""Tiers: bounds with a name."""

import pytest

from core.make import NOW
from remit.core.bounds import Bounds
from remit.core.tiers import TIERS, tier
from remit.errors import BadInput


@pytest.mark.rule("tier.bounds")
@pytest.mark.parametrize(
    ("name", "handoffs", "tokens", "members"),
    [("simple", 0, 10_000, 1), ("medium", 2, 25_000, 3), ("complex", 5, 150_000, 5)],
)
def test_a_tier_bounds_handoffs_tokens_and_agents_and_nothing_else(name, handoffs, tokens, members):
    assert tier(name) == Bounds(handoffs=handoffs, tokens=tokens, members=members)


@pytest.mark.rule("tier.bounds")
def test_each_tier_admits_less_than_the_next():
    assert list(TIERS) == ["simple", "medium", "complex"]
    assert tier("simple") <= tier("medium") <= tier("complex")


@pytest.mark.rule("tier.bounds", "bounds.narrow")
def test_a_tier_never_widens_what_a_caller_bounded():
    given = Bounds(handoffs=1, tokens=500, deadline=NOW)

    assert given & tier("complex") == Bounds(handoffs=1, tokens=500, deadline=NOW, members=5)


@pytest.mark.rule("tier.bounds")
@pytest.mark.parametrize("name", ["", "Simple", "huge", None, 1, ["simple"], {}])
def test_a_tier_that_is_not_there_is_a_clear_error(name):
    with pytest.raises(BadInput, match="there is no tier .*; the tiers are simple, medium, complex"):
        tier(name)
