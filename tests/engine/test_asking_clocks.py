"""While a person is asked: no slot is held, and the clocks of the whole line stand still; a said deadline comes."""

import asyncio

import anyio
import pytest

from engine.helping import PATIENCE, happened, quiet, reached, signed, sound, until
from engine.people import HOUR, asked, deployer, running, staying, the_question
from remit import Bounds, Card, Command, Runtime, Turn
from remit.testing import FakeClock
from teams import team

pytestmark = pytest.mark.anyio

SECOND = 1_000_000
NIGHT = 12 * HOUR  # longer than every timer


def chain(rt: Runtime) -> None:
    """Three of them, each waiting for the next; the last asks a person."""

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return await turn.delegate("middle", turn.task)

    @rt.agent(asks="*")
    async def middle(turn: Turn) -> str:
        return await turn.delegate("last", turn.task)

    @rt.agent
    async def last(turn: Turn) -> str:
        return await turn.ask_human("Which?")


# -- slots -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("ask.slot")
async def test_a_task_that_asks_a_person_holds_no_slot(clock: FakeClock, tmp_path):
    """One hand, one place in the workspace, one of each agent: a question is open, and the others go on."""
    with team(tmp_path / "team.db", clock=clock, hands=1, concurrency=1) as rt:
        deployer(rt)

        @rt.agent(asks="*", concurrency=1)
        async def lead(turn: Turn) -> str:
            if turn.task == "asks":
                return await turn.ask_human("Which?")
            if turn.task == "delegates":
                return await turn.delegate("deployer", "to prod")
            return "worked"

        asking = [await rt.submit("lead", task) for task in ("asks", "delegates")]
        questions = await asked(rt, 2)
        for task in asking:
            await reached(rt, task.id, "waiting")
        others = [await rt.submit("lead", f"works {n}") for n in range(3)]
        assert [await task.result(PATIENCE) for task in others] == ["worked"] * 3
        for question in questions:
            await (
                rt.workspace.questions.answer(question.id, "x")
                if question.kind == "ask"
                else rt.workspace.questions.approve(question.id)
            )
        assert [await task.result(PATIENCE) for task in asking] == ["x", "deployed: to prod"]
        await sound(rt)


@pytest.mark.rule("ask.slot")
async def test_a_whole_line_gives_its_slot_up(clock: FakeClock):
    with team(clock=clock, hands=1, concurrency=1) as rt:
        chain(rt)
        rt.add(Card("other"), signed)
        task = await rt.submit("lead", "x")
        question = await the_question(rt)
        await reached(rt, task.id, "waiting")
        assert await (await rt.submit("other", "y")).result(PATIENCE) == "other: y"
        await rt.workspace.questions.answer(question.id, "blue")
        assert await task.result(PATIENCE) == "blue"
        await sound(rt)


@pytest.mark.rule("ask.slot", "concurrency.queue")
@pytest.mark.parametrize("how", ["ask", "delegate"])
async def test_an_agents_limit_holds_after_a_long_wait(rt: Runtime, clock: FakeClock, how: str):
    """Its time on record was up in the night, and it works on all the same: it counts."""
    crowd: list[int] = [0, 0]
    go = anyio.Event()
    deployer(rt)

    @rt.agent(asks="*", concurrency=1)
    async def lead(turn: Turn) -> str:
        if turn.task == "asks":
            await (turn.ask_human("Which?") if how == "ask" else turn.delegate("deployer", "x"))
        crowd[0] += 1
        crowd[1] = max(crowd)
        await go.wait()
        crowd[0] -= 1
        return turn.task

    async with running(rt, "lead", "asks") as first:
        question = await the_question(rt)
        clock.advance(NIGHT)
        await (
            rt.workspace.questions.answer(question.id, "x")
            if how == "ask"
            else rt.workspace.questions.approve(question.id)
        )
        await until(lambda: crowd[0] == 1)
        second = await rt.submit("lead", "works")
        third = await rt.outcome("lead", "now or never", busy_timeout=0)
        assert third.state == "refused"
        await quiet()
        assert (await second.status()).state == "pending"
        go.set()
    assert first.result().value == "asks"
    assert await second.result(PATIENCE) == "works"
    assert crowd == [0, 1]
    await sound(rt)


