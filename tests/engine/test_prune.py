"""What ended long ago is taken away; that it happened, and what it left on the shelf, is not."""

import sqlite3
from contextlib import closing
from typing import Any

import anyio
import pytest

from engine.growth import counted
from engine.helping import PATIENCE, ends, found, happened, sound, until
from remit import Card, Runtime, Turn
from remit.engine.upkeep.prune import old_runs
from remit.errors import NotFound
from remit.runtime.workspace import opening_of
from remit.stores.sqlite.database import SqliteDatabase
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
    events = [event.seq for event in await rt.workspace.journal.history() if event.run != old.id]
    assert await rt.workspace.prune(4) == 1
    await sound(rt)
    with pytest.raises(NotFound):
        await rt.workspace.tasks.get(old.id).status()
    assert (await rt.workspace.tasks.get(young.id).status()).state == "completed"
    assert {one.run for one in await rt.workspace.tasks.list()} == {young.id}
    assert await rt.workspace.context().get("notes", "old") == "kept"
    *others, last = await rt.workspace.journal.history()
    [kept] = [event for event in others if event.run == old.id]  # an entry outlives its run
    assert (kept.kind, last.kind) == ("entry.set", "runs.pruned")
    assert [event.seq for event in others if event is not kept] == events
    [line] = last.data["runs"]  # pyright: ignore[reportGeneralTypeIssues]
    assert (line["id"], line["agent"], line["task"], line["state"]) == (old.id, "lead", "old", "completed")  # pyright: ignore[reportCallIssue]
    assert (line["session"], len(line["tasks"])) == ("s", 3)  # pyright: ignore[reportCallIssue]
    assert len(line["messages"]) == 2  # pyright: ignore[reportCallIssue, reportArgumentType]
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
    [child] = await rt.workspace.tasks.list(parent=outcome.id)
    await ends(clock, rt.workspace.tasks.get(child.id))  # its time was up, so it is tried again
    assert await rt.workspace.prune(4) == 0  # its last part ended just now
    clock.advance(5 * DAY)
    assert await rt.workspace.prune(4) == 1
    assert await rt.workspace.tasks.list() == []
    await sound(rt)


@pytest.mark.rule("prune.retention")
async def test_many_are_pruned_in_batches_and_how_long_is_kept_can_be_said(rt: Runtime, clock):
    rt.add(Card("coder"), echo)
    for number in range(120):
        await rt.run("coder", str(number))
    clock.advance(DAY)
    assert await rt.workspace.prune(4) == 0
    assert await rt.workspace.prune(days=0.5) == 120
    assert await rt.workspace.tasks.list() == []
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
    await rt.workspace.agents.reset("bad")
    again = await old.retry()
    await again.wait(PATIENCE)
    clock.advance(5 * DAY)
    assert await rt.workspace.prune(4) == 2
    assert await rt.workspace.tasks.list() == []
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
        assert (await rt.workspace.journal.history())[0].kind == "runs.pruned"
        assert await rt.workspace.journal.history(session="s")
        await sound(rt)


# -- in small steps -------------------------------------------------------------------------------------------------


@pytest.mark.rule("prune.steps")
async def test_others_get_to_work_between_the_steps_and_it_can_be_cancelled_there(rt: Runtime, clock):
    rt.add(Card("coder"), echo)
    for number in range(200):
        await rt.run("coder", str(number))
    clock.advance(5 * DAY)
    told: list[int] = []

    def tell(gone: int) -> None:
        told.append(gone)
        scope.cancel()  # it hears of it at the end of the step

    with anyio.CancelScope() as scope:
        await rt.workspace.prune(4, told=tell)
    [first] = told
    assert 0 < first < 200
    assert len(await rt.workspace.tasks.list(limit=1_000)) == 200 - first
    await sound(rt)
    assert await rt.workspace.prune(4) == 200 - first
    await sound(rt)


