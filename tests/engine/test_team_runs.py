"""Teams: a coordinator plans, members work on what they are given, and the pieces are put together."""

import json
from time import process_time

import pytest

import remit
from engine.helping import listening
from remit import Plan, Refused, Runtime, Step, Turn
from remit.errors import BadInput
from remit.ports.turn import current_turn
from remit.types import Event, Outcome
from teams import echo

pytestmark = pytest.mark.anyio


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
    assert "plan.started" not in [event.kind for event in await rt.workspace.journal.history()]


async def test_a_team_needs_a_coordinator_that_exists(rt: Runtime):
    with pytest.raises(Refused, match="there is no agent 'boss'"):
        await rt.run_team("build it", "boss")


async def test_a_coordinator_that_hands_off_instead_of_planning_has_failed(rt: Runtime):
    boss(rt, remit.Command("ann"))
    with pytest.raises(remit.Failed, match="leads a team"):
        await rt.run_team("build it", "boss")


@pytest.mark.rule("turn.current")
async def test_the_turn_of_a_coordinator_is_the_current_one_while_it_answers(rt: Runtime):
    seen: list[bool] = []

    @rt.agent(asks="*")
    async def coordinator(turn: Turn):
        seen.append(current_turn() is turn)
        plan = {"steps": [{"id": "a", "title": "A", "description": "do it", "agent": "worker"}]}
        return plan if turn.phase == "plan" else "done"

    rt.agent("worker")(echo)
    assert await rt.run_team("a goal", "coordinator") == "done"
    assert seen == [True, True]


@pytest.mark.rule("team.no-wider")
@pytest.mark.parametrize(
    "more", [{"schema": {"$ref": "http://127.0.0.1:9/x"}}, {"memory_scope": "all"}, {"retries": 9}]
)
async def test_a_plan_with_more_than_a_model_may_say_goes_back_with_the_name_of_it(
    rt: Runtime, more: dict[str, object]
):
    told = listening(rt, "ann", "bob")
    wider = {"steps": [{**GOOD["steps"][0], **more}]}
    asked = boss(rt, wider, wider)
    with pytest.raises(remit.Failed, match="no plan was accepted, and nothing was started"):
        await rt.run_team("build it", "boss")
    assert f"step 1 may not have '{next(iter(more))}'" in asked[1]
    assert told["ann"] == []


@pytest.mark.rule("input.linear")
@pytest.mark.parametrize(
    "answer", ["```json" + "\n" * 50_000 + "x", "```" * 20_000, "```json\n" + "[" * 50_000 + "\n```"]
)
@pytest.mark.case("redos")
async def test_no_answer_of_a_coordinator_holds_up_the_loop(rt: Runtime, answer: str):
    boss(rt, answer, answer)
    began = process_time()
    with pytest.raises(remit.Failed, match="no plan was accepted"):
        await rt.run_team("build it", "boss")
    assert process_time() - began < 5  # by a pattern it was days


# -- a plan that is given -----------------------------------------------------------------------------------------

GIVEN = Plan([Step("a", "A", agent="ann"), Step("b", "B", capability="job bob", after=["a"])])


@pytest.mark.rule("team.given")
async def test_a_coordinator_with_a_plan_only_puts_the_pieces_together(rt: Runtime):
    told = listening(rt, "ann", "bob")
    asked = boss(rt)
    result = await rt.run_team("build it", "boss", plan=GIVEN, reveal=True)
    assert "### B (by bob): completed\nresult of bob" in result
    assert len(asked) == 1
    assert "build it" in told["ann"][0]


@pytest.mark.rule("team.given")
async def test_a_team_from_the_queue_and_one_of_an_agent_follow_a_plan_too(rt: Runtime):
    listening(rt, "ann", "bob")
    asked = boss(rt)

    @rt.agent(asks="boss")
    async def asker(turn: Turn) -> str:
        return await turn.run_team("build it", "boss", plan=GIVEN)

    async with rt.serving():
        task = await rt.submit_team("build it", "boss", plan=GIVEN)
        assert "result of bob" in await task.result()
        assert [step.state for step in (await task.plan_outcome()).steps.values()] == ["completed", "completed"]
    assert "result of bob" in await rt.run("asker", "go")
    assert len(asked) == 2


@pytest.mark.rule("team.given")
async def test_a_plan_with_a_step_for_somebody_the_coordinator_may_not_ask_is_refused(rt: Runtime):
    listening(rt, "ann", "bob")

    @rt.agent(asks="bob")
    async def boss(turn: Turn) -> str:
        return "never"

    with pytest.raises(remit.Failed, match="the plan was refused: step 'a'"):
        await rt.run_team("build it", "boss", plan=GIVEN)
    with pytest.raises(BadInput, match=r"run_team takes plan=Plan\(...\)"):
        await rt.run_team("build it", "boss", plan="a plan")  # pyright: ignore[reportArgumentType] - what is tested


@pytest.mark.rule("team.streamed")
async def test_teams_and_plans_are_followed_while_they_run(rt: Runtime):
    listening(rt, "ann", "bob")
    boss(rt)
    for stream in (rt.stream_team("build it", "boss", plan=GIVEN), rt.stream_plan(GIVEN, concurrency=1)):
        seen = [one async for one in stream]
        assert any(isinstance(one, Event) and one.kind == "plan.started" for one in seen[:-1])
        assert isinstance(seen[-1], Outcome)
        assert seen[-1].ok
    with pytest.raises(BadInput, match="stream_plan takes no 'aprove'"):
        rt.stream_plan(GIVEN, aprove=True)  # pyright: ignore[reportCallIssue] - what is tested
