"""Refusals of one task: which are recorded, and how many more there were."""

import pytest

from remit.core.guards import RECORDED, Refusable, Refusals

pytestmark = pytest.mark.rule("refuse.recorded")


def test_the_first_are_recorded_and_the_others_are_counted_once_they_are_certain():
    tally = Refusals()
    hops = [Refusable(tally) for _ in range(RECORDED + 7)]

    assert [hop.is_recorded() for hop in hops] == [True] * RECORDED + [False] * 7
    assert tally.more == 0  # so far they have only been decided on
    for hop in hops:
        hop.refused()
    assert tally.more == 7


def test_a_decision_that_is_made_twice_gives_the_same_answer_and_takes_no_second_place():
    tally = Refusals()
    hops = [Refusable(tally) for _ in range(RECORDED)]

    for hop in (*hops, *hops):
        assert hop.is_recorded()
    assert not Refusable(tally).is_recorded()
