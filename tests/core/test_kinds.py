"""The vocabulary of the journal: each kind of event, and what it says."""

from typing import get_type_hints

import pytest

from core.made import MADE
from core.make import NOW, UNTIL, entry, first_remit, journal, remit_along
from core.shapes import event_faults
from remit.core import kinds, lifecycle
from remit.core.allow import ANY
from remit.core.bounds import Bounds
from remit.core.breaker import Breaker
from remit.core.entry import Message, Writer
from remit.core.events import INLINE, Gap, Place, Unsealed, read
from remit.core.kinds.sharing import entries_removed, entry_set, entry_touched, message_sent, messages_taken
from remit.core.kinds.tasks import (
    Begun,
    Claim,
    Queued,
    Requeue,
    claimed,
    ended,
    fork_text,
    handed,
    moved,
    refused,
    requeued,
    started,
    submitted,
)
from remit.core.kinds.upkeep import runs_pruned
from remit.core.kinds.workspace import breaker_set, effect_done, key_removed, key_set, plan_started, step_ended
from remit.core.money import moves
from remit.core.projection import PROJECTION, changes, counted
from remit.core.remit import Pass, handed_to, place
from remit.core.scope import Scope
from remit.core.values import checked


def test_a_remit_s_place_is_its_run_its_session_and_its_own_id():
    assert place(remit_along("lead", "coder")) == Place("t1", "s1", "t2")


def test_outside_a_run_the_place_is_empty():
    assert Place() == ("", "", "")


