"""Commands: what may be handed over, how it adds up, and when nobody is getting anywhere."""

import json
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import agent_names, json_values
from remit.core.bounds import DEFAULT_HANDOFFS
from remit.core.command import (
    END,
    STATE_LIMIT,
    Command,
    HandoffState,
    Measured,
    Move,
    Send,
    checked_update,
    merged,
    move,
    narrowed,
    with_figures,
)
from remit.core.values import checked
from remit.errors import BadInput

words = st.sampled_from(["draft", "review", "print"])
maps = st.dictionaries(st.sampled_from("abc"), json_values, max_size=3)
lists = st.lists(words, max_size=4)
metrics = st.fixed_dictionaries(
    {},
    optional={"tokens": st.integers(0, 99), "seconds": st.integers(0, 99) | st.just(0.5), "retries": st.integers(0, 9)},
)
updates = st.fixed_dictionaries(
    {},
    optional={
        "context": maps,
        "artifacts": maps,
        "phase": words,
        "next_phase": words,
        "completed": lists,
        "remaining": lists,
        "metrics": metrics,
    },
)


def state_after(*given_: dict) -> HandoffState:
    state = HandoffState()
    for update in given_:
        state = merged(state, update)
    return state


# --- where it goes -----------------------------------------------------------------------------


@pytest.mark.rule("handoff.state", "names.one-agent")
def test_a_command_goes_to_an_agent_in_any_spelling_to_the_end_or_to_several():
    sends = [Send("Coder", "code it"), Send("tester", {"part": 2})]

    assert Command("Code Reviewer").goto == "code-reviewer"
    assert Command(END).goto is END
    assert Command(sends).goto == Command(tuple(sends)).goto == tuple(sends)
    assert Command(sends[0]).goto == (sends[0],)


def test_the_end_is_not_an_agent_of_that_name():
    assert Command("END").goto == "end"
    assert repr(END) == "END"


@pytest.mark.rule("handoff.state")
@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("", "an agent's name needs at least one letter"),
        ("!", "an agent's name needs at least one letter"),
        ([], "a list of at least one Send, not \\[\\]"),
        ((), "a list of at least one Send, not \\(\\)"),
        (["coder"], "a list of at least one Send, not \\['coder'\\]"),
        ([Send("coder", "x"), "tester"], "a list of at least one Send"),
        (None, "goto is an agent, END, or a list of Send, not None"),
        (7, "goto is an agent, END, or a list of Send, not 7"),
        ({"coder"}, "goto is an agent, END, or a list of Send, not {'coder'}"),
    ],
)
def test_a_command_that_leads_nowhere_is_refused(wrong, reason):
    with pytest.raises(BadInput, match=reason):
        Command(wrong)


def test_a_list_of_sends_may_join_at_a_named_agent_and_nothing_else_may():
    assert Command([Send("coder", "x")], join="Chief Editor").join == "chief-editor"
    with pytest.raises(BadInput, match="join goes with a list of Send"):
        Command("coder", join="editor")
    with pytest.raises(BadInput, match="join goes with a list of Send"):
        Command(END, join="editor")


@pytest.mark.parametrize("goto", ["coder", [Send("coder", "x")]])
def test_only_the_end_has_a_result(goto):
    assert Command(END, result={"lines": 40}).result == {"lines": 40}
    with pytest.raises(BadInput, match="a result goes with goto=END"):
        Command(goto, result="done")


@pytest.mark.rule("input.json")
def test_a_result_is_json():
    with pytest.raises(BadInput, match="a result is not JSON"):
        Command(END, result=object())


def test_after_a_parallel_handoff_the_same_update_goes_to_one():
    command = Command([Send("coder", "x")], {"phase": "written"}, join="editor")

    assert narrowed(command, "editor") == Command("editor", {"phase": "written"})


# --- what members get --------------------------------------------------------------------------


