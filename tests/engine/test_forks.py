"""Forks of runs: what was recorded up to an event is there, and the rest happens again."""

from typing import Any

import anyio
import pytest

from deep import some
from engine.helping import PATIENCE, ends, sound
from remit import Command, Runtime, Turn
from remit.errors import BadInput, Conflict, NotFound
from remit.testing import FakeClock
from remit.testing.models import Calls, ModelReply, ModelRequest, Says, model_server
from remit.types import Event

pytestmark = pytest.mark.anyio


class Desk:
    """A team with effects, entries, money, messages, tools and two models that ask each other, and what it did."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.asked = 0

    def plays(self, request: ModelRequest) -> ModelReply:
        self.asked += 1
        answers = sum(message.get("role") == "assistant" for message in request.messages)
        mine = "You are desk." in str(request.messages[0])
        helper: list[ModelReply] = [Calls("look_up", {"day": "Sunday"}, id="h1"), Says("It is open.")]
        desk: list[ModelReply] = [
            Calls("look_up", {"day": "Monday"}, id="d1"),
            Calls("call_agent", {"agent": "helper", "task": "on Sunday?"}, id="d2"),
            Says("It is open."),
        ]
        return (desk if mine else helper)[answers]

    def look_up(self, day: str) -> str:
        """Look up when it is open."""
        self.done.append(day)
        return f"{day}: 9 to 5"

    def join(self, rt: Runtime, url: str) -> None:
        how: Any = {"model": "openai-chat:gpt-5", "keys": ["KEY_A"], "base_url": f"{url}/v1", "tools": [self.look_up]}
        rt.model_agent("helper", instructions="You are helper.", **how)
        rt.model_agent("desk", instructions="You are desk.", asks=["helper"], **how)

        @rt.agent(asks=["desk"])
        async def lead(turn: Turn) -> str:
            await turn.once("draft", lambda: self.done.append("draft"))
            await turn.context.set("notes", "day", "Sunday")
            await turn.spend("$0.01", why="a stamp")
            found = await turn.delegate("desk", turn.task)
            await turn.send("desk", "thanks")
            return f"{found} ({turn.task})"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_A", "a")


async def history(rt: Runtime, run: str) -> list[Event]:
    return await rt.workspace.journal.history(run=run)


@pytest.mark.rule("fork.nothing-again", "fork.original")
@pytest.mark.parametrize("anywhere", some(["memory", "file", "postgres"]), indirect=True)
async def test_a_fork_at_any_event_asks_does_and_pays_only_what_came_after_it(anywhere: Runtime):
    rt, desk = anywhere, Desk()
    async with model_server(desk.plays) as server, rt:
        desk.join(rt, server.url)
        await rt.workspace.money.grant("$5")
        run = await rt.submit("lead", "Is it open?")
        result = await run.result(PATIENCE)
        events = await history(rt, run.id)
        for event in events:
            desk.asked, desk.done = 0, []
            before = [one for one in events if one.seq <= event.seq]
            fork = await rt.workspace.fork(run.id, event.seq)
            assert await fork.result(PATIENCE) == result, event
            assert desk.asked == 5 - kinds(before).count("model.answered"), event
            assert len(desk.done) == 3 - kinds(before).count("effect.done") - looked_up(before), event
            paid = kinds(await history(rt, fork.id)).count("credits.spent")
            assert paid == 1 - kinds(before).count("credits.spent"), event
        assert await history(rt, run.id) == events
        desk.asked, desk.done = 0, []
        again = await rt.workspace.fork((await rt.workspace.fork(run.id)).id)  # of a fork that has done nothing itself
        assert (await again.result(PATIENCE), desk.asked, desk.done) == (result, 0, [])
        await sound(rt)


def kinds(events: list[Event]) -> list[str]:
    return [event.kind for event in events]


def looked_up(events: list[Event]) -> int:
    return sum(event.kind == "tool.done" and event.data["tool"] == "look_up" for event in events)


@pytest.mark.rule("fork.otherwise")
async def test_a_fork_goes_on_with_another_text_or_another_result(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        weather = await turn.once("weather", lambda: "rain")
        return f"{turn.task}: {await turn.delegate('writer', f'about {weather}')}"

    @rt.agent
    async def writer(turn: Turn) -> str:
        return turn.task.upper()

    run = await rt.submit("lead", "Monday")
    assert await run.result(PATIENCE) == "Monday: ABOUT RAIN"
    effect = next(event for event in await history(rt, run.id) if event.kind == "effect.done")
    assert await (await rt.workspace.fork(run.id, effect.seq, task="Tuesday")).result() == "Tuesday: ABOUT RAIN"
    other = await rt.workspace.fork(run.id, effect.seq, answer="sun", by="ann")
    assert await other.result() == "Monday: ABOUT SUN"
    again = await rt.workspace.fork(other.id)  # a fork can be forked
    assert await again.result() == "Monday: ABOUT SUN"
    first = (await history(rt, other.id))[0]
    assert (first.data["by"], first.data["forked"]) == ("ann", {"run": run.id, "at": effect.seq})
    await sound(rt)


@pytest.mark.rule("fork.otherwise")
async def test_a_fork_has_the_data_of_the_original_or_other_data_or_none(rt: Runtime):
    @rt.agent
    async def lead(turn: Turn) -> Any:
        return [turn.task, turn.data]

    run = await rt.submit("lead", "check", data={"order": 7})
    assert await run.result(PATIENCE) == ["check", {"order": 7}]
    began = (await history(rt, run.id))[0].seq
    fork = rt.workspace.fork
    assert await (await fork(run.id, began, task="look")).result() == ["look", {"order": 7}]
    other = await fork(run.id, began, task="look", data={"order": 8}, op="o1")
    assert await other.result() == ["look", {"order": 8}]
    assert (await fork(run.id, began, task="look", data={"order": 8}, op="o1")).id == other.id
    with pytest.raises(Conflict):
        await fork(run.id, began, task="look", data={"order": 9}, op="o1")
    assert await (await fork(run.id, began, data=None)).result() == ["check", None]
    alone = await rt.submit("lead", "", data={"order": 7})
    await alone.result(PATIENCE)
    with pytest.raises(BadInput, match="a task"):
        await fork(alone.id, data=None)
    with pytest.raises(BadInput, match="data"):
        await fork(run.id, began, data={1, 2})
    await sound(rt)


async def answered(rt: Runtime, answer: str) -> None:
    """Answer the next question of an agent."""
    with anyio.fail_after(PATIENCE):
        async for question in rt.workspace.questions.asked():
            await question.answer(answer, by="ann")
            return


@pytest.mark.rule("fork.nothing-again")
async def test_failures_handoffs_and_answers_of_people_are_kept_too(rt: Runtime):
    tried: list[str] = []

    @rt.agent(asks="*")
    async def front(turn: Turn) -> Command:
        outcome = await turn.outcome("shaky", "go")
        return Command("back", {"shaky": outcome.state})

    @rt.agent(asks="*")
    async def back(turn: Turn) -> str:
        return await turn.ask_human("Which colour?")

    @rt.agent
    async def shaky(turn: Turn) -> str:
        tried.append("shaky")
        raise ValueError("no")

    run = await rt.submit("front", "go")
    await answered(rt, "blue")
    assert await run.result(PATIENCE) == "blue"
    assert await (await rt.workspace.fork(run.id)).result(PATIENCE) == "blue"
    assert tried == ["shaky"]
    unasked = max(event.seq for event in await history(rt, run.id) if event.kind == "task.handed")
    fork = await rt.workspace.fork(run.id, unasked)
    await answered(rt, "green")
    assert await fork.result(PATIENCE) == "green"
    assert tried == ["shaky"]
    await sound(rt)


@pytest.mark.rule("fork.nothing-again")
async def test_a_run_that_is_still_open_can_be_forked(rt: Runtime):
    go, calls = anyio.Event(), list[str]()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        await turn.once("first", lambda: calls.append("first"))
        return await turn.delegate("slow", "x")

    @rt.agent
    async def slow(turn: Turn) -> str:
        await turn.once("second", lambda: calls.append("second"))
        await go.wait()
        return "done"

    run = await rt.submit("lead", "go")
    with anyio.fail_after(PATIENCE):
        while calls != ["first", "second"]:
            await anyio.lowlevel.checkpoint()
    fork = await rt.workspace.fork(run.id)
    go.set()
    assert [await run.result(PATIENCE), await fork.result(PATIENCE)] == ["done", "done"]
    assert calls == ["first", "second"]
    await sound(rt)


@pytest.mark.rule("fork.nothing-again")
async def test_tasks_that_were_submitted_and_spawned_are_found_by_a_fork(rt: Runtime):
    done: list[str] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        first, second = await turn.submit("part", "first"), await turn.spawn("part", "second")
        return f"{await first.result()} {await second.result()}"

    @rt.agent
    async def part(turn: Turn) -> str:
        done.append(turn.task)
        return turn.task

    run = await rt.submit("lead", "go")
    assert await run.result(PATIENCE) == "first second"
    await rt.workspace.wait_all(run.id)
    events = await history(rt, run.id)
    for event in events:
        done.clear()
        fork = await rt.workspace.fork(run.id, event.seq)
        assert await fork.result(PATIENCE) == "first second", event
        await rt.workspace.wait_all(fork.id)
        before = [
            one for one in events if one.seq <= event.seq and one.kind == "task.completed" and one.agent == "part"
        ]
        assert len(done) == 2 - len(before), event
    await sound(rt)


@pytest.mark.rule("fork.nothing-again")
async def test_a_plan_and_a_team_are_forked_at_any_event(rt: Runtime):
    done: list[str] = []

    @rt.agent(asks="*")
    async def boss(turn: Turn) -> object:
        done.append(turn.phase)
        steps = [{"id": "a", "title": "A", "agent": "part"}, {"id": "b", "title": "B", "agent": "part", "after": ["a"]}]
        return {"steps": steps} if turn.phase == "plan" else "done"

    @rt.agent
    async def part(turn: Turn) -> str:
        done.append("step")
        return "done"

    run = await rt.submit_team("a cake", "boss")
    assert (await run.wait(PATIENCE)).ok
    assert len(done) == 4
    events = await history(rt, run.id)
    for event in events:
        done.clear()
        assert (await (await rt.workspace.fork(run.id, event.seq)).wait(PATIENCE)).ok
        before = [one.kind for one in events if one.seq <= event.seq]
        steps = before.count("task.completed") - (event is events[-1])
        assert len(done) == 4 - before.count("team.planned") - steps, event
    await sound(rt)


@pytest.mark.rule("fork.nothing-again")
async def test_a_fork_of_a_retry_has_what_the_earlier_tries_finished(rt: Runtime):
    did: list[str] = []
    broken = {"late"}

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[object]:
        charged = await turn.once("charge", lambda: did.append("charge") or 5)
        found = await turn.delegate("part", "early")
        task = await turn.submit("part", "queued")
        return [charged, found, await task.result(PATIENCE), await turn.delegate("part", "late")]

    @rt.agent
    async def part(turn: Turn) -> str:
        await turn.once("begin", lambda: did.append(f"begin {turn.task}"))
        did.append(turn.task)
        if turn.task in broken:
            raise ValueError("no")
        return turn.task

    run = await rt.submit("lead", "go", attempts=1)
    assert not (await run.wait(PATIENCE)).ok
    broken.clear()
    retried = await rt.workspace.tasks.retry(run.id)
    result = await retried.result(PATIENCE)
    events = await history(rt, retried.id)
    for event in events:
        did.clear()
        fork = await rt.workspace.fork(retried.id, event.seq)
        assert await fork.result(PATIENCE) == result, event
        late = any(one.kind == "task.completed" and one.agent == "part" for one in events if one.seq <= event.seq)
        assert did == ([] if late else ["late"]), event
    await sound(rt)


@pytest.mark.rule("fork.original")
async def test_a_fork_continues_what_failed_without_being_met_by_a_retry_of_the_original(rt: Runtime):
    did: list[str] = []
    broken = [True]

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        first = await turn.outcome("part", "x")
        if not first.ok:
            return await turn.delegate("part", "x")
        raise ValueError("the part was done for another run")

    @rt.agent
    async def part(turn: Turn) -> str:
        await turn.once("begin", lambda: did.append("begin"))
        did.append("part")
        if broken[0]:
            raise ValueError("no")
        return "done"

    run = await rt.submit("lead", "go", attempts=1)
    assert not (await run.wait(PATIENCE)).ok
    broken[0] = False
    first = next(event for event in await history(rt, run.id) if event.kind == "task.failed")
    assert await (await rt.workspace.fork(run.id, first.seq)).result(PATIENCE) == "done"
    assert did == ["begin", "part", "part", "part"]
    broken[0] = True
    await rt.workspace.agents.reset("part")
    assert not (await (await rt.workspace.tasks.retry(run.id)).wait(PATIENCE)).ok
    assert did == ["begin", *["part"] * 5]
    await sound(rt)


@pytest.mark.rule("fork.refused")
async def test_a_fork_whose_original_was_pruned_says_so_and_does_nothing_twice(rt: Runtime, clock: FakeClock):
    did: list[str] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        if turn.task == "queued":
            part = await turn.submit("part", "x")
            return await part.result(PATIENCE)
        return await turn.delegate("part", "x")

    @rt.agent
    async def part(turn: Turn) -> str:
        did.append("part")
        return "done"

    runs = [await rt.submit("lead", "delegated"), await rt.submit("lead", "queued")]
    for run in runs:
        await run.result(PATIENCE)
    await rt.workspace.agents.trip("lead", "not now")
    forks = [await rt.workspace.fork(run.id) for run in runs]
    clock.advance(100)
    await rt.workspace.prune(0.0001)
    await rt.workspace.agents.reset("lead")
    for fork in forks:
        assert "of the run that this one is a fork of was pruned" in str((await ends(clock, fork)).error)
    assert did == ["part", "part"]


@pytest.mark.rule("fork.refused")
async def test_what_cannot_be_forked_is_refused_with_the_reason(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return await turn.delegate("part", "x")

    @rt.agent
    async def part(turn: Turn) -> str:
        return "done"

    await rt.run("part", "an earlier run")
    run = await rt.submit("lead", "go")
    await run.result(PATIENCE)
    first, child, *_, last = await history(rt, run.id)
    fork = rt.workspace.fork
    with pytest.raises(NotFound, match="there is no task 'nowhere'"):
        await fork("nowhere")
    with pytest.raises(BadInput, match="is a part of run"):
        await fork(child.task)
    with pytest.raises(BadInput, match="is not one of run"):
        await fork(run.id, last.seq + 1)
    with pytest.raises(BadInput, match="is not one of run"):
        await fork(run.id, 2**63 - 1)
    with pytest.raises(BadInput, match="is before run"):
        await fork(run.id, first.seq - 1)
    with pytest.raises(BadInput, match="has no answer to replace"):
        await fork(run.id, child.seq, answer="x")
    with pytest.raises(BadInput, match="at is a whole number of at least 1"):
        await fork(run.id, 0)
    with pytest.raises(BadInput, match="a task"):
        await fork(run.id, task="")
    again = await fork(run.id, op="once")
    assert (await fork(run.id, op="once")).id == again.id
    with pytest.raises(Conflict, match="used for another act"):
        await fork(run.id, child.seq, op="once")
    await again.result(PATIENCE)
    await sound(rt)
