"""Outcomes: the value, or the error in its place."""

import pytest

from remit.core.lifecycle import Outcome
from remit.errors import Failed, Refused

REFUSED = Outcome("coder", "", "refused", error=Refused("'coder' is busy", rule="concurrency"))
COMPLETED = Outcome("coder", "t2", "completed", {"lines": 40})


def test_a_completed_outcome_gives_its_value():
    assert COMPLETED.ok
    assert COMPLETED.unwrap() == {"lines": 40}
    assert str(COMPLETED) == "coder: {'lines': 40}"


def test_a_completed_outcome_may_have_no_value():
    assert Outcome("coder", "t2", "completed").unwrap() is None


@pytest.mark.parametrize("status", ["failed", "timed-out", "cancelled", "dead"])
def test_what_failed_is_not_ok_and_raises_its_own_error(status):
    error = Failed("'coder' did not deliver", agent="coder", task="t2")
    outcome = Outcome("coder", "t2", status, error=error)

    assert not outcome.ok
    with pytest.raises(Failed) as caught:
        outcome.unwrap()
    assert caught.value is error
    assert str(outcome) == "coder: 'coder' did not deliver"


def test_a_refused_outcome_says_why():
    assert not REFUSED.ok
    assert str(REFUSED) == "coder: 'coder' is busy"
    with pytest.raises(Refused, match="is busy"):
        REFUSED.unwrap()


def test_an_outcome_says_what_it_is():
    assert repr(Outcome("coder", "t2", "completed", "done")) == "<Outcome of 'coder', task t2, completed: 'done'>"
    failed = Outcome("coder", "t2", "failed", error=Failed("no disk", agent="coder", task="t2"))
    assert repr(failed) == "<Outcome of 'coder', task t2, failed: no disk>"


def test_a_refused_outcome_names_its_rule():
    assert Outcome("coder", "", "refused", error=Refused("no", rule="loop")).rule == "loop"
    assert Outcome("coder", "t2", "failed", error=Failed("no disk", agent="coder", task="t2")).rule == ""
