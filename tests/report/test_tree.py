"""Reports: the tree of a run, folded from its events and from nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import NOW, SECOND, UNTIL, claimed, journal, moved, requeued, submitted
from remit.core import lifecycle
from remit.core.events import Unsealed
from remit.core.kinds.tasks import Begun, Queued, ended, started, tokens_used
from remit.core.kinds.tasks import handed as handed_event
from remit.core.kinds.tasks import refused as refused_event
from remit.core.kinds.workspace import plan_started, step_ended
from remit.core.receipt import Slice
from remit.core.remit import Pass
from remit.core.values import checked
from remit.errors import NotFound
from remit.report import wire
from remit.report.flow import text
from remit.report.receipts import Withheld
from remit.report.summary import receipts, sentence, summary, tokens_seen
from remit.report.tree import GONE, Growing, Node, part_of, result_text, tree
from report.events import (
    BILLING,
    CODER,
    LEAD,
    RECEIPT,
    REVIEWER,
    STEPS,
    TESTER,
    child_of,
    completed,
    failed,
    handed,
    planned,
    refused,
    run_of,
    runs,
)

# --- the tree ----------------------------------------------------------------------------------


def test_a_run_without_events_is_no_run():
    assert tree([]) is None


def test_a_part_of_a_run_that_the_journal_does_not_have_is_not_found():
    events = journal(started(LEAD, NOW))
    assert part_of(events, "t1").id == "t1"
    with pytest.raises(NotFound, match="nothing of task x"):
        part_of(events, "x")
    with pytest.raises(NotFound, match="nothing of task x"):
        part_of([], "x")


def test_a_task_that_has_not_ended_is_running():
    root = run_of(started(LEAD, NOW))

    assert (root.id, root.agent, root.task, root.state) == ("t1", "lead", "build it", "running")
    assert (root.started_at, root.ended_at, root.until) == (NOW, None, NOW + 300 * SECOND)
    assert (root.saw, root.withheld, root.sees) == ([], [], ["*"])
    assert root.elapsed(NOW + 7) == 7


def test_a_task_that_has_ended_says_how_when_and_what_it_saw():
    root = run_of(started(LEAD, NOW), completed(LEAD, {"lines": 40}))

    assert (root.state, root.ended_at, root.result, root.error) == (
        "completed",
        NOW + SECOND,
        {"lines": 40},
        "",
    )
    assert root.elapsed(NOW + 9 * SECOND) == SECOND
    assert root.saw == [Slice("task", "task", 2, 1, "d")]
    assert root.withheld == [Withheld("n/*", "not passed")]


def test_a_failed_task_says_why_and_has_no_result():
    root = run_of(started(LEAD, NOW), failed(LEAD))

    assert (root.state, root.error, root.result) == ("failed", "it broke", None)


def test_children_stand_below_who_asked_them_in_the_order_they_started():
    root = run_of(*(started(remit, NOW) for remit in (LEAD, TESTER, CODER, REVIEWER)))

    assert [child.agent for child in root.children] == ["tester", "coder"]
    assert [node.agent for node in root.walk()] == ["lead", "tester", "coder", "reviewer"]


def test_a_refused_hop_stays_visible_where_it_was_wished():
    root = run_of(started(LEAD, NOW), started(CODER, NOW), refused(CODER, "lead"))

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
    shown = [started(LEAD, NOW)]
    others = [
        completed(REVIEWER),
        refused(REVIEWER, "lead"),
        Unsealed("entry.set", NOW, {}, "t1", "s1", "t1", "lead"),
    ]

    assert run_of(*shown, *others) == run_of(*shown)


def test_the_first_task_without_a_parent_is_the_root():
    root = run_of(started(CODER, NOW), started(TESTER, NOW), started(REVIEWER, NOW))

    assert [node.id for node in root.walk()] == ["t2", "t4"]


@pytest.mark.rule("task.final")
def test_of_a_task_that_a_damaged_journal_ends_twice_the_first_end_is_shown():
    once = [started(LEAD, NOW), completed(LEAD)]

    assert run_of(*once, failed(LEAD)) == run_of(*once)


@given(runs())
def test_the_tree_of_any_run_has_every_task_once_and_below_its_own_parent(run):
    parents, events = run

    root = tree(events)

    assert sorted(node.id for node in root.walk()) == sorted(parents)
    assert root.id == "t1"
    assert all(parents[child.id] == node.id for node in root.walk() for child in node.children)


@given(runs(), st.data())
def test_the_tree_of_the_first_events_is_the_run_as_it_was_then(run, data):
    _, events = run
    upto = data.draw(st.integers(1, len(events)))

    then = summary(tree(events[:upto]))

    assert then.tasks == sum(event.kind == "task.started" for event in events[:upto])
    assert then.tasks <= summary(tree(events)).tasks


def test_a_run_may_be_deeper_than_the_stack():
    told = [started(LEAD, NOW)]
    told += [
        told[0]._replace(data={**told[0].data, "parent": f"t{number}"}, task=f"t{number + 1}")
        for number in range(1, 3000)
    ]

    root = run_of(*told)

    assert summary(root).depth == 2999
    assert sentence(root).startswith("lead asked 1 agent")
    assert wire.tree(root)["id"] == "t1"


# --- handoffs ----------------------------------------------------------------------------------


@pytest.mark.rule("handoff.chain")
def test_the_trail_tells_every_handoff_and_the_node_who_holds_it_now():
    root = run_of(
        started(LEAD, NOW),
        tokens_used(LEAD, 7, NOW + 4),
        handed(LEAD, "billing", NOW + 5, "refund", tokens=7),
        handed(BILLING, "lead", NOW + 8),
        handed(LEAD, "billing", NOW + 9),
    )

    assert (root.first, root.agent, root.state, root.tokens) == ("lead", "billing", "running", 7)
    assert [(one.at - NOW, one.sender, one.to, one.elapsed, one.phase) for one in root.trail] == [
        (5, "lead", ("billing",), 5, "refund"),
        (8, "billing", ("lead",), 3, ""),
        (9, "lead", ("billing",), 1, ""),
    ]
    assert root.trail[0].receipt == RECEIPT
    assert root.turn_began == NOW + 9


@pytest.mark.rule("handoff.parallel")
def test_parts_that_are_handed_out_leave_the_holder_in_charge():
    root = run_of(started(LEAD, NOW), handed(LEAD, ["coder", "tester"], NOW + 1), started(CODER, NOW + 1))

    assert root.agent == root.first == "lead"
    assert (root.trail[0].to, root.trail[0].parallel) == (("coder", "tester"), True)
    assert root.children[0].turn == 1
    assert summary(root).handoffs == 1
    assert sentence(root) == "lead began and holds it; 1 agent asked; coder still working"


@pytest.mark.rule("handoff.refused")
def test_a_refused_handoff_is_marked_as_one_and_placed_in_its_turn():
    no = refused_event(BILLING, Pass("lead", "x"), NOW + 2, rule="deadlock", sentence="no", handoff=True)
    root = run_of(started(LEAD, NOW), refused(LEAD, "x"), handed(LEAD, "billing", NOW + 1), no)

    assert [(one.handoff, one.turn) for one in root.refusals] == [(False, 0), (True, 1)]
    assert sentence(root) == (
        "lead began and billing holds it; changed hands 1 time; 1 delegation refused (loop); "
        "1 handoff refused (deadlock); billing still working"
    )


def test_a_task_that_is_over_is_not_handed_over_in_a_report():
    once = [started(LEAD, NOW), completed(LEAD)]

    assert run_of(*once, handed(LEAD, "billing", NOW + 2)) == run_of(*once)


# --- tasks that nobody waits for ---------------------------------------------------------------


def test_a_submitted_task_is_pending_until_somebody_begins_it():
    root = run_of(submitted(LEAD, NOW))

    assert (root.state, root.asked_how, root.attempts, root.begun) == ("pending", "submit", 0, False)
    assert (root.asked_at, root.started_at, root.until) == (NOW, NOW, UNTIL)
    assert (root.elapsed(NOW + 9), root.queued(NOW + 9)) == (0, 9)
    assert sentence(root) == "lead has not begun; 1 task pending"


def test_the_time_of_a_task_is_work_and_not_queueing():
    root = run_of(submitted(LEAD, NOW), claimed(LEAD, NOW + 5), completed(LEAD, at=NOW + 7))

    assert (root.state, root.asked_at, root.started_at, root.attempts) == ("completed", NOW, NOW + 5, 1)
    assert (root.elapsed(NOW + 99), root.queued(NOW + 99)) == (2, 5)


def test_a_submitted_task_that_is_carried_out_at_once_did_not_wait():
    root = run_of(started(LEAD, NOW, Begun("w1"), Queued("spawn", SECOND, 4, NOW)))

    assert (root.state, root.asked_how, root.attempts, root.queued(NOW + 9)) == ("running", "spawn", 1, 0)


@pytest.mark.rule("lifecycle.final")
def test_what_is_cancelled_before_it_began_never_began():
    root = run_of(submitted(LEAD, NOW), moved(LEAD, "cancelled", NOW + 5, error="'lead' was cancelled: enough"))

    assert (root.state, root.elapsed(NOW + 9), root.queued(NOW + 9)) == ("cancelled", 0, 5)
    assert sentence(root) == "lead never began; 1 task cancelled"


def test_submitted_and_spawned_children_stand_below_their_asker():
    root = run_of(started(LEAD, NOW), started(CODER, NOW), submitted(TESTER, NOW), submitted(REVIEWER, NOW, "spawn"))

    assert [(node.agent, node.asked_how) for node in root.walk()] == [
        ("lead", "delegate"),
        ("coder", "delegate"),
        ("reviewer", "spawn"),
        ("tester", "submit"),
    ]


def test_an_attempt_that_is_tried_again_leaves_a_note_with_what_it_saw_and_used():
    told = [submitted(LEAD, NOW), claimed(LEAD, NOW + 1)]
    told += [
        requeued(LEAD, "retrying", NOW + 3, error="it broke", receipt=RECEIPT, tokens=7, more_refused=2),
        claimed(LEAD, NOW + 9, 2),
        tokens_used(LEAD, 7, NOW + 9),
        tokens_used(LEAD, 5, NOW + 9),
    ]
    end = ended(LEAD, "task.completed", NOW + 10, {"result": 1, "receipt": RECEIPT, "tokens": 5})

    pending, root = run_of(*told[:3]), run_of(*told, end)

    assert (pending.state, pending.attempts, pending.started_at) == ("pending", 1, NOW + 1)
    assert sentence(pending) == "lead worked alone; 1 task pending; tried again 1 time"
    assert (root.state, root.attempts, root.started_at, root.tokens) == ("completed", 2, NOW + 1, 12)
    assert (root.more_refused, summary(root).refused) == (2, 2)
    assert root.retries == [(NOW + 3, 1, "lead", "it broke", RECEIPT, 0)]
    assert receipts(root) == [RECEIPT, RECEIPT]
    assert tokens_seen(root) == summary(root).tokens_seen == 2 * RECEIPT["tokens"]
    assert wire.tree(root)["retries"][0]["error"] == "it broke"  # pyright: ignore[reportCallIssue]
    assert checked(wire.tree(root), "a tree") == wire.tree(root)


def test_an_attempt_whose_process_went_leaves_a_note_and_one_that_was_put_back_does_not():
    lost = run_of(submitted(LEAD), claimed(LEAD, NOW), requeued(LEAD, "lost", NOW + 2), claimed(LEAD, NOW + 3, 2))
    put_back = run_of(
        submitted(LEAD), claimed(LEAD, NOW), requeued(LEAD, "released", NOW + 2, 0), claimed(LEAD, NOW + 3)
    )
    resume = run_of(started(LEAD, NOW), claimed(LEAD, NOW + 2, 2))
    never_begun = run_of(submitted(LEAD), requeued(LEAD, "lost", NOW + 2, 0))

    assert [(one.at, one.attempt, one.error) for one in lost.retries] == [(NOW + 2, 1, GONE)]
    assert (lost.attempts, put_back.attempts, put_back.retries, put_back.started_at) == (2, 1, [], NOW)
    assert [(one.attempt, one.error) for one in resume.retries] == [(1, GONE)]
    assert (resume.state, resume.attempts, resume.started_at) == ("running", 2, NOW)
    assert never_begun.retries == []


@pytest.mark.rule("lifecycle.table")
@given(st.lists(st.sampled_from(sorted(lifecycle.MOVES)), max_size=12))
def test_the_report_follows_the_table_and_ignores_what_the_table_does_not_have(moves):
    makers = {
        "task.submitted": submitted(LEAD),
        "task.started": started(LEAD, NOW),
        "task.claimed": claimed(LEAD, NOW),
        "task.handed": handed_event(LEAD, "lead", NOW, {}),
    }
    growing, state = Growing(), lifecycle.START
    for event in journal(*(makers.get(kind) or moved(LEAD, kind.removeprefix("task."), NOW) for kind in moves)):
        growing.add(event)
        state = lifecycle.TRANSITIONS[state].get(event.kind, state)

    assert (growing.root.state if growing.root else lifecycle.START) == state


# --- plans -------------------------------------------------------------------------------------


def states(root: Node) -> dict[str, str]:
    return {step.id: step.state for step in root.plans[-1]}


def test_a_plan_shows_its_steps_and_they_wait():
    root = planned()

    assert states(root) == dict.fromkeys("abcd", "waiting")
    assert [(step.title, step.agent, step.after) for step in root.plans[0]][2] == ("Write", "coder", ["a", "b"])
    assert sentence(root) == "lead worked alone; 0 of 4 steps completed, 4 waiting; lead still working"


def test_a_step_is_what_its_latest_task_is():
    again = child_of(LEAD, "tester", "t9")
    told = [
        started(CODER, NOW, Begun(step="a")),
        started(TESTER, NOW, Begun(step="b")),
        completed(CODER),
        failed(TESTER),
    ]

    first, second = planned(*told), planned(*told, started(again, NOW, Begun(step="b")))

    assert states(first) == {"a": "completed", "b": "failed", "c": "waiting", "d": "waiting"}
    assert first.plans[0][1].reason == "it broke"
    step = second.plans[0][1]
    assert (step.state, step.reason, step.task, step.tries) == ("running", "", "t9", 2)
    titles = {"a": "Gather", "b": "Compare"}
    assert [(child.step, child.title) for child in second.children] == [(one, titles[one]) for one in "abb"]


def test_an_end_that_comes_late_does_not_change_the_step_of_a_later_task():
    again = child_of(LEAD, "tester", "t9")
    root = planned(started(TESTER, NOW, Begun(step="b")), started(again, NOW, Begun(step="b")), failed(TESTER))

    assert states(root)["b"] == "running"


@pytest.mark.rule("plan.failure")
def test_steps_that_never_ran_say_why():
    root = planned(
        started(TESTER, NOW, Begun(step="b")),
        failed(TESTER),
        step_ended(LEAD, "c", "failed", 'dependency "b" failed', NOW),
        step_ended(LEAD, "d", "skipped", "the plan was aborted", NOW),
        step_ended(LEAD, "nowhere", "skipped", "x", NOW),
    )

    assert [(step.state, step.reason) for step in root.plans[0]][1:] == [
        ("failed", "it broke"),
        ("failed", 'dependency "b" failed'),
        ("skipped", "the plan was aborted"),
    ]


def test_steps_that_wait_for_a_task_that_is_over_are_skipped():
    stopped = ended(LEAD, "task.cancelled", NOW, {"error": "enough"})
    root = planned(started(CODER, NOW, Begun(step="a")), ended(CODER, "task.cancelled", NOW, {"error": "x"}), stopped)

    assert states(root) == {"a": "failed", "b": "skipped", "c": "skipped", "d": "skipped"}
    assert root.plans[0][3].reason == "the task of 'lead' was over before it could start"
    assert sentence(root) == ("lead asked 1 agent; 0 of 4 steps completed, 1 failed, 3 skipped; 2 tasks cancelled")


def test_of_two_plans_of_a_task_the_latest_is_meant():
    root = planned(plan_started(LEAD, STEPS[:1], NOW, {}), started(CODER, NOW, Begun(step="a")))

    assert [states_of[0].state for states_of in root.plans] == ["waiting", "running"]


def test_a_step_that_an_earlier_try_did_has_its_state_when_the_plan_ends():
    end = completed(LEAD, "done")
    told = checked([{"id": "a", "title": "A", "agent": "coder", "state": "completed", "task": "t0"}], "steps")
    root = planned(end._replace(data={**end.data, "steps": told}))

    [plan] = root.plans
    assert [(step.state, step.task, step.tries) for step in plan][:2] == [("completed", "t0", 0), ("skipped", "", 0)]
    assert "kept from task t0" in text(root, NOW)


def test_a_task_of_a_step_that_is_in_no_plan_is_a_task():
    root = planned(started(CODER, NOW, Begun(step="zz")), completed(CODER))

    assert (root.children[0].step, root.children[0].title) == ("zz", "")


# --- for programs ------------------------------------------------------------------------------


@pytest.mark.parametrize(("result", "text"), [("done", "done"), ({"b": 1, "a": 2}, '{"a":2,"b":1}'), (None, "null")])
def test_a_result_as_text_is_its_text_or_its_json(result, text):
    assert result_text(run_of(started(LEAD, NOW), completed(LEAD, result))) == text


def test_a_task_that_a_damaged_journal_begins_twice_stands_there_once():
    once = [started(LEAD, NOW), started(CODER, NOW)]

    assert run_of(*once, started(CODER, NOW)) == run_of(*once)
