"""Scopes: literal parts of the stored context that nest or are apart."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.make import keys, namespaces, scope_sets, scopes
from remit.core import scope
from remit.core.allow import ANY
from remit.core.remit import Pass
from remit.core.scope import BOARD, NOTHING, Scope, board_of, covers, memory_of, normal, on_board, parts
from remit.core.values import digest
from remit.errors import BadInput

sights = st.just(ANY) | scope_sets.map(normal)


def shows(sees, namespace: str, key: str, version: int | None = None) -> bool:
    """What a sight shows, said without any of the code under test."""
    return sees is ANY or any(
        one.namespace == namespace
        and (key == one.key if one.key is not None else key[: len(one.prefix)] == one.prefix)
        and one.version in (None, version)
        for one in sees
    )


versions = st.none() | st.integers(1, 3)


# --- one scope ---------------------------------------------------------------------------------


@pytest.mark.rule("entry.prefix")
@given(scopes, namespaces, keys, versions)
def test_a_scope_covers_its_key_or_the_keys_that_begin_with_its_prefix(one, namespace, key, version):
    assert one.covers(namespace, key, version) == shows({one}, namespace, key, version)


@pytest.mark.rule("sight.wrote")
def test_a_scope_of_one_version_shows_that_version_alone():
    third = Scope("acme", key="k", version=3)

    assert third.covers("acme", "k", 3)
    assert not third.covers("acme", "k", 4)
    assert not third.covers("acme", "k")
    assert Scope("acme", key="k") & third == third == third & Scope("acme", key="k")
    assert Scope("acme", prefix="k") & third == third
    assert Scope("acme", key="k", version=4) & third is None
    assert normal(frozenset((third, Scope("acme", key="k")))) == {Scope("acme", key="k")}
    assert third.address == Scope("acme", key="k") == Scope("acme", key="k").address
    assert scope.touches(frozenset((third,)), "acme", "k")
    assert not scope.touches(frozenset((third,)), "acme", "other")
    assert scope.restored(scope.scope_texts(frozenset((third,)))) == {third}


@pytest.mark.parametrize("wrong", [{"version": 1}, {"key": "k", "version": 0}, {"prefix": "k", "version": 1}])
def test_a_version_belongs_to_one_key(wrong):
    with pytest.raises(BadInput, match="version"):
        Scope("acme", **wrong)


@pytest.mark.rule("entry.prefix")
@pytest.mark.parametrize(
    ("one", "namespace", "key"),
    [
        (Scope("acme"), "acme-corp", "k"),
        (Scope("acme-corp"), "acme", "k"),
        (Scope("a%"), "acme", "k"),
        (Scope("*"), "acme", "k"),
        (Scope("acme", prefix="m%"), "acme", "module"),
        (Scope("acme", prefix="m_d"), "acme", "mod"),
        (Scope("acme", prefix="*"), "acme", "module"),
        (Scope("acme", prefix="\\%"), "acme", "%"),
        (Scope("acme", prefix="Mod"), "acme", "module"),
        (Scope("acme", prefix="' OR 1=1 --"), "acme", "module"),
        (Scope("acme", prefix="\u00e9"), "acme", "e\u0301"),
        (Scope("acme", key="e\u0301"), "acme", "\u00e9"),
        (Scope("acme", key="mod"), "acme", "module"),
    ],
)
def test_scopes_are_literal_never_patterns(one, namespace, key):
    assert not one.covers(namespace, key)


@pytest.mark.rule("entry.prefix")
@pytest.mark.parametrize("text", ["m%", "m_", "*", "\\", "'", '"', "\u00e9", "e\u0301", "[a-z]", ".*", " "])
def test_special_characters_stand_for_themselves(text):
    assert Scope(text).covers(text, "k")
    assert Scope("acme", prefix=text).covers("acme", text + "rest")
    assert Scope("acme", key=text).covers("acme", text)


@pytest.mark.rule("entry.limits")
@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"namespace": ""}, "a namespace must not be empty"),
        ({"namespace": "n" * 65}, "a namespace has at most 64 characters, got 65"),
        ({"namespace": None}, "a namespace must be text"),
        ({"namespace": "n", "key": ""}, "a key must not be empty"),
        ({"namespace": "n", "key": "k" * 129}, "a key has at most 128 characters, got 129"),
        ({"namespace": "n", "prefix": "k" * 129}, "a prefix has at most 128 characters, got 129"),
        ({"namespace": "n", "prefix": None}, "a prefix must be text"),
        ({"namespace": "n", "key": "a\0"}, "a key must not contain a NUL"),
        ({"namespace": "n", "key": "k", "prefix": "p"}, "a key or a prefix, not both"),
    ],
)
def test_a_scope_that_cannot_be_meant_is_refused(wrong, reason):
    with pytest.raises(BadInput, match=reason):
        Scope(**wrong)


@pytest.mark.rule("entry.limits")
def test_the_longest_namespace_and_key_are_accepted():
    assert Scope("n" * 64, key="k" * 128).covers("n" * 64, "k" * 128)


@pytest.mark.rule("bounds.lattice")
@given(scopes, scopes, namespaces, keys)
def test_two_scopes_meet_in_exactly_what_both_cover(a, b, namespace, key):
    part = a & b

    covered = part is not None and part.covers(namespace, key)
    assert covered == (a.covers(namespace, key) and b.covers(namespace, key))


@pytest.mark.rule("bounds.lattice")
@given(scopes, scopes)
def test_the_meet_of_two_scopes_is_one_of_them_or_nothing(a, b):
    assert (a & b) == (b & a)
    assert (a & b) in {a, b, None}
    assert (a & a) == a
    assert a.contains(b) == ((a & b) == b)


@pytest.mark.parametrize(
    ("big", "small"),
    [
        (Scope("n"), Scope("n")),
        (Scope("n"), Scope("n", prefix="a")),
        (Scope("n"), Scope("n", key="a")),
        (Scope("n", prefix="a"), Scope("n", prefix="ab")),
        (Scope("n", prefix="a"), Scope("n", key="a")),
    ],
)
def test_a_wider_scope_contains_a_narrower_one(big, small):
    assert big.contains(small)


@pytest.mark.parametrize(
    ("big", "small"),
    [
        (Scope("n"), Scope("m")),
        (Scope("n", prefix="a"), Scope("n")),
        (Scope("n", prefix="ab"), Scope("n", prefix="a")),
        (Scope("n", prefix="ab"), Scope("n", key="a")),
        (Scope("n", key="a"), Scope("n", prefix="a")),
        (Scope("n", key="a"), Scope("n", key="b")),
    ],
)
def test_no_scope_contains_what_is_wider_or_elsewhere(big, small):
    assert not big.contains(small)


# --- sights: sets of scopes --------------------------------------------------------------------


@pytest.mark.rule("bounds.lattice")
@given(sights, sights, namespaces, keys)
def test_both_shows_exactly_what_both_show(a, b, namespace, key):
    assert covers(scope.both(a, b), namespace, key) == (shows(a, namespace, key) and shows(b, namespace, key))


@given(sights, sights, namespaces, keys)
def test_either_shows_exactly_what_one_of_them_shows(a, b, namespace, key):
    assert covers(scope.either(a, b), namespace, key) == (shows(a, namespace, key) or shows(b, namespace, key))


@pytest.mark.rule("bounds.lattice")
@given(sights, sights, sights)
def test_the_meet_of_sights_is_idempotent_commutative_and_associative(a, b, c):
    assert scope.both(a, a) == a
    assert scope.both(a, b) == scope.both(b, a)
    assert scope.both(scope.both(a, b), c) == scope.both(a, scope.both(b, c))


@pytest.mark.rule("bounds.lattice")
@given(sights, sights, sights)
def test_the_meet_of_sights_is_monotone(a, b, c):
    narrow = scope.both(a, b)

    assert scope.within(narrow, a)
    assert scope.within(scope.both(narrow, c), scope.both(a, c))


@pytest.mark.rule("bounds.lattice")
@given(sights, sights, namespaces, keys)
def test_within_agrees_with_the_meet_and_with_what_is_shown(a, b, namespace, key):
    assert scope.within(a, b) == (scope.both(a, b) == a)
    if scope.within(a, b) and shows(a, namespace, key):
        assert shows(b, namespace, key)


@pytest.mark.rule("bounds.empty")
@given(sights, namespaces, keys)
def test_no_scopes_show_nothing(a, namespace, key):
    assert not covers(NOTHING, namespace, key)
    assert scope.both(a, NOTHING) == NOTHING == scope.both(NOTHING, a)
    assert scope.either(a, NOTHING) == a == scope.either(NOTHING, a)
    assert scope.within(NOTHING, a)
    assert scope.within(a, NOTHING) == (a == NOTHING)


@given(scope_sets, namespaces, keys, versions)
def test_the_normal_form_shows_the_same_without_scopes_inside_others(sees, namespace, key, version):
    found = normal(sees)

    assert covers(found, namespace, key, version) == shows(sees, namespace, key, version)
    assert not any(a != b and a.contains(b) for a in found for b in found)  # pyright: ignore[reportGeneralTypeIssues]


@given(scope_sets)
def test_the_normal_form_is_stable(sees):
    assert normal(normal(sees)) == normal(sees)


def test_the_normal_form_of_everything_is_everything():
    assert normal(ANY) is ANY


@given(sights, scopes, namespaces, keys)
def test_the_parts_of_a_scope_show_what_of_it_is_in_sight_and_each_key_once(sees, wanted, namespace, key):
    found = parts(sees, wanted)

    shown = [part for part in found if part.covers(namespace, key)]
    assert len(shown) == (1 if wanted.covers(namespace, key) and shows(sees, namespace, key) else 0)


@given(sights, scopes)
def test_the_parts_of_a_scope_are_in_the_order_of_their_keys(sees, wanted):
    starts = [part.key or part.prefix for part in parts(sees, wanted)]

    assert starts == sorted(starts)


# --- reading what people write -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("codebase", {Scope("codebase")}),
        (["codebase", "notes"], {Scope("codebase"), Scope("notes")}),
        ([Scope("codebase", prefix="auth"), "notes"], {Scope("codebase", prefix="auth"), Scope("notes")}),
        (Scope("codebase", key="k"), {Scope("codebase", key="k")}),
        ([Scope("codebase", key="k"), "codebase"], {Scope("codebase")}),
        ([BOARD], {BOARD}),
        ("board", {Scope("board")}),
        ((), NOTHING),
        ("*", ANY),
        (ANY, ANY),
    ],
)
def test_scopes_are_read_in_every_form_people_write(written, found):
    assert scope.scopes(written) == found


@pytest.mark.rule("entry.prefix")
def test_a_star_inside_a_name_is_a_star():
    assert scope.scopes(["code*"]) == {Scope("code*")}


@pytest.mark.parametrize(
    "written", ["board:s2", Scope("board:s2"), Scope("board:s2", key="k"), Scope("board:", key="k")]
)
def test_no_one_names_a_session_s_board_by_hand(written):
    with pytest.raises(BadInput, match=r"is a session's board; use remit.BOARD"):
        scope.scopes([written])


@pytest.mark.parametrize(
    ("written", "reason"),
    [(None, r"sees is None; pass \(\) for nothing"), ([7], "must be text"), (["a", "*"], "alone")],
)
def test_scopes_that_cannot_be_meant_are_refused(written, reason):
    with pytest.raises(BadInput, match=reason):
        scope.scopes(written)


# --- boards and memories -----------------------------------------------------------------------


def test_board_becomes_the_board_of_the_session():
    assert on_board(frozenset({BOARD, Scope("notes")}), "s1") == {board_of("s1"), Scope("notes")}


@pytest.mark.parametrize("sees", [ANY, NOTHING, frozenset({Scope("notes")})])
def test_without_board_nothing_changes(sees):
    assert on_board(sees, "s1") is sees


@given(st.text("abc-", min_size=1, max_size=4), st.text("abc-", min_size=1, max_size=4), keys)
def test_the_boards_of_two_sessions_are_apart(one, other, key):
    assert board_of(one).covers(board_of(other).namespace, key) == (one == other)


def test_the_board_of_the_longest_session_name_is_a_namespace():
    assert board_of("s" * 56).namespace == "board:" + "s" * 56


def test_a_memory_is_the_namespace_of_its_agent():
    assert memory_of("coder") == Scope("memory:coder")


@given(st.text("ab-", min_size=55, max_size=64), st.text("ab-", min_size=55, max_size=64))
def test_agents_with_long_names_have_memories_of_their_own(one, other):
    assert len(memory_of(one).namespace) <= 64
    assert (memory_of(one) == memory_of(other)) == (one == other)


def test_no_agent_can_be_named_into_the_memory_of_another():
    victim = "x" * 64
    thief = f"{victim[:40]}-{digest(victim)}"

    assert memory_of(thief) != memory_of(victim)


# --- for people and for the journal ------------------------------------------------------------


@pytest.mark.parametrize(
    ("sees", "said"),
    [
        (ANY, ["*"]),
        (NOTHING, []),
        (frozenset({Scope("b"), Scope("a", key="k"), Scope("a", prefix="p")}), ["a/k", "a/p*", "b/*"]),
    ],
)
def test_scopes_are_spelled_in_order(sees, said):
    assert scope.scope_texts(sees) == said


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Scope("a", key="b*"), Scope("a", prefix="b")),
        (Scope("a/b"), Scope("a", prefix="b/")),
        (Scope("a", key="b/c"), Scope("a/b", key="c")),
    ],
)
def test_two_scopes_never_share_a_spelling(one, other):
    assert str(one) != str(other)


@given(scopes, scopes)
def test_different_scopes_are_told_apart_by_their_spelling(one, other):
    assert (str(one) == str(other)) == (one == other)


literal = st.text("ab/*\\\u00e9e\u0301日'% ", min_size=1, max_size=6)
any_scopes = st.one_of(
    st.builds(Scope, literal),
    st.builds(Scope, literal, prefix=literal),
    st.builds(Scope, literal, key=literal),
)


@given(st.just(ANY) | st.frozensets(any_scopes, max_size=5))
def test_scopes_are_restored_from_their_spelling(sees):
    assert scope.restored(scope.scope_texts(sees)) == sees


@pytest.mark.parametrize(
    "one",
    [
        Scope("*"),
        Scope("a/b", key="c/d*"),
        Scope("\\", prefix="\\*"),
        Scope("a\\/b", key="*"),
        Scope("a", prefix="*/"),
        board_of("s1"),
        memory_of("coder"),
    ],
)
def test_scopes_with_slashes_stars_and_backslashes_are_restored(one):
    assert scope.restored([str(one)]) == {one}


def test_a_scope_is_told_to_a_model_as_a_namespace_a_key_or_a_prefix():
    told = [one.written for one in (Scope("notes"), Scope("notes", key="today"), Scope("notes", prefix="2026"))]
    assert told == ["notes", "notes/today", "notes/2026*"]


# --- how many ----------------------------------------------------------------------------------


@pytest.mark.rule("input.scopes")
def test_a_pass_names_at_most_64_scopes_and_says_what_to_pass_instead():
    names = [f"n{number}" for number in range(scope.MOST_PASSED + 1)]

    assert scope.passed(names[:-1]) == {Scope(name) for name in names[:-1]}
    assert scope.passed("*") is ANY
    assert scope.passed([Scope("n"), *(Scope("n", key=name) for name in names)]) == {Scope("n")}
    with pytest.raises(BadInput, match="writes lists 65 scopes, and a pass has at most 64; pass a prefix"):
        scope.passed(names, "writes")
    with pytest.raises(BadInput, match="sees lists 65 scopes"):
        Pass("reviewer", "review", sees=names)


@pytest.mark.rule("input.scopes")
@given(sights, sights)
def test_what_lies_outside_is_what_no_scope_of_the_other_contains(a, b):
    assume(a is not ANY)
    alone = {one for one in a if b is not ANY and not any(big.contains(one) for big in b)}
    assert scope.outside(a, b) == alone
