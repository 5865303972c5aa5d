"""The chain: who asked whom, and never twice the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import AGENTS, agent_names
from remit.core.remit import STAND_IN, Chain, Hop, path

hops = st.builds(Hop, agent_names, agent_names, st.just("part"))
hop_lists = st.lists(hops, max_size=5)


def chain_of(hops: list[Hop]) -> Chain:
    found = Chain()
    for hop in hops:
        found = found.add(hop)
    return found


@pytest.mark.rule("chain.immutable")
@given(hop_lists, hops)
def test_adding_a_hop_gives_a_new_chain_and_leaves_the_old_one(before, hop):
    old = chain_of(before)

    new = old.add(hop)

    assert [one[:2] for one in old.hops] == [one[:2] for one in before]
    assert old.hops[-1:] == tuple(before[-1:])
    assert new.hops[-1] == hop
    assert [one[:2] for one in new.hops] == [one[:2] for one in (*before, hop)]


@pytest.mark.rule("chain.names-only")
@given(hop_lists, hops)
def test_a_chain_has_the_text_of_its_last_hop_alone(before, hop):
    chain = chain_of([*before, hop])

    assert [one.task for one in chain.hops] == [*[""] * len(before), hop.task]


@pytest.mark.rule("chain.immutable")
def test_nobody_can_change_a_chain_in_place():
    chain = Chain((Hop("lead", "coder", "code"),))

    with pytest.raises(AttributeError):
        chain.hops = ()  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError):
        chain.hops[0].holder = "lead"  # pyright: ignore[reportAttributeAccessIssue, reportGeneralTypeIssues]


@pytest.mark.rule("chain.no-shared-state")
@given(hop_lists, hops, hops)
def test_two_chains_from_one_do_not_see_each_other(before, one, other):
    common = chain_of(before)

    first, second = common.add(one), common.add(other)

    assert first.hops[-1] == one
    assert second.hops[-1] == other
    assert first.depth == second.depth == len(before) + 1


@pytest.mark.rule("chain.depth")
@given(hop_lists)
def test_depth_counts_hops(before):
    assert chain_of(before).depth == len(before)


@pytest.mark.rule("chain.loop")
@given(hop_lists)
def test_a_chain_involves_every_asker_and_every_holder_and_no_one_else(before):
    chain = chain_of(before)

    inside = {hop.asker for hop in before} | {hop.holder for hop in before}
    assert {name for name in AGENTS if chain.involves(name)} == inside


def test_after_a_handoff_the_new_holder_stands_where_the_old_one_stood():
    chain = chain_of([Hop("lead", "coder", "code"), Hop("coder", "reviewer", "review")])

    after = chain.replace_holder("tester")

    assert after.hops == (Hop("lead", "coder", ""), Hop("coder", "tester", "review"))
    assert chain.hops[-1].holder == "reviewer"
    assert not after.involves("reviewer")


def test_a_handoff_by_the_first_holder_leaves_the_empty_chain():
    assert Chain().replace_holder("tester") == Chain()


def test_the_names_of_a_chain_end_with_the_present_holder():
    chain = chain_of([Hop("lead", "coder", "code"), Hop("coder", "reviewer", "review")])

    assert chain.names("reviewer") == ("lead", "coder", "reviewer")
    assert Chain().names("lead") == ("lead",)


def test_a_path_reads_from_asker_to_holder():
    assert path(("lead", "coder", "reviewer")) == "lead > coder > reviewer"


@pytest.mark.rule("tier.stand-in")
@given(hop_lists)
def test_that_a_plan_was_led_in_a_persons_place_is_no_hop(below):
    led = chain_of([Hop(STAND_IN, "lead", "step"), *below])

    assert led.depth == len(below)
    assert led.names("last")[0] == STAND_IN
    assert Chain().depth == 0
