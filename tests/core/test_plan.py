"""Plans: checked whole before anything starts, and what a step may see."""

from dataclasses import fields, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.make import json_values
from remit.core.card import Card
from remit.core.plan import (
    DRAFT_LIMIT,
    RESULT_LIMIT,
    STEP_LIMIT,
    Lead,
    Plan,
    Step,
    assigned,
    assignees,
    cycle,
    drafted,
    faults,
    followers,
    identities,
    in_order,
    lead_restored,
    plan_from_json,
    restored,
    sources,
    structured,
    whole,
)
from remit.core.values import VALUE_LIMIT, decode, encode
from remit.errors import BadInput

TEAM = {
    card.name: card
    for card in (Card("ann", can="write code"), Card("bob", can="review code"), Card("cy", role="sings"))
}


def step(id_: str, *after: str, **how: object) -> Step:
    return Step(id_, f"Do {id_}", after=after, **{"agent": "ann", **how})


def plan(*steps: Step) -> Plan:
    return Plan(steps)


@st.composite
def dags(draw, context: str = "direct") -> Plan:
    """Steps that wait only for steps with a lower number, in any order."""
    size = draw(st.integers(1, 9))
    steps = []
    for number in range(size):
        lower = draw(st.permutations([f"s{one}" for one in range(number)]))
        steps.append(step(f"s{number}", *lower[: draw(st.integers(0, 4))], context=context))
    return Plan(draw(st.permutations(steps)))


def below(found: Plan) -> dict[str, set[str]]:
    """For each step all that it waits for, directly or not; worked out the slow way."""
    seen = {one.id: set(one.after) for one in found.steps}
    for _ in found.steps:
        for one in seen.values():
            one.update(*(seen[before] for before in list(one)))
    return seen


# --- steps -------------------------------------------------------------------------------------


@pytest.mark.rule("plan.checked")
def test_a_step_reads_what_people_write():
    found = Step("a", "Do it", agent="Code Reviewer", after=["x", "y", "x"])

    assert (found.agent, found.after) == ("code-reviewer", ("x", "y"))
    assert (found.payload, found.context, found.memory_scope, found.retries) == ("text", "direct", "own", 0)
    assert found.outline() == {
        "id": "a",
        "title": "Do it",
        "agent": "code-reviewer",
        "capability": "",
        "after": ["x", "y"],
    }


@pytest.mark.rule("plan.prompt")
def test_dependencies_given_without_an_order_get_one():
    names = [f"step {number}" for number in range(20)]

    assert Step("a", "Do it", after=set(names)).after == Step("a", "Do it", after=frozenset(names)).after
    assert Step("a", "Do it", after=set(names)).after == tuple(sorted(names))


@pytest.mark.rule("plan.checked")
@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"id": ""}, "a step's id must not be empty"),
        ({"id": "x" * 65}, "a step's id has at most 64 characters"),
        ({"id": 1}, "a step's id must be text"),
        ({"title": ""}, "a step's title must not be empty"),
        ({"title": "x" * 201}, "a step's title has at most 200 characters"),
        ({"title": None}, "a step's title must be text"),
        ({"description": None}, "a step's description must be text"),
        ({"description": "a\0"}, "a step's description must not contain a NUL"),
        ({"capability": 1}, "a capability must be text"),
        ({"agent": "!"}, "an agent's name needs"),
        ({"agent": 7}, "an agent is named by text, not int"),
        ({"agent": None}, "an agent is named by text, not NoneType"),
        ({"agent": []}, "an agent is named by text, not list"),
        ({"agent": False}, "an agent is named by text, not bool"),
        ({"after": "ab"}, "after is a list of step ids, not 'ab'"),
        ({"after": None}, "after is a list of step ids, not None"),
        ({"after": [1]}, "a step's id must be text"),
        ({"payload": "xml"}, "payload is 'text' or 'structured', not 'xml'"),
        ({"payload": ["text"]}, "payload is 'text' or 'structured'"),
        ({"context": "all"}, "context is 'direct' or 'transitive', not 'all'"),
        ({"memory_scope": "everything"}, "memory_scope is 'own', 'all' or a list of step ids, not 'everything'"),
        ({"memory_scope": 5}, "memory_scope is 'own', 'all' or a list of step ids, not 5"),
        ({"memory_scope": [5]}, "a step's id must be text"),
        ({"retries": -1}, "retries is a whole number from 0 to 10, not -1"),
        ({"retries": 11}, "retries is a whole number from 0 to 10, not 11"),
        ({"retries": True}, "retries is a whole number from 0 to 10, not True"),
        ({"retries": 1.0}, "retries is a whole number from 0 to 10, not 1.0"),
        ({"schema": {}}, "step 'a' has a schema, so its payload must be 'structured'"),
        ({"schema": "x", "payload": "structured"}, "a schema is an object, not 'x'"),
        ({"schema": 0, "payload": "structured"}, "a schema is an object, not 0"),
    ],
)
def test_a_step_that_cannot_be_meant_is_refused(wrong, reason):
    with pytest.raises(BadInput, match=reason):
        Step(**{"id": "a", "title": "Do it", **wrong})


