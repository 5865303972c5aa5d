"""Results of models and programs before a person: edited, and sent back with a reason that the model reads."""

import sys
from typing import Any

import pytest
from pydantic import BaseModel

from adapters.places import KEY, KEY_NAME, KINDS, join, priced, served
from remit import Card, Runtime
from remit.adapters.process import program
from remit.testing.models import Says
from remit.types import AskedQuestion

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


@pytest.mark.rule("review.kinds", "review.sent-back")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_model_of_each_kind_is_told_why_its_result_came_back(kind: str):
    async def decide(question: AskedQuestion) -> None:
        if question.shows["result"] == "first":
            await question.reject("name the source", by="ann")
        else:
            await question.approve()

    async with served([Says("first"), Says("second")]) as place, priced() as rt:
        join(rt, kind, place, review=True)
        assert await rt.run("it", "write", on_question=decide) == "second"
        _, again = place.server.requests
        assert "ann has read your result and sent it back: name the source" in again.text
        assert "first" in again.text


class Verdict(BaseModel):
    ship: bool


@pytest.mark.rule("review.edited")
async def test_an_edited_result_must_fit_the_output_of_a_model():
    values: list[Any] = [{"ship": "perhaps"}, {"ship": True}]

    async def decide(question: AskedQuestion) -> None:
        await question.approve(values.pop(0))

    async with served([Says('{"ship": false}')]) as place, priced() as rt:
        join(rt, "pydantic-ai", place, review=True, form=Verdict)
        assert await rt.run("it", "judge", on_question=decide, returns=Verdict) == Verdict(ship=True)
        assert values == []


@pytest.mark.rule("review.kinds")
async def test_a_program_reads_why_its_result_came_back():
    decisions: list[str] = ["name the source", ""]

    async def decide(question: AskedQuestion) -> None:
        why = decisions.pop(0)
        await (question.reject(why, by="ann") if why else question.approve())

    with Runtime() as rt:
        rt.add(Card("it", review=True), program([sys.executable, "-c", "import sys; print(sys.stdin.read())"]))
        said = await rt.run("it", "go", on_question=decide)
        assert said.startswith("go")
        assert "ann has read your result and sent it back: name the source" in said