# -- clocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("ask.clock")
@pytest.mark.parametrize("queued", [False, True], ids=["foreground", "queue"])
async def test_a_line_of_three_waits_longer_than_all_its_timers(rt: Runtime, clock: FakeClock, queued: bool):
    chain(rt)
    task = await rt.submit("lead", "x") if queued else None
    running_ = None if queued else asyncio.ensure_future(rt.outcome("lead", "x"))
    question = await the_question(rt)
    for _ in range(3):
        clock.advance(NIGHT)
        await quiet()
    await rt.workspace.questions.answer(question.id, "blue")
    with anyio.fail_after(PATIENCE):
        outcome = await (task.wait() if task is not None else running_)  # pyright: ignore[reportGeneralTypeIssues]
    assert outcome is not None
    assert outcome.value == "blue"
    await sound(rt)


@pytest.mark.rule("ask.clock")
@pytest.mark.parametrize(("after", "state"), [(199, "completed"), (201, "timed-out")])
async def test_the_clock_goes_on_with_what_was_left(rt: Runtime, clock: FakeClock, after: int, state: str):
    """Of 300 seconds 100 were used before it was asked."""
    begun, again, go = anyio.Event(), anyio.Event(), anyio.Event()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return await turn.delegate("worker", "x")

    @rt.agent
    async def worker(turn: Turn) -> str:
        begun.set()
        await go.wait()
        await turn.ask_human("Which?")
        again.set()
        await anyio.Event().wait() if after > 200 else await done.wait()
        return "done"

    done = anyio.Event()
    async with running(rt, "lead") as outcome:
        await happened(begun)
        clock.advance(100)
        go.set()
        question = await the_question(rt)
        clock.advance(NIGHT)
        await rt.workspace.questions.answer(question.id, "x")
        await happened(again)
        clock.advance(after)
        done.set()
    assert outcome.result().state == state
    await sound(rt)


@pytest.mark.rule("ask.clock")
@pytest.mark.parametrize(("left", "state"), [(199, "completed"), (201, "timed-out")])
async def test_two_questions_at_once_stop_the_clock_once(rt: Runtime, clock: FakeClock, left: int, state: str):
    """The first is open for an hour, the second for two, an hour of it with the first: time goes on after the second
    only, and with what was left when the first was asked."""
    done, both = anyio.Event(), anyio.Event()
    answers: dict[str, str] = {}

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        outcomes = await turn.delegate_all([("worker", "one"), ("worker", "two")])
        answers.update({one: str(outcome.value) for one, outcome in zip(("one", "two"), outcomes, strict=True)})
        both.set()
        await done.wait()
        return "done"

    @rt.agent
    async def worker(turn: Turn) -> str:
        return await turn.ask_human(f"{turn.task}?")

    async with running(rt, "lead") as outcome:
        first, second = await asked(rt, 2)
        clock.advance(HOUR)
        await rt.workspace.questions.answer(first.id, f"to {first.text}")
        await quiet()
        clock.advance(HOUR)  # the other one is open still
        await quiet()
        assert not outcome.done()
        await rt.workspace.questions.answer(second.id, f"to {second.text}")
        await happened(both)
        clock.advance(100)
        await quiet()
        clock.advance(left)
        done.set()
    assert outcome.result().state == state
    assert answers == {"one": "to one?", "two": "to two?"}
    await sound(rt)


@pytest.mark.rule("ask.clock")
async def test_a_task_without_a_question_has_no_more_time_than_before(rt: Runtime, clock: FakeClock):
    """One of two waits for a person; the other one hangs, and its time is up all the same."""
    hangs, stopped = anyio.Event(), anyio.Event()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        outcomes = await turn.delegate_all([("asks", "x"), ("hangs", "x")])
        return [outcome.state for outcome in outcomes]

    @rt.agent("asks")
    async def ask(turn: Turn) -> str:
        return await turn.ask_human("Which?")

    @rt.agent("hangs")
    async def hang(turn: Turn) -> None:
        hangs.set()
        try:
            await anyio.Event().wait()
        finally:
            stopped.set()

    async with running(rt, "lead") as outcome:
        question = await the_question(rt)
        await happened(hangs)
        await quiet()
        clock.advance(HOUR)
        await happened(stopped)
        await rt.workspace.questions.answer(question.id, "x")
    assert outcome.result().value == ["completed", "timed-out"]
    await sound(rt)