@pytest.mark.rule("plan.checked")
@pytest.mark.parametrize("steps", [None, "abc", "", 0, {}, {"a": 1}, [1], ["a"], (step("a"), None), step("a")])
def test_a_plan_is_a_list_of_steps(steps):
    with pytest.raises(BadInput, match=r"a plan has a list of Step\(...\), not"):
        Plan(steps)


def test_a_plan_keeps_its_steps_and_its_goal():
    assert Plan([step("a")], "win").steps == (step("a"),)
    with pytest.raises(BadInput, match="a goal must be text"):
        Plan([step("a")], None)


# --- what is wrong with a plan -----------------------------------------------------------------


@pytest.mark.rule("plan.checked")
@given(dags())
def test_a_plan_whose_steps_wait_only_for_earlier_ones_has_no_faults(found):
    assert faults(found, TEAM) == []
    assert cycle(found) == []


@pytest.mark.rule("plan.checked")
@given(dags(), st.data())
def test_a_step_that_waits_for_one_that_waits_for_it_is_named(found, data):
    waits = below(found)
    pairs = [(low, high) for high, lows in waits.items() for low in sorted(lows)]
    assume(pairs)
    low, high = data.draw(st.sampled_from(pairs))
    broken = Plan([step(one.id, *one.after, *([high] if one.id == low else [])) for one in found.steps])

    circle = cycle(broken)

    # Whoever is named waits for someone who is named, and one of them is where the plan was broken.
    after = {one.id: set(one.after) for one in broken.steps}
    assert low in circle
    assert all(after[one] & set(circle) for one in circle)
    assert all(one == high or low in waits[one] for one in circle if one != low)
    assert circle == [one.id for one in broken.steps if one.id in circle]
    names = ", ".join(repr(one) for one in circle)
    assert faults(broken, TEAM) == [f"steps {names} wait for each other"]


@pytest.mark.rule("plan.checked")
def test_who_merely_waits_for_a_circle_is_not_said_to_be_in_it():
    outside = [step(f"x{number}", "a") for number in range(20)]

    found = faults(plan(*outside, step("a", "b"), step("b", "c"), step("c", "a"), step("free")), TEAM)

    assert found == ["steps 'a', 'b', 'c' wait for each other"]


@pytest.mark.rule("plan.checked")
def test_of_a_large_circle_the_first_ten_are_named():
    ring = plan(*(step(f"s{number:02}", f"s{(number + 1) % 30:02}") for number in range(30)))

    assert len(cycle(ring)) == 30
    assert faults(ring, TEAM) == [f"steps {', '.join(repr(f's{n:02}') for n in range(10))} wait for each other"]


@pytest.mark.rule("plan.checked")
@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([], ["the plan has no steps"]),
        ([step("a", "a")], ["step 'a' waits for itself"]),
        ([step("a", "ghost")], ["step 'a' waits for 'ghost', which is not in the plan"]),
        ([step("a"), step("a"), step("a")], ["two steps have the id 'a'", "two steps have the id 'a'"]),
        ([step("a", agent="")], ["step 'a' names neither an agent nor a capability"]),
        ([step("a", agent="Zed")], ["step 'a' is for 'zed', who cannot be asked; there is ann, bob, cy"]),
        ([step("a", agent="", capability="fly")], ["step 'a' needs 'fly', and no one can do that"]),
        (
            [step("a", agent="", capability="code")],
            ["step 'a' needs 'code', and it is not clear who does that; name one: ann, bob"],
        ),
        ([step("a", agent="cy", capability="review code")], ["step 'a' needs 'review code', and 'cy' cannot do that"]),
        (
            [step("a", "a", "ghost", agent="zed"), step("b", agent="")],
            [
                "step 'a' waits for 'ghost', which is not in the plan",
                "step 'a' waits for itself",
                "step 'a' is for 'zed', who cannot be asked; there is ann, bob, cy",
                "step 'b' names neither an agent nor a capability",
            ],
        ),
    ],
    ids=[
        "empty",
        "self",
        "unknown",
        "doubles",
        "nobody",
        "no-such-agent",
        "no-such-capability",
        "unclear",
        "unsuitable",
        "all",
    ],
)
def test_everything_that_is_wrong_is_said(steps, found):
    assert faults(Plan(steps), TEAM) == found


