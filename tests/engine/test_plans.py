"""Plans and teams: work that is planned, and agents that see only what they need."""

import gc
import json
import random  # noqa: TID251 - seeded, so the same plan every time
import tracemalloc

import anyio
import pytest

import remit
from engine.helping import a_few_rounds
from remit import Bounds, Card, Plan, Refused, Runtime, Step, Turn, errors
from remit.report.tree import tree

pytestmark = pytest.mark.anyio


def listening(rt: Runtime, *names: str) -> dict[str, list[str]]:
    """Agents that note what they are told and answer with their name."""
    told: dict[str, list[str]] = {name: [] for name in names}

    async def note(turn: Turn) -> str:
        told[turn.agent].append(turn.task)
        return f"result of {turn.agent}"

    for name in names:
        rt.add(Card(name, role=f"role of {name}", can=[f"job {name}"]), note)
    return told


@pytest.mark.rule("plan.prompt")
async def test_a_step_without_dependencies_is_told_its_task_and_nothing_else(rt: Runtime):
    await rt.workspace.context().set("secret", "k", "v")
    told = listening(rt, "ann", "bob")
    await rt.run_plan(Plan([Step("a", "First", "Do this.", agent="ann"), Step("b", "Second", agent="bob")], "the goal"))
    assert told == {"ann": ["# Task: First\n\nDo this."], "bob": ["# Task: Second"]}


@pytest.mark.rule("plan.prompt", "plan.transitive")
async def test_a_step_is_told_its_dependencies_results_in_their_order(rt: Runtime):
    told = listening(rt, "ann", "bob", "cat", "dan", "eve")
    outcome = await rt.run_plan(
        Plan(
            [
                Step("a", "A", "do a", agent="ann"),
                Step("b", "B", "do b", agent="bob", after=["a"]),
                Step("c", "C", "do c", agent="cat", after=["b", "a"]),
                Step("d", "D", "do d", agent="dan", after=["b"]),
                Step("e", "E", "do e", agent="eve", after=["d"], context="transitive"),
            ]
        )
    )
    assert outcome.ok
    assert told["cat"] == [
        (
            "# Task: C\n\ndo c\n\n## Context from prerequisite tasks\n\n"
            "### B (by bob)\nresult of bob\n\n### A (by ann)\nresult of ann"
        )
    ]
    assert told["dan"] == ["# Task: D\n\ndo d\n\n## Context from prerequisite tasks\n\n### B (by bob)\nresult of bob"]
    assert told["eve"] == [
        (
            "# Task: E\n\ndo e\n\n## Context from prerequisite tasks\n\n"
            "### A (by ann)\nresult of ann\n\n### B (by bob)\nresult of bob\n\n### D (by dan)\nresult of dan"
        )
    ]


@pytest.mark.rule("plan.transitive")
async def test_memory_scope_all_is_a_summary_of_everything_so_far(rt: Runtime):
    told = listening(rt, "ann", "zed")

    @rt.agent
    async def long(turn: Turn) -> str:
        return "x" * 300

    await rt.run_plan(
        Plan(
            [
                Step("a", "A", agent="ann"),
                Step("l", "L", agent="long", after=["a"]),
                Step("z", "Z", agent="zed", after=["l"], memory_scope="all"),
            ]
        )
    )
    assert told["zed"] == [
        "# Task: Z\n\n## Shared memory\n\n- **A** (by ann): result of ann\n- **L** (by long): " + "x" * 197 + "…"
    ]


@pytest.mark.rule("plan.isolation")
async def test_what_a_step_may_not_see_changes_no_byte_of_its_prompt():
    prompts = []
    for noise in ("quiet", "loud"):
        with Runtime() as rt:
            told = listening(rt, "ann", "cat")

            @rt.agent
            async def bob(turn: Turn, noise: str = noise) -> str:
                await turn.context.set("shared", "k", noise)
                return noise * 10

            await rt.workspace.context().set("workspace", "k", noise)
            await rt.run_plan(
                Plan(
                    [
                        Step("a", "A", "a", agent="ann"),
                        Step("b", "B", noise, agent="bob"),
                        Step("c", "C", "c", agent="cat", after=["a"]),
                    ],
                    noise,
                )
            )
            prompts.append((told["ann"], told["cat"]))
    assert prompts[0] == prompts[1]


