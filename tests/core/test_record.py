"""Records: what a task and a run have come to."""

import pytest

from remit.core.record import NO_RUN, RunFacts, Standing


@pytest.mark.parametrize(
    ("fence", "failures", "again"), [(1, 0, False), (2, 0, True), (1, 1, True)], ids=["first", "claimed", "retried"]
)
def test_a_task_is_a_rerun_once_it_was_claimed_or_failed_before(fence, failures, again):
    assert Standing("running", fence, failures, "submit").is_rerun is again


@pytest.mark.rule("tier.bounds")
def test_the_members_of_a_run_are_all_who_held_a_task_each_once():
    run = RunFacts("t1", "ann", "lead coder", 3, 1, 70, 0)

    assert run.names == {"lead", "coder"}
    assert (run.has_member("coder"), run.has_member("code")) == (True, False)
    assert NO_RUN.names == frozenset()
