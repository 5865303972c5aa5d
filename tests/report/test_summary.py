"""A run in figures, and in one plain sentence."""

from collections import Counter

import pytest
from hypothesis import given

from core.make import NOW, claimed, moved, submitted
from remit.core import lifecycle
from remit.core.kinds.tasks import ended, started
from remit.report.summary import Summary, sentence, summary, waits_for
from remit.report.tree import Node, tree
from report.events import (
    BILLING,
    CODER,
    LEAD,
    REVIEWER,
    TESTER,
    child_of,
    completed,
    failed,
    handed,
    refused,
    run_of,
    runs,
)


@given(runs())
def test_the_tally_of_any_run_is_the_count_of_its_events(run):
    _, events = run

    found = summary(tree(events))

    happened = [event.kind for event in events]
    ends = {lifecycle.lands(kind): happened.count(kind) for kind in lifecycle.ENDS}
    assert found.tasks == happened.count("task.started")
    assert found.refused == happened.count("hop.refused")
    assert {state: found.states[state] for state in lifecycle.TERMINAL} == ends
    assert found.states["running"] == found.tasks - sum(ends.values())
    assert found.tokens_seen == 2 * sum(ends.values())


@given(runs())
def test_the_figures_of_a_run_are_the_sum_of_its_parts(run):
    root = tree(run[1])

    whole = summary(root)
    alone = summary(Node("", "", "", 0, 0, root.state, receipt=root.receipt, refusals=root.refusals))
    parts = [alone, *(summary(child) for child in root.children)]

    assert whole.tasks == sum(part.tasks for part in parts)
    assert whole.refused == sum(part.refused for part in parts)
    assert whole.tokens_seen == sum(part.tokens_seen for part in parts)
    assert whole.states == sum((part.states for part in parts), Counter())
    assert whole.depth == max((1 + summary(child).depth for child in root.children), default=0)


def test_a_run_of_one_is_counted():
    assert summary(run_of(started(LEAD, NOW))) == Summary(tasks=1, states=Counter(running=1))


def test_the_sentence_of_a_task_that_came_back():
    told = [started(LEAD, NOW), started(CODER, NOW), completed(CODER)]
    told += [handed(LEAD, "billing", NOW + 1), handed(BILLING, "lead", NOW + 2)]

    assert sentence(run_of(*told, completed(LEAD))) == "lead began and ended it; 1 agent asked; changed hands 2 times"
    assert summary(run_of(*told, completed(LEAD))).tokens_seen == 2 * 4


def test_a_task_that_submits_goes_on_and_one_that_delegates_waits():
    told = [started(LEAD, NOW), submitted(TESTER, NOW), claimed(TESTER, NOW)]

    assert sentence(run_of(*told)) == "lead asked 1 agent; lead, tester still working"
    asking = run_of(*told, started(CODER, NOW))
    assert sentence(asking) == "lead asked 2 agents; tester, coder still working"
    waiting = run_of(*told, moved(LEAD, "waiting", NOW))
    assert [node.agent for node in waits_for(waiting)] == ["tester"]
    assert sentence(waiting) == "lead asked 1 agent; 1 task waiting; tester still working"


@pytest.mark.parametrize(
    ("attempts", "said"),
    [
        ([4], "1 task died after 4 attempts"),
        ([4, 4], "2 tasks died after 4 attempts"),
        ([1], "1 task died after 1 attempt"),
        ([1, 4], "2 tasks died after 1 to 4 attempts"),
    ],
)
def test_the_sentence_says_after_how_many_attempts_a_task_died(attempts, said):
    told = [started(LEAD, NOW), completed(LEAD)]
    for number, tried in enumerate(attempts):
        one = child_of(LEAD, "coder", f"d{number}")
        told += [submitted(one), claimed(one, NOW, tried), moved(one, "died", NOW + 1, error="it broke")]

    assert sentence(run_of(*told)) == f"lead asked 1 agent; {said}"


def test_the_sentence_tells_what_is_not_over_in_plain_words():
    told = [submitted(one) for one in (LEAD, CODER, TESTER, REVIEWER)]
    told += [claimed(LEAD, NOW), claimed(CODER, NOW), moved(CODER, "waiting", NOW), claimed(TESTER, NOW)]
    told += [moved(TESTER, "cancelling", NOW, why="enough")]

    assert sentence(run_of(*told)) == (
        "lead asked 2 agents; 1 task pending; 1 task waiting; 1 task being cancelled; lead still working"
    )


def test_a_run_of_one_worked_alone():
    assert sentence(run_of(started(LEAD, NOW), completed(LEAD))) == "lead worked alone"


def test_one_agent_asked_is_one_agent():
    root = run_of(started(LEAD, NOW), started(CODER, NOW), completed(CODER), completed(LEAD))

    assert sentence(root) == "lead asked 1 agent"


def test_an_agent_asked_twice_is_still_one_agent():
    again = child_of(LEAD, "coder", "t5")
    root = run_of(
        started(LEAD, NOW),
        started(CODER, NOW),
        completed(CODER),
        started(again, NOW),
        completed(again),
        completed(LEAD),
    )

    assert sentence(root).startswith("lead asked 1 agent")


def test_the_sentence_tells_what_failed_what_was_cancelled_and_what_was_refused():
    root = run_of(
        started(LEAD, NOW),
        started(CODER, NOW),
        started(TESTER, NOW),
        started(REVIEWER, NOW),
        refused(CODER, "lead", "loop"),
        refused(REVIEWER, "lead", "depth"),
        refused(REVIEWER, "coder", "loop"),
        failed(CODER),
        ended(TESTER, "task.cancelled", NOW, {}),
        ended(REVIEWER, "task.cancelled", NOW, {}),
        completed(LEAD),
    )

    assert (
        sentence(root) == "lead asked 2 agents; 1 task failed; 2 tasks cancelled; 3 delegations refused (depth, loop)"
    )


def test_the_sentence_names_who_is_still_working():
    root = run_of(*(started(remit, NOW) for remit in (LEAD, CODER, TESTER)))

    assert sentence(root) == "lead asked 2 agents; coder, tester still working"


def test_a_holder_whose_children_are_done_is_the_one_still_working():
    root = run_of(started(LEAD, NOW), started(CODER, NOW), completed(CODER))

    assert sentence(root) == "lead asked 1 agent; lead still working"


def test_at_most_three_are_named_as_still_working():
    many = [child_of(LEAD, f"agent {number}", f"t{number}") for number in range(2, 8)]
    root = run_of(started(LEAD, NOW), *(started(remit, NOW) for remit in many))

    assert sentence(root).endswith("agent-2, agent-3, agent-4 still working")
