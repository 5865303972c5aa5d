"""Limits: so much in an hour, a day, a week, a month, and never more."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import NOW
from remit.core.limits import HOURS, LONGEST, Exceeded, Limit, LimitUse, Metered, TasksUsedUp
from remit.core.times import HOUR, begin_of, hour_of
from remit.errors import BadInput


@pytest.mark.rule("limits.said")
def test_a_limit_is_read_as_people_write_it():
    limit = Limit("day", credits="$0.30", agent="Coder")
    assert (limit.credits, limit.tokens, limit.agent) == (300_000, None, "coder")
    assert (limit.most("credits"), limit.most("tokens")) == (300_000, None)
    assert Limit("hour", tokens=5, session="*").most("tokens") == 5
    assert Limit("hour", credits=0).most("credits") == 0
    assert (Limit("day", tasks=100).most("tasks"), Limit("day", tasks=100).most("credits")) == (100, None)
    assert (Limit("day", tasks=1).is_of_money, Limit("day", tasks=1, tokens=1).is_of_money) == (False, True)
    assert Limit("day", credits="$1", tokens=1, tasks=1).units == ("credits", "tokens", "tasks")
    assert max(HOURS.values()) == LONGEST


@pytest.mark.rule("limits.said")
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"per": "fortnight", "credits": "$1"}, "a limit is per hour, day, week, month, not 'fortnight'"),
        ({"per": "days", "credits": "$1"}, "a limit is per hour, day, week, month, not 'days'; did you mean day?"),
        ({"per": "day"}, "a limit says how much: credits, tokens or tasks"),
        (
            {"per": "day", "credits": "$1", "agent": "a", "session": "s"},
            "a limit is of an agent, of a session or of a person; set one limit for each",
        ),
        (
            {"per": "day", "credits": 1},
            'credits: 1 could be dollars or millionths; write "$1" or "1 USD"',
        ),
        ({"per": "day", "tokens": -1}, "tokens"),
        ({"per": "day", "tasks": -1}, "tasks is a whole number of at least 0 or None, not -1"),
        ({"per": "day", "tasks": 1.5}, "tasks is a whole number"),
        ({"per": "day", "tokens": 1, "session": "a\nb"}, "a session"),
        ({"per": "day", "tokens": 1, "by": "a\nb"}, "by"),
        (
            {"per": "day", "credits": "$1", "agent": "a", "by": "ann"},
            "a limit is of an agent, of a session or of a person; set one limit for each",
        ),
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


@pytest.mark.rule("limits.person")
def test_a_limit_of_a_person_counts_the_runs_that_carry_the_name():
    assert Limit("day", tokens=1, by="ann").meters("a", "s", "ann") == Metered("person", "ann")
    assert Limit("day", tokens=1, by="*").meters("a", "s", "bob") == Metered("person", "bob")
    assert Limit("day", tokens=1, by="ann").meters("a", "s", "bob") is None
    assert Limit("day", tokens=1, by="*").meters("a", "s", "") is None
    assert Metered("person", "ann").narrowed == {"person": "ann"}
    assert Metered("workspace", "").narrowed == {}


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


@pytest.mark.rule("limits.scopes")
def test_whom_a_limit_is_for_is_said_in_words():
    told = [Limit("day", tasks=1), Limit("day", tasks=1, agent="a"), Limit("day", tasks=1, session="*")]
    told += [Limit("day", tasks=1, by="ann"), Limit("day", tasks=1, by="*")]
    words = ["the workspace", "agent 'a'", "each session", "person 'ann'", "each person"]
    assert [str(limit.of) for limit in told] == words


@pytest.mark.rule("limits.tasks")
def test_a_limit_has_room_again_when_enough_of_its_oldest_hours_no_longer_count():
    began = begin_of(hour_of(NOW))
    hours = [(hour_of(began), 2), (hour_of(began + HOUR), 1)]
    assert Limit("day", tasks=3).room_at("tasks", hours) == began + 25 * HOUR
    assert Limit("day", tasks=2).room_at("tasks", hours) == began + 25 * HOUR
    assert Limit("day", tasks=1).room_at("tasks", hours) == began + 26 * HOUR
    assert Limit("day", tasks=0).room_at("tasks", hours) is None
    for tasks, later in ((3, 25), (1, 26)):
        limit = Limit("day", tasks=tasks)
        left = [sum(n for hour, n in hours if hour >= limit.since(began + later * HOUR - more)) for more in (1, 0)]
        assert left[0] >= tasks > left[1]


@pytest.mark.rule("limits.tasks")
@pytest.mark.parametrize(
    ("wait", "told"),
    [(1, "in 1 min"), (HOUR // 60 + 1, "in 2 min"), (HOUR, "in 1 h"), (25 * HOUR, "in 1 d 1 h"), (-HOUR, "in 1 min")],
)
def test_a_limit_on_tasks_says_when_there_is_room_again(wait: int, told: str):
    full = TasksUsedUp(Limit("hour", tasks=1), Metered("session", "s"), 1, NOW + wait)
    assert full.sentence(NOW).startswith(
        f"session 's' has begun 1 of 1 task an hour, and there is room again {told}, at"
    )


@pytest.mark.rule("limits.listed")
def test_of_a_limit_nothing_is_left_when_more_is_used_than_it_allows():
    use = LimitUse(Limit("day", tasks=2), "tasks", Metered("workspace", ""), 5)
    assert (use.most, use.left) == (2, 0)
    assert LimitUse(Limit("day", credits="$1"), "credits", Metered("agent", "a"), 400_000, 100_000).left == 500_000


@pytest.mark.rule("limits.tasks")
def test_a_limit_that_never_has_room_says_so():
    full = TasksUsedUp(Limit("day", tasks=0), Metered("agent", "a"), 0, None)
    assert full.sentence(NOW) == "agent 'a' has been given 0 of 0 tasks a day, so none may begin"
