"""Remits: derived, never given, and never wider than the one they come from."""

import dataclasses
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import (
    AGENTS,
    NOW,
    SECOND,
    UNTIL,
    agent_names,
    bounds,
    first_remit,
    journal,
    namespaces,
    remit_along,
    scope_sets,
    submitted,
    tool_sets,
    wishes,
)
from remit.core import allow, scope
from remit.core.allow import ANY, NONE
from remit.core.bounds import TOP, Bounds
from remit.core.card import Card
from remit.core.kinds.tasks import started
from remit.core.remit import (
    NO_RIGHTS,
    Chain,
    Hop,
    Kit,
    Origin,
    Pass,
    Passing,
    Rights,
    begin,
    derive,
    handed_to,
    kit,
    passing_restored,
    reach,
    restored,
    rights,
    sight,
)
from remit.core.scope import BOARD, NOTHING, Scope, board_of, memory_of
from remit.errors import BadInput

ORIGIN = Origin("t1", "home", "s1")

cards = st.builds(Card, agent_names, reads=st.just(ANY) | scope_sets, writes=st.just(ANY) | scope_sets, tools=tool_sets)


def until(wish: Pass, now: int = NOW) -> int | None:
    return None if wish.microseconds is None else now + wish.microseconds


def hop(parent, card: Card, wish: Pass, child: str = "t2", now: int = NOW):
    """What the engine does: the holder passes on within what it sees and what it may use."""
    return derive(parent, wish, child, rights(parent, card), until(wish, now))


# --- wishes ------------------------------------------------------------------------------------


def test_a_wish_reads_what_people_write():
    wish = Pass("Code Reviewer", "review it", sees=["codebase"], tools=["group:exec"], timeout=timedelta(minutes=2))

    assert wish.to == "code-reviewer"
    assert wish.sees == {Scope("codebase")}
    assert wish.tools == {"exec"}
    assert wish.microseconds == 120 * SECOND


@pytest.mark.rule("bounds.empty")
def test_a_wish_passes_nothing_along_unless_it_says_so():
    wish = Pass("coder", "code it")

    assert (wish.sees, wish.tools, wish.within) == (NOTHING, NONE, TOP)
    assert wish.microseconds is None  # a time that nobody said is no deadline


def test_a_changed_wish_is_read_again():
    wish = dataclasses.replace(Pass("coder", "code it"), timeout=1, to="Tester")

    assert (wish.to, wish.microseconds) == ("tester", SECOND)


@pytest.mark.rule("input.remit")
@pytest.mark.parametrize("given_", [first_remit(), None, {"depth": 1}, 3], ids=["remit", "none", "dict", "number"])
def test_within_takes_bounds_and_nothing_else(given_):
    with pytest.raises(BadInput, match=rf"within takes Bounds\(...\), not {type(given_).__name__}; a remit is derived"):
        Pass("coder", "code it", within=given_)


@pytest.mark.rule("money.three-words")
def test_what_is_set_aside_is_not_more_than_may_be_spent():
    with pytest.raises(
        BadInput, match=r"credits=\$0.50 is to be set aside, and within allows \$0.20; pass one of the two"
    ):
        Pass("coder", "code it", credits="$0.50", within=Bounds(credits="$0.20"))


@pytest.mark.rule("input.remit")
@pytest.mark.parametrize("field", ["to", "task", "sees", "tools", "timeout"])
def test_a_remit_is_not_accepted_in_any_part_of_a_wish(field):
    wanted = {"to": "coder", "task": "code it", field: first_remit()}

    with pytest.raises(BadInput):
        Pass(**wanted)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"to": "!"}, "an agent's name"),
        ({"task": ""}, "a task must not be empty"),
        ({"task": "a\0"}, "a task must not contain a NUL"),
        ({"task": "x" * 1_048_577}, "a task has at most 1,048,576 characters"),
        ({"task": None}, "a task must be text"),
        ({"sees": None}, "sees is None"),
        ({"sees": ["board:s2"]}, "is a session's board"),
        ({"tools": ["group:flies"]}, "no tool group"),
        ({"timeout": 0}, "timeout must be a positive number"),
        ({"timeout": float("nan")}, "timeout must be a positive number"),
        ({"timeout": "5"}, "timeout is a number of seconds"),
    ],
)
def test_a_wish_that_cannot_be_meant_is_refused(wrong, reason):
    with pytest.raises(BadInput, match=reason):
        Pass(**{"to": "coder", "task": "code it", **wrong})


# --- the first remit of a run ------------------------------------------------------------------


