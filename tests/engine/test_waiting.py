"""A waiting task says what it waits for: a person, a task, a busy agent, money that others hold, or a model."""

import anyio
import pytest

from engine.helping import PATIENCE, ends, happened, named, reached, sound
from engine.people import running, the_question
from engine.talking import Down, Talk
from engine.test_models import asking
from remit import Card, Runtime, Turn
from remit.testing import FakeClock
from teams import echo, team

pytestmark = pytest.mark.anyio


async def waits(rt: Runtime, agent: str) -> list[tuple[object, ...]]:
    """For what the tasks of an agent waited, in order."""
    events = await rt.workspace.journal.history(kinds=["task.waiting"])
    return [(event.data["for"], event.data.get("id")) for event in events if event.agent == agent]


@pytest.mark.rule("task.waits-for")
async def test_for_the_question_that_a_person_is_asked(anywhere: Runtime):
    rt = anywhere

    @rt.agent
    async def coder(turn: Turn) -> str:
        return await turn.ask_human("Which?")

    async with running(rt, "coder"):
        question = await the_question(rt)
        assert await waits(rt, "coder") == [("person", question.id)]
        await rt.workspace.questions.answer(question.id, "red")


@pytest.mark.rule("task.waits-for")
@pytest.mark.parametrize("narrow", [None, 1])
async def test_who_delegated_waits_for_its_child_when_the_whole_line_waits(rt: Runtime, narrow: int | None):
    async def lead(turn: Turn) -> object:
        return await turn.delegate("coder", "x")

    @rt.agent
    async def coder(turn: Turn) -> str:
        return await turn.ask_human("Which?")

    rt.add(Card("lead", asks="*", concurrency=narrow), lead)
    task = await rt.submit("lead", "go")
    question = await the_question(rt)
    await reached(rt, task.id, "waiting")
    assert await waits(rt, "lead") == [("task", await named(rt, "coder"))]
    assert await waits(rt, "coder") == [("person", question.id)]
    await rt.workspace.questions.answer(question.id, "red")
    assert await task.result(PATIENCE) == "red"
    await sound(rt)


@pytest.mark.rule("task.waits-for")
async def test_of_several_children_none_is_named(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> int:
        return len(await turn.delegate_all([("coder", "x"), ("coder", "y")]))

    @rt.agent
    async def coder(turn: Turn) -> str:
        return await turn.ask_human(f"Which {turn.task}?")

    task = await rt.submit("lead", "go")
    await reached(rt, task.id, "waiting")
    assert await waits(rt, "lead") == [("task", None)]
    for question in await rt.workspace.questions.list():
        await rt.workspace.questions.answer(question.id, "red")
    assert await task.result(PATIENCE) == 2


@pytest.mark.rule("task.waits-for")
async def test_for_a_task_that_it_submitted(rt: Runtime):
    rt.add(Card("coder"), echo)

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return str(await (await turn.submit("coder", "x", after=60)).result())

    async with running(rt, "lead"):
        lead_id, child = await named(rt, "lead"), await named(rt, "coder")
        await reached(rt, lead_id, "waiting")
        assert await waits(rt, "lead") == [("task", child)]
        await rt.workspace.tasks.cancel(lead_id)


@pytest.mark.rule("task.waits-for")
async def test_for_one_of_those_that_it_spawned(rt: Runtime):
    go = anyio.Event()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        for n in range(6):
            await turn.spawn("coder", str(n))

    @rt.agent
    async def coder(turn: Turn) -> None:
        await go.wait()

    async with running(rt, "lead"):
        await reached(rt, await named(rt, "lead"), "waiting")
        assert await waits(rt, "lead") == [("task", None)]
        go.set()


@pytest.mark.rule("task.waits-for")
async def test_for_a_busy_agent(rt: Runtime):
    inside, go = anyio.Event(), anyio.Event()

    async def narrow(turn: Turn) -> None:
        inside.set()
        await go.wait()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> object:
        return await turn.delegate("narrow", "second")

    rt.add(Card("narrow", concurrency=1), narrow)
    first = await rt.submit("narrow", "first")
    await happened(inside)
    async with running(rt, "lead") as outcome:
        await reached(rt, await named(rt, "lead"), "waiting")
        assert await waits(rt, "lead") == [("slot", "narrow")]
        go.set()
    assert outcome.result().ok
    await first.wait(PATIENCE)


@pytest.mark.rule("task.waits-for")
async def test_for_money_that_another_call_holds(rt: Runtime):
    inside, go = anyio.Event(), anyio.Event()

    @rt.agent
    async def holds(turn: Turn) -> None:
        async with turn.paid_call("$0.08", why="a long call") as call:
            inside.set()
            await happened(go)
            call.cost("$0.01")

    @rt.agent
    async def buyer(turn: Turn) -> None:
        async with turn.paid_call("$0.05", why="a photo") as call:
            call.cost("$0.05")

    await rt.workspace.money.grant("$0.10")
    async with running(rt, "holds"):
        await happened(inside)
        async with running(rt, "buyer"):
            await reached(rt, await named(rt, "buyer"), "waiting")
            assert await waits(rt, "buyer") == [("money", None)]
            go.set()


@pytest.mark.rule("task.waits-for")
async def test_for_a_model_that_rests(clock: FakeClock):
    with team(clock=clock) as rt:
        asking(rt, Talk(Down("unavailable", status=503), "here"))
        assert (await ends(clock, await rt.submit("coder", "x"))).value == "here"
        assert await waits(rt, "coder") == [("model", "big")]
