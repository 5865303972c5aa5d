"""The vocabulary of the journal: each kind of fact, and what it says."""

import pytest

from core.make import NOW, SECOND, entry, first_remit, remit_along
from remit.core import facts
from remit.core.allow import ANY
from remit.core.bounds import Bounds
from remit.core.breaker import CLOSED, Breaker
from remit.core.entry import Writer
from remit.core.events import Fact
from remit.core.facts import Message, Place, place
from remit.core.remit import Pass, handed_to
from remit.core.scope import Scope
from remit.core.values import checked

DEADLINE = NOW + 300 * SECOND


def test_a_remit_s_place_is_its_run_its_session_and_its_own_id():
    assert place(remit_along("lead", "coder")) == Place("t1", "s1", "t2")


def test_outside_a_run_the_place_is_empty():
    assert Place() == ("", "", "")


def test_a_started_task_says_who_asked_within_what_and_what_was_passed():
    child = remit_along("lead", "coder", within=Bounds(depth=2, tools=["exec"]))._replace(
        sees=frozenset({Scope("notes"), Scope("code", key="k")}), tools=frozenset({"exec"})
    )

    assert facts.started(child, NOW) == Fact(
        "task.started",
        NOW,
        {
            "asker": "lead",
            "bounds": {"tools": ["exec"], "depth": 2, "deadline": DEADLINE},
            "chain": ["lead", "coder"],
            "parent": "t1",
            "sees": ["code/k", "notes/*"],
            "task": "part 2",
            "tools": ["exec"],
        },
        "t1",
        "s1",
        "t2",
        "coder",
    )


def test_a_first_task_has_no_asker_and_may_have_been_passed_everything():
    found = facts.started(first_remit(sees=ANY, tools=ANY), NOW).data

    assert (found["asker"], found["parent"], found["chain"]) == ("", "", ["lead"])
    assert (found["sees"], found["tools"]) == (["*"], "*")


def test_a_task_ends_with_what_the_engine_says_about_it():
    found = facts.ended(remit_along("lead", "coder"), "task.completed", NOW, {"result": "done"})

    assert found == Fact("task.completed", NOW, {"result": "done"}, "t1", "s1", "t2", "coder")


def test_a_refused_hop_names_the_rule_the_sentence_and_what_was_wished():
    found = facts.refused(first_remit(), Pass("Lead", "again"), NOW, rule="self", sentence="no")

    data = {"rule": "self", "sentence": "no", "task": "again", "to": "lead"}
    assert found == Fact("hop.refused", NOW, data, "t1", "s1", "t1", "lead")


def test_a_refused_handoff_says_that_it_was_one():
    wish = Pass("coder", "again")

    hop, handoff = (
        facts.refused(first_remit(), wish, NOW, rule="loop", sentence="no", handoff=handoff).data
        for handoff in (False, True)
    )

    assert handoff == {**hop, "handoff": True}
    assert "handoff" not in hop


def test_a_task_of_a_plan_says_which_step_it_is():
    plain, step = facts.started(first_remit(), NOW).data, facts.started(first_remit(), NOW, "draft").data

    assert step == {**plain, "step": "draft"}
    assert "step" not in plain


@pytest.mark.rule("handoff.chain")
def test_a_handoff_is_told_by_the_one_who_held_the_task_until_then():
    remit = remit_along("lead", "coder")

    found = facts.handed(remit, "tester", NOW, {"update": {"phase": "test"}, "content": "d"})

    data = {"update": {"phase": "test"}, "content": "d", "to": "tester"}
    assert found == Fact("task.handed", NOW, data, "t1", "s1", "t2", "coder")


@pytest.mark.rule("handoff.chain")
def test_a_task_started_in_other_hands_names_the_asker_and_not_the_old_holder():
    found = facts.started(handed_to(remit_along("lead", "coder"), "tester"), NOW)

    assert (found.agent, found.data["asker"], found.data["chain"]) == ("tester", "lead", ["lead", "tester"])


@pytest.mark.rule("handoff.parallel")
def test_a_parallel_handoff_names_all_members_in_their_order():
    members = ["tester", "reviewer", "tester"]

    found = facts.handed(first_remit(), members, NOW, {})

    assert found == Fact("task.handed", NOW, {"to": ["tester", "reviewer", "tester"]}, "t1", "s1", "t1", "lead")
    assert found.data["to"] is not members