@pytest.mark.rule("plan.checked")
def test_where_nobody_may_be_asked_it_says_so():
    assert faults(plan(step("a")), {}) == ["step 'a' is for 'ann', who cannot be asked; there is no one"]


@pytest.mark.rule("plan.checked")
def test_a_plan_has_at_most_ten_thousand_steps():
    most = [step(str(number)) for number in range(STEP_LIMIT)]

    assert STEP_LIMIT == 10_000
    assert faults(Plan(most), TEAM) == []
    assert faults(Plan([*most, step("one more")]), TEAM) == ["the plan has 10,001 steps and at most 10,000 are allowed"]
    assert faults(Plan(most[:3]), TEAM, most=2) == ["the plan has 3 steps and at most 2 are allowed"]


@pytest.mark.rule("plan.checked")
def test_the_longest_chain_is_no_circle_and_breaks_no_stack():
    chain = [step("0"), *(step(str(n), str(n - 1), context="transitive") for n in range(1, STEP_LIMIT))]

    assert faults(Plan(chain), TEAM) == []
    assert sources(chain[-1], {one.id: one for one in chain}) == [str(n) for n in range(STEP_LIMIT - 1)]


# --- who does it, and who waits ----------------------------------------------------------------


@pytest.mark.rule("asks.capability")
def test_a_step_is_for_whom_it_names_or_for_the_best_match_and_then_by_name():
    assert assignees(plan(step("a", agent="cy")), TEAM) == {"a": "cy"}
    assert assignees(plan(step("a", agent="cy", capability="review code")), TEAM) == {"a": "cy"}
    assert assignees(plan(step("a", agent="", capability="review code")), TEAM) == {"a": "bob"}
    twins = {name: Card(name, can="write code") for name in ("zoe", "ann")}
    assert assignees(plan(step("a", agent="", capability="write code")), twins) == {"a": "ann"}  # then by name


@pytest.mark.rule("plan.identity")
def test_a_step_is_known_by_all_that_is_asked_and_all_it_depends_on():
    def names(*steps: Step, told: object = None, who: str = "coder") -> dict[str, str]:
        return identities(Plan(steps), {step.id: who for step in steps}, told)

    a, b = Step("a", "first"), Step("b", "second", after=["a"])
    known = names(a, b)
    assert names(b, a) == known
    assert names(a, b, Step("c", "third", after=["b"])).items() > known.items()
    assert not names(a, b, told="the goal").items() & known.items()
    assert not names(a, b, who="writer").items() & known.items()
    others = [{"title": "else"}, {"description": "else"}, {"context": "transitive"}, {"memory_scope": "all"}]
    others += [{"payload": "structured"}, {"payload": "structured", "schema": {"type": "object"}}]
    found = [names(replace(a, **other), b) for other in others]
    assert all(one["a"] != known["a"] and one["b"] != known["b"] for one in found)  # what depends on it is another too
    assert len({one["a"] for one in found}) == len(found)
    assert names(a, replace(b, retries=3, after=("a",))) == known
    assert names(a, replace(b, after=()))["b"] != known["b"]


@given(dags())
def test_in_order_every_step_comes_after_those_it_waits_for(found):
    order = in_order(found)
    assert sorted(order) == sorted(step.id for step in found.steps)
    assert all(order.index(before) < order.index(step.id) for step in found.steps for before in step.after)


@given(dags())
def test_followers_are_those_who_wait_for_a_step_in_the_order_of_the_plan(found):
    waiting = followers(found)

    assert waiting == {one.id: [other.id for other in found.steps if one.id in other.after] for one in found.steps}


# --- what a step sees --------------------------------------------------------------------------


