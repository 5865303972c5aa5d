"""Asking people: what an agent asks, what they answer, and what becomes of a question that nobody answers."""

import asyncio

import anyio
import pytest

from engine.helping import PATIENCE, Shaky, ends, quiet, sound, until
from engine.people import HOUR, asked, counted, deployer, running, the_question
from remit import Card, Refused, Runtime, Turn
from remit.errors import Conflict
from remit.settings import Policy, System
from remit.testing import FakeClock

pytestmark = pytest.mark.anyio

WEEK = 7 * 24 * HOUR


def asker(rt: Runtime, *question: object, **how: object) -> None:
    async def lead(turn: Turn) -> str:
        return await turn.ask_human(*question, **how)  # pyright: ignore[reportArgumentType]

    rt.add(Card("lead"), lead)


# -- a question and its answer ---------------------------------------------------------------------------------------


@pytest.mark.rule("ask.answered")
async def test_an_agent_asks_and_gets_the_answer(rt: Runtime, clock: FakeClock):
    asker(rt, "Which colour?", ["red", "blue"], default="red", timeout=HOUR)
    async with running(rt, "lead") as outcome:
        question = await the_question(rt)
        assert (question.kind, question.text, question.choices) == ("ask", "Which colour?", ("red", "blue"))
        assert (question.default, question.agent, question.state) == ("red", "lead", "open")
        assert question.until == clock.now() + HOUR * 1_000_000
        clock.advance(60)
        await rt.workspace.questions.answer(question.id, "blue", by="ann", channel="terminal")
    assert outcome.result().value == "blue"
    kept = await rt.workspace.questions.get(question.id)
    assert (kept.state, kept.by, kept.channel, kept.value) == ("answered", "ann", "terminal", "blue")
    assert kept.answered_at == question.asked_at + 60_000_000
    assert await rt.workspace.questions.list() == []
    assert [one.id for one in await rt.workspace.questions.list(decided=True)] == [question.id]
    await sound(rt)


@pytest.mark.rule("ask.answered")
async def test_without_choices_any_text_is_an_answer(rt: Runtime, clock: FakeClock):
    asker(rt, "Why?")
    async with running(rt, "lead") as outcome:
        question = await the_question(rt)
        assert question.until == clock.now() + WEEK * 1_000_000
        await rt.workspace.questions.answer(question.id, "because\nof that")
    assert outcome.result().value == "because\nof that"


@pytest.mark.rule("ask.answered")
async def test_a_person_may_decline_to_answer(rt: Runtime):
    asker(rt, "Why?")
    async with running(rt, "lead") as outcome:
        question = await the_question(rt)
        await rt.workspace.questions.reject(question.id, why="none of your business", by="ann")
    assert f"question {question.id} was not answered: none of your business; go on without an answer" in str(
        outcome.result().error
    )


@pytest.mark.rule("ask.once")
async def test_a_task_that_is_tried_again_asks_nobody_twice(rt: Runtime, clock: FakeClock):
    tries: list[str] = []

    @rt.agent
    async def lead(turn: Turn) -> list[object]:
        answers = [await turn.ask_human("Which?"), await turn.ask_human("Which?")]
        arguments = await turn.ask_approval("deploy", {"env": "prod"})
        tries.append(turn.task)
        if len(tries) == 1:
            raise Shaky
        return [*answers, arguments]

    task = await rt.submit("lead", "go")
    for word in ("first", "second"):
        await rt.workspace.questions.answer((await the_question(rt)).id, word)
    await rt.workspace.questions.approve((await the_question(rt)).id)
    outcome = await ends(clock, task)
    assert outcome.value == ["first", "second", {"env": "prod"}]
    assert len(tries) == 2
    assert await counted(rt) == {"asked": 3, "answered": 3, "used": 1}
    await sound(rt)