@pytest.mark.rule("prune.steps")
async def test_a_step_has_some_hundred_rows_and_a_larger_run_is_deleted_whole(rt: Runtime, clock):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        for number in range(int(turn.task)):
            await turn.delegate("coder", str(number))

    rt.add(Card("coder"), echo)
    for parts in (1, 150, 1, 1):
        await rt.run("lead", str(parts))
    clock.advance(5 * DAY)
    assert await rt.workspace.prune(4) == 4
    steps: list[Any] = [
        event.data["runs"] for event in await rt.workspace.journal.history() if event.kind == "runs.pruned"
    ]
    assert [[len(run["tasks"]) for run in step] for step in steps] == [[2, 151], [2, 2]]
    await sound(rt)


@pytest.mark.rule("prune.steps", "workspace.op")
async def test_a_prune_that_was_interrupted_goes_on_when_it_is_asked_for_again(rt: Runtime, clock):
    rt.add(Card("coder"), echo)
    for number in range(200):
        await rt.run("coder", str(number))
    clock.advance(3 * DAY)
    await rt.run("coder", "young")
    clock.advance(2 * DAY)
    with anyio.CancelScope() as scope:
        await rt.workspace.prune(4, op="click", told=lambda _: scope.cancel())
    clock.advance(5 * DAY)
    assert await rt.workspace.prune(4, op="click") == 200, "what was old when it was asked for first"
    assert await rt.workspace.prune(4, op="click") == 200
    assert await rt.workspace.prune(4, op="another click") == 1
    await sound(rt)


@pytest.mark.untraced
@pytest.mark.rule("prune.steps")
async def test_who_looks_for_what_is_old_does_not_read_all_that_is_young(clock):
    async def cost(runs: int) -> int:
        database = SqliteDatabase()
        with team(database, clock=clock) as rt:
            rt.add(Card("coder"), echo)
            for number in range(runs):
                await rt.run("coder", str(number))
            store = opening_of(rt.workspace).ground.store
            await store.read(lambda view: view.roots(0, 1))  # before it, what waits is written, and the late indexes
            with counted(database) as work:
                async for _ in old_runs(store, clock.now() - DAY):
                    raise AssertionError("there is none")
            return work.steps

    few, many = await cost(500), await cost(1_500)
    assert many <= 1.1 * few


@pytest.mark.rule("prune.steps")
async def test_what_is_old_behind_what_is_young_is_found_all_the_same(rt: Runtime, clock):
    """The clock of whoever wrote it was wrong for a while."""
    rt.add(Card("coder"), echo)
    await rt.run("coder", "old")
    clock.jump(5 * DAY)
    await rt.run("coder", "from the future")
    clock.jump(-5 * DAY)
    await rt.run("coder", "old too")
    clock.advance(5 * DAY)
    assert await rt.workspace.prune(4) == 2


@pytest.mark.rule("prune.retention")
async def test_a_worker_prunes_every_hour_if_it_is_told_how_long_to_keep_runs(tmp_path, clock):
    with team(tmp_path / "team.db", clock=clock, keep_days=1) as rt:
        rt.add(Card("coder"), echo)
        await rt.run("coder", "old")
        async with rt.serving():
            clock.advance(2 * DAY)
            await found(rt, lambda view: True if not view.roots(0, 1) else None)
        await sound(rt)


@pytest.mark.rule("prune.retention")
@pytest.mark.parametrize("data", ["no JSON", "{}"])
async def test_an_old_record_that_cannot_be_read_does_not_stop_the_work(tmp_path, clock, caplog, data: str):
    with team(tmp_path / "team.db", clock=clock, keep_days=1) as rt:
        rt.add(Card("coder"), echo)
        await rt.run("coder", "old")
        with closing(sqlite3.connect(tmp_path / "team.db")) as connection, connection:
            connection.execute("UPDATE event SET data = ? WHERE seq = 1", (data,))
        async with rt.serving():
            clock.advance(2 * DAY)
            await until(lambda: "tried again later" in caplog.text)
            assert (await (await rt.submit("coder", "new")).wait(PATIENCE)).unwrap() == "new"
