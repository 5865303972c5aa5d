"""Copies of values that agents are given, and how long someone waits."""

from datetime import timedelta
from typing import Any

import pytest

from remit.core.bounds import Bounds
from remit.core.command import HandoffState
from remit.core.identity import question
from remit.core.lifecycle import Outcome
from remit.core.remit import Kit, Pass, Passing, Rights, known_pass
from remit.core.times import SECOND, patience
from remit.core.values import copied
from remit.errors import BadInput


@pytest.mark.rule("copies.turn")
def test_a_copy_shares_nothing_that_can_be_changed():
    value: Any = {"list": [1, {"deep": [2]}], "text": "x", "none": None}
    copy: Any = copied(value)
    assert copy == value
    copy["list"][1]["deep"].append(3)
    assert value["list"] == [1, {"deep": [2]}]
    assert copied("text") == "text"


@pytest.mark.rule("copies.turn")
def test_an_outcome_is_copied_with_its_value_and_a_state_with_all_of_it():
    outcome = Outcome("coder", "t1", "completed", {"a": [1]})
    copy: Any = outcome.copied()
    copy.value["a"].append(2)
    assert outcome.value == {"a": [1]}
    plain = Outcome("coder", "t1", "completed", "text")
    assert plain.copied() is plain
    state = HandoffState({"a": [1]}, {"b": {}}, phase="p")
    assert state.copied() == state
    again: Any = state.copied()
    again.context["a"].append(2)
    assert state.context == {"a": [1]}


@pytest.mark.rule("concurrency.wait")
def test_how_long_someone_waits_is_a_duration_or_nothing_at_all():
    assert [patience(given) for given in (0, 0.0, timedelta(), 1.5, timedelta(minutes=1))] == [
        *(0, 0, 0),
        *(1_500_000, 60 * SECOND),
    ]
    assert Pass("coder", "x").patience is None is known_pass("coder", "x").patience
    assert Pass("coder", "x", busy_timeout=2).patience == 2 * SECOND
    for wrong in (-1, False, "1", float("inf"), None):
        with pytest.raises(BadInput, match="^busy_timeout "):
            patience(wrong)


@pytest.mark.rule("copies.turn")
@pytest.mark.parametrize(
    ("more", "passes"),
    [
        ({}, False),
        ({"sees": ["notes"]}, True),
        ({"writes": ["notes"]}, True),
        ({"tools": ["search"]}, True),
        ({"within": Bounds(depth=1)}, False),
        ({"timeout": 5}, False),
        ({"trust": "untrusted"}, False),
        ({"credits": "$1"}, False),
        ({"data": {"order": 7}}, False),
    ],
)
def test_a_pass_knows_whether_it_has_more_than_an_agent_and_a_text(more: Any, passes: bool):
    wish = Pass("coder", "x", **more)
    assert wish.further == bool(more)
    assert wish.passes == passes
    assert wish.asking_for("y").further == bool(more)
    assert question(wish)[:2] == ("coder", wish.task)
    along = Passing(Rights(wish.sees, wish.writes, Kit(wish.tools)), wish.within)
    if more.keys() <= {"sees", "writes", "tools", "within"}:
        assert known_pass("coder", "x", along).further == bool(more)
