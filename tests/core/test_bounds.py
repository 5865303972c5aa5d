"""Bounds: a ceiling that only ever gets lower."""

from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import NOW, agent_names, bounds, figures, keys, namespaces, tool_names
from remit.core.allow import ANY, NONE
from remit.core.bounds import TOP, Bounds, ceiling, restored
from remit.core.scope import BOARD, NOTHING, Scope, board_of
from remit.core.values import checked
from remit.errors import BadInput


class Act(NamedTuple):
    """Something that an agent is about to do under some bounds."""

    agent: str
    tool: str
    namespace: str
    key: str
    depth: int
    at: int
    credits: int
    tokens: int
    handoffs: int
    members: int
    tasks: int


acts = st.builds(
    Act,
    agent_names,
    tool_names,
    namespaces,
    keys,
    st.integers(0, 6),
    st.integers(NOW - 1, NOW + 6),
    st.integers(0, 6),
    st.integers(0, 6),
    st.integers(0, 6),
    st.integers(0, 6),
    st.integers(0, 6),
)
ceilings = st.builds(
    lambda a, handoffs, members, tasks: a & Bounds(handoffs=handoffs, members=members, tasks=tasks),
    bounds,
    figures(),
    figures(1),
    figures(1),
)


def admits(ceiling: Bounds, act: Act) -> bool:
    """What bounds mean, said without any of the code under test."""
    return (
        (ceiling.agents is ANY or act.agent in ceiling.agents)
        and (ceiling.tools is ANY or act.tool in ceiling.tools)
        and (ceiling.sees is ANY or any(one.covers(act.namespace, act.key) for one in ceiling.sees))
        and (ceiling.depth is None or act.depth <= ceiling.depth)
        and (ceiling.deadline is None or act.at <= ceiling.deadline)
        and (ceiling.credits is None or act.credits <= ceiling.credits)
        and (ceiling.tokens is None or act.tokens <= ceiling.tokens)
        and (ceiling.handoffs is None or act.handoffs <= ceiling.handoffs)
        and (ceiling.members is None or act.members <= ceiling.members)
        and (ceiling.tasks is None or act.tasks <= ceiling.tasks)
    )


# --- the lattice -------------------------------------------------------------------------------


@pytest.mark.rule("bounds.lattice")
@given(ceilings, ceilings, acts)
def test_the_meet_admits_exactly_what_both_admit(a, b, act):
    assert admits(a & b, act) == (admits(a, act) and admits(b, act))


@pytest.mark.rule("bounds.lattice")
@given(ceilings, ceilings, ceilings)
def test_the_meet_is_idempotent_commutative_and_associative(a, b, c):
    again = restored(a.data)

    assert a & a == a == a & again
    assert a & b == b & a
    assert (a & b) & c == a & (b & c)


@pytest.mark.rule("bounds.lattice")
@given(ceilings, ceilings, ceilings)
def test_the_meet_is_monotone(a, b, c):
    narrow = a & b

    assert narrow <= a
    assert narrow <= b
    assert narrow & c <= a & c


@pytest.mark.rule("bounds.lattice")
@given(ceilings, ceilings)
def test_less_or_equal_agrees_with_the_meet(a, b):
    assert (a <= b) == (a & b == a)
    assert (b >= a) == (a <= b)


@pytest.mark.rule("bounds.lattice")
@given(ceilings, ceilings, acts)
def test_narrower_bounds_admit_nothing_that_wider_ones_do_not(a, b, act):
    if a <= b and admits(a, act):
        assert admits(b, act)


@pytest.mark.rule("bounds.lattice")
@given(ceilings, ceilings)
def test_less_or_equal_both_ways_is_equality(a, b):
    assert (a <= b <= a) == (a == b)


@pytest.mark.rule("bounds.lattice")
@given(ceilings)
def test_the_top_bounds_nothing(a):
    assert a & TOP == a == TOP & a
    assert a <= TOP


