"""The journal as an owner reads it: all of it, its latest events, page by page; and beside the event loop."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from engine.helping import PATIENCE
from remit import Card, Runtime
from remit.errors import BadInput
from remit.ports import Span, View
from remit.runtime.workspace import Workspace
from teams import echo, team
from wrapped import Wrapped

pytestmark = pytest.mark.anyio


async def some_runs(rt: Runtime, count: int = 4) -> None:
    rt.add(Card("echo"), echo)
    rt.add(Card("rare"), echo)
    await rt.run("rare", "once", session="first")
    for number in range(count):
        await rt.run("echo", f"task {number}", session=f"s{number % 2}")


def numbers(events: list) -> list[int]:
    return [event.seq for event in events]


@pytest.mark.rule("journal.history")
async def test_the_latest_events_come_in_order(rt: Runtime):
    await some_runs(rt)
    history = rt.workspace.journal.history
    every = await history()
    assert numbers(every) == [*range(1, 11)]
    assert await history(limit=3) == every[:3]
    assert await history(latest=True, limit=3) == every[-3:]
    assert await history(latest=True, limit=3, before=8) == every[4:7]
    assert await history(latest=True, limit=100) == every
    assert await history(latest=False, limit=2, after=4) == every[4:6]
    assert await history(agent="rare", latest=True, limit=1) == [every[1]]
    ours = [event for event in every if event.session == "s1"]
    assert await history(session="s1", latest=True, limit=3) == ours[-3:]
    assert await history(session="s1", kinds=frozenset({"task.started"}), latest=True, limit=1) == [ours[-2]]
    assert await history(run=every[2].run, latest=True, limit=1) == [every[3]]
    assert await history(task=every[2].task) == every[2:4]


@pytest.mark.rule("journal.pages")
async def test_the_journal_comes_page_by_page_as_far_as_it_goes_now(rt: Runtime):
    await some_runs(rt)
    pages = [numbers(events) async for events in rt.workspace.journal.follow(live=False, limit=4)]
    assert pages == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    seen: list[int] = []
    async for events in rt.workspace.journal.follow(live=False, agent="echo", after=2, limit=3):
        seen += numbers(events)
        if len(seen) == 3:
            await rt.run("echo", "meanwhile")
    assert seen == [*range(3, 11)], "what comes meanwhile is for the next who reads"
    assert [events async for events in rt.workspace.journal.follow(live=False, agent="nobody")] == []


@pytest.mark.rule("input.keywords")
async def test_what_makes_no_sense_about_events_is_refused(rt: Runtime):
    workspace = rt.workspace
    with pytest.raises(BadInput, match="latest is True or False"):
        await workspace.journal.history(latest="yes")  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match="before is"):
        await workspace.journal.history(before=-1)
    with pytest.raises(BadInput, match="did you mean latest"):
        await workspace.journal.history(last=True)  # pyright: ignore[reportCallIssue]
    with pytest.raises(BadInput, match="follow takes no 'latest'"):
        workspace.journal.follow(live=False, latest=True)  # pyright: ignore[reportCallIssue]
    with pytest.raises(BadInput, match="follow takes no 'latest'"):
        workspace.journal.follow(after=0, latest=True)  # pyright: ignore[reportCallIssue]
    with pytest.raises(BadInput, match="read takes a function"):
        await workspace.journal.read(7, long=True)  # pyright: ignore[reportArgumentType]


class Watched(Wrapped):
    """Notes on which thread each look runs, and which events are asked for."""

    def __init__(self, store: Path) -> None:
        super().__init__(store)
        self.threads: set[str] = set()
        self.spans: list[Span] = []

    def looking(self, view: View) -> View:
        self.threads.add(threading.current_thread().name)
        return _Seen(view, self.spans)  # pyright: ignore[reportReturnType]


class _Seen:
    def __init__(self, view: View, spans: list[Span]) -> None:
        self._view = view
        self._spans = spans

    def __getattr__(self, name: str):
        return getattr(self._view, name)

    def events(self, span: Span):
        self._spans.append(span)
        return self._view.events(span)


LOOKS: dict[str, Callable[[Workspace], Awaitable[object]]] = {
    "tasks": lambda workspace: workspace.tasks.list(),
    "runs": lambda workspace: workspace.tasks.runs(),
    "history": lambda workspace: workspace.journal.history(),
    "root": lambda workspace: workspace.tree("none"),
    "namespaces": lambda workspace: workspace.context.namespaces(),
    "edges": lambda workspace: workspace.edges(),
    "examine": lambda workspace: workspace.check(),
    "browse": lambda workspace: workspace.journal.read(lambda view: view.events(Span()), long=True),
}


@pytest.mark.rule("store.browse")
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
async def test_what_an_owner_lists_is_read_beside_the_loop(
    look: Callable[[Workspace], Awaitable[object]], tmp_path: Path
):
    database = Watched(tmp_path / "team.db")
    async with team(database) as rt:
        await look(rt.workspace)
    assert {name.rpartition("_")[0] for name in database.threads} == {"remit-browse"}


@pytest.mark.rule("workspace.follow")
async def test_following_someone_who_does_nothing_reads_only_what_is_new(tmp_path: Path):
    database = Watched(tmp_path / "team.db")
    async with team(database) as rt:
        await some_runs(rt)
        async with rt.workspace.journal.follow(agent="rare", after=2) as follow:
            assert await follow.next(0) == []
            database.spans.clear()
            await rt.run("echo", "another")
            assert await follow.next(0) == []
            assert [span.after for span in database.spans if span.agent == "rare"] == [10, 12]
            await rt.run("rare", "at last")
            assert [event.agent for event in await follow.next()] == ["rare", "rare"]


@pytest.mark.rule("workspace.follow")
async def test_waiting_for_an_event_goes_on_when_others_are_written(rt: Runtime):
    rt.agent(echo)
    async with rt.workspace.journal.follow(kinds=["task.cancelled"]) as follow:
        waiting = asyncio.create_task(follow.next(PATIENCE))
        await rt.run("echo", "something else")
        later = await rt.submit("echo", "later", after=PATIENCE)
        assert not waiting.done()
        await later.cancel()
        assert [event.kind for event in await waiting] == ["task.cancelled"]
