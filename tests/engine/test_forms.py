"""Typed results: `output=` checks what an agent returns, `returns=` gives its asker an object of the type."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import remit
from remit import END, Card, Command, Failed, Runtime, Turn
from remit.adapters.process import program
from remit.errors import BadInput, BadOutput
from remit.testing import Scripted

pytestmark = pytest.mark.anyio


@dataclass
class Finding:
    line: int


class Review(BaseModel):
    verdict: Literal["ship", "wait"]
    findings: list[Finding] = []


SHIP = {"verdict": "ship", "findings": [{"line": 7}]}
REVIEW = Review(verdict="ship", findings=[Finding(7)])
MISFIT = (
    r"'reviewer' failed: BadOutput: the result of 'reviewer' does not fit Review: findings\[0\]\.line: Input should"
)


@pytest.mark.rule("form.returns")
async def test_an_asker_gets_an_object_of_the_type_that_it_names(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> Any:
        review = await turn.delegate("reviewer", "review it", returns=Review)
        assert review == REVIEW
        again = await (await turn.submit("reviewer", "again")).result(returns=Review)
        assert again == REVIEW
        return [review, again]

    rt.add(Card("reviewer"), Scripted(SHIP))

    assert await rt.run("lead", "go", returns=list[Review]) == [REVIEW, REVIEW]
    assert await rt.run("lead", "go") == [SHIP, SHIP]


@pytest.mark.rule("form.returns", "form.place")
async def test_a_result_that_does_not_fit_raises_with_its_place_and_the_task_stays_completed(rt: Runtime):
    rt.add(Card("reviewer"), Scripted({"verdict": "ship", "findings": [{"line": "x"}]}))

    with pytest.raises(BadOutput, match=r"^the result of 'reviewer' does not fit Review: findings\[0\]\.line:") as no:
        await rt.run("reviewer", "go", returns=Review)
    task = await rt.workspace.tasks.get(no.value.task).status()
    assert (no.value.agent, task.state) == ("reviewer", "completed")


@pytest.mark.rule("form.returns")
async def test_what_is_no_type_is_refused_before_anything_runs(rt: Runtime):
    rt.add(Card("reviewer"), Scripted(SHIP))

    with pytest.raises(BadInput, match="returns takes a type"):
        await rt.run("reviewer", "go", returns="Review")
    assert await rt.workspace.journal.history() == []


@pytest.mark.rule("form.output")
async def test_an_output_becomes_json_of_its_type(rt: Runtime):
    @rt.agent(output=Review)
    async def reviewer(turn: Turn) -> Any:
        return REVIEW if turn.task == "object" else SHIP if turn.task == "json" else '{"verdict": "wait"}'

    assert await rt.run("reviewer", "object") == SHIP
    assert await rt.run("reviewer", "json") == SHIP
    assert await rt.run("reviewer", "text") == {"verdict": "wait", "findings": []}


@pytest.mark.rule("form.output", "form.place")
async def test_an_output_that_does_not_fit_fails_the_task_and_does_not_count_for_the_breaker(rt: Runtime):
    @rt.agent(output=Review)
    async def reviewer(turn: Turn) -> Any:
        return {"verdict": "ship", "findings": [{"line": "x"}]}

    for _ in range(7):
        with pytest.raises(Failed, match=MISFIT):
            await rt.run("reviewer", "go")
    assert {event.kind for event in await rt.workspace.journal.history()} == {"task.started", "task.failed"}


@pytest.mark.rule("form.output")
async def test_an_agent_that_hands_over_gives_no_result_and_one_that_ends_does(rt: Runtime):
    @rt.agent(asks="*", output=Review)
    async def first(turn: Turn) -> Any:
        return Command("second")

    @rt.agent(output=Review)
    async def second(turn: Turn) -> Any:
        return Command(END, result={"verdict": turn.task})

    assert await rt.run("first", "wait") == {"verdict": "wait", "findings": []}
    with pytest.raises(Failed, match="the result of 'second' does not fit Review: verdict: Input should be 'ship'"):
        await rt.run("first", "perhaps")


@pytest.mark.rule("form.output")
async def test_a_coordinator_writes_its_plan_freely_and_its_result_in_its_form(rt: Runtime):
    @rt.agent(asks="*", output=Review)
    async def lead(turn: Turn) -> Any:
        if turn.phase == "plan":
            return {"steps": [{"id": "a", "title": "Look", "agent": "reviewer"}]}
        return {"verdict": "wait"}

    rt.add(Card("reviewer", can="review"), Scripted("fine"))

    assert await rt.run_team("review it", "lead") == {"verdict": "wait", "findings": []}


@pytest.mark.rule("form.output")
async def test_programs_and_doubles_in_tests_are_checked_too(rt: Runtime):
    rt.add(Card("program"), program(["echo", '{"verdict": "ship"}']), output=Review)
    assert await rt.run("program", "go") == {"verdict": "ship", "findings": []}

    with rt.override(program=Scripted("nothing")), pytest.raises(Failed, match="the result of 'program' does not fit"):
        await rt.run("program", "go")
    with pytest.raises(BadInput, match="output takes a type"):
        rt.add(Card("other"), Scripted("a"), output=5)
    rt.add(Card("plain"), lambda turn: REVIEW, output=Review)
    assert await rt.run("plain", "go") == SHIP


@pytest.mark.rule("form.returns")
def test_a_script_gets_an_object_of_the_type_too():
    rt = Runtime()
    rt.add(Card("reviewer"), Scripted(SHIP))

    assert remit.run(rt, "reviewer", "go", returns=Review) == REVIEW