@pytest.mark.rule("plan.prompt", "plan.transitive")
@given(dags())
def test_a_step_sees_exactly_what_it_waits_for_in_the_order_given(found):
    steps = {one.id: one for one in found.steps}

    for one in found.steps:
        assert sources(one, steps) == list(one.after)


@pytest.mark.rule("plan.transitive")
@given(dags(context="transitive"))
def test_with_transitive_it_sees_all_below_each_once_and_after_what_it_waited_for(found):
    steps = {one.id: one for one in found.steps}
    all_below = below(found)

    for one in found.steps:
        seen = sources(one, steps)
        assert sorted(seen) == sorted(all_below[one.id])
        for place, other in enumerate(seen):
            assert set(steps[other].after) <= set(seen[:place])


@pytest.mark.rule("plan.transitive")
def test_of_a_diamond_the_tip_is_seen_once_and_first_and_the_sides_in_the_order_given():
    steps = [step("tip"), step("left", "tip"), step("right", "tip"), step("end", "right", "left", context="transitive")]

    assert sources(steps[-1], {one.id: one for one in steps}) == ["tip", "right", "left"]


@pytest.mark.rule("plan.transitive")
def test_indirect_dependencies_are_in_the_order_given_too():
    steps = [step("x"), step("y"), step("mid", "y", "x"), step("end", "mid", context="transitive")]

    assert sources(steps[-1], {one.id: one for one in steps}) == ["y", "x", "mid"]


@pytest.mark.rule("plan.transitive")
def test_many_ways_to_the_same_step_cost_no_more_than_one():
    rows = [(step(f"l{n}", f"l{n - 1}", f"r{n - 1}"), step(f"r{n}", f"l{n - 1}", f"r{n - 1}")) for n in range(1, 100)]
    steps = [step("l0"), step("r0"), *(one for row in rows for one in row)]  # 2**99 ways down

    seen = sources(step("end", "l99", "r99", context="transitive"), {one.id: one for one in steps})

    assert sorted(seen) == sorted(one.id for one in steps)


@pytest.mark.rule("plan.transitive")
def test_only_the_step_that_says_so_sees_more():
    steps = [step("a"), step("b", "a", context="transitive"), step("c", "b")]

    assert sources(steps[-1], {one.id: one for one in steps}) == ["b"]


# --- plans that a model wrote ------------------------------------------------------------------


def draft(**more: object) -> dict:
    return {"steps": [{"id": "a", "title": "Do it", "agent": "ann", **more}]}


@pytest.mark.rule("plan.checked")
def test_a_drafted_plan_is_a_plan():
    data = draft(description="well", capability="code", after=["b"])

    found = drafted({**data, "goal": "its own words"}, goal="win")

    assert found == Plan((Step("a", "Do it", "well", "ann", "code", ("b",)),), "win")


@pytest.mark.rule("team.no-wider")
@pytest.mark.parametrize(
    "more",
    [
        *({"memory_scope": "all"}, {"memory_scope": "own"}, {"context": "transitive"}, {"context": "direct"}),
        *({"sees": ["*"]}, {"tools": ["shell"]}, {"within": {}}, {"bounds": {}}, {"retries": 9}, {"seconds": 1}),
        *({"payload": "text"}, {"payload": "structured"}, {"pattern": "(a+)+$"}, {"$ref": "http://127.0.0.1/x"}),
        *({"schema": {}}, {"schema": {"$ref": "file:///etc/passwd"}}, {"schema": {"pattern": "(a+)+$"}}),
    ],
)
def test_a_drafted_plan_says_what_is_to_be_done_and_nothing_else(more):
    (name,) = more

    with pytest.raises(BadInput) as info:
        drafted(draft(**more), goal="win")
    assert str(info.value) == (
        f"step 1 may not have '{name}'; a step has id, title, description, agent, capability, after, "
        "and what it may see, may do and must answer is not the plan's to say"
    )


@pytest.mark.rule("team.no-wider")
@pytest.mark.parametrize("name", [one.name for one in fields(Step)])
def test_of_the_parts_of_a_step_a_model_has_only_those_that_say_what_and_who(name):
    may = name in {"id", "title", "description", "agent", "capability", "after"}
    value = getattr(Step("b", "Do it", agent="ann"), name)
    try:
        drafted({"steps": [{"id": "a", "title": "Do it", name: [] if name == "after" else value}]}, goal="win")
    except BadInput:
        assert not may
    else:
        assert may


