"""Clocks that are set, run ahead or fall behind: nothing is done twice for it, and no deadline moves."""

import anyio
import pytest

from engine.helping import PATIENCE, Shaky, found, happened, life, serving, sound
from remit import Bounds, Card, Runtime, Turn
from remit.core.breaker import BreakerPolicy
from remit.core.times import SECOND
from remit.engine.queue.caretaker import Caretaker
from remit.testing import FakeClock
from teams import team

pytestmark = pytest.mark.anyio

HOUR, MONTH = 3_600, 30 * 86_400
JUMPS = pytest.mark.parametrize("jump", [-MONTH, -HOUR, HOUR, MONTH])


async def echo(turn: Turn) -> str:
    return turn.task


@pytest.mark.rule("clock.jumps")
@JUMPS
async def test_what_runs_while_the_clock_is_set_ends_once(rt: Runtime, clock: FakeClock, jump: int):
    did: list[str] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list:
        first = await turn.once("pay", lambda: did.append("pay") or 5)
        clock.jump(jump)
        rt._services.bell.ring()
        await anyio.sleep(0.01)
        version = await turn.context.set("a", "k", "v")
        return [first, version]

    task = await rt.submit("lead", "go")
    assert await task.result(PATIENCE) == [5, 1]
    assert did == ["pay"]
    assert (await life(rt, task.id)).count("completed") == 1
    await sound(rt)


@pytest.mark.rule("clock.jumps")
@JUMPS
async def test_a_clock_that_is_set_makes_nobody_steal(tmp_path, jump: int):
    """The other is there and says so; that it is a month later by our clock says nothing about it."""
    mine, other = FakeClock(), FakeClock()
    with team(tmp_path / "team.db", clock=other) as there, team(tmp_path / "team.db", clock=mine) as here:
        inside, go = anyio.Event(), anyio.Event()
        did: list[str] = []

        async def coder(turn: Turn) -> str:
            await turn.once("pay", lambda: did.append("pay"))
            inside.set()
            await go.wait()
            return "once"

        there.add(Card("coder"), coder)
        here.add(Card("coder"), coder)
        task = await there.submit("coder", "x")
        await happened(inside)
        watcher = Caretaker(here._services, {}, None)
        await watcher.look()
        mine.jump(jump)
        await watcher.look()
        async with serving(here):
            go.set()
            assert await here.workspace.task(task.id).result(PATIENCE) == "once"
        assert did == ["pay"]
        assert "lost" not in await life(here, task.id)
        await sound(here)


@pytest.mark.rule("clock.jumps")
@pytest.mark.parametrize("skew", [-HOUR, HOUR])
async def test_processes_whose_clocks_differ_share_a_queue(tmp_path, skew: int):
    """What one submits the other carries out at once, each once, whichever is ahead."""
    fast, slow = FakeClock(), FakeClock()
    fast.jump(skew)
    crowd: list[str] = []
    with (
        team(tmp_path / "team.db", clock=fast, hands=0) as asking,
        team(tmp_path / "team.db", clock=slow) as working,
    ):

        @working.agent
        async def coder(turn: Turn) -> str:
            crowd.append(turn.task)
            return turn.task

        asking.add(Card("coder"), echo)
        tasks = [await asking.submit("coder", str(n)) for n in range(5)]
        async with serving(working):
            assert [await task.result(PATIENCE) for task in tasks] == ["0", "1", "2", "3", "4"]
        assert sorted(crowd) == ["0", "1", "2", "3", "4"]
        await sound(asking)


@pytest.mark.rule("clock.jumps")
@pytest.mark.parametrize("jump", [-MONTH, -HOUR])
async def test_what_is_put_back_before_the_clock_is_set_back_does_not_wait_for_the_old_time(rt: Runtime, clock, jump):
    inside = anyio.Event()
    calm: list[int] = []

    @rt.agent
    async def coder(turn: Turn) -> str:
        inside.set()
        if not calm:
            await anyio.sleep_forever()
        return "ok"

    task = await rt.submit("coder", "x")
    await happened(inside)
    assert await rt.drain(0) == 1
    calm.append(1)
    clock.jump(jump)
    async with serving(rt):
        assert await task.result(PATIENCE) == "ok"
    await sound(rt)


@pytest.mark.rule("clock.jumps")
@JUMPS
async def test_the_time_of_a_run_is_measured_by_the_loop_and_not_by_the_clock(rt: Runtime, clock, jump: int):
    """A deadline a twentieth of a second away stays that far away, wherever the clock is set."""

    @rt.agent
    async def slow(turn: Turn) -> None:
        clock.jump(jump)
        await anyio.sleep_forever()

    with anyio.fail_after(PATIENCE):
        assert (await rt.outcome("slow", "x", seconds=0.05)).state == "timed-out"
    deadline = clock.now() + SECOND // 20
    task = await rt.submit("slow", "x", within=Bounds(deadline=deadline))
    assert (await task.wait(PATIENCE)).state == "timed-out"
    assert (await task.status()).until == deadline
    await sound(rt)


@pytest.mark.rule("clock.jumps")
@pytest.mark.parametrize("jump", [-MONTH, -HOUR])
async def test_a_retry_after_the_clock_was_set_back_has_no_more_time_than_before(clock, jump: int):
    with team(clock=clock, breaker=BreakerPolicy(failures=100)) as rt:
        left: list[float] = []

        @rt.agent
        async def coder(turn: Turn) -> str:
            left.append(rt._services.conductor.alive.get(turn.remit.id).scope.deadline - anyio.current_time())
            if len(left) == 1:
                raise Shaky
            return "ok"

        task = await rt.submit("coder", "x", seconds=1_000, within=Bounds(deadline=clock.now() + 100 * SECOND))
        until = (await task.status()).until
        await found(rt, lambda view: view.record(task.id).state == "pending" or None)
        clock.jump(jump)
        with anyio.fail_after(PATIENCE):
            while (await task.status()).state == "pending":
                clock.advance(max(1.0, -jump / 4))
                await anyio.sleep(0.01)
        await task.wait(PATIENCE)
        assert (await task.status()).until == until
        assert all(one <= 100 for one in left)
        await sound(rt)


@pytest.mark.rule("clock.jumps")
@pytest.mark.parametrize("jump", [HOUR, MONTH])
async def test_what_waits_while_the_clock_is_set_forward_is_late_and_not_begun(clock, jump: int):
    with team(clock=clock, hands=0) as rt:
        began: list[str] = []

        @rt.agent
        async def coder(turn: Turn) -> None:
            began.append(turn.task)

        task = await rt.submit("coder", "x", within=Bounds(deadline=clock.now() + 60 * SECOND))
        clock.jump(jump)
        async with serving(rt):
            assert (await task.wait(PATIENCE)).state == "failed"
        clock.jump(-jump)
        assert ((await task.status()).state, began) == ("failed", [])
        await sound(rt)


@pytest.mark.rule("clock.jumps", "task.dedup")
async def test_a_key_is_a_key_wherever_the_clock_is(rt: Runtime, clock):
    rt.add(Card("coder"), echo)
    first = await rt.submit("coder", "x", key="k")
    for jump in (-MONTH, HOUR, 2 * MONTH):
        clock.jump(jump)
        assert (await rt.submit("coder", "x", key="k")).id == first.id
    await first.wait(PATIENCE)
    await sound(rt)