@pytest.mark.rule("bounds.lattice")
@pytest.mark.parametrize(
    "field",
    [
        {"agents": ["coder"]},
        {"tools": ["exec"]},
        {"sees": ["acme"]},
        {"writes": ["acme"]},
        {"depth": 1},
        {"deadline": NOW},
        {"credits": "$1"},
        {"tokens": 1},
        {"handoffs": 1},
        {"members": 1},
        {"tasks": 1},
    ],
    ids=lambda field: next(iter(field)),
)
def test_every_single_field_counts(field):
    narrow = Bounds(**field)

    assert narrow <= TOP
    assert not narrow >= TOP
    assert TOP & narrow == narrow


@pytest.mark.rule("bounds.empty")
@given(ceilings, acts)
def test_empty_lists_admit_nothing_and_stay_empty_under_the_meet(a, act):
    for nothing in (Bounds(agents=()), Bounds(tools=[]), Bounds(sees=frozenset())):
        assert not admits(nothing, act)
        assert not admits(a & nothing, act)

    shut = a & Bounds(agents=(), tools=(), sees=(), depth=0)
    assert (shut.agents, shut.tools, shut.sees, shut.depth) == (NONE, NONE, NOTHING, 0)


@pytest.mark.rule("bounds.empty")
def test_a_figure_of_zero_is_zero_and_not_no_limit():
    nothing = Bounds(depth=0, credits=0, tokens=0, handoffs=0)

    assert nothing & Bounds(depth=3, credits="$5", tokens=7, handoffs=5) == nothing


@pytest.mark.rule("bounds.narrow")
@given(st.lists(ceilings, min_size=1, max_size=6))
def test_along_any_sequence_of_meets_bounds_only_get_narrower(sequence):
    path = [sequence[0]]
    for one in sequence[1:]:
        path.append(path[-1] & one)

    assert all(later <= earlier for i, earlier in enumerate(path) for later in path[i:])


@given(ceilings, ceilings)
def test_equal_bounds_have_equal_hashes(a, b):
    assert hash(a & b) == hash(b & a)
    assert len({a, b}) == (1 if a == b else 2)


# --- time and boards ---------------------------------------------------------------------------


@pytest.mark.rule("bounds.narrow", "task.deadline")
@given(ceilings, figures(NOW - 2, NOW + 7).filter(lambda at: at is not None))
def test_until_brings_the_deadline_forward_and_never_back(a, at):
    found = a.until(at)

    assert found == a & Bounds(deadline=at)
    assert found.deadline <= at
    assert found <= a


@pytest.mark.rule("bounds.narrow", "task.deadline")
@given(ceilings, st.integers(0, 10**9))
def test_later_moves_the_deadline_and_nothing_else(a, by):
    found = a.later(by)

    assert found.deadline == (None if a.deadline is None else a.deadline + by)
    assert found.later(-by) == a


def test_a_deadline_is_moved_no_further_than_a_datetime_goes():
    end = 253_402_300_799_999_999

    assert Bounds(deadline=end - 5).later(9) == Bounds(deadline=end)


def test_board_becomes_the_session_s_and_everything_else_stays():
    ceiling = Bounds(["coder"], ["exec"], [BOARD, "notes"], [BOARD], 1, NOW, "$0.000002", 3, 4, 5, 6)  # pyright: ignore[reportCallIssue]

    found = ceiling.on_board("s1")

    assert (found.sees, found.writes) == ({board_of("s1"), Scope("notes")}, {board_of("s1")})
    assert (found.agents, found.tools) == (ceiling.agents, ceiling.tools)
    assert (found.depth, found.deadline, found.credits, found.tokens) == (1, NOW, 2, 3)
    assert (found.handoffs, found.members) == (4, 5)


def test_bounds_without_board_stay_as_they_are():
    ceiling = Bounds(sees=["notes"])

    assert ceiling.on_board("s1") is ceiling


# --- what people write -------------------------------------------------------------------------


def test_bounds_read_what_people_write():
    found = Bounds(
        agents=["Coder", "code reviewer"],
        tools=["group:web", "exec"],
        sees=["codebase"],
        depth=2,
        deadline=datetime(2026, 11, 15, tzinfo=UTC),
        credits="$0.50",
        tokens=1000,
    )

    assert found.agents == {"coder", "code-reviewer"}
    assert found.tools == {"web_search", "web_fetch", "exec"}
    assert found.sees == {Scope("codebase")}
    assert (found.depth, found.credits, found.tokens) == (2, 500_000, 1000)
    assert found.deadline == 1_794_700_800_000_000


