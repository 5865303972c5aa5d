"""Clocks that are set, run ahead or fall behind: nothing is done twice for it, and no deadline moves."""

import anyio
import pytest

from engine.helping import PATIENCE, Shaky, happened, life, quiet, reached, serving, sound, until
from remit import Bounds, Card, Runtime, Turn
from remit.core.breaker import BreakerPolicy
from remit.core.times import SECOND
from remit.testing import FakeClock
from teams import echo, team
from wrapped import Counted

pytestmark = pytest.mark.anyio

HOUR, MONTH = 3_600, 30 * 86_400
JUMPS = pytest.mark.parametrize("jump", [-MONTH, -HOUR, HOUR, MONTH])


@pytest.mark.rule("clock.jumps")
@JUMPS
async def test_what_runs_while_the_clock_is_set_ends_once(rt: Runtime, clock: FakeClock, jump: int):
    did: list[str] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list:
        first = await turn.once("pay", lambda: did.append("pay") or 5)
        clock.jump(jump)
        clock.advance(2)  # whoever looks now and then looks by the new time
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
    ours = Counted(tmp_path / "team.db")
    with team(tmp_path / "team.db", clock=other) as there, team(ours, clock=mine) as here:
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
        async with serving(here):
            await until(lambda: ours.asked["workers"] >= 1)  # it has looked who is there
            before = ours.asked["workers"]
            mine.jump(jump)
            mine.advance(2)
            await until(lambda: ours.asked["workers"] > before)
            await quiet()
            go.set()
            assert await here.workspace.tasks.get(task.id).result(PATIENCE) == "once"
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
async def test_the_time_of_a_run_is_what_passes_and_not_what_the_clock_is_set_to(rt: Runtime, clock, jump: int):
    """A deadline two seconds away stays that far away, wherever the clock is set."""
    inside: list[anyio.Event] = [anyio.Event(), anyio.Event()]

    @rt.agent
    async def slow(turn: Turn) -> None:
        clock.jump(jump)
        inside[int(turn.task)].set()
        await anyio.sleep_forever()

    outcomes: list[str] = []

    async def run() -> None:
        outcomes.append((await rt.outcome("slow", "0", timeout=2)).state)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await happened(inside[0])
            clock.advance(1.9)
            await quiet()
            assert outcomes == []
            clock.advance(0.1)
        assert outcomes == ["timed-out"]
        deadline = clock.now() + 2 * SECOND
        task = await rt.submit("slow", "1", within=Bounds(deadline=deadline))
        await happened(inside[1])
        clock.advance(1.9)
        await quiet()
        assert (await task.status()).state == "running"
        clock.advance(0.1)
        assert (await task.wait()).state == "timed-out"
    assert (await task.status()).until == deadline
    await sound(rt)


@pytest.mark.rule("clock.jumps")
@pytest.mark.parametrize("jump", [-MONTH, -HOUR])
async def test_a_retry_after_the_clock_was_set_back_has_no_more_time_than_before(clock, jump: int):
    with team(clock=clock, breaker=BreakerPolicy(failures=100)) as rt:
        tries: list[anyio.Event] = [anyio.Event(), anyio.Event()]
        begun: list[int] = []

        @rt.agent
        async def coder(turn: Turn) -> None:
            begun.append(1)
            tries[len(begun) - 1].set()
            if len(begun) == 1:
                raise Shaky
            await anyio.sleep_forever()

        task = await rt.submit("coder", "x", timeout=1_000, within=Bounds(deadline=clock.now() + 100 * SECOND))
        last = (await task.status()).until
        await reached(rt, task.id, "pending")
        clock.jump(jump)
        clock.advance(((await task.status()).ready_at - clock.now()) / SECOND)
        await happened(tries[1])
        clock.advance((last - clock.now()) / SECOND - 0.5)
        await quiet()
        assert (await task.status()).state == "running"
        clock.advance(0.5)
        with anyio.fail_after(PATIENCE):
            assert (await task.wait()).state == "timed-out"
        assert (await task.status()).until == last
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