@pytest.mark.rule("chain.no-shared-state")
def test_a_run_begins_with_an_empty_chain_and_is_its_own_root():
    first = begin(ORIGIN, Pass("lead", "build it"), TOP, UNTIL)

    assert (first.id, first.root, first.parent) == ("t1", "t1", "")
    assert (first.workspace, first.session) == ("home", "s1")
    assert (first.holder, first.task) == ("lead", "build it")
    assert first.chain == Chain()
    assert first.asker == ""
    assert first.names == ("lead",)


@pytest.mark.rule("bounds.narrow")
@given(bounds, wishes)
def test_the_first_remit_stays_within_the_ceiling_and_the_wish(ceiling, wish):
    first = begin(ORIGIN, wish, ceiling, until(wish))

    assert first.bounds <= ceiling
    assert first.bounds <= wish.within
    if wish.microseconds is not None:
        assert first.bounds.deadline <= NOW + wish.microseconds
    assert (first.sees, first.writes, first.tools) == (wish.sees, wish.writes, wish.tools)
    assert scope.within(sight(first, Card("lead")), first.bounds.sees)
    assert scope.within(reach(first, Card("lead")), first.bounds.writes)
    assert allow.within(kit(first, Card("lead")).names, first.bounds.tools)


def test_board_means_the_board_of_the_run_s_own_session():
    first = begin(ORIGIN, Pass("lead", "build it", sees=[BOARD]), Bounds(sees=[BOARD, "notes"]), UNTIL)

    assert first.bounds.sees == {board_of("s1"), Scope("notes")}
    assert first.sees == {board_of("s1")}


# --- children ----------------------------------------------------------------------------------


def test_a_child_knows_where_it_comes_from():
    parent = first_remit("lead")

    child = derive(parent, Pass("coder", "code it"), "t2", NO_RIGHTS, UNTIL)

    assert (child.id, child.parent, child.root) == ("t2", "t1", "t1")
    assert (child.workspace, child.session) == ("home", "s1")
    assert (child.holder, child.task, child.asker) == ("coder", "code it", "lead")
    assert child.chain.hops == (Hop("lead", "coder", "code it"),)
    assert child.names == ("lead", "coder")


@pytest.mark.rule("bounds.narrow", "chain.immutable")
@given(
    ceiling=bounds,
    first=wishes,
    hops=st.lists(st.tuples(cards, wishes, st.integers(0, 3)), min_size=1, max_size=5),
)
def test_along_any_sequence_of_hops_a_child_is_never_wider_than_anyone_above(ceiling, first, hops):
    path = [begin(ORIGIN, first, ceiling, until(first))]
    for number, (card, wish, later) in enumerate(hops, start=2):
        path.append(hop(path[-1], card, wish, f"t{number}", NOW + later))

    for index, child in enumerate(path):
        assert child.bounds <= ceiling
        assert all(child.bounds <= above.bounds for above in path[:index])
        assert child.chain.depth == index
        assert (child.root, child.session, child.workspace) == ("t1", "s1", "home")


@pytest.mark.rule("bounds.narrow", "sight.pass-own")
@given(ceiling=bounds, first=wishes, card=cards, wish=wishes, other=cards)
def test_a_child_is_given_only_what_the_asker_sees_and_may_use(ceiling, first, card, wish, other):
    parent = begin(ORIGIN, first, ceiling, until(first))

    child = hop(parent, card, wish)

    assert scope.within(child.sees, sight(parent, card))
    assert scope.within(child.sees, wish.sees)
    assert scope.within(child.writes, reach(parent, card))
    assert scope.within(child.writes, wish.writes)
    assert allow.within(child.tools, kit(parent, card).names)
    assert allow.within(child.tools, wish.tools)
    assert scope.within(sight(child, other), child.bounds.sees)
    assert scope.within(reach(child, other), child.bounds.writes)
    assert allow.within(kit(child, other).names, child.bounds.tools)


@pytest.mark.rule("task.deadline")
@given(st.integers(1, 600), st.integers(1, 600), st.integers(0, 600))
def test_a_child_s_deadline_is_the_earlier_of_its_parent_s_and_its_own(parents, childs, later):
    parent = begin(ORIGIN, Pass("lead", "build it"), TOP, NOW + parents * SECOND)

    child = hop(parent, Card("lead"), Pass("coder", "code it", timeout=childs), now=NOW + later * SECOND)

    assert child.bounds.deadline == NOW + min(parents, later + childs) * SECOND


