"""Reviews: a result goes to its asker only after a person has approved it, edited it, or had it done again."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, doomed, reached, sound, take_over
from engine.people import asked, counted, the_question
from remit import Card, Command, Failed, Plan, Runtime, Step, Turn
from remit.errors import BadInput
from remit.report.flow.text import text as flow_text
from remit.report.summary import sentence, summary
from remit.settings import Policy, System
from remit.testing import FakeClock, pass_time
from remit.types import AskedQuestion
from teams import team

pytestmark = pytest.mark.anyio


def writing(rt: Runtime, **about: Any) -> list[str]:
    """A writer whose results are reviewed, and a lead that asks it; what the writer was told is noted."""
    began: list[str] = []

    async def writer(turn: Turn) -> str:
        sent = turn.handoff.sent_back
        began.append("" if sent is None else f"{sent.result} / {sent.why} / {sent.by} / {sent.times}")
        return f"draft {len(began)}"

    async def lead(turn: Turn) -> str:
        return f"got {await turn.delegate('writer', turn.task)}"

    rt.add(Card("writer", review=True, **about), writer)
    rt.add(Card("lead", asks=["writer"]), lead)
    return began


def deciding(*decisions: Callable[[AskedQuestion], Any]) -> Callable[[AskedQuestion], Any]:
    left = [*decisions]

    def decide(question: AskedQuestion) -> Any:
        return left.pop(0)(question)

    return decide


@pytest.mark.rule("review.approved")
async def test_the_asker_gets_a_result_that_a_person_has_approved(anywhere: Runtime):
    writing(anywhere)
    shown: list[AskedQuestion] = []
    assert await anywhere.run("lead", "write", on_question=lambda one: shown.append(one) or True) == "got draft 1"
    assert [(one.kind, one.agent, one.shows["result"]) for one in shown] == [("review", "writer", "draft 1")]
    assert shown[0].text == "'writer' has a result: draft 1"
    assert await counted(anywhere) == {"asked": 1, "answered": 1, "used": 1}
    await sound(anywhere)


@pytest.mark.rule("review.edited")
async def test_the_asker_gets_the_result_as_a_person_edited_it(anywhere: Runtime):
    writing(anywhere)
    assert await anywhere.run("lead", "write", on_question=deciding(lambda one: one.approve("mine"))) == "got mine"
    await sound(anywhere)


@pytest.mark.rule("review.sent-back")
async def test_a_result_that_is_sent_back_is_made_again_with_the_reason(anywhere: Runtime):
    began = writing(anywhere)
    decide = deciding(lambda one: one.reject("shorter", by="ann"), lambda one: one.reject(), lambda _: True)
    assert await anywhere.run("lead", "write", on_question=decide, by="bob") == "got draft 3"
    assert began == ["", "draft 1 / shorter / ann / 1", "draft 2 /  / bob / 2"]
    lines = [event for event in await anywhere.workspace.journal.history() if event.kind == "task.handed"]
    assert [event.data["to"] for event in lines] == ["writer", "writer"]
    await sound(anywhere)


@pytest.mark.rule("review.sent-back")
async def test_a_result_that_is_sent_back_counts_as_no_handoff(rt: Runtime):
    writing(rt)
    decide = deciding(lambda one: one.reject("shorter"), lambda _: True)
    outcome = await rt.outcome("writer", "write", on_question=decide, handoffs=False)
    assert outcome.value == "draft 2"
    assert await rt.workspace.journal.read(lambda view: view.run(outcome.id).handoffs) == 0
    root = await rt.workspace.tree(outcome.id)
    assert root is not None
    assert sentence(root).startswith("writer worked alone; sent back 1 time")
    assert summary(root).handoffs == 0
    assert "-> writer (sent back by a person)" in flow_text(root, root.ended_at or 0).replace("→", "->")
    stats = await rt.workspace.stats()
    assert (stats.total_handoffs, stats.most_handoffs) == (0, 0)
    await sound(rt)


@pytest.mark.rule("review.limit")
async def test_a_result_is_sent_back_as_often_as_the_policy_says(clock: FakeClock):
    with Runtime(policy=Policy(reviews=1)) as rt:
        began = writing(rt)
        decide = deciding(lambda one: one.reject("no"), lambda one: one.reject("still no", by="ann"))
        with pytest.raises(Failed) as failed:
            await rt.run("writer", "write", on_question=decide)
    assert "sent back once more than Policy(reviews=1) allows by ann: still no" in str(failed.value)
    assert len(began) == 2
    with pytest.raises(BadInput, match="reviews"):
        Policy(reviews=-1)


@dataclass
class Verdict:
    ship: bool


@pytest.mark.rule("review.edited")
async def test_an_edit_that_does_not_fit_the_output_is_asked_about_again(rt: Runtime):
    @rt.agent(review=True, output=Verdict)
    async def judge(turn: Turn) -> Verdict:
        return Verdict(ship=False)

    notes: list[object] = []

    async def decide(question: AskedQuestion) -> None:
        notes.append(question.shows.get("your edit does not fit"))
        await question.approve({"ship": "perhaps"} if len(notes) == 1 else {"ship": True})

    assert await rt.run("judge", "x", on_question=decide, returns=Verdict) == Verdict(ship=True)
    assert notes[0] is None
    assert "ship" in str(notes[1])


@pytest.mark.rule("review.expires")
@pytest.mark.parametrize("outcome", ["reject", "approve"])
async def test_a_result_that_nobody_looks_at_counts_as_the_policy_says(clock: FakeClock, outcome: Any):
    with Runtime(policy=Policy(on_no_answer=outcome, answer_days=1), system=System(clock=clock)) as rt:
        began = writing(rt)
        async with rt.serving():
            task = await rt.submit("writer", "write", timeout=3600)
            await asked(rt)

            async def ended() -> bool:
                return (await task.status()).ended is not None

            await pass_time(clock, ended, step=3600)
            came = await task.wait()
        assert came.state == ("completed" if outcome == "approve" else "failed")
        assert came.ok or "its result was not approved: nobody answered in time" in str(came.error)
        assert began == [""]


@pytest.mark.rule("review.durable")
@pytest.mark.parametrize("decision", ["approved", "edited", "sent back"])
async def test_an_answer_that_comes_while_no_process_waits_is_used_by_the_next(
    tmp_path: Path, clock: FakeClock, decision: str
):
    first, heir = doomed(tmp_path / "team.db", clock), team(tmp_path / "team.db", clock=clock)
    with first, heir:
        writing(first)
        task = await first.submit("lead", "write")
        question = await the_question(first)
        await reached(first, task.id, "waiting")
        again = writing(heir)
        await take_over(heir, clock, first)
        questions = heir.workspace.questions
        if decision == "sent back":
            await questions.reject(question.id, why="shorter", by="ann")
        else:
            await questions.approve(question.id, value="mine" if decision == "edited" else None)
        async with heir.serving():
            if decision == "sent back":
                with anyio.fail_after(PATIENCE):
                    await questions.approve((await asked(heir))[0].id)
            result = await heir.workspace.tasks.get(task.id).result(PATIENCE)
        assert (result, again) == {
            "approved": ("got draft 1", []),
            "edited": ("got mine", []),
            "sent back": ("got draft 1", ["draft 1 / shorter / ann / 1"]),
        }[decision]
        await sound(heir)


@pytest.mark.rule("review.doors")
async def test_every_way_to_a_result_is_reviewed(rt: Runtime):
    began = writing(rt)

    @rt.agent
    async def passes(turn: Turn) -> Command:
        return Command("writer")

    rt.agent("passes_on", asks=["writer"])(passes)

    @rt.agent("plain", review=True)
    def plain(turn: Turn) -> str:
        return "in a thread"

    assert await rt.run("passes_on", "x", on_question=lambda one: one.approve("1")) == "1"
    assert await rt.run("plain", "x", on_question=lambda one: one.approve(f"{one.shows['result']}!")) == "in a thread!"
    plan = Plan([Step("one", "x", agent="writer")])
    outcome = await rt.run_plan(plan, on_question=lambda one: one.approve("2"))
    assert [one.value for one in outcome.steps.values()] == ["2"]
    assert len(began) == 2


@pytest.mark.rule("review.approved")
async def test_a_failure_is_not_reviewed_and_a_cancelled_review_gives_no_result(rt: Runtime):
    @rt.agent(review=True)
    async def fails(turn: Turn) -> str:
        raise ValueError("no")

    with pytest.raises(Failed, match="ValueError: no"):
        await rt.run("fails", "x")
    writing(rt)
    task = await rt.submit("writer", "x")
    await the_question(rt)
    await task.cancel()
    assert (await task.wait()).state == "cancelled"
    assert [one.state for one in await rt.workspace.questions.list(decided=True)] == ["withdrawn"]
    await rt.drain()


@pytest.mark.rule("review.approved")
async def test_only_true_or_false_say_whether_results_are_reviewed():
    with pytest.raises(BadInput, match="review"):
        Card("x", review="yes")  # pyright: ignore[reportArgumentType]
