"""The life of a task: one table, and what is terminal stays so."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.lifecycle import (
    ENDS,
    MOVES,
    OPEN,
    PROGRESS_LIMIT,
    START,
    TERMINAL,
    TRANSITIONS,
    after,
    lands,
    mermaid,
    progress_line,
    progress_of,
)
from remit.errors import BadInput, Conflict

KINDS = sorted({*MOVES, "task.paused"})
LEGAL = [(state, kind, to) for state, moves in TRANSITIONS.items() for kind, to in moves.items()]
ILLEGAL = [(state, kind) for state in TRANSITIONS for kind in KINDS if kind not in TRANSITIONS[state]]


@pytest.mark.rule("lifecycle.table")
def test_the_states_of_a_task():
    assert set(TRANSITIONS) == {START} | OPEN | TERMINAL
    assert {"pending", "running", "waiting", "cancelling"} == OPEN
    assert {"completed", "failed", "cancelled", "dead"} == TERMINAL
    assert {"task.completed", "task.failed", "task.cancelled", "task.died"} == ENDS
    assert TRANSITIONS[START] == {"task.submitted": "pending", "task.started": "running"}


@pytest.mark.rule("lifecycle.table")
@pytest.mark.parametrize(("state", "kind", "to"), LEGAL)
def test_every_move_of_the_table_leads_where_it_says_and_to_a_state_there_is(state, kind, to):
    assert after(state, kind) == to == lands(kind)
    assert to in TRANSITIONS


@pytest.mark.rule("lifecycle.table")
@pytest.mark.parametrize(("state", "kind"), ILLEGAL)
def test_a_move_that_the_table_does_not_have_raises_and_changes_nothing(state, kind):
    before = copy.deepcopy(TRANSITIONS)

    with pytest.raises(Conflict, match=f"a task that is {state or 'not there'} cannot be {kind.removeprefix('task.')}"):
        after(state, kind)

    assert before == TRANSITIONS


@pytest.mark.rule("lifecycle.table")
def test_every_state_can_be_reached_and_every_open_one_can_be_left_for_good():
    def reached(state: str) -> set[str]:
        found, ahead = {state}, [state]
        while ahead:
            new = set(TRANSITIONS[ahead.pop()].values()) - found
            found |= new
            ahead += new
        return found

    assert reached(START) == set(TRANSITIONS)
    for state in OPEN:
        assert "cancelled" in reached(state)


def test_what_no_event_does_leads_nowhere():
    with pytest.raises(KeyError):
        lands("task.paused")


@pytest.mark.rule("task.final", "lifecycle.final")
@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_nothing_follows_what_is_terminal(state):
    assert TRANSITIONS[state] == {}


@pytest.mark.rule("lifecycle.table")
def test_what_is_being_cancelled_can_only_be_cancelled():
    assert TRANSITIONS["cancelling"] == {"task.cancelled": "cancelled"}


@pytest.mark.rule("handoff.chain")
def test_a_task_that_changes_hands_goes_on_running():
    assert after("running", "task.handed") == "running"
    assert "task.handed" not in ENDS


@pytest.mark.rule("handoff.over")
def test_what_has_not_started_cannot_change_hands():
    with pytest.raises(Conflict, match="a task that is not there cannot be handed"):
        after(START, "task.handed")


@pytest.mark.rule("task.final", "lifecycle.final")
@given(st.lists(st.sampled_from(KINDS), max_size=12))
def test_along_any_sequence_of_events_a_task_ends_at_most_once(kinds):
    state, ends = START, 0
    for kind in kinds:
        try:
            state = after(state, kind)
        except Conflict:
            continue
        ends += kind in ENDS

    assert ends == (state in TERMINAL)


def test_the_diagram_is_the_table():
    drawn = mermaid()

    assert drawn.startswith(
        "stateDiagram-v2\n    state open {\n        pending --> running: claimed, resumed, fenced\n"
    )
    assert "    [*] --> pending: submitted\n    [*] --> running: started\n" in drawn
    edges = [line.strip().split(" --> ") for line in drawn.splitlines() if ": " in line]
    told = set()
    for start, end in edges:
        to, words = end.split(": ")
        states = ("pending", "running", "waiting") if start == "open" else (start.replace("[*]", START),)
        told |= {(state, f"task.{word}", to) for state in states for word in words.split(", ")}
    assert told == set(LEGAL)
    pairs = [(start, end.split(":")[0]) for start, end in edges]
    assert len(pairs) == len(set(pairs))
    for state in TERMINAL:
        assert f"    {state} --> [*]\n" in drawn


@pytest.mark.parametrize(
    ("fraction", "text"), [(None, "x"), (0, "x (0 %)"), (0.29, "x (29 %)"), (0.999, "x (99 %)"), (1, "x (100 %)")]
)
def test_progress_is_told_with_its_part_which_is_all_only_at_the_end(fraction: float | None, text: str):
    found = progress_of("t", "a", "x", fraction, 5)
    assert (str(found), found.data) == (text, {"text": "x", "fraction": fraction})


@pytest.mark.parametrize("fraction", [1.01, -1, True, "half", float("nan")])
def test_a_part_that_is_no_part_is_refused(fraction: object):
    with pytest.raises(BadInput, match="fraction is a number from 0 to 1"):
        progress_of("t", "a", "x", fraction, 5)


def test_any_text_becomes_one_line_of_progress():
    assert progress_line(" page 3\n of\0 10 ") == "page 3 of 10"
    long = progress_line("x" * (PROGRESS_LIMIT + 1))
    assert (len(long), long[-2:]) == (PROGRESS_LIMIT, "x…")
    assert progress_of("t", "a", long, None, 5).text == long