@pytest.mark.rule("handoff.state")
@given(json_values.filter(lambda value: value != ""))
def test_a_payload_is_a_task_as_text_or_as_json(payload):
    send = Send("coder", payload)

    assert send.payload == payload
    assert (send.task if isinstance(payload, str) else json.loads(send.task)) == payload
    assert send.task


@pytest.mark.rule("handoff.state", "input.text", "input.json")
@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ("", "a payload must not be empty"),
        ("a\0", "a payload must not contain a NUL"),
        ("x" * 1_048_577, "a payload has at most 1,048,576 characters"),
        ([float("nan")], r"a payload\[0\] is nan"),
        ({1: 2}, "a payload has a key that is not text: 1"),
        (object(), "a payload is not JSON"),
    ],
)
def test_a_payload_that_cannot_be_a_task_is_refused_where_it_is_written(payload, reason):
    with pytest.raises(BadInput, match=reason):
        Send("coder", payload)


def test_a_member_has_a_name():
    assert Send("Code Reviewer", "x").agent == "code-reviewer"
    with pytest.raises(BadInput, match="an agent is named by text"):
        Send(None, "x")


# --- updates -----------------------------------------------------------------------------------


@pytest.mark.rule("handoff.state")
@given(updates)
def test_an_update_is_kept_as_it_is_and_apart_from_what_was_given(update):
    kept = Command("coder", MappingProxyType(update)).update

    assert kept == update
    assert checked(kept, "update") == kept
    assert kept is not update
    assert all(kept[key] is not value for key, value in update.items() if isinstance(value, dict | list))


@pytest.mark.rule("handoff.state")
@pytest.mark.parametrize(
    ("update", "reason"),
    [
        (None, "an update is a mapping, not None"),
        ([("phase", "x")], "an update is a mapping, not \\["),
        ({1: 2}, "update has a key that is not text: 1"),
        (
            {"colour": 1, "context": {"colour": True}},
            "update.colour goes into update.context, which has another 'colour'; give only one of them",
        ),
        ({"colour": 1, "context": []}, "update.context is an object, not \\[\\]"),
        ({"colour": object()}, "update.colour is not JSON: object"),
        ({"context": []}, "update.context is an object, not \\[\\]"),
        ({"context": None}, "update.context is an object, not None"),
        ({"artifacts": "x"}, "update.artifacts is an object, not 'x'"),
        ({"context": {"a": object()}}, "update.context.a is not JSON: object"),
        ({"context": {"a": float("inf")}}, "update.context.a is inf"),
        ({"phase": 3}, "update.phase must be text, not int: 3"),
        ({"next_phase": None}, "update.next_phase must be text"),
        ({"phase": "x" * 201}, "update.phase has at most 200 characters"),
        ({"completed": "draft"}, "update.completed is a list of text, not 'draft'"),
        ({"remaining": [1]}, "update.remaining is a list of text, not \\[1\\]"),
        ({"remaining": None}, "update.remaining is a list of text, not None"),
        ({"metrics": 3}, "update.metrics has tokens, seconds, credits, retries, not 3"),
        ({"metrics": {"euros": 3}}, "update.metrics has tokens, seconds, credits, retries, not {'euros': 3}"),
        ({"metrics": {"tokens": 1.5}}, "update.metrics.tokens is a whole number of at least 0, not 1.5"),
        ({"metrics": {"tokens": -1}}, "update.metrics.tokens is a whole number of at least 0, not -1"),
        ({"metrics": {"retries": True}}, "update.metrics.retries is a whole number of at least 0, not True"),
        ({"metrics": {"seconds": "1"}}, "update.metrics.seconds is a number of at least 0, not '1'"),
        ({"metrics": {"seconds": -0.5}}, "update.metrics.seconds is a number of at least 0, not -0.5"),
        ({"context": {"a": "x" * STATE_LIMIT}}, "update has at most 262,144 characters as JSON"),
    ],
)
def test_an_update_that_cannot_be_meant_is_refused_with_the_part_that_is_wrong(update, reason):
    with pytest.raises(BadInput, match=reason):
        checked_update(update)
    with pytest.raises(BadInput, match=reason):
        Command("coder", update)


