"""Who said how long: a deadline is what someone said, and the usual time is a timer of each attempt."""

import asyncio

import anyio
import pytest

from engine.helping import PATIENCE, doomed, found, happened, serving, sound, take_over
from remit import Bounds, Card, Outcome, Refused, Runtime, Task, Turn
from remit.errors import BadInput
from remit.ports import Which
from remit.testing import FakeClock
from teams import team

pytestmark = pytest.mark.anyio

SECOND = 1_000_000


@pytest.mark.rule("time.said")
async def test_only_what_someone_said_is_a_deadline(rt: Runtime, clock: FakeClock):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[int | None]:
        passed = [await turn.delegate("other", "1"), await turn.delegate("other", "2", timeout=5)]
        task = await turn.submit("other", "3")
        return [turn.remit.bounds.deadline, *passed, await task.result(PATIENCE)]

    @rt.agent
    async def other(turn: Turn) -> int | None:
        return turn.remit.bounds.deadline

    now = clock.now()
    assert await rt.run("lead", "x") == [None, None, now + 5 * SECOND, None]
    said = now + 3 * SECOND
    assert await rt.run("lead", "x", within=Bounds(deadline=said)) == [said, said, said, said]
    for status in await rt.workspace.tasks.list():  # whatever is said, nothing is under way for ever
        assert now < status.until <= now + 30 * 86_400 * SECOND
    await sound(rt)


@pytest.mark.rule("time.usual")
async def test_a_delegation_has_300_seconds_and_an_attempt_from_the_queue_260(rt: Runtime, clock: FakeClock):
    begun = anyio.Event()

    @rt.agent
    async def slow(turn: Turn) -> None:
        begun.set()
        await anyio.Event().wait()

    asking = asyncio.ensure_future(rt.outcome("slow", "x"))
    await happened(begun)
    [status] = await rt.workspace.tasks.list()
    assert status.until == clock.now() + 300 * SECOND
    clock.advance(299)
    assert not asking.done()
    clock.advance(1)
    assert (await asking).state == "timed-out"
    begun = anyio.Event()
    task = await rt.submit("slow", "x", attempts=1)
    assert (await task.status()).until == clock.now() + 30 * 86_400 * SECOND
    await happened(begun)
    clock.advance(260)
    assert (await task.wait(PATIENCE)).state == "dead"
    await sound(rt)


@pytest.mark.rule("time.agent")
async def test_the_timeout_of_an_agent_is_the_time_of_each_of_its_attempts(rt: Runtime, clock: FakeClock):
    begun = asyncio.Event()

    async def slow(turn: Turn) -> None:
        begun.set()
        await anyio.Event().wait()

    @rt.agent(asks="*", timeout=5_000)
    async def lead(turn: Turn) -> str:
        return (await turn.outcome("long", "x", timeout=4_000)).state

    rt.agent("long", timeout=1_000)(slow)
    rt.agent("brief", timeout=5)(slow)
    rt.add(Card("carded"), slow, timeout=7)

    async def ends_after(seconds: float, asking: asyncio.Future[Outcome], *, recorded: bool = True) -> Outcome:
        async with asyncio.timeout(PATIENCE):
            await begun.wait()
        if recorded:
            last = max(await rt.workspace.tasks.list(), key=lambda one: one.asked)
            assert last.until == clock.now() + seconds * SECOND
        clock.advance(seconds - 1)
        assert not asking.done()
        clock.advance(1)
        begun.clear()
        done = await asking
        clock.advance(120)  # the breaker closes
        return done

    for name, seconds in (("long", 1_000), ("brief", 5), ("carded", 7)):
        assert (await ends_after(seconds, asyncio.ensure_future(rt.outcome(name, "x")))).state == "timed-out"
    # A caller may set a shorter time, and not a longer one.
    assert (await ends_after(20, asyncio.ensure_future(rt.outcome("long", "x", timeout=20)))).state == "timed-out"
    assert (await ends_after(5, asyncio.ensure_future(rt.outcome("brief", "x", timeout=20)), recorded=False)).error
    # A delegation has the time of its agent; in the queue it is the time of each attempt.
    assert (await ends_after(1_000, asyncio.ensure_future(rt.outcome("lead", "x")), recorded=False)).value == (
        "timed-out"
    )
    for name, seconds, said in (("long", 1_000, {}), ("long", 300, {"timeout": 300}), ("brief", 5, {"timeout": 300})):
        task = await rt.submit(name, "x", attempts=1, **said)
        done = await ends_after(seconds, asyncio.ensure_future(task.wait()), recorded=False)
        assert done.state == "dead"
    await sound(rt)


