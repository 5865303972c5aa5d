"""Running a plan again from a step: the step and what depends on it, and nothing else."""

from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, doomed, happened, sound, take_over
from remit import Plan, Runtime, Step, Task, Turn
from remit.errors import BadInput, Conflict, Failed, NotFound
from remit.report.tree import tree
from remit.testing import FakeClock
from remit.types import Event
from teams import team

pytestmark = pytest.mark.anyio

#   a - b - d
#     \ c - e     f
DIAMOND = Plan(
    [
        Step("a", "A", agent="part"),
        Step("b", "B", agent="part", after=["a"]),
        Step("c", "C", agent="part", after=["a"]),
        Step("d", "D", agent="part", after=["b"]),
        Step("e", "E", agent="part", after=["c"]),
        Step("f", "F", agent="part"),
    ],
    goal="a cake",
)


class Kitchen:
    """Agents that count what they do, and fail or wait at the steps that they are told."""

    def __init__(self, rt: Runtime) -> None:
        self.done = Counter[str]()
        self.fails: set[str] = set()
        self.waits: set[str] = set()
        self.reached = anyio.Event()
        self.effects = Counter[str]()
        self.round = 1
        self.rt = rt

        @rt.agent
        async def part(turn: Turn) -> str:
            step = turn.task.split("\n")[0].removeprefix("# Task: ")
            self.done[step] += 1
            await turn.once("mix", lambda: self.effects.update([step]))
            if step in self.waits:
                self.reached.set()
                await anyio.sleep_forever()
            if step in self.fails:
                raise ValueError(f"{step} burned")
            return f"{step}{self.round}"

    async def again(self, run: Task, step: str, **how: Any) -> Task:
        """Run a plan again from a step, with everything counted from zero."""
        self.done.clear()
        self.effects.clear()
        self.round += 1
        await self.rt.workspace.agents.reset("part")
        return await self.rt.workspace.tasks.retry(run.id, from_step=step, **how)


async def history(rt: Runtime, run: str) -> list[Event]:
    return await rt.workspace.journal.history(run=run)


async def values(run: Task) -> dict[str, Any]:
    await run.wait(PATIENCE)
    return {name: step.value for name, step in (await run.plan_outcome()).steps.items()}


@pytest.mark.rule("retry.from-step")
async def test_a_finished_plan_runs_again_from_a_step_and_what_depends_on_it(anywhere: Runtime):
    async with anywhere as rt:
        kitchen = Kitchen(rt)
        run = await rt.submit_plan(DIAMOND)
        first = {"a": "A1", "b": "B1", "c": "C1", "d": "D1", "e": "E1", "f": "F1"}
        assert await values(run) == first
        events = await history(rt, run.id)
        again = await kitchen.again(run, "b", by="ann")
        assert await values(again) == {**first, "b": "B2", "d": "D2"}
        assert (kitchen.done, kitchen.effects) == (Counter("BD"), Counter("BD"))
        assert (await history(rt, again.id))[0].data["forked"] == {"run": run.id, "at": events[-2].seq, "step": "b"}
        drawn = tree(await history(rt, again.id))
        assert drawn is not None
        [plan] = drawn.plans
        assert {step.id: (step.state, step.tries) for step in plan} == {
            name: ("completed", int(name in "bd")) for name in first
        }
        third = await kitchen.again(again, "e")
        assert await values(third) == {**first, "b": "B2", "d": "D2", "e": "E3"}
        assert kitchen.done == Counter("E")
        assert await values(await kitchen.again(third, "a")) == {name: f"{name.upper()}4" for name in "abcde"} | {
            "f": "F1"
        }
        assert await history(rt, run.id) == events
        await sound(rt)


@pytest.mark.rule("retry.from-step")
async def test_a_failed_plan_keeps_results_and_continues_the_steps_without_one(rt: Runtime):
    kitchen = Kitchen(rt)
    kitchen.fails = {"B", "F"}
    run = await rt.submit_plan(DIAMOND, attempts=1)
    assert not (await run.wait(PATIENCE)).ok
    again = await kitchen.again(run, "b", op="once")
    assert not (await again.wait(PATIENCE)).ok  # it fails again, and can be retried in both ways
    assert (kitchen.done, kitchen.effects) == (Counter("BF"), Counter("B"))  # F had mixed, and continues
    assert (await rt.workspace.tasks.retry(run.id, from_step="b", op="once")).id == again.id
    kitchen.fails = {"F"}
    await rt.workspace.agents.reset("part")
    plain = await rt.workspace.tasks.retry(again.id)
    assert not (await plain.wait(PATIENCE)).ok
    assert kitchen.done == Counter("BFBDF")
    kitchen.fails = set()
    last = await kitchen.again(plain, "d")
    found = {"a": "A1", "b": "B2", "c": "C1", "d": "D3", "e": "E1", "f": "F3"}
    assert await values(last) == found
    assert (kitchen.done, kitchen.effects) == (Counter("DF"), Counter("D"))
    kitchen.fails = {"B"}
    first = await rt.workspace.tasks.retry(run.id)  # the retry of the original finds nothing of the others
    assert not (await first.wait(PATIENCE)).ok
    assert kitchen.done == Counter("DFBF")
    await sound(rt)