@pytest.mark.rule("ask.once")
@pytest.mark.parametrize("how", ["rejected", "expired"])
async def test_a_no_is_asked_about_again_when_the_task_is_tried_again(rt: Runtime, clock: FakeClock, how: str):
    """Nobody could ever say yes otherwise; what was said yes to is not asked about again."""

    @rt.agent
    async def ops(turn: Turn) -> list[object]:
        return [
            await turn.ask_human("Where to?", timeout=HOUR),
            await turn.ask_approval("deploy", {"env": "prod"}),
            await turn.ask_human("How fast?", timeout=HOUR),
        ]

    first = await rt.submit("ops", "x", attempts=1)
    await rt.workspace.questions.answer((await the_question(rt)).id, "here")
    await rt.workspace.questions.approve((await the_question(rt)).id, value={"env": "test"})
    question = await the_question(rt)
    if how == "rejected":
        await rt.workspace.questions.reject(question.id)
    else:
        clock.advance(HOUR)
    assert (await first.wait(PATIENCE)).state == "failed"
    second = await first.retry()
    again = await the_question(rt)
    assert (again.text, again.id == question.id) == ("How fast?", False)
    await rt.workspace.questions.answer(again.id, "slowly")
    assert await second.result(PATIENCE) == ["here", {"env": "test"}, "slowly"]
    assert await counted(rt) == {"asked": 4, "answered": 4, "used": 1}
    await sound(rt)


@pytest.mark.rule("ask.answered")
async def test_two_questions_at_once_get_their_own_answers(rt: Runtime):
    @rt.agent
    async def lead(turn: Turn) -> list[str]:
        got: dict[str, str] = {}

        async def ask(what: str) -> None:
            got[what] = await turn.ask_human(what)

        async with anyio.create_task_group() as group:
            group.start_soon(ask, "one?")
            group.start_soon(ask, "two?")
        return [got["one?"], got["two?"]]

    async with running(rt, "lead") as outcome:
        for question in reversed(await asked(rt, 2)):
            await rt.workspace.questions.answer(question.id, f"answer to {question.text}")
    assert outcome.result().value == ["answer to one?", "answer to two?"]


# -- a tool ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("approval.doors", "approval.shows")
async def test_a_tool_is_used_with_the_arguments_as_they_were_approved(rt: Runtime):
    did: list[dict[str, object]] = []

    @rt.agent
    async def ops(turn: Turn) -> None:
        did.append(await turn.ask_approval("deploy", {"env": "prod", "replicas": 3}))
        did.append(await turn.ask_approval("deploy", {"env": "prod", "replicas": 3}))
        did.append(await turn.ask_approval("restart"))

    async with running(rt, "ops"):
        question = await the_question(rt)
        assert question.kind == "tool"
        assert question.text == "'ops' wants to deploy(env=\"prod\", replicas=3)"
        assert question.shows == {
            "action": "deploy",
            "arguments": {"env": "prod", "replicas": 3},
            "chain": "ops",
        }
        await rt.workspace.questions.approve(question.id, value={"env": "test", "replicas": 1}, by="ann")
        again = await the_question(rt)  # the approval of the first is used up
        assert (again.text, again.id == question.id) == (question.text, False)
        await rt.workspace.questions.approve(again.id)
        await rt.workspace.questions.approve((await the_question(rt)).id)
    assert did == [{"env": "test", "replicas": 1}, {"env": "prod", "replicas": 3}, {}]
    kept = await rt.workspace.questions.get(question.id)
    assert (kept.shows["arguments"], kept.value) == ({"env": "prod", "replicas": 3}, {"env": "test", "replicas": 1})
    assert await counted(rt) == {"asked": 3, "answered": 3, "used": 3}
    await sound(rt)


@pytest.mark.rule("approval.rejected")
async def test_a_tool_that_is_not_approved_is_not_used(rt: Runtime):
    @rt.agent
    async def ops(turn: Turn) -> str:
        try:
            await turn.ask_approval("deploy", {"env": "prod"})
        except Refused as no:
            return f"{no.rule}: {no}"
        return "deployed"

    async with running(rt, "ops") as outcome:
        await rt.workspace.questions.reject((await the_question(rt)).id, why="not on a Friday", by="ann")
    assert outcome.result().value == "approval: 'deploy' was not approved by ann: not on a Friday; go on without it"
    assert await counted(rt) == {"asked": 1, "answered": 1, "used": 0}


# -- the first answer ------------------------------------------------------------------------------------------------


@pytest.mark.rule("answer.first")
async def test_the_first_answer_counts_and_the_second_is_told_whose_it_was(rt: Runtime, clock: FakeClock):
    deployer(rt)

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return await turn.delegate("deployer", "to prod")

    async with running(rt, "lead") as outcome:
        question = await the_question(rt)
        await rt.workspace.questions.approve(question.id, by="ann", channel="telegram")
        clock.advance(60)
        for second in (
            rt.workspace.questions.reject(question.id, by="bob"),
            rt.workspace.questions.approve(question.id, by="ann", channel="telegram"),
        ):
            with pytest.raises(Conflict) as no:
                await second
            assert str(no.value) == (
                f"question {question.id} was approved by ann over telegram at 2027-01-15T08:00:00.000000Z; "
                "the first answer counts"
            )
    assert outcome.result().ok
    assert await counted(rt) == {"asked": 1, "answered": 1, "used": 1}


