"""The life of a task: one table, and what is terminal stays so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.lifecycle import ENDS, START, TERMINAL, TRANSITIONS, after, mermaid
from remit.errors import Conflict

KINDS = sorted({kind for moves in TRANSITIONS.values() for kind in moves} | {"task.paused"})


def test_a_task_starts_running_and_ends_in_one_of_three_ways():
    assert after(START, "task.started") == "running"
    assert {after("running", kind) for kind in ENDS} == {"completed", "failed", "cancelled"} == TERMINAL


@pytest.mark.rule("task.final")
@pytest.mark.parametrize("state", sorted(TERMINAL))
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_follows_what_is_terminal(state, kind):
    with pytest.raises(Conflict, match=f"a task that is {state} cannot be {kind.removeprefix('task.')}"):
        after(state, kind)


@pytest.mark.rule("handoff.chain")
def test_a_task_that_changes_hands_goes_on_running():
    assert after("running", "task.handed") == "running"
    assert "task.handed" not in ENDS


@pytest.mark.rule("handoff.over")
def test_what_has_not_started_cannot_change_hands():
    with pytest.raises(Conflict, match="a task that is not there cannot be handed"):
        after(START, "task.handed")


@pytest.mark.rule("task.final")
@given(st.lists(st.sampled_from(KINDS), max_size=8))
def test_along_any_sequence_of_events_a_task_ends_at_most_once(kinds):
    state, ends = START, 0
    for kind in kinds:
        try:
            state = after(state, kind)
        except Conflict:
            continue
        ends += kind in ENDS

    assert ends == (state in TERMINAL)


@pytest.mark.parametrize("kind", sorted(ENDS))
def test_what_has_not_started_cannot_end(kind):
    with pytest.raises(Conflict, match="a task that is not there cannot be"):
        after(START, kind)


def test_the_diagram_is_the_table():
    assert mermaid() == (
        "stateDiagram-v2\n"
        "    [*] --> running: started\n"
        "    running --> running: handed\n"
        "    running --> completed: completed\n"
        "    running --> failed: failed\n"
        "    running --> cancelled: cancelled\n"
        "    completed --> [*]\n"
        "    failed --> [*]\n"
        "    cancelled --> [*]\n"
    )
