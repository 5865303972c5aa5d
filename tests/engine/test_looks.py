"""`ws.looks`: what the commands and the server show, as values."""

from pathlib import Path

import anyio
import pytest

from remit import Runtime, Turn
from remit.errors import NotFound
from remit.report import wire
from remit.runtime.workers import GONE, Crew, Peer
from remit.testing import FakeClock
from teams import echo, team

pytestmark = pytest.mark.anyio


def two_agents(rt: Runtime, go: anyio.Event) -> None:
    @rt.agent(asks="*", writes="*")
    async def lead(turn: Turn) -> str:
        await turn.context.set("notes", "seen", "all of it")
        return await turn.delegate("worker", "part one")

    @rt.agent
    async def worker(turn: Turn) -> str:
        await go.wait()
        return "done"


@pytest.mark.rule("looks.values")
async def test_looks_return_tasks_runs_and_their_parts_as_values(tmp_path: Path):
    go = anyio.Event()
    async with team(tmp_path / "team.db") as rt:
        two_agents(rt, go)
        looks = rt.workspace.looks
        task = await rt.submit("lead", "go")
        async with rt.workspace.journal.follow(after=0, agent="worker", kinds=["task.started"]) as follow:
            [begun] = await follow.next(10)
        lines, crew, undelivered = await looks.tasks(state="open")
        assert [(one.record.holder, crew.state(one.record), one.asker) for one in lines] == [
            ("worker", "running", "lead"),
            ("lead", "running", ""),
        ]
        assert {crew.where(one.record.worker) for one in lines} == {crew.workers[0].called}
        assert undelivered == []
        assert [record.id for record in await looks.below("last")] == [task.id, begun.task]
        assert not await looks.has_ended(task.id)
        assert {event.run for event in await looks.open_events()} == {task.id}
        go.set()
        await task.wait(10)
        assert await looks.has_ended(task.id, run=True)
        assert (await looks.records([begun.task, "unknown"])).records[0].state == "completed"
        assert [line.record.id for line in (await looks.runs(agent="lead")).runs] == [task.id]
        assert (await looks.runs(agent="worker")).runs == []
        assert (await looks.detail(task.id[-8:])).detail.result == "done"
        part = await looks.part(begun.task)
        assert (part.record.parent, part.events[-1].seq) == (task.id, await looks.head())
        root = await rt.workspace.tree(task.id)
        assert root is not None
        assert await looks.tree("last") == wire.tree(root)
        assert await looks.tree(begun.task) == wire.tree(root.children[0])
        assert (await looks.entries("notes"))[0] == await looks.entry("notes", "seen")
        assert (await looks.talk("last"), await looks.prunable(1)) == ((task.id, []), 0)
        assert {one.card.name for one in await looks.cards()} == {"lead", "worker"}
        assert (await looks.ledger()).sound


@pytest.mark.rule("looks.values")
async def test_an_id_that_nothing_fits_is_not_found():
    with team() as rt:
        looks = rt.workspace.looks
        for look in (looks.task, looks.run, looks.detail, looks.part, looks.tree, looks.talk, looks.below):
            with pytest.raises(NotFound, match="there is no run or task 'x'"):
                await look("x")
        with pytest.raises(NotFound, match="there is no question 'x'"):
            await looks.question("x")
        with pytest.raises(NotFound, match="was pruned meanwhile"):
            await looks.has_ended("x")
        assert (await looks.records(["x"])).records == []


@pytest.mark.rule("looks.values")
def test_a_process_that_has_left_is_gone():
    crew = Crew(7, [Peer("3abcdefghijk", "", 2)], {})
    assert (crew.where(""), crew.where("3abcdefghijk"), crew.where("other")) == ("", "fghijk", GONE)


@pytest.mark.rule("looks.seen")
async def test_a_process_says_when_it_was_seen_last(tmp_path: Path):
    clock = FakeClock()
    async with team(tmp_path / "team.db", clock=clock) as rt:
        rt.agent("echo")(echo)
        await rt.run("echo", "x")
        [first] = (await rt.workspace.agents.workers()).workers
        assert first.seen_at == clock.now()


@pytest.mark.rule("looks.questions")
async def test_questions_are_listed_by_run_and_by_task():
    async with team() as rt:

        @rt.agent(ask_person=True)
        async def asker(turn: Turn) -> str:
            return await turn.ask_human(f"which {turn.task}?")

        one, two = await rt.submit("asker", "colour"), await rt.submit("asker", "size")
        asked = rt.workspace.questions.asked()
        for _ in "12":
            await anext(asked)
        await asked.aclose()
        questions = rt.workspace.questions
        [first] = await questions.list(run=one.id)
        assert (first.text, first.task) == ("which colour?", one.id)
        assert await questions.list(task=one.id) == await questions.list(run=one.id, task=one.id) == [first]
        assert await questions.list(run=two.id, task=one.id) == await questions.list(task="nothing") == []
        await questions.answer(first.id, "blue")
        await one.wait(10)
        assert await questions.list(run=one.id) == []
        assert [(inquiry.id, inquiry.value) for inquiry in await questions.list(run=one.id, decided=True)] == [
            (first.id, "blue")
        ]