@pytest.mark.rule("team.messages", "plan.prompt")
async def test_messages_between_members_are_told_once_and_reach_no_one_outside(rt: Runtime):
    told = listening(rt, "bob", "outsider")

    @rt.agent(asks="*")
    async def ann(turn: Turn) -> str:
        await turn.send("bob", "mind the gap")
        with pytest.raises(Refused, match="members of its team"):
            await turn.send("outsider", "psst")
        return "sent"

    steps = [
        Step("a", "A", agent="ann"),
        Step("b", "B", "x", agent="bob", after=["a"]),
        Step("c", "C", "y", agent="bob", after=["b"]),
    ]
    await rt.run_plan(Plan(steps))
    assert told["bob"][0].endswith("\n\n## Messages from team members\n- **ann**: mind the gap")
    assert "Messages" not in told["bob"][1]
    assert told["outsider"] == []


async def test_reveal_tells_members_goal_and_roster(rt: Runtime):
    told = listening(rt, "ann", "bob")
    await rt.run_plan(Plan([Step("a", "A", "x", agent="ann"), Step("b", "B", agent="bob")], "ship it"), reveal=True)
    assert told["ann"] == [
        "# Goal: ship it\n\n## Team\n\n- **ann**: role of ann\n- **bob**: role of bob\n\n# Task: A\n\nx"
    ]


@pytest.mark.rule("plan.checked")
@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([], "no steps"),
        ([Step("a", "A", agent="ann", after=["a"])], "waits for itself"),
        ([Step("a", "A", agent="ann", after=["x"])], "not in the plan"),
        ([Step("a", "A", agent="ann", after=["b"]), Step("b", "B", agent="ann", after=["a"])], "wait for each other"),
        ([Step("a", "A", agent="nobody")], "cannot be asked"),
        ([Step("a", "A", capability="fly to the moon")], "no one can"),
        ([Step("a", "A", agent="ann", capability="paint")], "'ann' cannot"),
        ([Step("a", "A", agent="ann"), Step("a", "B", agent="ann")], "two steps have the id"),
        ([Step("a", "A")], "neither an agent nor a capability"),
        ([Step("a", "A", agent="ann", payload="structured", schema={"type": 7})], "not a JSON Schema"),
    ],
)
async def test_a_plan_with_a_fault_starts_nothing(rt: Runtime, steps: list[Step], reason: str):
    told = listening(rt, "ann")
    with pytest.raises(errors.BadInput, match=reason):
        await rt.run_plan(Plan(steps))
    assert told["ann"] == []
    assert "plan.started" not in [event.kind for event in await rt.workspace.history()]


async def test_a_step_can_be_for_whoever_has_the_capability(rt: Runtime):
    told = listening(rt, "ann", "bob")
    outcome = await rt.run_plan(Plan([Step("a", "A", capability="job bob")]))
    assert outcome.steps["a"].agent == "bob"
    assert told["ann"] == []


@pytest.mark.rule("plan.events")
async def test_a_step_starts_as_soon_as_its_own_dependencies_are_done(rt: Runtime):
    """`slow` is held until `last` has run, so `last` cannot be waiting for it."""
    finished = anyio.Event()

    @rt.agent
    async def slow(turn: Turn) -> str:
        await finished.wait()
        return "slow"

    @rt.agent
    async def last(turn: Turn) -> str:
        finished.set()
        return "last"

    listening(rt, "ann")
    steps = [Step("s", "S", agent="slow"), Step("a", "A", agent="ann"), Step("l", "L", agent="last", after=["a"])]
    assert (await rt.run_plan(Plan(steps))).ok


