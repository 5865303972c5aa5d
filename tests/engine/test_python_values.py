"""Python objects as results, entries, payloads and effects: they become JSON, everywhere in the same way."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import pytest
from pydantic import BaseModel

from remit import END, Command, Failed, Runtime, Send, Turn, errors

pytestmark = pytest.mark.anyio


@dataclass
class Finding:
    line: int
    tags: object = ()


class Review(BaseModel):
    day: date
    findings: list[Finding]


REVIEW = Review(day=date(2026, 1, 2), findings=[Finding(7)])
PLAIN = {"day": "2026-01-02", "findings": [{"line": 7, "tags": []}]}


@pytest.mark.rule("input.objects")
async def test_an_asker_gets_the_objects_that_an_agent_returns_as_json(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> object:
        return [await turn.delegate("reviewer", "review it"), Decimal("1.5")]

    @rt.agent
    async def reviewer(turn: Turn) -> Review:
        return REVIEW

    assert await rt.run("lead", "go") == [PLAIN, "1.5"]


@pytest.mark.rule("input.objects")
async def test_an_object_without_a_form_fails_the_task_and_its_place_is_named(rt: Runtime):
    @rt.agent
    async def reviewer(turn: Turn) -> object:
        return {"findings": [Finding(1), Finding(2, {"a"})]}

    with pytest.raises(Failed, match=r"the result of 'reviewer' has a set at findings\[1\]\.tags; use a list"):
        await rt.run("reviewer", "go")


@pytest.mark.rule("input.objects")
async def test_entries_effects_payloads_and_results_of_handoffs_take_objects_too(rt: Runtime):
    @rt.agent(asks="*", writes="notes")
    async def first(turn: Turn) -> object:
        await turn.context.set("notes", "review", REVIEW)
        assert await turn.once("look", lambda: REVIEW) == PLAIN
        return Command([Send("second", [Finding(3)])], {"review": REVIEW}, join="third")

    @rt.agent
    async def second(turn: Turn) -> object:
        return turn.task

    @rt.agent(reads="notes")
    async def third(turn: Turn) -> object:
        await turn.context.get("notes", "review")
        return Command(END, result=[turn.handoff.state.context["review"], await turn.context.get("notes", "review")])

    assert await rt.run("first", "go") == [PLAIN, PLAIN]


@pytest.mark.rule("input.objects")
async def test_an_entry_that_has_no_form_says_where(rt: Runtime):
    with pytest.raises(errors.BadInput, match="a value has a set at tags; use a list"):
        await rt.workspace.context().set("notes", "a", {"tags": {1}})
