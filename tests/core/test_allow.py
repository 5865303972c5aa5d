"""Sets of what is allowed: ANY or the listed ones, and empty means nothing."""

import pytest
from hypothesis import given

from core.make import AGENTS, agent_names, agent_sets
from remit.core.allow import ANY, NONE, agents, both, either, has, names_text, within
from remit.errors import BadInput

# --- reading what people write -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("*", ANY),
        (ANY, ANY),
        ("Coder", {"coder"}),
        (["Coder", "code reviewer"], {"coder", "code-reviewer"}),
        (("coder", "CODER"), {"coder"}),
        (frozenset({"coder"}), {"coder"}),
        ((name for name in ("a", "b")), {"a", "b"}),
        ([], NONE),
        ((), NONE),
    ],
)
def test_a_list_of_agents_is_read_in_every_form_people_write(written, names):
    assert agents(written) == names


@pytest.mark.rule("bounds.empty")
@pytest.mark.parametrize("written", [[], (), frozenset(), {}.keys()])
def test_an_empty_list_allows_no_one(written):
    assert not has(agents(written), "coder")


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (None, r"asks is None; pass \(\) for nothing or '\*' for everything"),
        (["coder", "*"], r"asks: '\*' stands alone"),
        (["*"], r"asks: '\*' stands alone"),
        ([ANY], "named by text, not Unbounded"),
        ({"coder": 1}, "named by text, not dict"),
        (b"coder", "named by text, not bytes"),
        (7, "named by text, not int"),
        (["coder", None], "named by text, not NoneType"),
        ("", "at least one letter"),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused(written, reason):
    with pytest.raises(BadInput, match=reason):
        agents(written, "asks")


# --- the lattice -------------------------------------------------------------------------------


@pytest.mark.rule("bounds.lattice")
@given(agent_sets, agent_sets, agent_names)
def test_both_allows_exactly_what_both_allow(a, b, name):
    assert has(both(a, b), name) == (has(a, name) and has(b, name))


@given(agent_sets, agent_sets, agent_names)
def test_either_allows_exactly_what_one_of_them_allows(a, b, name):
    assert has(either(a, b), name) == (has(a, name) or has(b, name))


@pytest.mark.rule("bounds.lattice")
@given(agent_sets, agent_sets, agent_sets)
def test_the_meet_of_names_is_idempotent_commutative_and_associative(a, b, c):
    assert both(a, a) == a
    assert both(a, b) == both(b, a)
    assert both(both(a, b), c) == both(a, both(b, c))


@pytest.mark.rule("bounds.lattice")
@given(agent_sets, agent_sets, agent_sets)
def test_the_meet_of_names_is_monotone(a, b, c):
    narrow = both(a, b)

    assert within(narrow, a)
    assert within(both(narrow, c), both(a, c))


@pytest.mark.rule("bounds.lattice")
@given(agent_sets, agent_sets)
def test_within_agrees_with_the_meet_and_with_what_is_allowed(a, b):
    assert within(a, b) == (both(a, b) == a)
    if within(a, b):
        assert all(has(b, name) for name in AGENTS if has(a, name))


@pytest.mark.rule("bounds.empty")
@given(agent_sets)
def test_nothing_meets_anything_in_nothing_and_adds_nothing(a):
    assert both(a, NONE) == NONE
    assert either(a, NONE) == a
    assert within(NONE, a)
    assert within(a, NONE) == (a == NONE)


@given(agent_sets)
def test_any_is_the_top(a):
    assert both(a, ANY) == a
    assert either(a, ANY) is ANY
    assert within(a, ANY)
    assert within(ANY, a) == (a is ANY)


@given(agent_names)
def test_any_allows_every_name(name):
    assert has(ANY, name)


# --- for people --------------------------------------------------------------------------------


@pytest.mark.parametrize(("names", "said"), [(ANY, "anyone"), (NONE, "no one"), (frozenset({"b", "a"}), "a, b")])
def test_names_are_spelled_for_people(names, said):
    assert names_text(names) == said


def test_any_shows_as_the_word_it_is_written_with():
    assert repr(ANY) == "ANY"