@pytest.mark.rule("team.no-wider")
@given(
    st.dictionaries(
        st.sampled_from(
            ["title", "description", "agent", "capability", "after", "payload", "schema", "context", "memory_scope"]
        )
        | st.text(max_size=5),
        json_values | st.sampled_from(["all", "transitive", "structured", "ann"]),
    )
)
def test_whatever_a_model_writes_no_step_sees_more_than_a_caller_s_step_would(more):
    try:
        found = drafted({"steps": [{"id": "a", "title": "Do it", **more}]}, goal="win")
    except BadInput:
        return

    assert [(one.context, one.memory_scope, one.retries) for one in found.steps] == [("direct", "own", 0)]


@pytest.mark.rule("plan.checked")
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("First I would ask Ann.", 'must be a JSON object with a list "steps"'),
        (None, 'must be a JSON object with a list "steps"'),
        ([], 'must be a JSON object with a list "steps"'),
        (7, 'must be a JSON object with a list "steps"'),
        ({}, 'must be a JSON object with a list "steps"'),
        ({"steps": {}}, 'must be a JSON object with a list "steps"'),
        ({"steps": "a"}, 'must be a JSON object with a list "steps"'),
        ({"steps": [], "team": []}, "the plan takes no 'team', only steps"),
        ({"steps": ["a"]}, "step 1 is an object, not 'a'"),
        ({"steps": [draft()["steps"][0], None]}, "step 2 is an object, not None"),
        ({"steps": [{"title": "Do it"}]}, "step 1 has no id"),
        ({"steps": [{"id": "a"}]}, "step 1 has no title"),
        (draft(budget=1), "step 1 may not have 'budget'; a step has id, title"),
        (draft(id=1), "a step's id must be text"),
        (draft(title=["x"]), "a step's title must be text"),
        (draft(description=1), "a step's description must be text"),
        (draft(agent={}), "an agent is named by text, not dict"),
        (draft(agent=None), "an agent is named by text, not NoneType"),
        (draft(after="b"), "after is a list of step ids, not 'b'"),
        (draft(after=None), "after is a list of step ids, not None"),
        (draft(after=[["b"]]), "a step's id must be text"),
        ({1: 2, "steps": [], "x": 3}, "the plan has a key that is not text: 1"),
        ({"steps": [{1: 2, "id": "a"}]}, r"the plan.steps\[0\] has a key that is not text: 1"),
        (draft(description=object()), r"the plan.steps\[0\].description is not JSON"),
    ],
)
def test_a_draft_that_is_no_plan_is_refused_with_the_part_that_is_wrong(data, reason):
    with pytest.raises(BadInput, match=reason):
        drafted(data, goal="win")


@pytest.mark.rule("plan.checked")
@given(json_values)
def test_whatever_a_model_answers_is_a_plan_or_a_clear_error(data):
    for answer in (data, {"steps": data}, {"steps": [data]}, draft(after=data)):
        try:
            found = drafted(answer, goal="win")
        except BadInput:
            continue
        assert isinstance(found, Plan)


@pytest.mark.rule("plan.checked")
def test_a_model_plans_at_most_a_hundred_steps_in_one_go():
    steps = [{"id": str(number), "title": "Do it", "agent": "ann"} for number in range(DRAFT_LIMIT + 1)]

    assert len(drafted({"steps": steps[:DRAFT_LIMIT]}, goal="win").steps) == DRAFT_LIMIT == 100
    with pytest.raises(BadInput, match="the plan has 101 steps and at most 100 are allowed"):
        drafted({"steps": steps}, goal="win")


@pytest.mark.rule("plan.checked")
def test_a_draft_that_is_too_deep_or_too_large_is_refused():
    deep = {}
    for _ in range(40):
        deep = {"x": deep}

    with pytest.raises(BadInput, match="nested more than 32 deep"):
        drafted(draft(after=deep), goal="win")
    with pytest.raises(BadInput, match="the plan has at most 1,048,576 characters as JSON"):
        drafted(draft(description="x" * VALUE_LIMIT), goal="win")


# --- structured results ------------------------------------------------------------------------


@pytest.mark.rule("plan.structured")
@given(json_values)
def test_a_structured_result_is_kept_as_it_is(value):
    assert structured(value, "the result") == value


