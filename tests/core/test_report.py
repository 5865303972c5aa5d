"""Reports: the tree of a run, folded from its events and from nothing else."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import NOW, SECOND, first_remit, journal
from remit.core import facts, lifecycle
from remit.core.allow import ANY
from remit.core.events import Event, Fact
from remit.core.remit import Pass, Remit, derive
from remit.core.report import Node, Tally, node_data, result_text, sentence, tally, tree
from remit.core.values import checked

RECEIPT = {
    "saw": [["task", "task", 2, 1, "d"]],
    "tokens": 2,
    "unlisted": 0,
    "withheld": [["n/*", "not passed"]],
}


def child_of(parent: Remit, to: str, id_: str) -> Remit:
    return derive(parent, Pass(to, f"part {id_}"), id_, ANY, ANY, NOW)


def completed(remit: Remit, result: object = "done", at: int = NOW + SECOND) -> Fact:
    return facts.ended(remit, "task.completed", at, {"result": result, "receipt": RECEIPT})


def failed(remit: Remit, at: int = NOW + SECOND) -> Fact:
    return facts.ended(remit, "task.failed", at, {"error": "it broke", "receipt": RECEIPT})


def refused(remit: Remit, to: str, rule: str = "loop") -> Fact:
    return facts.refused(remit, Pass(to, "again"), NOW, rule=rule, sentence=f"'{to}' no")


LEAD = first_remit("lead")
CODER = child_of(LEAD, "coder", "t2")
TESTER = child_of(LEAD, "tester", "t3")
REVIEWER = child_of(CODER, "reviewer", "t4")


def run_of(*told: Fact) -> Node:
    found = tree(journal(*told))
    assert found is not None
    return found


# --- the tree ----------------------------------------------------------------------------------


def test_a_run_without_events_is_no_run():
    assert tree([]) is None


def test_a_task_that_has_not_ended_is_running():
    root = run_of(facts.started(LEAD, NOW))

    assert (root.id, root.agent, root.task, root.status) == ("t1", "lead", "build it", "running")
    assert (root.started_at, root.ended_at, root.until) == (NOW, None, NOW + 300 * SECOND)
    assert (root.saw, root.withheld, root.sees) == ([], [], ["*"])
    assert root.elapsed(NOW + 7) == 7


def test_a_task_that_has_ended_says_how_when_and_what_it_saw():
    root = run_of(facts.started(LEAD, NOW), completed(LEAD, {"lines": 40}))

    assert (root.status, root.ended_at, root.result, root.error) == (
        "completed",
        NOW + SECOND,
        {"lines": 40},
        "",
    )
    assert root.elapsed(NOW + 9 * SECOND) == SECOND
    assert root.saw == [["task", "task", 2, 1, "d"]]
    assert root.withheld == [["n/*", "not passed"]]


def test_a_failed_task_says_why_and_has_no_result():
    root = run_of(facts.started(LEAD, NOW), failed(LEAD))

    assert (root.status, root.error, root.result) == ("failed", "it broke", None)


def test_children_stand_below_who_asked_them_in_the_order_they_started():
    root = run_of(*(facts.started(remit, NOW) for remit in (LEAD, TESTER, CODER, REVIEWER)))

    assert [child.agent for child in root.children] == ["tester", "coder"]
    assert [node.agent for node in root.walk()] == ["lead", "tester", "coder", "reviewer"]


def test_a_refused_hop_stays_visible_where_it_was_wished():
    root = run_of(facts.started(LEAD, NOW), facts.started(CODER, NOW), refused(CODER, "lead"))

    (found,) = root.children[0].refusals
    assert (found.at, found.to, found.task, found.rule, found.sentence) == (
        NOW,
        "lead",
        "again",
        "loop",
        "'lead' no",
    )
    assert root.refusals == []


def test_events_of_other_kinds_and_of_tasks_not_shown_change_nothing():
    shown = [facts.started(LEAD, NOW)]
    others = [
        completed(REVIEWER),
        refused(REVIEWER, "lead"),
        Fact("entry.set", NOW, {}, "t1", "s1", "t1", "lead"),
    ]

    assert run_of(*shown, *others) == run_of(*shown)


def test_the_first_task_without_a_parent_is_the_root():
    root = run_of(facts.started(CODER, NOW), facts.started(TESTER, NOW), facts.started(REVIEWER, NOW))

    assert [node.id for node in root.walk()] == ["t2", "t4"]


@pytest.mark.rule("task.final")
def test_of_a_task_that_a_damaged_journal_ends_twice_the_first_end_is_shown():
    once = [facts.started(LEAD, NOW), completed(LEAD)]

    assert run_of(*once, failed(LEAD)) == run_of(*once)


@st.composite
def runs(draw) -> tuple[dict[str, str], list[Event]]:
    """A run of any shape: the parent of each task, and events in an order in which they may have happened."""
    size = draw(st.integers(1, 12))
    remits = {"t1": LEAD}
    parents = {"t1": ""}
    told = [facts.started(LEAD, NOW)]
    for number in range(2, size + 1):
        parent = draw(st.sampled_from(sorted(remits)))
        id_ = f"t{number}"
        remits[id_] = child_of(remits[parent], f"agent {number}", id_)
        parents[id_] = parent
        told.append(facts.started(remits[id_], NOW + number))
        told += [refused(remits[parent], "lead")] * draw(st.integers(0, 2))
    for id_ in draw(st.lists(st.sampled_from(sorted(remits)), unique=True)):
        kind = draw(st.sampled_from(sorted(lifecycle.ENDS)))
        told.append(facts.ended(remits[id_], kind, NOW + 100, {"receipt": RECEIPT}))
    return parents, journal(*told)


@given(runs())
def test_the_tree_of_any_run_has_every_task_once_and_below_its_own_parent(run):
    parents, events = run

    root = tree(events)

    assert sorted(node.id for node in root.walk()) == sorted(parents)
    assert root.id == "t1"
    assert all(parents[child.id] == node.id for node in root.walk() for child in node.children)


@given(runs())
def test_the_tally_of_any_run_is_the_count_of_its_events(run):
    _, events = run

    found = tally(tree(events))

    kinds = [event.kind for event in events]
    ends = {state: kinds.count(f"task.{state}") for state in lifecycle.TERMINAL}
    assert found.tasks == kinds.count("task.started")
    assert found.refused == kinds.count("hop.refused")
    assert {state: found.states[state] for state in lifecycle.TERMINAL} == ends
    assert found.states["running"] == found.tasks - sum(ends.values())
    assert found.tokens_seen == 2 * sum(ends.values())


@given(runs())
def test_the_figures_of_a_run_are_the_sum_of_its_parts(run):
    root = tree(run[1])

    whole = tally(root)
    alone = tally(Node("", "", "", 0, 0, root.status, receipt=root.receipt, refusals=root.refusals))
    parts = [alone, *(tally(child) for child in root.children)]

    assert whole.tasks == sum(part.tasks for part in parts)
    assert whole.refused == sum(part.refused for part in parts)
    assert whole.tokens_seen == sum(part.tokens_seen for part in parts)
    assert whole.states == sum((part.states for part in parts), Counter())
    assert whole.depth == max((1 + tally(child).depth for child in root.children), default=0)


@given(runs(), st.data())
def test_the_tree_of_the_first_events_is_the_run_as_it_was_then(run, data):
    _, events = run
    upto = data.draw(st.integers(1, len(events)))

    then = tally(tree(events[:upto]))

    assert then.tasks == sum(event.kind == "task.started" for event in events[:upto])
    assert then.tasks <= tally(tree(events)).tasks


def test_a_run_may_be_deeper_than_the_stack():
    told = [facts.started(LEAD, NOW)]
    told += [
        told[0]._replace(data={**told[0].data, "parent": f"t{number}"}, task=f"t{number + 1}")
        for number in range(1, 3000)
    ]

    root = run_of(*told)

    assert tally(root).depth == 2999
    assert sentence(root).startswith("lead asked 1 agent")
    assert node_data(root)["id"] == "t1"


def test_a_run_of_one_is_counted():
    assert tally(run_of(facts.started(LEAD, NOW))) == Tally(tasks=1, states=Counter(running=1))


# --- the sentence ------------------------------------------------------------------------------


def test_a_run_of_one_worked_alone():
    assert sentence(run_of(facts.started(LEAD, NOW), completed(LEAD))) == "lead worked alone"


def test_one_agent_asked_is_one_agent():
    root = run_of(facts.started(LEAD, NOW), facts.started(CODER, NOW), completed(CODER), completed(LEAD))

    assert sentence(root) == "lead asked 1 agent"


def test_an_agent_asked_twice_is_still_one_agent():
    again = child_of(LEAD, "coder", "t5")
    root = run_of(
        facts.started(LEAD, NOW),
        facts.started(CODER, NOW),
        completed(CODER),
        facts.started(again, NOW),
        completed(again),
        completed(LEAD),
    )

    assert sentence(root).startswith("lead asked 1 agent")


def test_the_sentence_tells_what_failed_what_was_cancelled_and_what_was_refused():
    root = run_of(
        facts.started(LEAD, NOW),
        facts.started(CODER, NOW),
        facts.started(TESTER, NOW),
        facts.started(REVIEWER, NOW),
        refused(CODER, "lead", "loop"),
        refused(REVIEWER, "lead", "depth"),
        refused(REVIEWER, "coder", "loop"),
        failed(CODER),
        facts.ended(TESTER, "task.cancelled", NOW, {}),
        facts.ended(REVIEWER, "task.cancelled", NOW, {}),
        completed(LEAD),
    )

    assert (
        sentence(root) == "lead asked 2 agents; 1 task failed; 2 tasks cancelled; 3 delegations refused (depth, loop)"
    )


def test_the_sentence_names_who_is_still_working():
    root = run_of(*(facts.started(remit, NOW) for remit in (LEAD, CODER, TESTER)))

    assert sentence(root) == "lead asked 2 agents; coder, tester still working"


def test_a_holder_whose_children_are_done_is_the_one_still_working():
    root = run_of(facts.started(LEAD, NOW), facts.started(CODER, NOW), completed(CODER))

    assert sentence(root) == "lead asked 1 agent; lead still working"


def test_at_most_three_are_named_as_still_working():
    many = [child_of(LEAD, f"agent {number}", f"t{number}") for number in range(2, 8)]
    root = run_of(facts.started(LEAD, NOW), *(facts.started(remit, NOW) for remit in many))

    assert sentence(root).endswith("agent-2, agent-3, agent-4 still working")


# --- for programs ------------------------------------------------------------------------------


def test_the_tree_as_data_has_everything_in_its_place():
    root = run_of(
        facts.started(LEAD, NOW),
        facts.started(CODER, NOW),
        refused(CODER, "lead"),
        failed(CODER),
        completed(LEAD),
    )

    data = node_data(root)

    (child,) = data.pop("children")
    assert data == {
        "id": "t1",
        "agent": "lead",
        "task": "build it",
        "status": "completed",
        "started_at": NOW,
        "ended_at": NOW + SECOND,
        "result": "done",
        "error": "",
        "sees": ["*"],
        "receipt": RECEIPT,
        "refusals": [],
    }
    assert (child["id"], child["status"], child["error"], child["children"]) == (
        "t2",
        "failed",
        "it broke",
        [],
    )
    assert child["refusals"] == [{"at": NOW, "to": "lead", "task": "again", "rule": "loop", "sentence": "'lead' no"}]


@given(runs())
def test_the_tree_of_any_run_as_data_is_json(run):
    data = node_data(tree(run[1]))

    assert checked(data, "a tree") == data


@pytest.mark.parametrize(("result", "text"), [("done", "done"), ({"b": 1, "a": 2}, '{"a":2,"b":1}'), (None, "null")])
def test_a_result_as_text_is_its_text_or_its_json(result, text):
    assert result_text(run_of(facts.started(LEAD, NOW), completed(LEAD, result))) == text
