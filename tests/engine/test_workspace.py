"""A workspace as its owner sees it: every act once, and all that happened, page by page."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from engine.helping import PATIENCE, quiet, sound
from remit import Card, Event, Runtime
from remit.errors import BadInput
from remit.testing import FakeClock, Scripted
from teams import echo, team

pytestmark = pytest.mark.anyio

DAY = 86_400


async def failed(rt: Runtime) -> str:
    """The id of a task that has failed."""
    if not any(card.name == "bad" for card in rt.cards()):
        rt.add(Card("bad"), Scripted(ValueError("no")))
    return (await rt.outcome("bad", "x")).id


async def cancel(rt: Runtime, op: str) -> object:
    open_ = await rt.workspace.tasks.list(agent="coder")
    task = open_[0].id if open_ else (await rt.submit("coder", "x")).id
    return await rt.workspace.tasks.cancel(task, op=op)


async def retry(rt: Runtime, op: str) -> object:
    known = await rt.workspace.tasks.list(agent="bad")
    task = known[-1].id if known else await failed(rt)
    return (await rt.workspace.tasks.retry(task, op=op)).id


async def write(rt: Runtime, op: str) -> object:
    return await rt.workspace.context(op=op).set("notes", "k", "v")


async def trip(rt: Runtime, op: str) -> object:
    return await rt.workspace.agents.trip("coder", "away", op=op)


async def reset(rt: Runtime, op: str) -> object:
    await rt.workspace.agents.trip("coder", "away", op="before")
    return await rt.workspace.agents.reset("coder", op=op)


async def prune(rt: Runtime, op: str) -> object:
    return await rt.workspace.prune(4, op=op)


ACTS: dict[str, Callable[[Runtime, str], Awaitable[object]]] = {
    one.__name__: one for one in (cancel, retry, write, trip, reset, prune)
}


@pytest.mark.rule("workspace.op")
@pytest.mark.parametrize("act", ACTS)
async def test_an_act_that_is_asked_for_again_is_one_act(clock: FakeClock, act: str):
    with team(clock=clock, hands=0) as rt:
        rt.add(Card("coder"), echo)
        if act == "prune":
            await failed(rt)
            clock.advance(5 * DAY)
        first = await ACTS[act](rt, "the operator's click")
        before = await rt.workspace.journal.history()
        assert await ACTS[act](rt, "the operator's click") == first
        assert await rt.workspace.journal.history() == before
        await sound(rt)


@pytest.mark.rule("workspace.op")
async def test_without_an_operation_each_act_counts(rt: Runtime):
    rt.add(Card("coder"), echo)
    assert await rt.workspace.agents.trip("coder", "away") is True
    assert await rt.workspace.agents.trip("coder", "away") is False
    for _ in range(2):
        await rt.workspace.context().set("notes", "k", "v")
    assert (await rt.workspace.context().entry("notes", "k")).version == 2
    with pytest.raises(BadInput, match="op"):
        await rt.workspace.agents.trip("coder", "away", op="x" * 1_000)


@pytest.mark.rule("workspace.by")
async def test_who_asked_is_on_record(clock: FakeClock):
    with team(clock=clock, hands=0) as rt:
        rt.add(Card("coder"), echo)
        rt.add(Card("bad"), Scripted(ValueError("no")))
        await rt.run("coder", "x", by="ann")
        await rt.submit("coder", "y", by="bob")
        await rt.run("coder", "z")
        assert [line.by for line in await rt.workspace.tasks.runs()] == ["", "bob", "ann"]
        again = await rt.workspace.tasks.retry((await rt.outcome("bad", "x")).id, by="cat")
        assert (await rt.workspace.tasks.runs(1))[0].by == "cat"
        await rt.workspace.tasks.cancel(again.id, by="dan")
        await rt.workspace.agents.trip("coder", "away", by="eve")
        said = [event.data["by"] for event in await rt.workspace.journal.history() if event.data.get("by")]
        assert said[:3] == ["ann", "bob", "cat"]


@pytest.mark.rule("workspace.follow")
async def test_following_from_a_number_misses_nothing_and_repeats_nothing(rt: Runtime):
    rt.add(Card("coder"), echo)
    assert (await rt.workspace.journal.read(lambda view: view.head())).seq == 0
    for number in range(5):
        await rt.run("coder", str(number))
    events = await rt.workspace.journal.history()
    last = (await rt.workspace.journal.read(lambda view: view.head())).seq
    assert last == events[-1].seq
    seen: list[Event] = []
    follow = rt.workspace.journal.follow(after=events[2].seq, limit=3)
    with anyio.fail_after(PATIENCE):
        async for page in follow:
            assert len(page) <= 3
            seen += page
            if seen[-1].seq == last:
                await rt.run("coder", "more")
            if len(seen) == len(events) - 3 + 2:
                break
    await follow.aclose()
    assert seen == (await rt.workspace.journal.history())[3:]


@pytest.mark.rule("workspace.follow")
async def test_following_starts_now_by_default(rt: Runtime):
    rt.add(Card("coder"), echo)
    await rt.run("coder", "before")
    seen: list[Event] = []
    follow = rt.workspace.journal.follow(kinds=frozenset(("task.started",)))

    async def read() -> None:
        async for page in follow:
            seen.extend(page)
            break

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await quiet()
            await rt.run("coder", "after")
    await follow.aclose()
    assert [event.data["task"] for event in seen] == ["after"]


@pytest.mark.rule("workspace.pages")
async def test_tasks_and_runs_come_in_pages_newest_first(rt: Runtime, clock: FakeClock):
    rt.add(Card("coder"), echo)
    for number in range(7):
        await rt.run("coder", str(number))
    for read, began in (
        (rt.workspace.tasks.list, lambda one: one.began),
        (rt.workspace.tasks.runs, lambda one: one.record.began),
    ):
        pages, before = [], None
        while page := await read(limit=3, before=before):
            pages.append([began(one) for one in page])
            before = began(page[-1])
        assert [len(page) for page in pages] == [3, 3, 1]
        flat = [one for page in pages for one in page]
        assert flat == sorted(flat, reverse=True)
    with pytest.raises(BadInput, match="did you mean limit"):
        await rt.workspace.tasks.list(limits=3)  # pyright: ignore[reportCallIssue]
    with pytest.raises(BadInput, match="state is open or one of"):
        await rt.workspace.tasks.list(state="pendling")
