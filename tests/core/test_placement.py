"""Where new workspaces go, and which copy counts while one moves."""

from collections import Counter

import pytest

from remit.core.placement import MoveMark, chosen, living_at, moved

NAMES = [f"workspace {number}" for number in range(2_000)]


@pytest.mark.rule("place.hash")
def test_new_workspaces_are_spread_and_another_database_takes_only_its_share():
    places = ["a", "b", "c", "d"]
    before = {name: chosen(name, places) for name in NAMES}
    assert all(400 < number < 600 for number in Counter(before.values()).values())
    after = {name: chosen(name, ["e", *reversed(places)]) for name in NAMES}
    changed = [name for name in NAMES if before[name] != after[name]]
    assert {after[name] for name in changed} == {"e"}
    assert 300 < len(changed) < 500


def mark(state: str, place: str) -> MoveMark:
    return MoveMark(state, place, f"{place}.db", 1)  # pyright: ignore[reportArgumentType]


@pytest.mark.rule("move.one-copy")
@pytest.mark.parametrize(
    ("marks", "lives"),
    [
        ({}, "a"),
        ({"b": mark("arriving", "a")}, "a"),
        ({"a": mark("leaving", "b"), "b": mark("arriving", "a")}, "a"),
        ({"a": mark("left", "b"), "b": mark("arriving", "a")}, None),
        ({"a": mark("left", "b")}, "b"),
        ({"a": mark("left", "b"), "b": mark("left", "c")}, "c"),
        ({"a": mark("left", "b"), "b": mark("left", "a")}, None),  # a circle, which no move makes
        ({"a": mark("left", "c"), "b": mark("arriving", "a")}, "c"),
    ],
)
def test_wherever_the_search_begins_the_same_copy_counts(marks: dict[str, MoveMark], lives: str | None):
    assert {living_at(start, marks.get) for start in ("a", *marks)} == {lives}


@pytest.mark.rule("move.refused")
def test_a_refused_write_says_where_the_workspace_goes_and_whether_to_try_again():
    told = {state: moved("w", mark(state, "b")) for state in ("leaving", "arriving", "left")}
    assert [(str(error), error.retryable) for error in told.values()] == [
        ("workspace 'w' is being moved to b.db; try again in a moment", True),
        ("workspace 'w' is being moved here from b.db; try again in a moment", True),
        ("workspace 'w' was moved to b.db; open it there", False),
    ]