@pytest.mark.rule("plan.events")
async def test_no_more_than_the_limit_run_at_a_time(rt: Runtime):
    running = most = 0

    @rt.agent
    async def worker(turn: Turn) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await a_few_rounds()
        running -= 1
        return "ok"

    await rt.run_plan(Plan([Step(str(n), "S", agent="worker") for n in range(20)]))
    assert most == 5
    most = 0
    await rt.run_plan(Plan([Step(str(n), "S", agent="worker") for n in range(20)]), concurrency=2)
    assert most == 2
    with pytest.raises(errors.BadInput, match="concurrency"):
        await rt.run_plan(Plan([Step("a", "A", agent="worker")]), concurrency=0)


@pytest.mark.rule("plan.failure")
async def test_a_failure_reaches_exactly_those_who_depend_on_it(rt: Runtime):
    listening(rt, "ann")

    @rt.agent
    async def bad(turn: Turn) -> str:
        raise ValueError("no")

    outcome = await rt.run_plan(
        Plan(
            [
                Step("x", "X", agent="bad"),
                Step("y", "Y", agent="ann", after=["x"]),
                Step("z", "Z", agent="ann", after=["y"]),
                Step("free", "F", agent="ann"),
            ]
        )
    )
    assert {one.id: (one.state, one.reason) for one in outcome.steps.values()} == {
        "x": ("failed", "'bad' failed: ValueError: no"),
        "y": ("failed", 'dependency "x" failed'),
        "z": ("failed", 'dependency "y" failed'),
        "free": ("completed", ""),
    }
    root = tree(await rt.workspace.history())
    assert root is not None
    assert root.state == "failed"


@pytest.mark.rule("plan.drain")
async def test_an_aborted_plan_finishes_what_runs_and_skips_the_rest(rt: Runtime):
    abort = anyio.Event()

    @rt.agent
    async def worker(turn: Turn) -> str:
        abort.set()
        return "ok"

    steps = [
        Step("a", "A", agent="worker"),
        Step("b", "B", agent="worker", after=["a"]),
        Step("c", "C", agent="worker"),
    ]
    outcome = await rt.run_plan(Plan(steps), abort=abort, concurrency=1)
    assert {one.id: one.state for one in outcome.steps.values()} == {"a": "completed", "b": "skipped", "c": "skipped"}
    assert outcome.steps["b"].reason == "the plan was aborted"


@pytest.mark.rule("plan.drain")
async def test_a_step_that_is_not_approved_is_skipped_and_so_is_the_rest(rt: Runtime):
    told = listening(rt, "ann")

    async def approve(step: Step) -> bool:
        return step.id != "b"

    steps = [
        Step(one, one.upper(), agent="ann", after=list(before)) for one, before in (("a", ""), ("b", "a"), ("c", "b"))
    ]
    outcome = await rt.run_plan(Plan(steps), approve=approve)
    assert [one.state for one in outcome.steps.values()] == ["completed", "skipped", "skipped"]
    assert len(told["ann"]) == 1


@pytest.mark.rule("plan.drain")
async def test_when_the_runs_limits_are_spent_the_rest_is_skipped(rt: Runtime):
    async def spend(turn: Turn) -> str:
        turn.used(tokens=9_000)
        return "ok"

    rt.add(Card("ann"), spend)
    steps = [Step(str(n), "S", agent="ann") for n in range(4)]
    outcome = await rt.run_plan(Plan(steps), within=Bounds(tokens=10_000), concurrency=1)
    assert [one.state for one in outcome.steps.values()] == ["completed", "completed", "failed", "skipped"]
    assert "18,000 of 10,000 tokens" in outcome.steps["2"].reason


@pytest.mark.rule("plan.structured")
async def test_a_structured_result_fits_its_schema_or_the_step_has_failed(rt: Runtime):
    answers = iter(['{"n": 1}', {"n": 2}, "n is 3", '{"n": "four"}', {"n": 5, "big": "x" * 70_000}])

    @rt.agent
    async def ann(turn: Turn) -> object:
        return next(answers)

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    steps = [Step(str(n), "S", agent="ann", payload="structured", schema=schema) for n in range(5)]
    outcome = await rt.run_plan(Plan(steps), concurrency=1)
    found = list(outcome.steps.values())
    assert [one.value for one in found[:2]] == [{"n": 1}, {"n": 2}]
    assert [one.state for one in found] == ["completed", "completed", "failed", "failed", "failed"]
    assert "not JSON" in found[2].reason
    assert "does not fit its schema: n: 'four' is not of type 'integer'" in found[3].reason
    assert "at most 65,536" in found[4].reason