def test_a_started_task_says_who_asked_within_what_and_what_was_passed():
    child = remit_along("lead", "coder", within=Bounds(depth=2, tools=["exec"]))._replace(
        sees=frozenset({Scope("notes"), Scope("code", key="k")}), tools=frozenset({"exec"})
    )

    assert started(child, NOW) == Unsealed(
        "task.started",
        NOW,
        {
            "asker": "lead",
            "bounds": {"tools": ["exec"], "depth": 2, "deadline": UNTIL},
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
    found = started(first_remit(sees=ANY, tools=ANY), NOW).data

    assert (found["asker"], found["parent"], found["chain"]) == ("", "", ["lead"])
    assert (found["sees"], found["tools"]) == (["*"], "*")


def test_a_task_ends_with_what_the_engine_says_about_it():
    found = ended(remit_along("lead", "coder"), "task.completed", NOW, {"result": "done"})

    assert found == Unsealed("task.completed", NOW, {"result": "done"}, "t1", "s1", "t2", "coder")


def test_a_refused_hop_names_the_rule_the_sentence_and_what_was_wished():
    found = refused(first_remit(), Pass("Lead", "again"), NOW, rule="self", sentence="no")

    data = {"rule": "self", "sentence": "no", "task": "again", "to": "lead"}
    assert found == Unsealed("hop.refused", NOW, data, "t1", "s1", "t1", "lead")


def test_a_refused_handoff_says_that_it_was_one():
    wish = Pass("coder", "again")

    hop, handoff = (
        refused(first_remit(), wish, NOW, rule="loop", sentence="no", handoff=handoff).data for handoff in (False, True)
    )

    assert handoff == {**hop, "handoff": True}
    assert "handoff" not in hop


def test_a_refused_hop_says_how_much_money_it_was_to_get():
    found = refused(first_remit(), Pass("coder", "again", credits="$2"), NOW, rule="credits", sentence="no")

    assert found.data["credits"] == 2_000_000


def test_a_task_of_a_plan_says_which_step_it_is():
    plain, step = started(first_remit(), NOW).data, started(first_remit(), NOW, Begun(step="draft")).data

    assert step == {**plain, "step": "draft"}
    assert "step" not in plain


def test_a_task_says_which_process_has_it_and_what_the_engine_does_in_its_holder_s_place():
    plain, told = (started(first_remit(), NOW, begun).data for begun in (Begun(), Begun("w1", led_as="plan")))

    assert told == {**plain, "worker": "w1", "led_as": "plan"}


def test_a_submitted_task_says_what_a_started_one_says_and_how_it_is_to_be_carried_out():
    remit = remit_along("lead", "coder")

    found = submitted(remit, NOW, Queued("spawn", 260, 4, NOW + 1, "key/d", "all"))

    how = {"asked_how": "spawn", "timeout": 260, "attempts": 4, "ready_at": NOW + 1, "dedup_key": "key/d"}
    how["content"] = "all"
    assert found == started(remit, NOW)._replace(kind="task.submitted", data={**started(remit, NOW).data, **how})


def test_a_submitted_task_that_is_carried_out_at_once_says_both():
    queued = Queued("submit", 260, 4, NOW, "key/d")

    found = started(first_remit(), NOW, Begun("w1"), queued).data

    assert found == {**submitted(first_remit(), NOW, queued).data, "worker": "w1"}


def test_a_claim_says_who_has_a_task_now():
    found = claimed(Place("t1", "s1", "t2"), "coder", NOW, Claim("w1", 3, 2))

    assert found == Unsealed("task.claimed", NOW, {"worker": "w1", "fence": 3, "attempt": 2}, "t1", "s1", "t2", "coder")


def test_a_task_that_is_put_back_says_for_whom_from_when_and_how_often_it_was_tried():
    found = requeued(
        "task.retrying", Place("t1", "s1", "t2"), "coder", NOW, Requeue("", 4, NOW + 9, 2, 1), {"error": "x"}
    )

    data = {"error": "x", "worker": "", "fence": 4, "ready_at": NOW + 9, "attempt": 2, "failures": 1}
    assert found == Unsealed("task.retrying", NOW, data, "t1", "s1", "t2", "coder")


def test_a_task_that_moves_says_what_the_engine_says_about_it():
    found = moved("task.cancelling", Place("t1", "s1", "t2"), "coder", NOW, {"why": "enough"})

    assert found == Unsealed("task.cancelling", NOW, {"why": "enough"}, "t1", "s1", "t2", "coder")


def test_an_effect_is_recorded_with_its_name_and_result():
    found = effect_done(remit_along("lead", "coder"), "charge", "abc", {"id": 7}, NOW)

    data = {"key": "charge", "result": {"id": 7}, "args": "abc"}
    assert found == Unsealed("effect.done", NOW, data, "t1", "s1", "t2", "coder")


@pytest.mark.rule("effect.long")
def test_a_long_result_of_an_effect_is_left_to_the_answer_of_its_operation():
    found = effect_done(remit_along("lead", "coder"), "draft", "abc", "x" * INLINE, NOW)

    assert found.data == {"key": "draft", "args": "abc"}


@pytest.mark.rule("prune.summary")
def test_pruned_runs_are_told_by_what_is_kept_of_them():
    kept = [{"id": "t1", "tasks": ["t1", "t2"]}]

    found = runs_pruned(kept, [Gap(2, 3, "abc")], NOW)

    told = {"runs": [{"id": "t1", "tasks": ["t1", "t2"]}], "gaps": [[2, 3, "abc"]]}
    assert found == Unsealed("runs.pruned", NOW, told)
    assert found.data["runs"] is not kept


@pytest.mark.rule("handoff.chain")
def test_a_handoff_is_told_by_the_one_who_held_the_task_until_then():
    remit = remit_along("lead", "coder")

    found = handed(remit, "tester", NOW, {"update": {"phase": "test"}, "content": "d"})

    data = {"update": {"phase": "test"}, "content": "d", "to": "tester"}
    assert found == Unsealed("task.handed", NOW, data, "t1", "s1", "t2", "coder")


@pytest.mark.rule("handoff.chain")
def test_a_task_started_in_other_hands_names_the_asker_and_not_the_old_holder():
    found = started(handed_to(remit_along("lead", "coder"), "tester"), NOW)

    assert (found.agent, found.data["asker"], found.data["chain"]) == ("tester", "lead", ["lead", "tester"])


@pytest.mark.rule("handoff.parallel")
def test_a_parallel_handoff_names_all_members_in_their_order():
    members = ["tester", "reviewer", "tester"]

    found = handed(first_remit(), members, NOW, {})

    assert found == Unsealed("task.handed", NOW, {"to": ["tester", "reviewer", "tester"]}, "t1", "s1", "t1", "lead")
    assert found.data["to"] is not members


@pytest.mark.rule("breaker.shared")
@pytest.mark.parametrize("at", [Place(), Place("t1", "s1", "t2")])
def test_a_breaker_is_told_whole_and_about_the_agent_it_belongs_to(at):
    found = breaker_set("coder", Breaker("half-open", 3, NOW + 5, "t2", "it broke"), at, NOW)

    data = {"name": "coder", "state": "half-open", "failures": 3, "until": NOW + 5, "probe": "t2", "why": "it broke"}
    assert found == Unsealed("breaker.set", NOW, data, at.run, at.session, at.task, "coder")


def test_a_plan_is_told_with_its_steps():
    found = plan_started(first_remit(), [{"id": "a"}], NOW, {"receipt": {}})

    assert found == Unsealed("plan.started", NOW, {"receipt": {}, "steps": [{"id": "a"}]}, "t1", "s1", "t1", "lead")


@pytest.mark.rule("plan.failure")
def test_a_step_that_ended_without_a_task_of_its_own_says_why():
    found = step_ended(first_remit(), "b", "failed", 'dependency "a" failed', NOW)

    data = {"step": "b", "state": "failed", "reason": 'dependency "a" failed'}
    assert found == Unsealed("step.ended", NOW, data, "t1", "s1", "t1", "lead")


def test_a_written_entry_is_told_whole():
    one = entry(value={"a": [1]}, by=Writer("coder", "t2", ("lead", "coder")), lifetime=60, extend=True)

    found = entry_set(one, Place("t1", "s1", "t2"))

    assert found == Unsealed(
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
            "trust": "trusted",
            "value": {"a": [1]},
            "version": 1,
        },
        "t1",
        "s1",
        "t2",
        "coder",
    )


def test_a_touched_entry_tells_its_new_end_and_who_touched_it():
    found = entry_touched(entry(lifetime=60), Writer("tester"), Place("t1", "s1", "t3"), NOW + 1)

    data = {"expires_at": NOW + 60, "key": "auth", "namespace": "codebase"}
    assert found == Unsealed("entry.touched", NOW + 1, data, "t1", "s1", "t3", "tester")


def test_removed_entries_are_told_in_one_fact_with_the_reason():
    found = entries_removed([("n", "a", 1), ("n", "b", 2)], "expired", Writer(""), Place(), NOW)

    assert found == Unsealed("entries.removed", NOW, {"keys": [["n", "a", 1], ["n", "b", 2]], "why": "expired"})


def test_a_message_is_told_from_its_sender_in_its_own_session():
    message = Message("m1", "s1", "coder", "tester", "look", NOW)

    found = message_sent(message, Place("t1", "s1", "t2"))

    assert found == Unsealed(
        "message.sent", NOW, {"id": "m1", "text": "look", "to": "tester"}, "t1", "s1", "t2", "coder"
    )


def test_an_announcement_says_for_which_task_it_is_and_about_which():
    message = Message("t2/told", "s1", "coder", "lead", "done", NOW, reader="t1", about="t2")

    found = message_sent(message, Place("t1", "s1", "t2")).data

    assert found == {"id": "t2/told", "text": "done", "to": "lead", "reader": "t1", "about": "t2"}


def test_taken_messages_are_told_by_their_ids():
    found = messages_taken(["m1", "m2"], "tester", Place("t1", "s1", "t3"), NOW)

    assert found == Unsealed("messages.taken", NOW, {"ids": ["m1", "m2"]}, "t1", "s1", "t3", "tester")


# --- shapes ------------------------------------------------------------------------------------


def test_every_kind_has_a_shape_a_maker_and_a_projection():
    assert set(kinds.SHAPES) == set(PROJECTION), "add the kind to PROJECTION in core/projection.py"
    assert {event.kind for event in MADE} == set(kinds.SHAPES), "make one event of each kind in tests/core/made.py"


def test_every_move_of_a_task_is_a_kind():
    assert set(kinds.SHAPES) >= lifecycle.MOVES


@pytest.mark.parametrize("kind", sorted(kinds.SHAPES))
def test_a_maker_writes_the_keys_that_the_shape_of_its_kind_has_and_no_others(kind):
    made = [event for event in MADE if event.kind == kind]

    assert [fault for event in made for fault in event_faults(event)] == []
    keys = set(get_type_hints(kinds.SHAPES[kind]))
    assert set().union(*(event.data for event in made)) == keys, "the events in tests/core/made.py have every key"


def test_a_key_is_told_of_by_its_name_and_never_by_what_it_is():
    assert key_set("openai", "1a2b3c4d", "ann", NOW) == Unsealed(
        "key.set", NOW, {"name": "openai", "key_id": "1a2b3c4d", "by": "ann"}
    )
    assert key_removed("openai", "", NOW) == Unsealed("key.removed", NOW, {"name": "openai", "by": ""})


def test_every_event_of_a_journal_has_the_shape_of_its_kind_and_changes_the_tables():
    events = journal(*MADE)

    assert [fault for event in events for fault in event_faults(event)] == []
    assert all(read(event, kinds.SHAPES[event.kind]) == event.data for event in events)
    told = {event.kind for event in events if changes(event) or counted(event) or moves(event)}
    silent = {
        "notice.sent",
        "notice.claimed",
        "effect.done",
        "work.kept",
        "work.left",
        "model.waiting",
        "model.told",
        "tool.begun",
        "talk.restarted",
        "session.recalled",
        "plan.started",
        "team.planned",
        "step.ended",
        "key.set",
        "key.removed",
        "owner.acted",
    }
    assert {event.kind for event in events} - told == silent, "list a kind without an effect on the tables in `silent`"


@pytest.mark.parametrize(
    ("kind", "data", "fault"),
    [
        ("task.claimed", {"worker": "w1", "fence": 1}, "task.claimed lacks attempt"),
        ("task.claimed", {"worker": "w1", "fence": 1, "attempt": True}, "task.claimed.attempt is True, not int"),
        ("task.waiting", {"why": "x"}, "task.waiting has why, which its shape does not know"),
        ("runs.pruned", {"runs": "t1", "gaps": []}, "runs.pruned.runs is 't1', not list"),
        ("step.ended", {"step": "a", "state": "lost", "reason": ""}, "step.ended.state is 'lost', not one of"),
        ("entries.removed", {"keys": [["n"]], "why": ""}, "entries.removed.keys[0] is ['n'], not tuple"),
        ("messages.taken", {"ids": ["m1", 2]}, "messages.taken.ids[1] is 2, not str"),
    ],
)
def test_an_event_of_another_shape_is_noticed(kind, data, fault):
    (found,) = event_faults(Unsealed(kind, NOW, data))

    assert found.startswith(fault)


def test_what_every_maker_writes_is_json():
    assert [checked(event.data, event.kind) for event in MADE] == [event.data for event in MADE]


def test_a_fork_is_told_by_the_event_or_the_step_at_which_it_begins():
    assert fork_text({"run": "r0", "at": 7}) == "a fork of r0 at event 7"
    assert fork_text({"run": "r0", "at": 7, "step": "b"}) == "runs r0 again from step 'b'"