# -- a said deadline -------------------------------------------------------------------------------------------------


@pytest.mark.rule("ask.deadline")
@pytest.mark.parametrize("said", ["seconds", "within", "asker", "short"])
async def test_a_deadline_that_someone_said_comes_all_the_same(rt: Runtime, clock: FakeClock, said: str):
    """`short` is less than the usual time, the others are more."""
    chain(rt)
    seconds = 60 if said == "short" else HOUR
    deadline = clock.now() + round(seconds * SECOND)
    how = {"within": Bounds(deadline=deadline)} if said in ("within", "short") else {}
    if said == "seconds":
        how = {"timeout": seconds}
    if said == "asker":

        @rt.agent(asks="*")
        async def first(turn: Turn) -> str:
            return await turn.delegate("lead", "x", timeout=seconds)

    async with running(rt, "first" if said == "asker" else "lead", "x", **how) as outcome:
        question = await the_question(rt)
        assert question.until == deadline
        clock.advance(seconds)
    assert outcome.result().state in ("timed-out", "failed")
    assert (await rt.workspace.questions.get(question.id)).state in ("expired", "withdrawn")
    await sound(rt)


@pytest.mark.rule("ask.deadline")
async def test_an_answer_before_a_said_deadline_leaves_only_the_time_until_then(rt: Runtime, clock: FakeClock):
    """It had 300 seconds left, and is answered 60 before the deadline."""
    again, stopped = staying(rt, "lead")

    async with running(rt, "lead", within=Bounds(deadline=clock.now() + round(HOUR * SECOND))) as outcome:
        question = await the_question(rt)
        clock.advance(HOUR - 60)
        await rt.workspace.questions.answer(question.id, "x")
        await happened(again)
        clock.advance(59)
        await quiet()
        assert not stopped.is_set()
        clock.advance(1)
    assert outcome.result().state == "timed-out"


@pytest.mark.rule("ask.deadline")
async def test_a_deadline_said_for_a_part_holds_though_its_askers_clock_stood_still(rt: Runtime, clock: FakeClock):
    """The part had more time than its asker, so no timer of its own; then the asker's was stopped."""
    begun, go = anyio.Event(), anyio.Event()

    again, stopped = staying(rt, "part")

    @rt.agent(asks="*")
    async def first(turn: Turn) -> str:
        begun.set()
        await go.wait()
        [part] = await turn.delegate_all([("part", "x")], timeout=250)
        return part.state

    async with running(rt, "first") as outcome:
        await happened(begun)
        clock.advance(100)  # 200 left, and 250 said for the part
        go.set()
        question = await the_question(rt)
        clock.advance(240)
        await rt.workspace.questions.answer(question.id, "x")
        await happened(again)
        clock.advance(9)
        await quiet()
        assert not stopped.is_set()
        clock.advance(1)
        await happened(stopped)
    assert outcome.result().value == "timed-out"


@pytest.mark.rule("ask.deadline")
@pytest.mark.parametrize("deep", [False, True], ids=["a run", "a part"])
async def test_a_deadline_said_with_a_handoff_holds_after_a_question(rt: Runtime, clock: FakeClock, deep: bool):
    """It is later than the time that the task had left, so it set no timer; then the clock was stopped."""

    @rt.agent(asks="*")
    async def first(turn: Turn) -> str:
        return await turn.delegate("lead", "x")

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> object:
        if deep:
            await turn.ask_human("Shall I?")
        return Command("heir", within=Bounds(deadline=clock.now() + round(HOUR * SECOND)))

    again, stopped = staying(rt, "heir")

    async with running(rt, "first" if deep else "lead") as outcome:
        if deep:
            question = await the_question(rt)
            clock.advance(NIGHT)
            await rt.workspace.questions.answer(question.id, "do")
        question = await the_question(rt)
        clock.advance(HOUR - 60)
        await rt.workspace.questions.answer(question.id, "x")
        await happened(again)
        clock.advance(59)
        await quiet()
        assert not stopped.is_set()
        clock.advance(1)
        await happened(stopped)
    assert outcome.result().state == "timed-out" if not deep else outcome.done()
    await sound(rt)
