"""Records: what a task and a run have come to."""

import pytest

from remit.core.lifecycle import NO_RUN, Standing, first_members


@pytest.mark.parametrize(
    ("fence", "failures", "again"), [(1, 0, False), (2, 0, True), (1, 1, True)], ids=["first", "claimed", "retried"]
)
def test_a_task_is_a_rerun_once_it_was_claimed_or_failed_before(fence, failures, again):
    assert Standing("running", fence, failures, "submit").is_rerun is again


@pytest.mark.rule("tier.bounds")
def test_the_members_of_a_run_are_all_who_held_a_task_each_once():
    assert first_members("lead", "") == first_members("lead", "team") == {"lead"}
    assert NO_RUN.members == frozenset()


@pytest.mark.rule("tier.stand-in")
def test_the_leader_of_a_plan_for_a_person_is_no_member():
    assert first_members("plan", "plan") == frozenset()