@pytest.mark.rule("breaker.shared")
@pytest.mark.parametrize("at", [Place(), Place("t1", "s1", "t2")])
def test_a_breaker_is_told_whole_and_about_the_agent_it_belongs_to(at):
    found = facts.breaker_set("coder", Breaker("half-open", 3, NOW + 5, "t2", "it broke"), at, NOW)

    data = {"name": "coder", "state": "half-open", "failures": 3, "until": NOW + 5, "probe": "t2", "why": "it broke"}
    assert found == Fact("breaker.set", NOW, data, at.run, at.session, at.task, "coder")


def test_a_plan_is_told_with_its_steps():
    found = facts.plan_started(first_remit(), [{"id": "a"}], NOW, {"receipt": {}})

    assert found == Fact("plan.started", NOW, {"receipt": {}, "steps": [{"id": "a"}]}, "t1", "s1", "t1", "lead")


@pytest.mark.rule("plan.failure")
def test_a_step_that_ended_without_a_task_of_its_own_says_why():
    found = facts.step_ended(first_remit(), "b", "failed", 'dependency "a" failed', NOW)

    data = {"step": "b", "state": "failed", "reason": 'dependency "a" failed'}
    assert found == Fact("step.ended", NOW, data, "t1", "s1", "t1", "lead")


def test_a_written_entry_is_told_whole():
    one = entry(value={"a": [1]}, by=Writer("coder", "t2", ("lead", "coder")), lifetime=60, extend=True)

    found = facts.entry_set(one, Place("t1", "s1", "t2"))

    assert found == Fact(
        "entry.set",
        NOW,
        {
            "chain": ["lead", "coder"],
            "created_at": NOW,
            "digest": one.digest,
            "expires_at": NOW + 60,
            "extension": 60,
            "key": "auth",
            "namespace": "codebase",
            "trust": "inside",
            "value": {"a": [1]},
            "version": 1,
        },
        "t1",
        "s1",
        "t2",
        "coder",
    )


def test_a_touched_entry_tells_its_new_end_and_who_touched_it():
    found = facts.entry_touched(entry(lifetime=60), Writer("tester"), Place("t1", "s1", "t3"), NOW + 1)

    data = {"expires_at": NOW + 60, "key": "auth", "namespace": "codebase"}
    assert found == Fact("entry.touched", NOW + 1, data, "t1", "s1", "t3", "tester")


def test_removed_entries_are_told_in_one_fact_with_the_reason():
    found = facts.entries_removed([("n", "a"), ("n", "b")], "expired", Writer(""), Place(), NOW)

    assert found == Fact("entries.removed", NOW, {"keys": [["n", "a"], ["n", "b"]], "why": "expired"})


def test_a_message_is_told_from_its_sender_in_its_own_session():
    message = Message("m1", "s1", "coder", "tester", "look", NOW)

    found = facts.message_sent(message, Place("t1", "s1", "t2"))

    assert found == Fact("message.sent", NOW, {"id": "m1", "text": "look", "to": "tester"}, "t1", "s1", "t2", "coder")


def test_taken_messages_are_told_by_their_ids():
    found = facts.messages_taken(["m1", "m2"], "tester", Place("t1", "s1", "t3"), NOW)

    assert found == Fact("messages.taken", NOW, {"ids": ["m1", "m2"]}, "t1", "s1", "t3", "tester")


def test_every_fact_is_json():
    one = entry(value=["x"])
    told = [
        facts.started(first_remit(), NOW),
        facts.started(first_remit(), NOW, "draft"),
        facts.refused(first_remit(), Pass("lead", "again"), NOW, rule="self", sentence="no", handoff=True),
        facts.handed(first_remit(), ["coder", "tester"], NOW, {"update": {}}),
        facts.breaker_set("coder", CLOSED, Place(), NOW),
        facts.plan_started(first_remit(), [{"id": "a"}], NOW, {}),
        facts.step_ended(first_remit(), "a", "skipped", "stop", NOW),
        facts.entry_set(one, Place()),
        facts.entries_removed([("n", "a")], "expired", Writer(""), Place(), NOW),
    ]

    assert [checked(fact.data, fact.kind) for fact in told] == [fact.data for fact in told]
