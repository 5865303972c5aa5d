"""Repeats: the same with the same outcome, two things in turn, and what is progress."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import agent_names, texts
from remit.core.command import Move
from remit.core.loops import (
    HANDOFF_WINDOW,
    LONGEST,
    ONCE,
    USUAL,
    WINDOW,
    Repeats,
    Repetition,
    Sign,
    Thresholds,
    repeated,
)

SIGNS = [*[Sign.NONE] * 9, *[Sign.WARN] * 10, *[Sign.BLOCK] * 10, Sign.STOP, Sign.STOP]


def signs(repeats: Repeats, actions, outcome="ok") -> list[Sign]:
    """What is said of each action before it is done; one that is blocked is not done."""
    said = []
    for action in actions:
        sign = repeats.asks(action).sign
        said.append(sign)
        if sign < Sign.BLOCK:
            repeats.record(action, outcome)
        else:
            repeats.blocked(action)
    return said


@pytest.mark.rule("repeat.same")
def test_the_same_with_the_same_outcome_is_warned_of_blocked_and_stopped():
    assert (WINDOW, *USUAL) == (30, 10, 20, 30)
    assert signs(Repeats(), ["a"] * 31) == SIGNS


@pytest.mark.rule("repeat.turns")
def test_two_things_in_turn_are_warned_of_and_blocked_counted_with_the_present_one():
    assert signs(Repeats(), ["a", "b"] * 15) == SIGNS[:30]


@pytest.mark.rule("repeat.turns")
def test_that_it_is_two_things_in_turn_is_told():
    repeats = Repeats()
    signs(repeats, ["x", "a", "b", "a", "b"])

    assert repeats.asks("a") == Repetition(5, in_turn=True)
    assert repeats.asks("b") == Repetition(3)  # it would be the same twice in a row
    assert repeats.asks("x") == Repetition(2)
    assert repeats.asks("y") == ONCE


@pytest.mark.rule("repeat.progress")
@pytest.mark.parametrize("actions", [["a"], ["a", "b"], ["a", "b", "c"]], ids=["same", "in turn", "three"])
def test_changing_outcomes_are_progress_and_never_blocked(actions):
    repeats = Repeats()

    for number in range(200):
        action = actions[number % len(actions)]
        assert repeats.asks(action).sign is Sign.NONE
        repeats.record(action, str(number))


@pytest.mark.rule("repeat.progress")
def test_one_change_resets_the_count():
    repeats = Repeats()
    signs(repeats, ["a"] * 15)

    assert repeats.record("a", "something else") == ONCE
    assert repeats.asks("a") == Repetition(2)
    assert repeats.record("a", "something else") == Repetition(2)


@pytest.mark.rule("repeat.progress")
def test_one_side_that_changes_is_progress_for_both_in_turn():
    repeats = Repeats()
    for number in range(40):
        repeats.record("poll", "pending" if number < 20 else str(number))
        assert repeats.asks("work").sign is Sign.NONE
        repeats.record("work", str(number))


@pytest.mark.rule("repeat.same")
def test_what_was_done_in_between_does_not_hide_a_repeat_and_what_is_long_ago_does_not_count():
    repeats = Repeats()
    for number in range(60):
        repeats.record("a" if number % 2 == 0 else f"other {number}", "ok")

    assert repeats.asks("a") == Repetition(16)
    assert repeats.asks("other 1") == ONCE  # it has left the window
    assert repeats.asks("other 59") == Repetition(2)


@pytest.mark.rule("repeat.same")
def test_a_request_that_is_blocked_before_any_outcome_counts_too():
    repeats = Repeats()
    repeats.blocked("a")

    assert repeats.asks("a") == Repetition(2)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy")), max_size=80))
def test_the_count_is_what_the_last_thirty_say(done):
    repeats = Repeats()
    for action, outcome in done:
        repeats.record(action, outcome)

    for action in "abc":
        outcomes = [came for what, came in done[-WINDOW:] if what == action]
        same = next((n for n, came in enumerate(reversed(outcomes)) if came != outcomes[-1]), len(outcomes))
        found = repeats.asks(action)
        assert found.times >= same + 1
        assert found.in_turn or found.times == same + 1


# --- handoffs ----------------------------------------------------------------------------------


@pytest.mark.rule("handoff.deadlock")
@given(st.lists(st.builds(Move, agent_names, agent_names, texts), max_size=8), st.data())
def test_a_move_is_a_repetition_exactly_if_it_is_among_the_last_three(trail, data):
    wanted = data.draw(st.sampled_from(trail) if trail else st.just(Move("a", "b", "c")))

    backwards = list(reversed(trail))
    assert repeated(trail, wanted) == (wanted in backwards and backwards.index(wanted) < HANDOFF_WINDOW)


@pytest.mark.rule("handoff.deadlock")
def test_exactly_the_last_three_are_looked_at():
    trail = [Move("a", "b", str(number)) for number in range(5)]

    assert [repeated(trail, one) for one in trail] == [False, False, True, True, True]
    assert not repeated([], trail[0])


@pytest.mark.rule("repeat.settings")
def test_thresholds_of_ones_own_are_judged_by_and_enough_is_remembered_for_them():
    repeats = Repeats()
    repeats.judge_by(Thresholds(2, 3, 40))
    signs = [repeats.record("a", "same").sign for _ in range(41)]
    assert signs == [Sign.NONE, Sign.WARN, *[Sign.BLOCK] * 37, Sign.STOP, Sign.STOP]
    assert Repetition(5, at=Thresholds(10, 20, 5)).sign is Sign.STOP
    assert Repetition(5, at=Thresholds(10, 5, 20)).sign is Sign.BLOCK
    repeats.judge_by(Thresholds(2, 3, LONGEST + 1))
    assert repeats.asks("a").times == 41


@pytest.mark.rule("repeat.settings")
def test_among_how_many_handoffs_the_same_is_refused_can_be_said():
    first, other = Move("a", "b", "x"), Move("b", "a", "y")
    trail = [first, *[other] * 4]
    assert [repeated(trail, first, window) for window in (3, 4, 5, None)] == [False, False, True, False]