def test_board_in_a_child_s_wish_means_the_same_session():
    parent = first_remit(sees=ANY)

    child = hop(parent, Card("lead"), Pass("coder", "code it", sees=[BOARD], within=Bounds(sees=[BOARD])))

    assert child.bounds.sees == child.sees == {board_of("s1")}


@pytest.mark.rule("chain.no-shared-state")
def test_two_children_of_one_parent_share_nothing_but_the_parent():
    parent = first_remit("lead")

    one = hop(parent, Card("lead"), Pass("coder", "code it"), "t2")
    other = hop(parent, Card("lead"), Pass("tester", "test it"), "t3")

    assert one.names == ("lead", "coder")
    assert other.names == ("lead", "tester")
    assert parent.names == ("lead",)


# --- other hands -------------------------------------------------------------------------------


@pytest.mark.rule("handoff.chain")
def test_the_new_holder_stands_where_the_old_one_stood():
    remit = remit_along("lead", "coder", "tester")

    found = handed_to(remit, "reviewer")

    assert found.names == ("lead", "coder", "reviewer")
    assert found.chain.hops == (Hop("lead", "coder", ""), Hop("coder", "reviewer", "part 3"))
    assert (found.holder, found.asker, found.chain.depth) == ("reviewer", "coder", remit.chain.depth)
    assert remit.names == ("lead", "coder", "tester")


@pytest.mark.rule("handoff.chain")
def test_the_first_holder_of_a_run_may_hand_it_over_too():
    found = handed_to(first_remit("lead"), "coder")

    assert (found.holder, found.names, found.asker, found.chain) == ("coder", ("coder",), "", Chain())


@pytest.mark.rule("handoff.chain", "bounds.narrow")
@given(bounds, st.lists(agent_names, min_size=1, max_size=6), st.booleans())
def test_however_often_it_changes_hands_it_is_the_same_assignment(within, holders, below):
    remit = remit_along("editor", "poet", within=within) if below else first_remit("editor", within=within)

    found = remit
    for holder in holders:
        found = handed_to(found, holder)

    kept = remit._replace(sees=NOTHING, writes=NOTHING, tools=NONE)  # a blanket is for the first holder alone
    assert found._replace(holder=remit.holder, chain=remit.chain) == kept
    assert found.names == (*remit.names[:-1], holders[-1])


@pytest.mark.rule("handoff.back", "handoff.chain")
def test_going_back_gives_the_very_remit_it_was():
    remit = remit_along("lead", "coder")

    assert handed_to(handed_to(remit, "tester"), "coder") == remit


@pytest.mark.rule("asks.identity", "sight.default-deny")
def test_the_new_holder_sees_its_own_memory_and_what_was_passed_not_what_the_old_card_read():
    remit = hop(first_remit("lead"), Card("lead"), Pass("coder", "code it", sees=["spec"]))

    seen = sight(handed_to(remit, "tester"), Card("tester", reads=["tests"]))

    assert seen == {memory_of("tester"), Scope("tests"), Scope("spec")}


# --- what a holder sees, writes and uses -------------------------------------------------------


@pytest.mark.rule("sight.default-deny")
def test_a_holder_to_whom_nothing_was_passed_sees_only_its_own_memory():
    child = remit_along("lead", "coder")

    assert sight(child, Card("coder")) == {memory_of("coder")}


@pytest.mark.rule("sight.default-deny")
def test_a_holder_sees_its_memory_its_card_and_what_was_passed():
    child = hop(first_remit("lead"), Card("lead"), Pass("coder", "code it", sees=["spec"]))

    seen = sight(child, Card("coder", reads=["codebase", BOARD]))

    assert seen == {memory_of("coder"), Scope("codebase"), board_of("s1"), Scope("spec")}


@pytest.mark.rule("sight.default-deny")
@given(st.sampled_from(AGENTS), namespaces)
def test_the_ceiling_hides_even_what_the_card_reads(name, namespace):
    child = remit_along("lead", "editor", within=Bounds(sees=()))

    assert sight(child, Card(name, reads=[namespace])) == NOTHING


@pytest.mark.rule("sight.writes")
def test_a_holder_writes_its_memory_what_its_card_writes_and_what_was_passed_within_the_ceiling():
    child = remit_along("lead", "coder", within=Bounds(writes=["codebase", "notes", "memory:coder"]))
    given = child._replace(writes=frozenset((Scope("codebase", key="x"), Scope("elsewhere"))))

    assert reach(child, Card("coder")) == {memory_of("coder")}
    assert reach(child, Card("coder", writes=["notes", "elsewhere"])) == {memory_of("coder"), Scope("notes")}
    assert reach(given, Card("coder")) == {memory_of("coder"), Scope("codebase", key="x")}