@pytest.mark.rule("retry.from-step")
async def test_a_cancelled_plan_runs_again_also_from_a_step_that_was_never_reached(rt: Runtime):
    kitchen = Kitchen(rt)
    kitchen.waits = {"B"}
    run = await rt.submit_plan(DIAMOND, concurrency=1)
    with anyio.fail_after(PATIENCE):
        await kitchen.reached.wait()
    with pytest.raises(Conflict, match="is running; cancel it or wait until it has ended, then retry it from a step"):
        await rt.workspace.tasks.retry(run.id, from_step="b")
    await run.cancel()
    await run.wait(PATIENCE)
    kitchen.waits = set()
    before = Counter(kitchen.done)
    again = await kitchen.again(run, "d")
    assert (await again.wait(PATIENCE)).ok
    assert kitchen.done == Counter("ABCDEF") - before + Counter("B")
    assert "B" not in kitchen.effects  # its effect was done before the cancel
    await sound(rt)


@pytest.mark.rule("retry.from-step")
async def test_a_plan_of_an_agent_or_a_team_or_a_program_runs_again_too(rt: Runtime):
    kitchen = Kitchen(rt)
    told: list[str] = []

    @rt.agent(asks="*")
    async def boss(turn: Turn) -> object:
        told.append(turn.phase)
        await turn.once("before", lambda: told.append("before"))
        if turn.phase == "plan":
            return {"steps": [{"id": "a", "title": "A", "agent": "part"}, {"id": "b", "title": "B", "agent": "part"}]}
        if turn.phase == "synthesis":
            return "done"
        outer = [Step("x", "X", agent="part"), Step("y", "inner", agent="inner"), Step("z", "Z", agent="part")]
        done = await turn.run_plan(Plan([*outer, Step("w", "W", agent="part", after=["y"])]))
        await turn.once("after", lambda: told.append("after"))
        return {name: step.value for name, step in done.steps.items()}

    @rt.agent(asks="*")
    async def inner(turn: Turn) -> str:
        await turn.once("inside", lambda: told.append("inside"))
        return str((await turn.run_plan(DIAMOND)).states()["d"])

    run = await rt.submit("boss", "go")
    assert await run.result(PATIENCE) == {"x": "X1", "y": "completed", "z": "Z1", "w": "W1"}
    told.clear()
    again = await kitchen.again(run, "d")
    assert await again.result(PATIENCE) == {"x": "X1", "y": "completed", "z": "Z1", "w": "W2"}
    assert (kitchen.done, told) == (Counter("DW"), ["", "after"])
    team = await rt.submit_team("a cake", "boss")
    await team.result(PATIENCE)
    told.clear()
    assert await (await kitchen.again(team, "a")).result(PATIENCE) == "done"
    assert (kitchen.done, told) == (Counter("A"), ["synthesis", "before"])
    await rt.run_plan(DIAMOND)
    [line, *_] = await rt.workspace.tasks.runs(1)
    assert (await (await kitchen.again(rt.workspace.tasks.get(line.record.id), "e")).wait(PATIENCE)).ok
    assert kitchen.done == Counter("E")
    await sound(rt)


@pytest.mark.rule("retry.from-step")
async def test_a_step_that_was_refused_is_requested_again(rt: Runtime):
    kitchen = Kitchen(rt)

    @rt.agent
    async def other(turn: Turn) -> str:
        return "other"

    await rt.workspace.agents.trip("other", "broken")
    steps = [Step("a", "A", agent="part"), Step("b", "B", agent="other"), Step("c", "C", agent="part", after=["b"])]
    run = await rt.submit_plan(Plan(steps), attempts=1)
    assert not (await run.wait(PATIENCE)).ok
    await rt.workspace.agents.reset("other")
    assert await values(await kitchen.again(run, "c")) == {"a": "A1", "b": "other", "c": "C2"}
    assert kitchen.done == Counter("C")


