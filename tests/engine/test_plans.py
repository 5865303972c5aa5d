"""Plans and teams: work that is planned, and agents that see only what they need."""

import gc
import random  # noqa: TID251 - seeded, so the same plan every time
import tracemalloc

import anyio
import pytest

import remit
from engine.helping import a_few_rounds, ends, listening
from remit import Bounds, Card, Plan, Runtime, Step, Turn, errors
from remit.report.tree import tree
from remit.testing import FakeClock

pytestmark = pytest.mark.anyio


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
    assert "plan.started" not in [event.kind for event in await rt.workspace.journal.history()]


async def test_a_step_can_be_for_any_agent_with_the_capability(rt: Runtime):
    told = listening(rt, "ann", "bob")
    outcome = await rt.run_plan(Plan([Step("a", "A", capability="job bob")]))
    assert outcome.steps["a"].agent == "bob"
    assert told["ann"] == []


@pytest.mark.rule("plan.bounds")
@pytest.mark.parametrize("how", ["run", "submit", "later"])
async def test_a_plan_within_bounds_needs_only_the_agents_of_its_steps(rt: Runtime, clock: FakeClock, how: str):
    told = listening(rt, "ann", "bob")
    within = Bounds(agents=["ann"])

    async def done(*steps: Step) -> dict[str, str]:
        if how == "run":
            outcome = await rt.run_plan(Plan([*steps]), within=within)
        else:
            task = await rt.submit_plan(Plan([*steps]), within=within, after=60 if how == "later" else 0)
            await ends(clock, task)
            outcome = await task.plan_outcome()
        return {name: step.state for name, step in outcome.steps.items()}

    assert await done(Step("a", "A", agent="ann"), Step("b", "B", agent="ann", after=["a"])) == {
        "a": "completed",
        "b": "completed",
    }
    with pytest.raises(errors.RemitError, match="bob"):
        await done(Step("a", "A", agent="bob"))
    assert (len(told["ann"]), told["bob"]) == (2, [])


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
    assert {one.id: (one.state, one.reason.split(" (")[0]) for one in outcome.steps.values()} == {
        "x": ("failed", "'bad' failed: ValueError: no"),
        "y": ("failed", 'dependency "x" failed'),
        "z": ("failed", 'dependency "y" failed'),
        "free": ("completed", ""),
    }
    root = tree(await rt.workspace.journal.history())
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
    outcome = await rt.run_plan(Plan(steps), approve_steps=approve)
    assert [one.state for one in outcome.steps.values()] == ["completed", "skipped", "skipped"]
    assert len(told["ann"]) == 1


@pytest.mark.rule("plan.drain")
async def test_when_the_runs_limits_are_spent_the_rest_is_skipped(rt: Runtime):
    async def spend(turn: Turn) -> str:
        await turn.report_tokens(tokens=9_000)
        return "ok"

    rt.add(Card("ann"), spend)
    steps = [Step(str(n), "S", agent="ann") for n in range(4)]
    outcome = await rt.run_plan(Plan(steps), within=Bounds(tokens=10_000), concurrency=1)
    assert [one.state for one in outcome.steps.values()] == ["completed", "failed", "failed", "skipped"]
    assert "18,000 of 10,000 tokens" in outcome.steps["1"].reason
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


@pytest.mark.deep
@pytest.mark.long
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
        done: dict[str, None] = {}
        after = {step.id: step.after for step in steps}

        @rt.agent
        async def worker(turn: Turn) -> str:
            title = turn.task.split("\n", 1)[0].removeprefix("# Task: S")
            assert all(one in done for one in after[title])
            done[title] = None
            return "ok"

        assert (await rt.run_plan(Plan(steps[:100]))).ok  # what grows once has grown
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
    root = tree(await rt.workspace.journal.history())
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


async def test_a_result_found_wanting_is_in_the_journal(rt: Runtime):
    listening(rt, "ann")
    await rt.run_plan(Plan([Step("a", "A", agent="ann", payload="structured")]))
    ended = [event.data for event in await rt.workspace.journal.history() if event.kind == "step.ended"]
    assert ended[0]["step"] == "a"
    assert "not JSON" in str(ended[0]["reason"])


async def test_a_step_that_is_handed_on_is_credited_to_who_did_it(rt: Runtime):
    told = listening(rt, "doer", "reader")

    @rt.agent(asks="*")
    async def greeter(turn: Turn) -> remit.Command:
        return remit.Command("doer")

    steps = [Step("a", "A", agent="greeter"), Step("b", "B", agent="reader", after=["a"])]
    outcome = await rt.run_plan(Plan(steps))
    assert outcome.steps["a"].agent == "doer"
    assert "### A (by doer)" in told["reader"][0]