@pytest.mark.rule("plan.retries")
async def test_a_step_is_tried_again_as_often_as_it_says(rt: Runtime):
    tries: list[str] = []

    @rt.agent
    async def flaky(turn: Turn) -> str:
        tries.append(turn.task)
        if len(tries) < 3:
            raise ConnectionError("down")
        return "up"

    outcome = await rt.run_plan(Plan([Step("a", "A", agent="flaky", retries=2)]))
    assert outcome.steps["a"].value == "up"
    assert len(tries) == 3
    assert len(set(tries)) == 1


async def test_an_agent_can_run_a_plan_with_those_it_may_ask(rt: Runtime):
    listening(rt, "ann", "bob")

    @rt.agent(asks=["ann"])
    async def lead(turn: Turn) -> str:
        with pytest.raises(errors.BadInput, match="'bob', who cannot be asked"):
            await turn.run_plan(Plan([Step("b", "B", agent="bob")]))
        outcome = await turn.run_plan(Plan([Step("a", "A", agent="ann")]))
        return str(outcome.steps["a"].value)

    assert await rt.run("lead", "go") == "result of ann"


@pytest.mark.rule("sight.receipt")
async def test_a_steps_receipt_names_the_results_it_was_told(rt: Runtime):
    listening(rt, "ann", "bob")
    await rt.run_plan(Plan([Step("a", "A", agent="ann"), Step("b", "B", agent="bob", after=["a"])]))
    root = tree(await rt.workspace.history())
    assert root is not None
    assert [(what, why) for what, why, *_ in root.children[1].saw] == [("step a", "dependency"), ("task", "task")]


async def test_a_thousand_steps_run_in_order_with_flat_memory():
    chance = random.Random(7)
    steps = [
        Step(
            str(n),
            f"S{n}",
            agent="worker",
            after=[str(b) for b in chance.sample(range(n), min(n, chance.randint(0, 3)))],
        )
        for n in range(1000)
    ]
    with Runtime() as rt:
        done: list[str] = []

        @rt.agent
        async def worker(turn: Turn) -> str:
            title = turn.task.split("\n", 1)[0].removeprefix("# Task: S")
            assert set(next(step.after for step in steps if step.id == title)) <= set(done)
            done.append(title)
            return "ok"

        for _ in range(2):  # the second time everything that grows once has grown
            done.clear()
            gc.collect()
            tracemalloc.start()
            outcome = await rt.run_plan(Plan(steps))
            assert outcome.ok
            del outcome
            gc.collect()
            left = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
        assert len(done) == 1000
        assert left < 1_000_000


@pytest.mark.parametrize("bad", ["a plan", None, [], {"steps": []}])
async def test_what_is_not_a_plan_is_told_so(rt: Runtime, bad):
    with pytest.raises(errors.BadInput, match="takes a Plan"):
        await rt.run_plan(bad)


async def test_results_too_long_to_be_told_fail_the_step_and_not_the_plan(rt: Runtime):
    @rt.agent
    async def writer(turn: Turn) -> str:
        return "x" * 700_000

    told = listening(rt, "reader", "bystander")
    outcome = await rt.run_plan(
        Plan(
            [
                Step("a", "A", agent="writer"),
                Step("b", "B", agent="writer"),
                Step("c", "C", agent="reader", after=["a", "b"]),
                Step("d", "D", agent="bystander", after=["a"]),
            ]
        )
    )
    assert {one.id: one.state for one in outcome.steps.values()} == {
        "a": "completed",
        "b": "completed",
        "c": "failed",
        "d": "completed",
    }
    assert "a task has at most 1,048,576 characters" in outcome.steps["c"].reason
    assert told["reader"] == []
    assert len(told["bystander"]) == 1