@pytest.mark.rule("retry.from-step")
async def test_a_step_whose_result_was_rejected_is_done_again(rt: Runtime):
    kitchen = Kitchen(rt)
    answers = ["no JSON", '{"score": 1}']

    @rt.agent
    async def judge(turn: Turn) -> str:
        return answers.pop(0)

    steps = [Step("a", "A", agent="part"), Step("b", "B", agent="judge", payload="structured")]
    run = await rt.submit_plan(Plan(steps), attempts=1)
    assert not (await run.wait(PATIENCE)).ok
    assert await values(await kitchen.again(run, "a")) == {"a": "A2", "b": {"score": 1}}
    assert kitchen.done == Counter("A")


@pytest.mark.rule("retry.from-step")
async def test_a_step_is_approved_again_and_the_others_are_not(rt: Runtime):
    Kitchen(rt)
    asked: list[str] = []
    answers = {"a": True, "b": False, "c": True}

    async def may_start(step: Step) -> bool:
        asked.append(step.id)
        return answers[step.id]

    @rt.agent(asks="*")
    async def boss(turn: Turn) -> str:
        steps = [Step("a", "A", agent="part"), Step("c", "C", agent="part", after=["a"])]
        plan = Plan([*steps, Step("b", "B", agent="part", after=["c"])])
        return str((await turn.run_plan(plan, approve_steps=may_start)).states())

    run = await rt.submit("boss", "go")
    assert "skipped" in await run.result(PATIENCE)
    answers["b"] = True
    again = await rt.workspace.tasks.retry(run.id, from_step="b")
    assert "skipped" not in await again.result(PATIENCE)
    assert asked == ["a", "c", "b", "b"]
    await sound(rt)


@pytest.mark.rule("retry.from-step")
async def test_a_plan_that_runs_again_from_a_step_goes_on_in_another_process(tmp_path: Path, clock: FakeClock):
    dead, heir = doomed(tmp_path / "team.db", clock), team(tmp_path / "team.db", clock=clock)
    with dead, heir:
        first = Kitchen(dead)
        run = await dead.submit_plan(DIAMOND)
        await run.wait(PATIENCE)
        first.waits = {"D"}
        again = await first.again(run, "b")
        await happened(first.reached)
        second = Kitchen(heir)
        await take_over(heir, clock, dead)
        done = heir.workspace.tasks.get(again.id)
        assert await values(done) == {"a": "A1", "b": "B2", "c": "C1", "d": "D1", "e": "E1", "f": "F1"}
        assert (second.done, second.effects) == (Counter("D"), Counter())
        await sound(heir)


@pytest.mark.rule("retry.from-step-refused")
async def test_what_cannot_run_again_from_a_step_is_refused_with_the_reason(rt: Runtime):
    Kitchen(rt)

    @rt.agent(asks="*")
    async def twice(turn: Turn) -> str:
        await turn.run_plan(Plan([Step("a", "A", agent="part")]))
        await turn.run_plan(Plan([Step("a", "A again", agent="part")]))
        return await turn.delegate("part", "x")

    retry = rt.workspace.tasks.retry
    run = await rt.submit_plan(DIAMOND)
    await run.wait(PATIENCE)
    long = Plan([Step("compare", "A", agent="part")])
    other = await rt.submit_plan(long)
    await other.wait(PATIENCE)
    with pytest.raises(BadInput, match="there is no step 'compair' in the plan of run .*; did you mean compare"):
        await retry(other.id, from_step="compair")
    with pytest.raises(BadInput, match="there is no step 'zz' .*; it has 'a', 'b', 'c', 'd', 'e', 'f'$"):
        await retry(run.id, from_step="zz")
    with pytest.raises(NotFound, match="there is no task"):
        await retry("nowhere", from_step="a")
    child = next(event.task for event in await history(rt, run.id) if event.data.get("step") == "a")
    with pytest.raises(BadInput, match="is a part of run .*; retry that run from the step"):
        await retry(child, from_step="a")
    run = await rt.submit("twice", "go")
    await run.wait(PATIENCE)
    with pytest.raises(BadInput, match="is in 2 plans of run .*; fork the run at the last event before that step"):
        await retry(run.id, from_step="a")
    run = await rt.submit("part", "x")
    await run.wait(PATIENCE)
    with pytest.raises(Conflict, match="has started no plan, .*; retry it as a whole"):
        await retry(run.id, from_step="a")
    with pytest.raises(BadInput, match="from_step"):
        await retry(run.id, from_step="")
    with pytest.raises(Failed):
        await rt.run_plan(Plan([Step("a", "A", agent="part")]), approve_steps=lambda _: 1 / 0)
    [line, *_] = await rt.workspace.tasks.runs(1)
    with pytest.raises(Conflict, match="run by a program, with approve_steps="):
        await retry(line.record.id, from_step="a")