@pytest.mark.rule("handoff.unknown-keys")
def test_keys_of_an_update_without_a_meaning_of_their_own_go_into_its_context():
    given_ = {"order": 5003, "mood": {"calm": True}, "phase": "refund"}
    update = Command("coder", given_).update

    assert update == {"phase": "refund", "context": {"order": 5003, "mood": {"calm": True}}}
    assert checked_update(update) == update
    given_["mood"] = {"calm": False}
    assert state_after({"context": {"order": 1, "a": 2}}, update).context == {
        "order": 5003,
        "a": 2,
        "mood": {"calm": True},
    }
    assert Command("coder", {"order": 1, "context": {"order": 1, "a": 2}}).update == {"context": {"order": 1, "a": 2}}


# --- the state ---------------------------------------------------------------------------------


@pytest.mark.rule("handoff.state")
def test_a_state_is_all_updates_merged():
    found = state_after(
        {
            "context": {"a": 1, "b": {"x": 1}},
            "phase": "draft",
            "remaining": ["review", "print"],
            "completed": ["draft"],
        },
        {"context": {"b": {"y": 2}}, "artifacts": {"file": "a.md"}, "next_phase": "print", "completed": ["review"]},
        {"phase": "print", "metrics": {"tokens": 5, "seconds": 0.5}},
        {"metrics": {"tokens": 2, "seconds": 1, "retries": 1}},
    )

    assert found == HandoffState(
        context={"a": 1, "b": {"y": 2}},
        artifacts={"file": "a.md"},
        phase="print",
        next_phase="print",
        completed=("draft", "review"),
        remaining=("print",),
        tokens=7,
        seconds=1.5,
        retries=1,
    )


@pytest.mark.rule("handoff.state")
@given(st.lists(updates, max_size=5))
def test_along_any_updates_maps_merge_completed_is_a_union_in_order_and_figures_add_up(given_):
    found = state_after(*given_)

    for name in ("context", "artifacts"):
        both = {}
        for update in given_:
            both |= update.get(name, {})
        assert getattr(found, name) == both
    for name in ("phase", "next_phase"):
        assert getattr(found, name) == ([""] + [update[name] for update in given_ if name in update])[-1]
    done = [step for update in given_ for step in update.get("completed", [])]
    assert found.completed == tuple(dict.fromkeys(done))
    for name in ("tokens", "seconds", "credits", "retries"):
        assert getattr(found, name) == sum(update.get("metrics", {}).get(name, 0) for update in given_)


@pytest.mark.rule("handoff.state")
@given(st.lists(updates, max_size=5))
def test_what_remains_is_the_last_list_given_without_what_is_completed(given_):
    found = state_after(*given_)

    last = ([[]] + [update["remaining"] for update in given_ if "remaining" in update])[-1]
    assert found.remaining == tuple(step for step in last if step not in found.completed)


@pytest.mark.rule("handoff.state")
@given(st.lists(updates, max_size=3), updates)
def test_merging_leaves_the_state_before_and_the_update_as_they_were(given_, update):
    before = state_after(*given_)
    as_data, as_text = before.data(), json.dumps(update)

    merged(before, update)

    assert before.data() == as_data
    assert json.dumps(update) == as_text


@pytest.mark.rule("handoff.state")
@given(st.lists(updates, max_size=3))
def test_a_state_as_data_is_json_and_apart_from_the_state(given_):
    state = state_after(*given_)
    data = state.data()

    assert checked(data, "state") == data
    assert list(data) == [
        "context", "artifacts", "phase", "next_phase", "completed", "remaining",
        "tokens", "seconds", "credits", "retries",
    ]  # fmt: skip
    data["context"]["new"] = data["artifacts"]["new"] = 1  # pyright: ignore[reportCallIssue]
    assert "new" not in state.context | state.artifacts