@pytest.mark.rule("sight.writes")
def test_a_card_may_be_made_to_write_on_the_board():
    wide = reach(remit_along("lead", "coder"), Card("coder", writes=[BOARD]))

    assert wide == {board_of("s1"), memory_of("coder")}


def test_a_holder_uses_the_tools_of_its_card_and_those_passed_within_the_ceiling():
    parent = first_remit("lead", within=Bounds(tools=["exec", "read_file"]))
    child = hop(parent, Card("lead"), Pass("coder", "code it", tools=["exec", "deploy"]))

    assert kit(child, Card("coder", tools=["read_file", "web_fetch"])) == Kit(frozenset(("exec", "read_file")))


def test_a_weak_asker_may_ask_a_strong_holder_without_lending_its_own_weakness():
    parent = first_remit("lead", tools=())

    child = hop(parent, Card("lead"), Pass("coder", "code it", tools="*"))

    assert child.tools == NONE
    assert kit(child, Card("coder", tools=["exec"])) == Kit(frozenset(("exec",)))


@pytest.mark.rule("tools.deny-wins")
def test_a_tool_that_a_card_denies_is_not_used_even_if_an_asker_passes_it():
    child = remit_along("lead", "coder")._replace(tools=frozenset(("exec", "deploy")))
    card = Card("coder", tools=["read_file", "exec"], deny=["group:exec"])

    assert kit(child, card) == Kit(frozenset(("read_file", "deploy")))
    assert kit(child, Card("coder", tools="*", deny="*")) == Kit(NONE)
    assert kit(child, Card("coder", deny=["deploy"]), inner=True).names == allow.without(
        child.bounds.tools, frozenset(("deploy",))
    )


@pytest.mark.rule("tools.deny-wins")
def test_of_all_tools_the_denied_ones_are_taken_away_and_are_not_passed_on():
    parent, card = first_remit("lead"), Card("lead", tools="*", deny=["exec"])
    have = kit(parent, card)

    assert have == Kit(ANY, frozenset(("exec",)))
    assert have.has("deploy")
    assert not have.has("exec")
    assert hop(parent, card, Pass("coder", "code it", tools=["exec", "deploy"])).tools == {"deploy"}
    with pytest.raises(BadInput, match="name the tools"):
        hop(parent, card, Pass("coder", "code it", tools="*"))


@pytest.mark.rule("handoff.narrows")
def test_a_handoff_passes_what_the_task_was_passed_by_name_and_what_the_sender_gives():
    remit = first_remit("lead", sees=["spec"], writes=["notes"], tools=["exec"])
    given = Rights(frozenset((Scope("plan"),)), frozenset((Scope("log"),)), Kit(frozenset(("deploy",))))

    heir = handed_to(remit, "coder", Passing(given, Bounds(sees=["spec"], depth=1)))

    assert (heir.sees, heir.writes) == ({Scope("spec"), Scope("plan")}, {Scope("notes"), Scope("log")})
    assert heir.tools == {"exec", "deploy"}
    assert sight(heir, Card("coder")) == {Scope("spec")}
    assert heir.bounds == remit.bounds & Bounds(sees=["spec"], depth=1)


@pytest.mark.rule("handoff.narrows")
@given(scope_sets, scope_sets, tool_sets, bounds)
def test_what_goes_along_with_a_handoff_is_restored_from_its_record(sees, writes, tools, within):
    along = Passing(Rights(sees, writes, Kit(tools)), within)

    assert passing_restored(along.data) == along


# --- from the journal --------------------------------------------------------------------------


@given(ceiling=bounds, first=wishes, hops=st.lists(st.tuples(cards, wishes), max_size=3))
def test_a_remit_is_restored_from_the_event_that_began_its_task(ceiling, first, hops):
    remit = begin(ORIGIN, first, ceiling, UNTIL)
    for number, (card, wish) in enumerate(hops, start=2):
        remit = hop(remit, card, wish, f"t{number}")

    (event,) = journal(started(remit, NOW))
    found = restored(event)

    told = [one._replace(task="") for one in remit.chain.hops[:-1]]  # each hop's task is with its own event
    assert found == remit._replace(chain=Chain((*told, *remit.chain.hops[-1:])))
    assert (found.names, found.asker) == (remit.names, remit.asker)


def test_a_submitted_remit_is_restored_like_a_started_one():
    remit = remit_along("lead", "coder", "tester")
    events = journal(started(remit, NOW), submitted(remit))

    assert restored(events[0]) == restored(events[1])
    assert restored(events[1]).chain.depth == 2