async def test_a_plan_that_went_well_is_a_run_that_went_well_however_long_its_results(rt: Runtime):
    @rt.agent
    async def writer(turn: Turn) -> str:
        return "x" * 700_000

    assert (await rt.run_plan(Plan([Step("a", "A", agent="writer"), Step("b", "B", agent="writer")]))).ok
    root = tree(await rt.workspace.history())
    assert root is not None
    assert (root.state, root.result) == ("completed", {"a": "completed", "b": "completed"})


async def test_failed_plans_do_not_keep_good_ones_from_running(rt: Runtime):
    async def fail(turn: Turn) -> str:
        raise ValueError("no")

    listening(rt, "ann")
    for number in range(4):
        rt.add(Card(f"bad-{number}"), fail)
        assert not (await rt.run_plan(Plan([Step("a", "A", agent=f"bad-{number}")]))).ok
    assert (await rt.run_plan(Plan([Step("a", "A", agent="ann")]))).ok


async def test_retries_that_run_into_the_breaker_still_tell_what_went_wrong(rt: Runtime):
    @rt.agent
    async def bad(turn: Turn) -> str:
        raise ValueError("the real reason")

    outcome = await rt.run_plan(Plan([Step("a", "A", agent="bad", retries=9)]))
    assert "the real reason" in outcome.steps["a"].reason


@pytest.mark.rule("team.messages")
async def test_messages_wait_for_a_step_that_was_refused(rt: Runtime):
    told = listening(rt, "bob")

    @rt.agent(asks="*")
    async def ann(turn: Turn) -> str:
        await turn.send("bob", "important")
        return "sent"

    await rt.workspace.trip("bob", "away")
    steps = [Step("a", "A", agent="ann"), Step("b", "B", agent="bob", after=["a"])]
    assert not (await rt.run_plan(Plan(steps), session="one")).ok
    await rt.workspace.reset("bob")
    await rt.run_plan(Plan([Step("b", "B", agent="bob")]), session="one")
    assert told["bob"] == ["# Task: B\n\n## Messages from team members\n- **ann**: important"]


async def test_a_result_found_wanting_is_in_the_journal(rt: Runtime):
    listening(rt, "ann")
    await rt.run_plan(Plan([Step("a", "A", agent="ann", payload="structured")]))
    ended = [event.data for event in await rt.workspace.history() if event.kind == "step.ended"]
    assert ended[0]["step"] == "a"
    assert "not JSON" in str(ended[0]["reason"])


@pytest.mark.rule("plan.drain")
async def test_whoever_is_to_approve_and_fails_has_not_approved(rt: Runtime):
    told = listening(rt, "ann")

    async def approve(step: Step) -> bool:
        raise ConnectionError("nobody there")

    outcome = await rt.run_plan(Plan([Step("a", "A", agent="ann")]), approve=approve)
    assert outcome.steps["a"].reason == "asking for approval failed: ConnectionError: nobody there"
    assert told["ann"] == []


async def test_a_step_that_is_handed_on_is_credited_to_who_did_it(rt: Runtime):
    told = listening(rt, "doer", "reader")

    @rt.agent(asks="*")
    async def greeter(turn: Turn) -> remit.Command:
        return remit.Command("doer")

    steps = [Step("a", "A", agent="greeter"), Step("b", "B", agent="reader", after=["a"])]
    outcome = await rt.run_plan(Plan(steps))
    assert outcome.steps["a"].agent == "doer"
    assert "### A (by doer)" in told["reader"][0]


# -- teams ---------------------------------------------------------------------------------------------


def boss(rt: Runtime, *plans: object) -> list[str]:
    """A coordinator that answers with these plans, one after the other, and then repeats what it is told."""
    asked: list[str] = []
    answers = iter(plans)

    @rt.agent("boss", asks="*")
    async def lead(turn: Turn) -> object:
        asked.append(turn.task)
        return f"all told: {turn.task}" if turn.phase == "synthesis" else next(answers)

    return asked