@pytest.mark.rule("answer.first")
async def test_of_many_answers_at_once_one_counts(rt: Runtime):
    asker(rt, "Which?")
    async with running(rt, "lead") as outcome:
        question = await the_question(rt)
        answers = [rt.workspace.questions.answer(question.id, f"{n}", by=f"person {n}") for n in range(20)]
        said = await asyncio.gather(*answers, return_exceptions=True)
    won = [n for n, one in enumerate(said) if one is None]
    assert len(won) == 1
    assert outcome.result().value == f"{won[0]}"
    assert all(f"was answered by person {won[0]} at" in str(one) for one in said if one is not None)
    assert await counted(rt) == {"asked": 1, "answered": 1, "used": 0}


# -- nobody answers --------------------------------------------------------------------------------------------------


@pytest.mark.rule("ask.expires")
async def test_a_question_that_nobody_answers_has_its_default(rt: Runtime, clock: FakeClock):
    asker(rt, "Which?", ["red", "blue"], default="blue", timeout=HOUR)
    async with running(rt, "lead") as outcome:
        question = await the_question(rt)
        clock.advance(HOUR)
    assert outcome.result().value == "blue"
    kept = await rt.workspace.questions.get(question.id)
    assert (kept.state, kept.value, kept.why, kept.by) == ("expired", "blue", "nobody answered in time", "")
    with pytest.raises(Conflict) as no:
        await rt.workspace.questions.answer(question.id, "red")
    assert (
        str(no.value) == f"question {question.id} has expired at 2027-01-15T09:00:00.000000Z; the first answer counts"
    )


@pytest.mark.rule("ask.expires")
async def test_without_a_default_it_is_refused(rt: Runtime, clock: FakeClock):
    asker(rt, "Which?", timeout=HOUR)
    async with running(rt, "lead") as outcome:
        question = await the_question(rt)
        clock.advance(HOUR - 1)
        await quiet()
        assert not outcome.done()
        clock.advance(1)
    assert f"question {question.id} was not answered: nobody answered in time; go on without an answer" in str(
        outcome.result().error
    )


@pytest.mark.rule("ask.expires")
@pytest.mark.parametrize("unanswered", ["reject", "approve"])
async def test_an_approval_that_nobody_gives_counts_as_the_owner_says(clock: FakeClock, unanswered: str):
    policy = Policy(on_no_answer=unanswered, answer_days=1)  # pyright: ignore[reportArgumentType]
    with Runtime(":memory:", policy=policy, system=System(clock=clock)) as rt:
        told = deployer(rt)

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            return await turn.delegate("deployer", "to prod")

        async with running(rt, "lead") as outcome:
            question = await the_question(rt)
            assert question.until == clock.now() + 24 * HOUR * 1_000_000
            clock.advance(24 * HOUR)
        if unanswered == "approve":
            assert (outcome.result().value, told) == ("deployed: to prod", ["to prod"])
        else:
            assert "was not approved: nobody answered in time; go on without it" in str(outcome.result().error)
        assert (await rt.workspace.questions.get(question.id)).state == "expired"
        assert await counted(rt) == {"asked": 1, "answered": 1, "used": len(told)}
        await sound(rt)


@pytest.mark.rule("answer.in-time")
@pytest.mark.parametrize("verb", ["answer", "approve", "reject"])
async def test_an_expired_question_is_not_answered_although_nobody_has_written_its_expiry_down(
    rt: Runtime, clock: FakeClock, verb: str
):
    asker(rt, "Which?", timeout=HOUR)

    @rt.agent
    async def careful(turn: Turn) -> dict[str, str]:
        return await turn.ask_approval("deploy", {"env": "prod"})

    async with running(rt, "careful" if verb == "approve" else "lead") as outcome:
        question = await the_question(rt)
        answers = {
            "answer": lambda: rt.workspace.questions.answer(question.id, "red", by="ann"),
            "approve": lambda: rt.workspace.questions.approve(question.id, by="ann"),
            "reject": lambda: rt.workspace.questions.reject(question.id, by="ann"),
        }
        clock.jump((question.until - clock.now()) / 1_000_000)  # timers have not noticed
        with pytest.raises(Conflict, match=f"{question.id} has expired at .*; it is not answered any more"):
            await answers[verb]()
        assert (await rt.workspace.questions.get(question.id)).by == ""
        clock.advance(7 * 24 * HOUR)
    assert "nobody answered in time" in str(outcome.result().error)
    assert await counted(rt) == {"asked": 1, "answered": 1, "used": 0}


