"""The vocabulary of the journal: each kind of fact, and what it says."""

from core.make import NOW, SECOND, entry, first_remit, remit_along
from remit.core import facts
from remit.core.allow import ANY
from remit.core.bounds import Bounds
from remit.core.entry import Writer
from remit.core.events import Fact
from remit.core.facts import Message, Place, place
from remit.core.remit import Pass
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
        facts.refused(first_remit(), Pass("lead", "again"), NOW, rule="self", sentence="no"),
        facts.entry_set(one, Place()),
        facts.entries_removed([("n", "a")], "expired", Writer(""), Place(), NOW),
    ]

    assert [checked(fact.data, fact.kind) for fact in told] == [fact.data for fact in told]