GOOD = {"steps": [{"id": "a", "title": "A", "agent": "ann"}, {"id": "b", "title": "B", "agent": "bob", "after": ["a"]}]}


@pytest.mark.rule("team.synthesis")
@pytest.mark.parametrize("form", [GOOD, json.dumps(GOOD), f"```json\n{json.dumps(GOOD)}\n```"])
async def test_a_coordinator_plans_and_puts_the_pieces_together(rt: Runtime, form: object):
    told = listening(rt, "ann", "bob")
    asked = boss(rt, form)
    result = await rt.run_team("build it", "boss")
    assert "### A (by ann): completed\nresult of ann" in result
    assert "### B (by bob): completed\nresult of bob" in result
    assert told["ann"] == ["# Task: A"]
    assert "- **ann**: role of ann; can job ann" in asked[0]
    assert rt.running() == 0


@pytest.mark.rule("team.synthesis")
async def test_the_synthesis_sees_failed_and_skipped_steps(rt: Runtime):
    @rt.agent
    async def ann(turn: Turn) -> str:
        raise ValueError("broke")

    listening(rt, "bob")
    boss(rt, GOOD)
    result = await rt.run_team("build it", "boss")
    assert "### A (by ann): failed\n'ann' failed: ValueError: broke" in result
    assert '### B (by bob): failed\ndependency "a" failed' in result


@pytest.mark.rule("team.plan")
async def test_an_invalid_plan_goes_back_once_with_the_reasons(rt: Runtime):
    listening(rt, "ann", "bob")
    asked = boss(rt, "first I would like to talk about it", GOOD)
    assert (await rt.run_team("build it", "boss")).startswith("all told")
    assert "## Your last plan was not accepted\n\n- the answer is not JSON" in asked[1]


@pytest.mark.rule("team.plan", "team.no-wider")
@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ("prose", "not JSON"),
        ('{"steps": [', "not JSON"),
        ({"plan": []}, "a list"),
        ({"steps": []}, "no steps"),
        ({"steps": [{"id": "a", "title": "A", "agent": "nobody"}]}, "cannot be asked"),
        ({"steps": [{"id": "a", "title": "A", "agent": "ann", "after": ["a"]}]}, "waits for itself"),
        (
            {"steps": [{"id": n, "title": n, "agent": "ann", "after": [m]} for n, m in (("a", "b"), ("b", "a"))]},
            "wait for each other",
        ),
        ({"steps": [{"id": str(n), "title": "A", "agent": "ann"} for n in range(10_000)]}, "at most 100"),
        ({"steps": [{"id": "a", "title": "A", "agent": "ann", "memory_scope": "all"}]}, "not the plan's to say"),
        ({"steps": [{"id": "a", "title": "A", "agent": "ann", "context": "transitive"}]}, "not the plan's to say"),
        ({"steps": [{"id": "a", "title": "A", "agent": "boss"}]}, "cannot be asked"),
        ({"steps": [{"id": "a", "title": "A", "agent": "ann", "bounds": {}}]}, "may not have 'bounds'"),
        ({"steps": [7]}, "is an object"),
        ("[" * 100_000, "not JSON"),
    ],
)
async def test_a_coordinator_that_cannot_plan_starts_nothing(rt: Runtime, plan: object, reason: str):
    told = listening(rt, "ann")
    boss(rt, plan, plan)
    with pytest.raises(remit.Failed, match="nothing was started") as info:
        await rt.run_team("build it", "boss")
    assert reason in str(info.value)
    assert told["ann"] == []
    assert "plan.started" not in [event.kind for event in await rt.workspace.history()]


async def test_a_team_needs_a_coordinator_that_exists(rt: Runtime):
    with pytest.raises(Refused, match="there is no agent 'boss'"):
        await rt.run_team("build it", "boss")


async def test_a_coordinator_that_hands_off_instead_of_planning_has_failed(rt: Runtime):
    boss(rt, remit.Command("ann"))
    with pytest.raises(remit.Failed, match="leads a team"):
        await rt.run_team("build it", "boss")
