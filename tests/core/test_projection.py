"""The projection: what each event does to the tables, and nothing but that."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import (
    NOW,
    SECOND,
    claimed,
    entry,
    first_remit,
    journal,
    json_values,
    moved,
    remit_along,
    requeued,
    submitted,
)
from remit.core import lifecycle, projection
from remit.core.breaker import CLOSED, Breaker
from remit.core.card import Card, restored
from remit.core.change import KEYS, Change
from remit.core.entry import Draft, Message, Retired, Writer, after_write, touched
from remit.core.events import Gap, Labels, Place, Unsealed
from remit.core.identity import UsedKey
from remit.core.kinds.models import ToolDone, tool_done
from remit.core.kinds.sharing import entries_removed, entry_set, entry_touched, message_sent, messages_taken
from remit.core.kinds.tasks import Begun, Claim, Queued, Requeue, ended, fenced, refused, tokens_used
from remit.core.kinds.tasks import handed as handed_event
from remit.core.kinds.tasks import requeued as requeued_event
from remit.core.kinds.tasks import started as started_event
from remit.core.kinds.tasks import submitted as submitted_event
from remit.core.kinds.upkeep import journal_cut, keys_kept, runs_pruned
from remit.core.kinds.workspace import breaker_set, cards_published
from remit.core.projection import FLOOR, PROJECTION, changes, fold
from remit.core.remit import Pass, place
from remit.core.values import decode, encode

HERE = Place("t1", "s1", "t1")
BY = Writer("coder")


def changed(fact: Unsealed) -> list[Change]:
    """The changes that this fact makes."""
    (event,) = journal(fact)
    return changes(event)


def change(fact: Unsealed) -> Change:
    """The one change that this fact makes to its own table; what it adds to the run is looked at apart."""
    (own,) = [one for one in changed(fact) if one.table != "run"]
    return own


def counted(fact: Unsealed) -> dict[str, object]:
    """What this fact adds to the figures of its run, without the figures it leaves alone."""
    (event,) = journal(fact)
    count = projection.counted(event)
    return {} if count is None else {name: value for name, value in count._asdict().items() if value}


def message(number: int = 1, to: str = "tester") -> Message:
    return Message(f"m{number}", "s1", "coder", to, f"text {number}", NOW)


# --- tasks -------------------------------------------------------------------------------------


def test_a_started_task_becomes_a_row():
    remit = remit_along("lead", "coder")

    found = change(started_event(remit, NOW, Begun("w1", led_as="plan")))

    assert found[:3] == ("task", "add", ("t2",))
    assert found.row == {
        "id": "t2",
        "run": "t1",
        "parent": "t1",
        "session": "s1",
        "holder": "coder",
        "state": "running",
        "asked_how": "delegate",
        "led_as": "plan",
        "worker": "w1",
        "fence": 1,
        "attempt": 1,
        "failures": 0,
        "asked_at": NOW,
        "ready_at": NOW,
        "claimed_at": NOW,
        "until": remit.bounds.deadline,
        "ended_at": None,
        "began": 1,
        "ended": None,
        "dedup_key": "",
        "origin": "",
        "losses": 0,
        "purse": "",
        "priority": 0,
    }


def test_a_submitted_task_becomes_a_row_that_nobody_has_claimed():
    remit = remit_along("lead", "coder")
    started = change(started_event(remit, NOW)).row

    found = change(submitted(remit, NOW, "spawn", dedup_key="same/d"))

    free = {
        "state": "pending",
        "asked_how": "spawn",
        "fence": 0,
        "attempt": 0,
        "claimed_at": None,
        "dedup_key": "same/d",
    }
    assert found == ("task", "add", ("t2",), {**started, **free})


def test_a_submitted_task_that_is_carried_out_at_once_is_claimed_from_the_beginning():
    queued = Queued("submit", 260 * SECOND, 4, NOW, "same/d")
    started = change(started_event(first_remit(), NOW, Begun("w1"))).row

    found = change(started_event(first_remit(), NOW, Begun("w1"), queued)).row

    assert found == {**started, "asked_how": "submit", "dedup_key": "same/d"}


@pytest.mark.rule("key.outlives")
def test_a_key_is_kept_with_what_it_was_used_for_and_with_how_that_ended_once_it_is_pruned():
    queued = Queued("submit", 260 * SECOND, 4, NOW, "key/d", "all")
    used = {"key": "key/d", "task": "t1", "run": "t1", "content": "all", "state": "", "ended_at": None}
    for first in (started_event(first_remit(), NOW, Begun("w1"), queued), submitted_event(first_remit(), NOW, queued)):
        assert fold(journal(first))["used_key"] == {("key/d",): used}
        kept = keys_kept([UsedKey("key/d", "t1", "t1", "all", "failed", NOW)], NOW)
        told = {**used, "state": "failed", "ended_at": NOW}
        assert fold(journal(first, kept))["used_key"] == {("key/d",): told}
        assert fold(journal(first, kept)[1:])["used_key"] == {("key/d",): told}


def test_a_task_that_is_submitted_again_keeps_count_of_its_failures():
    fact = submitted(first_remit())

    assert change(fact._replace(data={**fact.data, "failures": 3})).row["failures"] == 3


def test_a_claim_says_who_has_it_since_when():
    found = change(claimed(first_remit(), NOW + 5, 2))

    row = {"id": "t1", "state": "running", "worker": "w1", "fence": 2, "attempt": 2, "claimed_at": NOW + 5}
    assert found == ("task", "claim", ("t1",), row)


@pytest.mark.parametrize("word", ["queued", "retrying", "released", "lost"])
def test_a_task_that_is_put_back_waits_in_the_queue(word):
    rest = Requeue("w1", 3, NOW + 9, 2, 1)

    found = change(requeued_event(f"task.{word}", HERE, "lead", NOW, rest, {"error": "x"}))

    row = {"id": "t1", "state": "pending", "worker": "w1", "fence": 3, "ready_at": NOW + 9, "attempt": 2, "failures": 1}
    assert found == ("task", "requeue", ("t1",), row)


@pytest.mark.rule("crash.poison")
def test_a_task_whose_process_died_is_lost_once_more():
    lost = requeued_event("task.lost", HERE, "lead", NOW, Requeue("", 3, 0, 2, 1), {"lost_by": "w1", "losses": 2})

    _, found = changes(journal(lost)[0])

    assert found == ("task", "lose", ("t1",), {"id": "t1", "losses": 2})


@pytest.mark.parametrize(("word", "state"), [("waiting", "waiting"), ("resumed", "running"), ("cancelling",) * 2])
def test_a_task_that_only_moves_changes_only_its_state(word, state):
    assert change(moved(first_remit(), word, NOW)) == ("task", "set", ("t1",), {"id": "t1", "state": state})


@pytest.mark.rule("journal.one-event", "lifecycle.final")
@given(st.lists(st.sampled_from(sorted(lifecycle.MOVES - {"task.started", "task.submitted"})), max_size=12))
def test_the_row_of_a_task_is_where_the_table_of_moves_says(kinds):
    remit = first_remit()
    told, state, allowed = [submitted(remit)], "pending", []
    for number, kind in enumerate(kinds, start=1):
        word = kind.removeprefix("task.")
        if kind not in lifecycle.TRANSITIONS[state]:
            continue
        state = lifecycle.after(state, kind)
        allowed.append(kind)
        if kind == "task.claimed":
            told.append(claimed(remit, NOW + number, number))
        elif kind == "task.fenced":
            told.append(fenced(place(remit), remit.holder, NOW + number, Claim("", number, 1)))
        elif kind == "task.handed":
            told.append(handed_event(remit, "coder", NOW + number, {}))
        elif word in ("queued", "retrying", "released", "lost", "parked"):
            told.append(requeued(remit, word, NOW + number, number))
        else:
            told.append(moved(remit, word, NOW + number))

    events = journal(*told)
    row = fold(events)["task"]["t1",]

    assert row["state"] == state
    assert (row["ended"] is not None) == (state in lifecycle.TERMINAL)
    assert row["holder"] == ("coder" if "task.handed" in allowed else "lead")
    own = [[one for one in changes(event) if one.table == "task"] for event in events]
    assert [len(one) for one in own] == [1] * len(events)


@pytest.mark.rule("task.final", "lifecycle.final")
@pytest.mark.parametrize("word", ["claimed", "retrying", "lost", "waiting", "resumed", "cancelling", "died", "handed"])
def test_a_task_that_has_ended_does_not_move_in_the_tables_either(word):
    remit = first_remit()
    once = [started_event(remit, NOW), moved(remit, "completed", NOW + SECOND)]
    late = {
        "claimed": claimed(remit, NOW + 2, 2),
        "retrying": requeued(remit, "retrying", NOW + 2),
        "lost": requeued(remit, "lost", NOW + 2),
        "handed": handed_event(remit, "coder", NOW + 2, {}),
    }

    tables = fold(journal(*once, late.get(word) or moved(remit, word, NOW + 2)))

    assert tables["task"] == fold(journal(*once))["task"]


# --- pruning -----------------------------------------------------------------------------------


@pytest.mark.rule("prune.summary")
def test_pruning_takes_the_rows_of_a_run_and_cuts_its_events_out():
    kept = [{"id": "t1", "tasks": ["t1", "t2"], "messages": ["m1"]}, {"id": "t9", "tasks": ["t9"]}]
    (event,) = journal(runs_pruned(kept, [Gap(3, 5, "abc")], NOW))

    assert changes(event) == [
        Change("task", "drop", ("t1",), {"id": "t1"}),
        Change("task", "drop", ("t2",), {"id": "t2"}),
        Change("message", "drop", ("m1",), {"id": "m1"}),
        Change("run", "drop", ("t1",), {"id": "t1"}),
        Change("ask", "cut", ("t1",), {"run": "t1"}),
        Change("task", "drop", ("t9",), {"id": "t9"}),
        Change("run", "drop", ("t9",), {"id": "t9"}),
        Change("ask", "cut", ("t9",), {"run": "t9"}),
        Change("event", "cut", (), {"first": 3, "last": 5}),
        Change("blob", "cut", (), {"first": 3, "last": 5}),
        Change("artifact", "cut", (), {"first": 3, "last": 5}),
        Change("chapter", "cut", (), {"first": 3, "last": 5}),
        Change("gap", "cut", (), {"first": 3, "last": 5}),
        Change("gap", "add", (), {"first": 3, "last": 5, "hash": "abc", "stated": 1}),
    ]


@pytest.mark.rule("prune.summary", "journal.one-event")
def test_a_pruned_journal_folds_to_the_same_tables_whether_its_events_are_there_or_not():
    first, other = first_remit(), first_remit()._replace(id="t5", root="t5")
    run = [started_event(first, NOW), ended(first, "task.completed", NOW + 1, {"result": 1})]
    told = journal(*run, submitted(other), runs_pruned([{"id": "t1", "tasks": ["t1"]}], [], NOW + 2))

    whole, pruned = fold(told), fold([event for event in told if event.run != "t1"])

    assert whole == pruned
    assert list(whole["task"]) == [("t5",)]
    assert list(whole["run"]) == []


@pytest.mark.rule("prune.cut")
def test_what_is_forgotten_of_removed_entries_is_the_highest_of_their_versions():
    gone = [("n", "a", 3), ("n", "b", 2)]
    told = journal(entries_removed(gone, "removed", BY, HERE, NOW), journal_cut([], [("n", "a")], 3, NOW + 1))

    kept = {"namespace": "n", "key": "b", "version": 2}
    assert fold(told)["retired"] == {("n", "b"): kept, FLOOR: {"namespace": "", "key": "*", "version": 3}}


@pytest.mark.parametrize("kind", sorted(lifecycle.ENDS))
def test_a_task_that_ends_changes_only_how_it_ended(kind):
    found = change(ended(first_remit(), kind, NOW + 5, {}))

    state = lifecycle.lands(kind)
    assert found == ("task", "end", ("t1",), {"id": "t1", "state": state, "ended_at": NOW + 5, "ended": 1})


@pytest.mark.rule("task.final")
@pytest.mark.parametrize(
    ("first", "second"), [("task.completed", "task.cancelled"), ("task.cancelled", "task.completed")]
)
def test_a_task_ends_once_in_the_tables_too(first, second):
    remit = first_remit()
    once = [started_event(remit, NOW), ended(remit, first, NOW + 1, {})]

    tables = fold(journal(*once, ended(remit, second, NOW + 2, {})))

    assert tables == fold(journal(*once))


def test_a_refused_hop_only_counts_for_its_run():
    fact = Unsealed("hop.refused", NOW, {"rule": "loop"}, run="t1")

    assert changed(fact) == []
    assert counted(fact) == {"refusals": 1}


@pytest.mark.parametrize(
    "kind",
    [
        "plan.started",
        "team.planned",
        "step.ended",
        "effect.done",
        "model.answered",
        "model.failed",
        "model.waiting",
        "model.told",
        "tool.begun",
        "talk.restarted",
        "tool.done",
        "session.recalled",
    ],
)
def test_a_plan_or_an_effect_is_in_the_journal_and_in_no_table(kind):
    (event,) = journal(Unsealed(kind, NOW, {}))

    assert changes(event) == []


@pytest.mark.rule("handoff.chain")
def test_a_task_that_changes_hands_has_another_holder_and_is_the_same_otherwise():
    remit = remit_along("lead", "coder")
    started = started_event(remit, NOW)

    handed = handed_event(remit, "tester", NOW + 1, {"update": {}})

    assert change(handed) == ("task", "hand", ("t2",), {"id": "t2", "holder": "tester"})
    before, after = fold(journal(started))["task"], fold(journal(started, handed))["task"]
    assert after == {("t2",): {**before["t2",], "holder": "tester"}}


@pytest.mark.rule("handoff.parallel")
def test_after_a_parallel_handoff_the_holder_is_still_the_holder():
    fact = handed_event(first_remit(), ["coder", "tester"], NOW, {"joins": True})

    assert changed(fact) == []
    assert counted(fact) == {"handoffs": 1}, "the parts say themselves who joins"


def test_a_handoff_of_a_task_that_is_not_there_changes_nothing():
    tables = fold(journal(handed_event(first_remit(), "coder", NOW, {})))
    assert {**tables, "run": {}} == fold([])


# --- runs --------------------------------------------------------------------------------------


def test_a_root_alone_counts_nothing_and_makes_no_row_of_its_run():
    for fact in (started_event(first_remit()._replace(labels=Labels("ann")), NOW), submitted_by("ann")):
        assert counted(fact) == {}
        assert fold(journal(fact))["run"] == {}


def test_the_first_thing_that_happens_besides_the_root_makes_the_row_of_a_run():
    told = [started_event(first_remit(), NOW), started_event(remit_along("lead", "coder"), NOW, Begun(joins=True))]

    row = {
        "id": "t1",
        "members": " coder",
        "tasks": 1,
        "handoffs": 0,
        "tokens": 0,
        "refusals": 0,
        "credits": 0,
        "requests": 0,
    }
    assert fold(journal(*told))["run"] == {("t1",): row}


@pytest.mark.rule("loops.kept")
def test_what_models_asked_for_and_who_was_stopped_is_counted_in_the_run_until_it_is_pruned():
    other, root = first_remit()._replace(root="t8"), first_remit()
    asked: ToolDone = {"tool": "call_agent", "call": "c", "given": "", "outcome": "done"}
    told = [
        tool_done(root, {**asked, "asks": {"k": [1, 1, ""]}}, NOW),
        tool_done(root, {**asked, "asks": {"k": [2, 2, ""], "=p": [0, 0, "a b"]}}, NOW),
        tool_done(other, {**asked, "asks": {"k": [1, 1, ""]}}, NOW),
        ended(root, "task.failed", NOW, {"error": "no", "type": "Refused", "strikes": {"lead": 1}}),
    ]
    rows = {
        ("t1", "k"): {"run": "t1", "key": "k", "times": 2, "in_vain": 2, "answers": ""},
        ("t1", "=p"): {"run": "t1", "key": "=p", "times": 0, "in_vain": 0, "answers": "a b"},
        ("t8", "k"): {"run": "t8", "key": "k", "times": 1, "in_vain": 1, "answers": ""},
        ("t1", "!lead"): {"run": "t1", "key": "!lead", "times": 1, "in_vain": 0, "answers": ""},
    }
    assert fold(journal(*told))["ask"] == rows
    pruned = {"id": "t1", "tasks": ["t1"]}
    assert [*fold(journal(*told, runs_pruned([pruned], [], NOW)))["ask"]] == [("t8", "k")]


@pytest.mark.rule("loops.requests")
@pytest.mark.parametrize("kind", ["model.answered", "model.failed"])
def test_every_request_to_a_model_counts_for_its_run(kind: str):
    assert counted(Unsealed(kind, NOW, {}, run="t1")) == {"requests": 1}


def test_a_refusal_outside_of_any_run_counts_for_none():
    assert counted(Unsealed("hop.refused", NOW, {"rule": "loop"})) == {}


def submitted_by(person: str) -> Unsealed:
    return submitted_event(first_remit()._replace(labels=Labels(person)), NOW, Queued("submit", SECOND, 1, NOW))


def test_every_other_task_adds_itself_and_its_holder_if_it_is_new():
    remit = remit_along("lead", "coder")

    assert counted(started_event(remit, NOW)) == {"tasks": 1}
    assert counted(submitted(remit)) == {"tasks": 1}
    assert counted(started_event(remit, NOW, Begun(joins=True))) == {"tasks": 1, "members": " coder"}


def test_a_handoff_adds_itself_and_who_takes_the_task_if_it_is_new():
    assert counted(handed_event(first_remit(), "coder", NOW, {})) == {"handoffs": 1}
    told = handed_event(first_remit(), "coder", NOW, {"joins": True, "tokens": 7})
    assert counted(told) == {"handoffs": 1, "members": " coder"}


def test_going_out_in_parts_and_joining_them_is_one_handoff():
    assert counted(handed_event(first_remit(), ["coder", "tester"], NOW, {})) == {"handoffs": 1}
    assert counted(handed_event(first_remit(), "coder", NOW, {"of_parts": True})) == {}


@pytest.mark.rule("tier.at-once")
def test_tokens_count_when_they_are_said_and_not_again_when_the_turn_ends():
    assert counted(tokens_used(first_remit(), 7, NOW)) == {"tokens": 7}
    for kind in sorted(lifecycle.ENDS):
        assert counted(ended(first_remit(), kind, NOW, {"tokens": 7})) == {}
    for word in ("queued", "retrying", "released", "lost"):
        assert counted(requeued(first_remit(), word, NOW, tokens=7)) == {}


@pytest.mark.rule("refuse.recorded")
def test_refusals_that_were_not_recorded_count_when_the_turn_ends():
    ends = [ended(first_remit(), kind, NOW, {"more_refused": 3}) for kind in sorted(lifecycle.ENDS)]
    for end in (*ends, requeued(first_remit(), "retrying", NOW, more_refused=3)):
        assert counted(end) == {"refusals": 3}
    assert counted(handed_event(first_remit(), "coder", NOW, {"more_refused": 3})) == {"handoffs": 1, "refusals": 3}


parts = st.lists(
    st.one_of(
        st.tuples(st.just("task"), st.sampled_from(["coder", "tester"]), st.just(0)),
        st.tuples(st.just("hand"), st.sampled_from(["coder", "tester"]), st.integers(1, 9)),
        st.tuples(st.just("refuse"), st.just(""), st.just(0)),
        st.tuples(st.just("retry"), st.just(""), st.integers(1, 9)),
    ),
    max_size=12,
)


@pytest.mark.rule("journal.one-event")
@given(parts)
def test_the_figures_of_a_run_are_what_its_events_add_up_to(history):
    root = first_remit()
    told = [started_event(root, NOW)]
    members, tasks, handoffs, tokens, refusals = ["lead"], 0, 0, 0, 0
    for number, (what, agent, used) in enumerate(history, start=2):
        joins = agent not in members
        if what == "task":
            child = remit_along("lead", agent)._replace(id=f"t{number}")
            told.append(started_event(child, NOW, Begun(joins=joins)))
            tasks += 1
        elif what == "hand":
            told += [tokens_used(root, used, NOW), handed_event(root, agent, NOW, {"joins": joins})]
            handoffs += 1
        elif what == "refuse":
            told.append(refused(root, Pass("coder", "work"), NOW, rule="loop", sentence="no"))
            refusals += 1
        else:
            told += [tokens_used(root, used, NOW), requeued(root, "retrying", NOW, tokens=used)]
        members += [agent] * (joins and what in ("task", "hand"))
        tokens += used

    counted = {
        "id": "t1",
        "members": "".join(f" {name}" for name in members[1:]),
        "tasks": tasks,
        "handoffs": handoffs,
        "tokens": tokens,
        "refusals": refusals,
        "credits": 0,
        "requests": 0,
    }
    rows = fold(journal(*told))["run"]
    assert rows in ({}, {("t1",): counted})
    assert bool(rows) == any(value for name, value in counted.items() if name != "id")


# --- cards -------------------------------------------------------------------------------------


def test_published_cards_become_rows_and_the_last_one_of_a_name_holds():
    first, second = Card("coder", can=("write",)), Card("coder", "a role")
    told = journal(cards_published([first, Card("tester")], NOW), cards_published([second], NOW + 1))

    rows = fold(told)["card"]

    assert [(key, row["at"]) for key, row in rows.items()] == [(("coder",), NOW + 1), (("tester",), NOW)]
    assert restored(decode(rows["coder",]["data"])) == second


# --- breakers ----------------------------------------------------------------------------------


@pytest.mark.rule("breaker.shared")
def test_a_breaker_becomes_a_row_of_its_agent():
    found = change(breaker_set("coder", Breaker("open", 3, NOW + 9, "", "it broke"), HERE, NOW))

    assert found[:3] == ("breaker", "put", ("coder",))
    assert found.row == {
        "name": "coder",
        "state": "open",
        "failures": 3,
        "until": NOW + 9,
        "probe": "",
        "why": "it broke",
        "at": NOW,
    }


@pytest.mark.rule("breaker.shared")
def test_of_several_breakers_of_an_agent_the_last_one_holds():
    opened = Breaker("open", 3, NOW + 9, "", "it broke")
    told = [breaker_set(name, opened, HERE, NOW) for name in ("coder", "tester")]

    rows = fold(journal(*told, breaker_set("coder", CLOSED, Place(), NOW + 1)))["breaker"]

    assert {key: (row["state"], row["at"]) for key, row in rows.items()} == {
        ("coder",): ("closed", NOW + 1),
        ("tester",): ("open", NOW),
    }


# --- entries -----------------------------------------------------------------------------------


@given(json_values)
def test_an_entry_becomes_a_row_that_tells_text_from_json(value):
    one = entry(value=value, by=Writer("coder", "t2", ("lead", "coder")), lifetime=60, extend=True, trust="untrusted")

    found = change(entry_set(one, Place("t1", "s1", "t2")))

    assert found[:3] == ("entry", "put", ("codebase", "auth"))
    kept = found.row.pop("value")
    assert (kept if found.row.pop("form") == "text" else decode(kept)) == value
    assert found.row == {
        "namespace": "codebase",
        "key": "auth",
        "agent": "coder",
        "created_at": NOW,
        "updated_at": NOW,
        "expires_at": NOW + 60,
        "version": 1,
        "digest": one.digest,
        "extension": 60,
        "trust": "untrusted",
        "task": "t2",
        "chain": '["lead","coder"]',
    }


def test_json_that_looks_like_its_own_text_is_still_told_apart():
    text, number = (change(entry_set(entry(value=value), HERE)).row for value in ("1", 1))

    assert (text["form"], text["value"]) == ("text", "1")
    assert (number["form"], number["value"]) == ("json", "1")


@pytest.mark.rule("entry.touch")
def test_a_touched_entry_changes_only_its_expiry():
    one = entry(lifetime=60)

    found = change(entry_touched(touched(one, 100, NOW), BY, HERE, NOW))

    row = {"namespace": "codebase", "key": "auth", "expires_at": NOW + 100}
    assert found == ("entry", "touch", ("codebase", "auth"), row)


def test_removed_entries_are_dropped_one_by_one():
    (event,) = journal(entries_removed([("a", "x", 1), ("b", "y", 2)], "expired", BY, HERE, NOW))

    assert changes(event) == [
        Change("entry", "drop", ("a", "x"), {"namespace": "a", "key": "x"}),
        Change("entry", "drop", ("b", "y"), {"namespace": "b", "key": "y"}),
        Change("retired", "put", ("a", "x"), {"namespace": "a", "key": "x", "version": 1}),
        Change("retired", "put", ("b", "y"), {"namespace": "b", "key": "y", "version": 2}),
    ]


# --- messages ----------------------------------------------------------------------------------


def test_a_message_becomes_a_row_that_waits():
    found = change(message_sent(message(), HERE))

    assert found[:3] == ("message", "add", ("m1",))
    assert found.row == {
        "id": "m1",
        "session": "s1",
        "sender": "coder",
        "recipient": "tester",
        "text": "text 1",
        "sent_at": NOW,
        "seq": 1,
        "taken_at": None,
        "taken_by": None,
        "reader": "",
        "about": "",
        "trust": "trusted",
        "run": HERE.run,
    }


def test_an_announcement_says_for_which_task_it_is_and_about_which():
    row = change(message_sent(replace(message(), reader="t1", about="t2"), HERE)).row

    assert (row["reader"], row["about"]) == ("t1", "t2")


def test_taken_messages_say_when_and_in_which_task():
    (event,) = journal(messages_taken(["m1", "m2"], "tester", Place("t1", "s1", "t3"), NOW))

    assert changes(event) == [
        Change("message", "take", (one,), {"id": one, "taken_at": NOW, "taken_by": "t3"}) for one in ("m1", "m2")
    ]


def test_a_message_is_taken_once_in_the_tables_too():
    once = [message_sent(message(), HERE), messages_taken(["m1"], "tester", HERE, NOW + 1)]

    tables = fold(journal(*once, messages_taken(["m1"], "tester", Place("t1", "s1", "t9"), NOW + 2)))

    assert tables == fold(journal(*once))


# --- the fold ----------------------------------------------------------------------------------


def test_a_kind_that_no_one_knows_is_an_error_and_not_ignored():
    (event,) = journal(Unsealed("task.paused", NOW, {}))

    with pytest.raises(KeyError, match=r"task\.paused"):
        changes(event)


@pytest.mark.rule("journal.one-event")
def test_every_move_of_a_task_is_known_to_the_projection():
    assert set(PROJECTION) > lifecycle.MOVES
    assert fold([]) == {table: {} for table in KEYS}


def test_changes_to_what_is_not_there_change_nothing():
    tables = fold(
        journal(
            ended(first_remit(), "task.completed", NOW, {"tokens": 3}),
            refused(first_remit(), Pass("coder", "work"), NOW, rule="loop", sentence="no"),
            entry_touched(entry(lifetime=60), BY, HERE, NOW),
            entries_removed([("a", "x", 1)], "deleted", BY, HERE, NOW),
            messages_taken(["m1"], "tester", HERE, NOW),
        )
    )

    assert tables["retired"] == {("a", "x"): {"namespace": "a", "key": "x", "version": 1}}
    assert {**tables, "run": {}, "retired": {}} == fold([])  # what a run has come to is counted whoever is missing


def test_the_fold_leaves_the_changes_of_an_event_alone():
    started = journal(started_event(first_remit(), NOW))
    before = changes(started[0])

    fold([*started, *journal(ended(first_remit(), "task.failed", NOW, {}))])

    assert changes(started[0]) == before


keys = st.sampled_from(["x", "y"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("set"), keys, json_values),
        st.tuples(st.just("touch"), keys, st.integers(1, 100)),
        st.tuples(st.just("remove"), st.lists(keys, max_size=2), st.none()),
    ),
    max_size=12,
)


@pytest.mark.rule("entry.upsert", "entry.touch")
@given(steps)
def test_folding_the_events_of_any_history_gives_the_entries_it_ends_with(history):
    shelf, last = {}, {}  # what the entries should be and which versions were removed, kept by hand
    told = []
    for now, (what, where, how) in enumerate(history, start=NOW):
        if what == "set":
            draft, retired = Draft("n", where, how, lifetime=50), Retired(last.get(where, 0))
            shelf[where] = after_write(shelf.get(where), draft, BY, now, retired)
            told.append(entry_set(shelf[where], HERE))
        elif what == "touch" and (longer := touched(shelf.get(where), how, now)) is not None:
            shelf[where] = longer
            told.append(entry_touched(longer, BY, HERE, now))
        elif what == "remove":
            gone = [("n", key, shelf.pop(key).version) for key in dict.fromkeys(where) if key in shelf]
            last.update({key: version for _, key, version in gone})
            told.append(entries_removed(gone, "deleted", BY, HERE, now))

    tables = fold(journal(*told))
    rows = tables["entry"]

    assert {key: row["version"] for (_, key), row in tables["retired"].items()} == last
    assert {key for _, key in rows} == set(shelf)
    for (_, key), row in rows.items():
        one = shelf[key]
        assert row["value"] == (one.value if isinstance(one.value, str) else encode(one.value))
        assert [row[name] for name in ("agent", "created_at", "updated_at", "expires_at", "version", "digest")] == [
            getattr(one, name) for name in ("agent", "created_at", "updated_at", "expires_at", "version", "digest")
        ]