@pytest.mark.rule("answer.in-time")
async def test_a_question_of_a_task_that_is_being_cancelled_is_not_answered(rt: Runtime):
    clean, asked_again = anyio.Event(), anyio.Event()

    @rt.agent
    async def careful(turn: Turn) -> str:
        try:
            return await turn.ask_human("Which?")
        except asyncio.CancelledError:
            asked_again.set()
            with anyio.CancelScope(shield=True):
                await clean.wait()
            raise

    task = await rt.submit("careful", "go")
    question = await the_question(rt)
    await rt.workspace.tasks.cancel(task.id)
    with anyio.fail_after(PATIENCE):
        await asked_again.wait()
    with pytest.raises(Conflict, match="is not answered any more: its task is being cancelled"):
        await rt.workspace.questions.answer(question.id, "red", by="ann")
    clean.set()
    assert (await task.wait(PATIENCE)).state == "cancelled"
    assert (await rt.workspace.questions.get(question.id)).state == "withdrawn"


@pytest.mark.rule("ask.expires")
async def test_an_answer_and_the_expiry_race_fairly(rt: Runtime, clock: FakeClock):
    """Whichever is first on record counts, and the other is told or does nothing."""
    asker(rt, "Which?", default="nothing", timeout=HOUR)
    async with running(rt, "lead") as outcome:
        question = await the_question(rt)
        answering = asyncio.ensure_future(rt.workspace.questions.answer(question.id, "something"))
        clock.advance(HOUR)
        said = (await asyncio.gather(answering, return_exceptions=True))[0]
    assert outcome.result().value == ("nothing" if said is not None else "something")
    assert await counted(rt) == {"asked": 1, "answered": 1, "used": 0}


# -- nobody waits any more -------------------------------------------------------------------------------------------


@pytest.mark.rule("ask.withdrawn")
async def test_a_question_is_withdrawn_when_its_tree_is_cancelled(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return await turn.delegate("middle", "x")

    @rt.agent(asks="*")
    async def middle(turn: Turn) -> str:
        return await turn.delegate("last", "x")

    @rt.agent
    async def last(turn: Turn) -> str:
        return await turn.ask_human("Which?")

    task = await rt.submit("lead", "go")
    question = await the_question(rt)
    await rt.workspace.tasks.cancel(task.id)
    assert (await task.wait(PATIENCE)).state == "cancelled"
    kept = await rt.workspace.questions.get(question.id)
    assert (kept.state, kept.why) == ("withdrawn", "its task is over")
    with pytest.raises(Conflict) as no:
        await rt.workspace.questions.answer(question.id, "too late")
    assert f"question {question.id} was withdrawn at " in str(no.value)
    assert await rt.workspace.questions.list() == []
    await sound(rt)


@pytest.mark.rule("ask.withdrawn")
async def test_a_question_is_withdrawn_when_its_task_ends_without_the_answer(rt: Runtime):
    left: list[asyncio.Task[str]] = []

    @rt.agent
    async def lead(turn: Turn) -> str:
        left.append(asyncio.ensure_future(turn.ask_human("Which?")))
        await the_question(rt)
        return "went on"

    assert await rt.run("lead", "go") == "went on"
    [question] = await rt.workspace.questions.list(decided=True)
    assert question.state == "withdrawn"
    await until(left[0].done)
    await sound(rt)


@pytest.mark.rule("ask.withdrawn")
async def test_an_agent_that_gives_up_waiting_leaves_its_question_open_and_gets_the_answer_later(rt: Runtime):
    @rt.agent
    async def lead(turn: Turn) -> str:
        with anyio.CancelScope() as patience:
            asking = asyncio.ensure_future(the_question(rt))
            asking.add_done_callback(lambda _: patience.cancel())
            await turn.ask_human("Which?")
        return "went on"

    assert await rt.run("lead", "go") == "went on"
    [question] = await rt.workspace.questions.list(decided=True)
    assert question.state == "withdrawn"
    await sound(rt)