@pytest.mark.rule("time.usual")
async def test_a_caller_may_give_a_delegation_more_than_the_usual_time(rt: Runtime, clock: FakeClock):
    begun, go = anyio.Event(), anyio.Event()

    @rt.agent
    async def slow(turn: Turn) -> str:
        begun.set()
        await go.wait()
        return "done"

    asking = asyncio.ensure_future(rt.outcome("slow", "x", timeout=1_000))
    await happened(begun)
    [status] = await rt.workspace.tasks.list()
    assert status.until == clock.now() + 1_000 * SECOND
    clock.advance(999)
    go.set()
    assert (await asking).value == "done"


@pytest.mark.rule("time.usual")
async def test_what_an_agent_submits_outlives_the_usual_time_of_its_asker(rt: Runtime, clock: FakeClock):
    handles: list[Task] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        handles.append(await turn.submit("slow", "x"))
        return (await turn.submit("slow", "y")).id

    go = anyio.Event()

    @rt.agent
    async def slow(turn: Turn) -> str:
        if turn.task == "x":
            return "at once"
        await go.wait()
        return "later"

    later = rt.workspace.tasks.get(await rt.run("lead", "x"))
    clock.advance(250)
    clock.jump(100)
    go.set()
    assert (await later.wait(PATIENCE)).value == "later"


@pytest.mark.rule("time.usual")
async def test_taken_over_a_run_has_its_usual_time_again(tmp_path, clock: FakeClock):
    path = tmp_path / "team.db"
    begun: list[str] = []
    go = anyio.Event()
    first, heir = doomed(path, clock), team(path, clock=clock)
    for rt in (first, heir):

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            return await turn.delegate("slow", "x")

        @rt.agent
        async def slow(turn: Turn) -> str:
            begun.append(turn.agent)
            await go.wait()
            return "done"

    with first, heir:
        lost = asyncio.ensure_future(first.outcome("lead", "x"))
        await found(heir, lambda view: True if view.tasks(Which(agent="slow")) else None)
        clock.advance(290)  # its process is gone for most of that time
        async with serving(heir):
            await take_over(heir, clock, first)
            root = await found(
                heir, lambda view: next((one.id for one, _ in view.tasks(Which(agent="lead")) if one.fence > 1), None)
            )
            clock.advance(200)
            go.set()
            assert (await heir.workspace.tasks.get(root).wait(PATIENCE)).value == "done"
        lost.cancel()
        await asyncio.wait([lost])


@pytest.mark.rule("retry.handle")
@pytest.mark.case("retry_deadline")
async def test_a_retrys_handle_belongs_to_its_asker_while_its_turn_lasts(rt: Runtime, clock: FakeClock):
    kept: list[Task] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[int]:
        first = await turn.submit("bad", "x", attempts=1)
        await first.wait(PATIENCE)
        second = await first.retry()
        await second.wait(PATIENCE)
        third = await second.retry()
        await third.wait(PATIENCE)
        kept.extend((first, second, third))
        return [(await task.status()).until for task in kept]

    @rt.agent
    async def bad(turn: Turn) -> None:
        raise ValueError("no")

    deadline = clock.now() + 5 * SECOND
    assert await rt.run("lead", "x", within=Bounds(deadline=deadline)) == [deadline] * 3
    for handle in kept:
        for use in (handle.retry, handle.status, handle.wait, handle.cancel):
            with pytest.raises(Refused, match="has ended"):
                await use()
        assert (await rt.workspace.tasks.get(handle.id).status()).state == "failed"


@pytest.mark.rule("input.tokens")
@pytest.mark.parametrize("absurd", [2**63, 10**13, -1, True, float("nan"), 1.5, "7", None])
@pytest.mark.case("tokens_overflow")
async def test_an_absurd_figure_is_refused_when_it_is_said(rt: Runtime, absurd):
    @rt.agent
    async def model(turn: Turn) -> str:
        await turn.report_tokens(10)
        with pytest.raises(BadInput, match="tokens is a whole number"):
            await turn.report_tokens(absurd)
        return "fine"

    assert await rt.run("model", "x") == "fine"
    [end] = await rt.workspace.journal.history(kinds=frozenset({"task.completed"}))
    assert end.data["tokens"] == 10
