"""Steps that people approve: all of them, those a function leaves to them, or those of an agent whose card says so."""

from collections.abc import Callable

import pytest

from engine.helping import PATIENCE, Shaky, doomed, ends, listening, sound, take_over
from engine.people import asked, counted, deployer, running, the_question
from remit import Plan, Runtime, Step, Turn
from remit.errors import BadInput
from remit.testing import FakeClock
from teams import team

pytestmark = pytest.mark.anyio

STEPS = [Step("a", "draft", agent="worker"), Step("b", "publish", agent="worker", after=["a"])]


def planner(rt: Runtime, approve_steps: object, steps: list[Step] = STEPS) -> None:
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> dict[str, list[str]]:
        outcome = await turn.run_plan(Plan(steps), approve_steps=approve_steps)  # pyright: ignore[reportArgumentType]
        return {one.id: [one.state, one.reason] for one in outcome.steps.values()}


@pytest.mark.rule("approval.plan")
async def test_a_person_approves_each_step(rt: Runtime):
    told = listening(rt, "worker")
    planner(rt, approve_steps=True)
    async with running(rt, "lead") as outcome:
        first = await the_question(rt)
        assert (first.kind, first.text) == ("tool", "step 'a' is to be done by 'worker': draft")
        assert first.shows == {"action": "step", "agent": "worker", "step": "a", "task": "draft"}
        assert (told["worker"], first.editable) == ([], "")
        with pytest.raises(BadInput) as no:
            await rt.workspace.questions.approve(first.id, value={"task": "another"})
        assert str(no.value).startswith(f"question {first.id} is about a step of a plan, which stays as it is; ")
        await rt.workspace.questions.approve(first.id)
        second = await the_question(rt)
        assert len(told["worker"]) == 1
        await rt.workspace.questions.reject(second.id, by="bob", why="not yet")
    assert outcome.result().value == {"a": ["completed", ""], "b": ["skipped", "it was not approved by bob: not yet"]}
    assert len(told["worker"]) == 1
    await sound(rt)


def plainly(step: Step) -> bool | str:
    return {"draft": True, "publish": "ask"}[step.title]


async def slowly(step: Step) -> bool | str:
    return plainly(step)


@pytest.mark.rule("approval.plan")
@pytest.mark.parametrize("approve", [plainly, slowly])
@pytest.mark.parametrize("yes", [True, False])
async def test_a_function_says_yes_or_leaves_it_to_a_person(rt: Runtime, approve: Callable[..., object], yes: bool):
    told = listening(rt, "worker")
    planner(rt, approve)
    async with running(rt, "lead") as outcome:
        question = await the_question(rt)
        assert question.shows["step"] == "b"
        await (rt.workspace.questions.approve(question.id) if yes else rt.workspace.questions.reject(question.id))
    assert outcome.result().value == {
        "a": ["completed", ""],
        "b": ["completed", ""] if yes else ["skipped", "it was not approved"],
    }
    assert len(told["worker"]) == (2 if yes else 1)
    await sound(rt)


@pytest.mark.rule("approval.plan")
@pytest.mark.parametrize("word", [False, None, "no", "yes", ""])
async def test_a_function_that_says_anything_else_has_said_no_and_asks_nobody(rt: Runtime, word: object):
    told = listening(rt, "worker")
    planner(rt, lambda step: word)
    async with running(rt, "lead") as outcome:
        pass
    assert outcome.result().value == {
        "a": ["skipped", "it was not approved"],
        "b": ["skipped", 'dependency "a" was skipped'],
    }
    assert told["worker"] == []
    assert (await counted(rt))["asked"] == 0


@pytest.mark.rule("approval.plan")
async def test_steps_that_are_ready_at_once_are_asked_about_at_once(rt: Runtime):
    listening(rt, "worker")
    steps = [Step(one, f"do {one}", agent="worker") for one in ("a", "b", "c")]
    planner(rt, approve_steps=True, steps=steps)
    async with running(rt, "lead") as outcome:
        questions = {str(one.shows["step"]): one.id for one in await asked(rt, 3)}
        for one in ("c", "a", "b"):
            await rt.workspace.questions.approve(questions[one])
    assert outcome.result().value == {one: ["completed", ""] for one in ("a", "b", "c")}


@pytest.mark.rule("approval.plan")
@pytest.mark.parametrize("approve", [True, lambda step: "ask"], ids=["a person", "a function"])
async def test_nobody_is_asked_again_about_a_step_after_a_restart(tmp_path, clock: FakeClock, approve: object):
    with doomed(tmp_path / "team.db", clock) as first, team(tmp_path / "team.db", clock=clock) as heir:
        for rt in (first, heir):
            told = listening(rt, "worker")
            planner(rt, approve)
        task = heir.workspace.tasks.get((await first.submit("lead", "x")).id)
        question = await the_question(first)
        await take_over(heir, clock, first)
        await heir.workspace.questions.approve(question.id)
        second = await the_question(heir)
        assert second.shows["step"] == "b"
        await heir.workspace.questions.approve(second.id)
        assert set(await task.result(PATIENCE)) == {"a", "b"}
        assert len(told["worker"]) == 2
        assert (await counted(heir))["asked"] == 2
        await sound(heir)


@pytest.mark.rule("approval.plan", "ask.once")
async def test_what_a_person_said_about_a_step_holds_when_the_task_is_tried_again(rt: Runtime, clock: FakeClock):
    listening(rt, "worker")
    tries: list[str] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        outcome = await turn.run_plan(Plan(STEPS[:1]), approve_steps=True)
        tries.append(turn.task)
        if len(tries) == 1:
            raise Shaky
        return [one.state for one in outcome.steps.values()]

    task = await rt.submit("lead", "x")
    await rt.workspace.questions.approve((await the_question(rt)).id)
    assert (await ends(clock, task)).value == ["completed"]
    assert len(tries) == 2
    assert (await counted(rt))["asked"] == 1


@pytest.mark.rule("approval.plan", "approval.used")
async def test_the_approval_of_a_step_is_on_record_as_used(rt: Runtime):
    listening(rt, "worker")
    planner(rt, approve_steps=True, steps=STEPS[:1])
    async with running(rt, "lead"):
        question = await the_question(rt)
        await rt.workspace.questions.approve(question.id)
    assert (await rt.workspace.questions.get(question.id)).used


@pytest.mark.rule("approval.plan", "approval.doors")
async def test_a_step_of_an_agent_that_is_to_be_approved_is_asked_about_by_the_door(rt: Runtime):
    told = deployer(rt)
    planner(rt, approve_steps=None, steps=[Step("a", "to prod", agent="deployer")])
    async with running(rt, "lead") as outcome:
        question = await the_question(rt)
        assert (question.kind, question.shows["action"]) == ("hop", "delegate")
        await rt.workspace.questions.reject(question.id, by="bob")
    no = "asking 'deployer' was not approved by bob; go on without it"
    assert outcome.result().value == {"a": ["failed", no]}
    assert told == []
