"""What ended long ago is taken away; that it happened, and what it left on the shelf, is not."""

import anyio
import pytest

from engine.helping import PATIENCE, ends, happened, sound
from remit import Card, Runtime, Turn
from remit.errors import NotFound
from teams import echo, team

pytestmark = pytest.mark.anyio

DAY = 86_400


@pytest.fixture(params=["memory", "file"])
def rt(request, tmp_path, clock):
    """Nothing is pruned but when the test says so."""
    where = ":memory:" if request.param == "memory" else tmp_path / "team.db"
    with team(where, clock=clock, keep_days=None) as runtime:
        yield runtime


@pytest.mark.rule("prune.retention")
async def test_runs_that_ended_more_than_four_days_ago_go_and_a_line_of_each_stays(rt: Runtime, clock):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        await turn.context.set("notes", turn.task, "kept")
        await turn.send("coder", "hello")
        await (await turn.spawn("coder", "spawned")).wait(PATIENCE)
        return await turn.delegate("coder", "delegated")

    rt.add(Card("coder"), echo)
    old = await rt.outcome("lead", "old", session="s")
    clock.advance(2 * DAY)
    young = await rt.outcome("lead", "young", session="s")
    clock.advance(2 * DAY + 1)
    events = len(await rt.workspace.history())
    assert await rt.workspace.prune(4) == 1
    await sound(rt)
    with pytest.raises(NotFound):
        await rt.workspace.task(old.id).status()
    assert (await rt.workspace.task(young.id).status()).state == "completed"
    assert {one.run for one in await rt.workspace.tasks()} == {young.id}
    assert await rt.workspace.context().get("notes", "old") == "kept"
    last = (await rt.workspace.history())[-1]
    assert (len(await rt.workspace.history()), last.kind) == (events + 1, "runs.pruned")
    [line] = last.data["runs"]  # pyright: ignore[reportGeneralTypeIssues]
    assert (line["id"], line["agent"], line["task"], line["state"]) == (old.id, "lead", "old", "completed")  # pyright: ignore[reportCallIssue]
    assert (line["session"], len(line["tasks"])) == ("s", 3)  # pyright: ignore[reportCallIssue]
    kinds = [event.kind for event in await rt.workspace.history(run=old.id)]  # what happened can still be told
    assert kinds.count("task.completed") == 3
    assert await rt.workspace.prune(4) == 0


@pytest.mark.rule("prune.retention")
async def test_what_is_open_keeps_its_whole_run(rt: Runtime, clock):
    inside, go = anyio.Event(), anyio.Event()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        await turn.spawn("slow", "x")
        return "done"

    @rt.agent
    async def slow(turn: Turn) -> str:
        inside.set()
        await go.wait()
        return "late"

    outcome = await rt.outcome("lead", "go")
    await happened(inside)
    clock.advance(10 * DAY)
    assert await rt.workspace.prune(4) == 0
    go.set()
    [child] = await rt.workspace.tasks(parent=outcome.id)
    await ends(clock, rt.workspace.task(child.id))  # its time was up, so it is tried again
    assert await rt.workspace.prune(4) == 0  # its last part ended just now
    clock.advance(5 * DAY)
    assert await rt.workspace.prune(4) == 1
    assert await rt.workspace.tasks() == []
    await sound(rt)


@pytest.mark.rule("prune.retention")
async def test_many_are_pruned_in_batches_and_how_long_is_kept_can_be_said(rt: Runtime, clock):
    rt.add(Card("coder"), echo)
    for number in range(120):
        await rt.run("coder", str(number))
    clock.advance(DAY)
    assert await rt.workspace.prune(4) == 0
    assert await rt.workspace.prune(days=0.5) == 120
    assert await rt.workspace.tasks() == []
    await sound(rt)
    assert await rt.run("coder", "and on") == "and on"
    await sound(rt)


@pytest.mark.rule("prune.retention")
async def test_retried_and_failed_runs_are_pruned_too(rt: Runtime, clock):
    @rt.agent
    async def bad(turn: Turn) -> None:
        raise ValueError("no")

    old = await rt.submit("bad", "x")
    await old.wait(PATIENCE)
    await rt.workspace.reset("bad")
    again = await old.retry()
    await again.wait(PATIENCE)
    clock.advance(5 * DAY)
    assert await rt.workspace.prune(4) == 2
    assert await rt.workspace.tasks() == []
    await sound(rt)


@pytest.mark.rule("prune.retention")
async def test_a_pruned_store_opens_again(tmp_path, clock):
    with team(tmp_path / "team.db", clock=clock) as rt:
        rt.add(Card("coder"), echo)
        await rt.run("coder", "x", session="s")
        clock.advance(5 * DAY)
        assert await rt.workspace.prune(4) == 1
    with team(tmp_path / "team.db", clock=clock) as rt:
        rt.add(Card("coder"), echo)
        await sound(rt)
        assert await rt.run("coder", "y", session="s") == "y"
        assert [event.kind for event in await rt.workspace.history()][:3] == [
            "task.started",
            "task.completed",
            "runs.pruned",
        ]
        assert await rt.workspace.history(session="s")
        await sound(rt)
