"""The journal: one event a change, in order, for ever."""

from datetime import UTC, datetime

import pytest

from remit import Card, Runtime, Turn, errors
from remit.core.projection import fold
from remit.engine.upkeep.doctor import examine
from remit.runtime.workspace import opening_of, subscribe

pytestmark = pytest.mark.anyio


async def echo(turn: Turn) -> str:
    await turn.context.set("a", turn.task, "v", ttl=5)
    return turn.task


@pytest.mark.rule("journal.one-event", "journal.chain")
async def test_folding_the_journal_gives_the_tables(rt: Runtime, clock):
    rt.add(Card("echo", writes=["a"]), echo)

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        await turn.delegate_all([("echo", "1"), ("echo", "2"), ("nobody", "3")])
        await turn.send("echo", "hello")
        await turn.delegate("echo", "1")

    await rt.run("lead", "go")
    clock.advance(10)
    await rt.workspace.context.cleanup()
    health = await examine(opening_of(rt.workspace).database, clock.now())
    assert health.findings == []
    assert (health.tasks, health.entries, health.messages) == (4, 0, 1)
    tables = await opening_of(rt.workspace).ground.store.read(lambda view: view.tables())
    assert fold(await rt.workspace.journal.history()) == tables


@pytest.mark.rule("journal.history")
async def test_history_by_run_session_agent_and_time(rt: Runtime, clock):
    rt.add(Card("echo"), echo)
    rt.add(Card("other"), echo)
    await rt.run("echo", "one", session="s1")
    clock.advance(60)
    middle = datetime.fromtimestamp(clock.now() / 1e6, UTC)
    await rt.run("other", "two", session="s1")
    await rt.run("echo", "three", session="s2")

    async def tasks(**conditions) -> list[str]:
        return [
            str(e.data["task"]) for e in await rt.workspace.journal.history(**conditions) if e.kind == "task.started"
        ]

    run = (await rt.workspace.journal.history())[0].run
    assert await tasks(run=run) == ["one"]
    assert await tasks(session="s1") == ["one", "two"]
    assert await tasks(agent="echo") == ["one", "three"]
    assert await tasks(session="s1", agent="echo") == ["one"]
    assert await tasks(since=middle) == ["two", "three"]
    assert await tasks(until=middle, session="s1") == ["one"]
    assert len(await rt.workspace.journal.history()) == 9
    with pytest.raises(errors.BadInput, match="time zone"):
        await rt.workspace.journal.history(since=datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point


@pytest.mark.rule("sink.harmless")
async def test_a_listener_that_fails_does_not_fail_the_work(rt: Runtime, caplog):
    heard: list[str] = []
    subscribe(rt.workspace, lambda events: 1 / 0)
    stop = subscribe(rt.workspace, lambda events: heard.extend(event.kind for event in events))
    rt.add(Card("echo"), echo)
    assert await rt.run("echo", "x") == "x"
    assert heard == ["task.started", "entry.set", "task.completed"]
    assert "the work goes on" in caplog.text
    stop()
    await rt.run("echo", "y")
    assert len(heard) == 3


@pytest.mark.rule("store.workspace")
async def test_workspaces_share_a_file_and_nothing_else(tmp_path):
    with Runtime(tmp_path / "both.db", workspace="acme") as acme:
        acme.add(Card("echo"), echo)
        await acme.run("echo", "secret", session="s")
        with Runtime(tmp_path / "both.db", workspace="acme-corp") as corp:
            assert await corp.workspace.journal.history() == []
            assert await corp.workspace.context().get("a", "secret") is None
            assert await corp.workspace.context("s").board.query() == []


@pytest.mark.parametrize("bad", ["", "two\nlines", "x" * 65, 7, None])
def test_a_workspace_has_a_sensible_name(bad):
    with pytest.raises(errors.BadInput, match="workspace"):
        Runtime(workspace=bad)


async def test_a_session_has_a_sensible_name(rt: Runtime):
    rt.add(Card("echo"), echo)
    for bad in ("two\nlines", "x" * 57):
        with pytest.raises(errors.BadInput, match="session"):
            await rt.run("echo", "x", session=bad)