@pytest.mark.rule("handoff.state", "chain.no-shared-state")
def test_an_agent_that_writes_into_what_it_reads_changes_no_other_task_s_state():
    HandoffState().context["secret"] = 1
    HandoffState().artifacts["secret"] = 1

    assert HandoffState() == HandoffState({}, {})


@pytest.mark.rule("handoff.state")
def test_what_is_handed_over_is_bounded_as_a_whole_and_not_only_piece_by_piece():
    half = "x" * (STATE_LIMIT // 2)
    state = state_after({"context": {"a": half}})

    with pytest.raises(BadInput, match="what is handed over has at most 262,144 characters as JSON, got 262,"):
        merged(state, {"context": {"b": half}})
    assert merged(state, {"context": {"a": half}}) == state


@pytest.mark.rule("handoff.state")
def test_the_largest_state_is_exactly_as_large_as_allowed():
    room = STATE_LIMIT - len(json.dumps(HandoffState(context={"a": ""}).data(), separators=(",", ":")))

    assert state_after({"context": {"a": "x" * room}}).context == {"a": "x" * room}
    with pytest.raises(BadInput, match="got 262,145"):
        state_after({"context": {"a": "x" * (room + 1)}})


@pytest.mark.rule("handoff.state", "input.json")
@pytest.mark.parametrize(
    ("metric", "most", "reason"),
    [
        ("tokens", 2**63 - 1, "what is handed over.tokens is a whole number beyond 64 bits"),
        ("retries", 2**63 - 1, "what is handed over.retries is a whole number beyond 64 bits"),
        ("seconds", 1.7e308, "what is handed over.seconds is inf"),
    ],
)
def test_figures_that_add_up_to_more_than_can_be_kept_are_refused(metric, most, reason):
    once = {"metrics": {metric: most}}

    with pytest.raises(BadInput, match=reason):
        state_after(once, once)


# --- the same again ----------------------------------------------------------------------------


def shuffled(value):
    """The same JSON, with the keys of all objects the other way round."""
    if isinstance(value, dict):
        return {key: shuffled(item) for key, item in reversed(value.items())}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@pytest.mark.rule("handoff.deadlock")
@given(updates, metrics)
def test_neither_figures_nor_the_order_of_keys_make_it_another_move(update, others):
    assert move("a", "b", update) == move("a", "b", {**update, "metrics": others}) == move("a", "b", shuffled(update))


@pytest.mark.rule("handoff.deadlock")
@given(updates, updates)
def test_any_other_change_makes_it_another_move(one, other):
    def content(update):
        return json.dumps({key: update[key] for key in update if key != "metrics"}, sort_keys=True)

    assert (move("a", "b", one) == move("a", "b", other)) == (content(one) == content(other))


@pytest.mark.rule("handoff.deadlock")
@given(updates, agent_names, agent_names, agent_names)
def test_a_move_is_from_one_to_another(update, sender, to, third):
    assert (move(sender, to, update) == move(sender, third, update)) == (to == third)
    assert (move(sender, to, update) == move(third, to, update)) == (sender == third)


@pytest.mark.rule("handoff.deadlock")
def test_the_content_is_named_by_a_digest_that_is_the_same_in_every_process():
    assert move("a", "b", {"phase": "x"}) == Move("a", "b", "4a95813124a3b250")


@pytest.mark.rule("handoff.limit")
def test_a_task_may_be_handed_over_five_times_by_default():
    assert DEFAULT_HANDOFFS == 5


@pytest.mark.rule("handoff.figures")
def test_what_was_counted_goes_into_an_update_unless_the_holder_states_more():
    measured = Measured(tokens=10, seconds=1.5, credits=20)
    assert with_figures({}, measured) == {"metrics": {"tokens": 10, "seconds": 1.5, "credits": 20}}
    stated = {"phase": "x", "metrics": {"tokens": 99, "retries": 1}}
    more = {"tokens": 99, "retries": 1, "seconds": 1.5, "credits": 20}
    assert with_figures(stated, measured) == {"phase": "x", "metrics": more}
    assert with_figures(stated, Measured()) is stated