@pytest.mark.rule("plan.structured")
def test_a_structured_result_has_its_own_limit():
    most = ["x" * (RESULT_LIMIT - 4)]  # as JSON: two brackets and two quotes more

    assert RESULT_LIMIT == 64 * 1024
    assert structured(most, "the result") == most
    with pytest.raises(BadInput, match="the result has at most 65,536 characters as JSON, got 65,537"):
        structured([most[0] + "x"], "the result")


@pytest.mark.rule("plan.structured")
@pytest.mark.parametrize("value", [float("nan"), {1: 2}, object(), [2**63]])
def test_a_structured_result_that_is_not_json_is_refused(value):
    with pytest.raises(BadInput, match="the result"):
        structured(value, "the result")


# -- kept ---------------------------------------------------------------------------------------------------------

ALL_SAID = Step(
    "a",
    "A",
    "all of it",
    "ann",
    "write code",
    ["b"],
    "structured",
    {"type": "object", "required": ["x"]},
    "transitive",
    "all",
    3,
    {"order": 7},
)


@pytest.mark.rule("plan.kept")
@pytest.mark.parametrize("goal", ["", "a book"])
def test_a_plan_that_is_kept_is_the_same_when_it_is_read(goal):
    kept = Plan([ALL_SAID, step("b")], goal)

    assert restored(decode(encode(whole(kept)))) == kept


@pytest.mark.rule("plan.kept")
def test_every_part_of_a_step_is_kept():
    assert set(whole(Plan([ALL_SAID]))["steps"][0]) == {field.name for field in fields(Step)}


def test_what_nobody_said_about_a_step_is_not_kept():
    assert whole(Plan([Step("a", "A")])) == {"steps": [{"id": "a", "title": "A"}]}


def test_a_schema_that_is_no_json_cannot_be_kept():
    with pytest.raises(BadInput, match=r"the schema of step 'a'.*is not JSON: object"):
        whole(plan(step("a", payload="structured", schema={"type": object()})))


def test_a_plan_that_is_too_large_cannot_be_kept():
    with pytest.raises(BadInput, match="a plan that is kept has at most 1,048,576 characters"):
        whole(plan(*(step(str(number), description="x" * 60_000) for number in range(20))))


@pytest.mark.parametrize(
    ("lead", "called"),
    [(Lead(plan(step("a")), 3, True), "plan"), (Lead(), "team"), (Lead(plan(step("a")), coordinated=True), "team")],
)
def test_what_is_led_is_the_same_when_it_is_read(lead, called):
    assert lead.led_as == called
    assert lead_restored(decode(encode(lead.data))) == lead


@pytest.mark.rule("plan.assigned")
def test_the_agent_chosen_for_a_capability_is_named():
    chosen = assigned(plan(step("a", agent="", capability="review code"), step("b", agent="cy")), TEAM)

    assert [one.agent for one in chosen.steps] == ["bob", "cy"]
    assert faults(chosen, TEAM) == []


@pytest.mark.rule("plan.written")
def test_a_plan_that_its_caller_wrote_has_every_word_that_a_step_has():
    assert plan_from_json(whole(Plan([ALL_SAID, step("b")], "a book"))) == Plan([ALL_SAID, step("b")], "a book")
    assert plan_from_json({"steps": [{"id": "a", "title": "A"}]}) == Plan([Step("a", "A")])


@pytest.mark.rule("plan.written")
@pytest.mark.parametrize(
    ("data", "why"),
    [
        ([], 'a plan is a JSON object with a list "steps"'),
        ({"steps": {}}, 'a plan is a JSON object with a list "steps"'),
        ({"steps": [], "name": "x"}, "a plan takes steps and a goal, and no 'name'"),
        ({"steps": [], "goal": 3}, "a goal"),
        ({"steps": ["a"]}, "step 1 is an object, not 'a'"),
        ({"steps": [{"id": "a"}]}, "step 1 has no title"),
        ({"steps": [{"id": "a", "title": "A", "colour": 1}]}, "step 1 may not have 'colour'; a step has id, title,"),
        ({"steps": [{"id": "a", "title": "A", "retries": 99}]}, "retries"),
    ],
)
def test_a_plan_that_its_caller_wrote_wrongly_is_refused(data, why):
    with pytest.raises(BadInput, match=why):
        plan_from_json(data)
