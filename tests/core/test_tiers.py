"""Tiers: bounds with a name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import NOW
from remit.core.bounds import TIERS, Bounds, tier, tier_by_rules
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


# -- the classifier that comes with remit ------------------------------------------------------------------------

SIMPLE = (
    "fix a typo",
    "What is the capital of France?",
    "translate 'good morning' into German",
    "rename the variable x to total in main.py",
    "summarise this paragraph in one sentence",
    "",
    "\u4fee\u6b63\u4e00\u4e2a\u9519\u5b57",
)
MEDIUM = (
    "review this pull request and write tests for it",
    "compare these two offers",
    "look up the order, then refund it",
    f"answer the customer who wrote about this parcel: {'it came late ' * 9}",
    "- read the notes\n- write the letter",
)
COMPLEX = (
    "design the architecture of a billing platform",
    "research our competitors, compare their prices, and write a strategy",
    "migrate every service of the system to the new cluster, then run the benchmarks",
    "1. collect the numbers\n2. draw the charts\n3) write the text\n4. have it checked\n",
    "Build a web application for our customers: a login, a dashboard, and a page for invoices. Finally write the docs.",
    "word " * 301,
    "\u8bf7" * 2_000,
)


@pytest.mark.rule("tier.rules")
@pytest.mark.parametrize(
    ("task", "name"),
    [(task, name) for name, tasks in zip(TIERS, (SIMPLE, MEDIUM, COMPLEX), strict=True) for task in tasks],
)
def test_the_words_of_a_task_choose_its_tier(task: str, name: str):
    assert tier_by_rules(task) == name


@pytest.mark.rule("tier.rules")
@given(st.text(max_size=500))
def test_every_task_has_a_tier_and_a_longer_one_is_never_in_a_smaller_tier(task: str):
    names = list(TIERS)

    assert names.index(tier_by_rules(task)) <= names.index(tier_by_rules(f"{task}\nthen design a system"))