@pytest.mark.rule("bounds.groups")
def test_bounds_with_an_unknown_tool_group_are_refused():
    with pytest.raises(BadInput, match="no tool group 'group:flies'"):
        Bounds(tools=["group:flies"])


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"agents": None}, "agents is None"),
        ({"tools": None}, "tools is None"),
        ({"sees": None}, "sees is None"),
        ({"depth": -1}, "depth is a whole number of at least 0"),
        ({"depth": 1.5}, "depth is a whole number"),
        ({"deadline": "soon"}, "deadline is an aware datetime"),
        ({"deadline": 60}, "timedelta.seconds=60., or a number of microseconds since 1970, not 60"),
        ({"deadline": NOW // 1_000_000}, "deadline is a datetime with a time zone"),
        ({"deadline": NOW // 1_000}, "deadline is a datetime with a time zone"),
        ({"deadline": NOW * 1_000}, "deadline is a datetime with a time zone"),
        ({"credits": "a lot"}, "credits: an amount is written"),
        ({"tokens": True}, "tokens is a whole number"),
        ({"handoffs": -1}, "handoffs is a whole number of at least 0"),
        ({"handoffs": False}, "handoffs is a whole number"),
        ({"members": 0}, "members is a whole number of at least 1"),
        ({"members": "3"}, "members is a whole number"),
    ],
)
def test_bounds_that_cannot_be_meant_are_refused(wrong, reason):
    with pytest.raises(BadInput, match=reason):
        Bounds(**wrong)


@pytest.mark.rule("input.json")
@pytest.mark.parametrize("field", ["depth", "deadline", "credits", "tokens", "handoffs", "members"])
def test_a_figure_that_the_journal_cannot_hold_is_refused(field):
    with pytest.raises(BadInput, match=field):
        Bounds(**{field: 2**63})


# --- as data -----------------------------------------------------------------------------------


def test_bounds_as_data_name_only_what_is_bounded():
    assert TOP.data == {}
    assert Bounds(agents=()).data == {"agents": []}


def test_bounds_as_data_are_sorted_json():
    ceiling = Bounds(["b", "a"], ["exec", "deploy"], ["n", Scope("m", key="k")], ["w"], 1, NOW, "$0.000002", 3, 4, 5)  # pyright: ignore[reportCallIssue]

    assert ceiling.data == {
        "agents": ["a", "b"],
        "tools": ["deploy", "exec"],
        "sees": ["m/k", "n/*"],
        "writes": ["w/*"],
        "depth": 1,
        "deadline": NOW,
        "credits": 2,
        "tokens": 3,
        "handoffs": 4,
        "members": 5,
    }


@given(ceilings, ceilings)
def test_equal_bounds_have_equal_data_and_it_is_json(a, b):
    assert checked((a & b).data, "bounds") == (b & a).data


def test_changing_the_data_does_not_change_the_bounds():
    ceiling = Bounds(agents=["a"], depth=1)

    ceiling.data["depth"] = 99
    ceiling.data["agents"].append("b")  # pyright: ignore[reportAttributeAccessIssue]

    assert ceiling.data == {"agents": ["a"], "depth": 1}


@given(ceilings)
def test_bounds_are_restored_from_their_data(ceiling):
    found = restored(ceiling.data)

    assert found == ceiling
    assert found.data == ceiling.data


def test_every_bound_is_restored():
    figures = {"depth": 1, "deadline": NOW, "credits": "$2", "tokens": 3, "handoffs": 4, "members": 5}
    writes = ["w", Scope("v", key="k*v1", version=3)]
    ceiling = Bounds(agents=["b", "a"], tools=(), sees=["n/m", Scope("m*", key="k\\")], writes=writes, **figures)

    assert restored(ceiling.data) == ceiling
    assert restored({}) == TOP


@pytest.mark.rule("chain.depth", "run.size")
def test_what_an_owner_leaves_open_has_a_default_and_what_an_owner_says_counts():
    assert ceiling(Bounds(tokens=9)) == Bounds(tokens=9, depth=3, tasks=1_000)
    assert ceiling(Bounds(depth=9, tasks=5_000)) == Bounds(depth=9, tasks=5_000)
