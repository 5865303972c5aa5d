"""Limits: so much in an hour, a day, a week, a month, and never more."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import NOW
from remit.core.money.limits import HOURS, LONGEST, Exceeded, Limit, Metered
from remit.core.times import HOUR, hour_of
from remit.errors import BadInput


@pytest.mark.rule("limits.said")
def test_a_limit_is_read_as_people_write_it():
    limit = Limit("day", credits="$0.30", agent="Coder")
    assert (limit.credits, limit.tokens, limit.agent) == (300_000, None, "coder")
    assert (limit.most("credits"), limit.most("tokens")) == (300_000, None)
    assert Limit("hour", tokens=5, session="*").most("tokens") == 5
    assert Limit("hour", credits=0).most("credits") == 0
    assert max(HOURS.values()) == LONGEST


@pytest.mark.rule("limits.said")
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"per": "fortnight", "credits": "$1"}, "a limit is per hour, day, week, month, not 'fortnight'"),
        ({"per": "days", "credits": "$1"}, "a limit is per hour, day, week, month, not 'days'; did you mean day?"),
        ({"per": "day"}, "a limit says how much: credits, tokens, or both"),
        (
            {"per": "day", "credits": "$1", "agent": "a", "session": "s"},
            "a limit is of an agent or of a session; say two limits",
        ),
        (
            {"per": "day", "credits": 1},
            'credits: 1 could be dollars or millionths; write "$1" or "1 USD"',
        ),
        ({"per": "day", "tokens": -1}, "tokens"),
        ({"per": "day", "tokens": 1, "session": "a\nb"}, "a session"),
        ({"per": "day", "tokens": 1, "agent": "///"}, "an agent's name needs at least one letter"),
    ],
)
def test_what_is_no_limit_is_refused_with_how_to_say_it(wrong: dict[str, Any], sentence: str):
    with pytest.raises(BadInput) as no:
        Limit(**wrong)
    assert sentence in str(no.value)


@pytest.mark.rule("limits.scopes")
def test_a_limit_counts_for_whom_it_is():
    assert Limit("day", tokens=1).meters("a", "s") == Metered("workspace", "")
    assert Limit("day", tokens=1, agent="*").meters("a", "s") == Metered("agent", "a")
    assert Limit("day", tokens=1, agent="a").meters("a", "s") == Metered("agent", "a")
    assert Limit("day", tokens=1, agent="b").meters("a", "s") is None
    assert Limit("day", tokens=1, session="*").meters("a", "s") == Metered("session", "s")
    assert Limit("day", tokens=1, session="s").meters("a", "s") == Metered("session", "s")
    assert Limit("day", tokens=1, session="t").meters("a", "s") is None


@pytest.mark.rule("limits.rolling")
@given(st.sampled_from(sorted(HOURS)), st.integers(NOW, NOW + 1_000 * HOUR), st.integers(0, 800 * HOUR))
def test_whatever_was_spent_within_the_time_counts(per: str, now: int, ago: int):
    """And what is older by more than an hour does not."""
    since = Limit(per, tokens=1).since(now)
    if ago <= HOURS[per] * HOUR:
        assert hour_of(now - ago) >= since
    elif ago > (HOURS[per] + 1) * HOUR:
        assert hour_of(now - ago) < since


@pytest.mark.rule("limits.figures")
def test_an_exceeded_limit_says_all_figures_and_whether_waiting_helps():
    limit = Limit("day", credits="$0.30")
    over = Exceeded(limit, "credits", Metered("workspace", ""), 150_000, 0, 200_000)
    assert over.sentence == "$0.20 wanted, and the workspace has used $0.15 of $0.30 a day"
    assert over.for_good
    held = Exceeded(limit, "credits", Metered("agent", "b"), 100_000, 50_000, 200_000)
    assert held.sentence == "$0.20 wanted, and agent 'b' has used $0.10 and holds $0.05 of $0.30 a day"
    assert not held.for_good  # exactly the limit, once what is held comes back
    tokens = Exceeded(Limit("week", tokens=1_000), "tokens", Metered("session", "s"), 900, 0, 200)
    assert tokens.sentence == "200 tokens wanted, and session 's' has used 900 tokens of 1,000 tokens a week"
