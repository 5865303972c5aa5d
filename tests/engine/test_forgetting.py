"""A store in memory forgets what is old, and nothing that anyone still has to do with."""

from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, happened, sound
from remit import Card, Runtime, Turn
from remit.core.events import INLINE
from remit.errors import BadInput, NotFound
from remit.runtime.workspace import opening_of
from remit.settings import Serving
from teams import echo, team

pytestmark = pytest.mark.anyio

KEPT = 200  # events


@pytest.fixture
def rt(clock):
    with team(clock=clock, keep_events=KEPT, hands=4) as runtime:

        @runtime.agent(asks="*")
        async def lead(turn: Turn) -> str:
            await turn.send("coder", "hello")
            if turn.task.endswith("0"):
                await turn.once("draft", lambda: "x" * INLINE)
            return await turn.delegate("coder", turn.task)

        runtime.add(Card("coder"), echo)
        yield runtime


async def work(rt: Runtime, runs: int) -> None:
    for number in range(runs):
        assert await rt.run("lead", str(number)) == str(number)


def rows(rt: Runtime) -> dict[str, int]:
    connection: Any = opening_of(rt.workspace).database
    tables = ("event", "task", "run", "message", "blob")
    return {name: connection.writer.connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}


@pytest.mark.deep
@pytest.mark.long
@pytest.mark.rule("memory.flat")
async def test_many_more_runs_leave_no_more_behind(rt: Runtime):
    await work(rt, 500)
    few = rows(rt)
    assert few["blob"]
    await work(rt, 900)
    assert all(count <= 1.5 * few[name] for name, count in rows(rt).items()), (few, rows(rt))
    await sound(rt)
    health = await rt.workspace.check()
    assert any("events are forgotten" in finding.sentence for finding in health.findings)


@pytest.mark.long
@pytest.mark.rule("memory.flat")
async def test_open_runs_stay_whole_and_runs_that_ended_recently_too(rt: Runtime):
    inside, go = anyio.Event(), anyio.Event()

    @rt.agent(asks="*")
    async def long(turn: Turn) -> str:
        parts = [await turn.delegate("coder", "first")]
        inside.set()
        await go.wait()
        return " ".join([*parts, await turn.delegate("coder", "last")])

    task = await rt.submit("long", "for days")
    await happened(inside)
    await work(rt, 350)
    kinds = [event.kind for event in await rt.workspace.journal.history(run=task.id)]
    assert kinds == ["task.started", "task.started", "task.completed"]
    go.set()
    assert (await task.wait(PATIENCE)).unwrap() == "first last"
    await work(rt, 10)
    root = await rt.workspace.tree(task.id)
    assert root is not None
    assert [child.task for child in root.children] == ["first", "last"]
    await work(rt, 900)
    with pytest.raises(NotFound):
        await rt.workspace.tasks.get(task.id).status()
    assert await rt.workspace.journal.history(run=task.id) == []
    await sound(rt)


@pytest.mark.rule("memory.flat", "key.outlives")
async def test_entries_and_keys_stay(rt: Runtime):
    await rt.workspace.context().set("notes", "a", "kept")
    first = await rt.submit("coder", "once", key="k")
    await first.wait(PATIENCE)
    await work(rt, 200)
    assert await rt.workspace.context().get("notes", "a") == "kept"
    again = await rt.submit("coder", "once", key="k")
    assert (again.id, again.existing) == (first.id, True)
    with pytest.raises(NotFound, match="has completed at .* its record was pruned"):
        await again.status()


@pytest.mark.long
@pytest.mark.rule("memory.flat")
async def test_what_is_tried_again_still_finds_what_was_done_before(rt: Runtime):
    inside, go, done = anyio.Event(), anyio.Event(), list[str]()

    @rt.agent
    async def shaky(turn: Turn) -> str:
        await turn.once("charge", lambda: done.append("charged"))
        if not inside.is_set():
            inside.set()
            raise ValueError("no")
        await go.wait()
        await turn.once("charge", lambda: done.append("charged"))
        return "done"

    first = await rt.submit("shaky", "x")
    await first.wait(PATIENCE)
    await rt.workspace.agents.reset("shaky")
    again = await first.retry()
    await work(rt, 350)
    assert (await first.status()).state == "failed"
    go.set()
    await again.wait(PATIENCE)


@pytest.mark.long
@pytest.mark.rule("memory.flat")
async def test_all_is_kept_if_that_is_said_and_in_a_file_always(clock, tmp_path):
    for where, keep in ((":memory:", None), (tmp_path / "team.db", KEPT)):
        with team(where, clock=clock, keep_events=keep) as rt:
            rt.add(Card("coder"), echo)
            for number in range(300):
                await rt.run("coder", str(number))
            events = await rt.workspace.journal.history()
            assert [event.seq for event in events] == [*range(1, 601)]
            await sound(rt)


@pytest.mark.parametrize("keep", [0, -1, 1.5, "many", True])
async def test_how_many_are_kept_is_a_number(keep):
    with pytest.raises(BadInput, match="keep_events"):
        Serving(keep_events=keep)
