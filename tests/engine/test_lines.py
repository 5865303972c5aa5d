"""Lines of work: a task from the queue and all that is delegated below it share one slot, held while anyone works."""

import asyncio
from functools import partial

import anyio
import pytest

from engine.helping import PATIENCE, a_few_rounds, happened, life, named, reached, sound, until
from engine.test_slots import Crowd
from remit import Card, Runtime, Turn
from remit.core.bounds import TOP
from remit.core.remit import Origin, Pass, begin
from remit.engine.attempt.live import LiveTask, LiveTasks
from remit.engine.attempt.operations import Attempt
from remit.engine.directory import Agent
from teams import echo, team

pytestmark = pytest.mark.anyio


def nested(rt: Runtime, depth: int, crowd: Crowd | None = None) -> None:
    """Agents a0 > a1 > ..., each delegating to the next; the last submits something and waits for it."""

    async def passes_on(turn: Turn) -> str:
        return await turn.delegate(f"a{int(turn.agent[1:]) + 1}", turn.task)

    async def submits(turn: Turn) -> str:
        task = await turn.submit("worker", turn.task)
        return await task.result()

    async def worker(turn: Turn) -> str:
        if crowd is not None:
            await crowd.work("worker")
        return f"did {turn.task}"

    for number in range(depth):
        rt.add(Card(f"a{number}", asks="*"), passes_on)
    rt.add(Card(f"a{depth}", asks="*"), submits)
    rt.add(Card("worker"), worker)


@pytest.mark.long
@pytest.mark.rule("concurrency.line")
@pytest.mark.case("deadlock")
async def test_two_hundred_tasks_whose_delegates_submit_and_wait_all_finish():
    with team() as rt:
        nested(rt, 1)
        with anyio.fail_after(30):
            tasks = [await rt.submit("a0", f"{n}") for n in range(200)]
            assert [await task.result() for task in tasks] == [f"did {n}" for n in range(200)]
        await sound(rt)


@pytest.mark.rule("concurrency.line")
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("how", [{"hands": 1}, {"concurrency": 1}, {"hands": 1, "concurrency": 1}])
async def test_one_slot_is_enough_however_deep_someone_waits(tmp_path, how: dict[str, int], depth: int):
    crowd = Crowd()
    with team(tmp_path / "team.db", **how) as rt:
        nested(rt, depth, crowd)
        with anyio.fail_after(30):
            tasks = [await rt.submit("a0", f"{n}") for n in range(10)]
            assert [await task.result() for task in tasks] == [f"did {n}" for n in range(10)]
        assert crowd.most_in_all == 1
        assert not await rt.workspace.tasks.list(state="open")
        await sound(rt)


@pytest.mark.rule("concurrency.line")
@pytest.mark.parametrize("how", ["hands", "concurrency"])
async def test_a_line_keeps_its_slot_while_one_of_its_members_works(how: str):
    """Two members side by side: one waits for the queue, the other works. Only when both wait is there a slot."""
    works, begun = anyio.Event(), anyio.Event()

    with team(**{how: 1}) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[object]:
            return [one.value for one in await turn.delegate_all([("works", "x"), ("waits", "x")])]

        @rt.agent(asks="*")
        async def waits(turn: Turn) -> str:
            return await (await turn.submit("worker", "x")).result()

        @rt.agent("works")
        async def at_work(turn: Turn) -> str:
            begun.set()
            await works.wait()
            return "worked"

        rt.add(Card("worker"), echo)
        task = await rt.submit("lead", "go")
        await happened(begun)
        waiting, queued = await named(rt, "waits"), await named(rt, "worker")
        await reached(rt, waiting, "waiting")
        await a_few_rounds(50)
        assert (await rt.workspace.tasks.get(queued).status()).state == "pending"
        assert (await task.status()).state == "running"
        works.set()
        assert await task.result(PATIENCE) == ["worked", "x"]
        assert await life(rt, task.id) == ["started", "waiting", "resumed", "completed"]
        await sound(rt)


@pytest.mark.rule("concurrency.line")
@pytest.mark.parametrize("how", ["hands", "concurrency"])
async def test_a_line_goes_on_only_when_it_has_a_slot_again(how: str):
    crowd, go = Crowd(), anyio.Event()

    with team(**{how: 1}) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            return await turn.delegate("middle", "x")

        @rt.agent(asks="*")
        async def middle(turn: Turn) -> str:
            await (await turn.submit("worker", "x")).result()
            await crowd.work("middle")
            return "went on"

        @rt.agent
        async def other(turn: Turn) -> None:
            crowd("other", 1)
            await go.wait()
            crowd("other", -1)

        rt.add(Card("worker"), echo)
        task = await rt.submit("lead", "go")
        await rt.submit("other", "x")
        await until(lambda: crowd.now.get("other") or crowd.most.get("middle"))
        await a_few_rounds(50)
        go.set()
        assert await task.result(PATIENCE) == "went on"
        assert crowd.most_in_all == 1
        await sound(rt)


@pytest.mark.rule("concurrency.line")
@pytest.mark.parametrize("how", ["hands", "concurrency"])
async def test_what_begins_in_a_line_that_waits_takes_its_slot_again(how: str):
    """The first member waits for the queue before the second has begun."""
    with team(**{how: 1}) as rt:
        crowd = Crowd()

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[object]:
            return [one.value for one in await turn.delegate_all([("waits", "x"), ("works", "y")])]

        @rt.agent(asks="*")
        async def waits(turn: Turn) -> str:
            return await (await turn.submit("worker", "x")).result()

        async def work(turn: Turn) -> str:
            await crowd.work(turn.agent)
            return turn.task

        rt.add(Card("works"), work)
        rt.add(Card("worker"), work)
        tasks = [await rt.submit("lead", f"{n}") for n in range(20)]
        with anyio.fail_after(30):
            assert [await task.result() for task in tasks] == [["x", "y"]] * 20
        assert crowd.most_in_all == 1
        assert not await rt.workspace.tasks.list(state="open")
        await sound(rt)


@pytest.mark.rule("concurrency.line")
async def test_an_ordinary_delegation_writes_nothing_about_slots(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return await turn.delegate("coder", "x")

    rt.add(Card("coder"), echo)
    task = await rt.submit("lead", "go")
    assert await task.result(PATIENCE) == "x"
    assert await life(rt, task.id) == ["started", "completed"]


@pytest.mark.rule("concurrency.line")
async def test_a_line_that_waits_is_cancelled_whole(rt: Runtime):
    nested(rt, 2)
    hold = anyio.Event()

    async def holds(turn: Turn) -> None:
        await hold.wait()

    with rt.override(worker=holds):
        task = await rt.submit("a0", "x")
        await reached(rt, task.id, "waiting")
        await task.cancel()
        assert (await task.wait(PATIENCE)).state == "cancelled"
        await until(lambda: not rt.running())
    assert not await rt.workspace.tasks.list(state="open")
    await sound(rt)


@pytest.mark.rule("crash.fence")
async def test_a_task_that_is_claimed_again_while_its_old_turn_runs_on_is_another():
    """The old turn neither ends in the new one's name nor takes it along when it leaves."""
    remit = begin(Origin("task", "default", "s"), Pass("coder", "x"), TOP)
    agent = Agent(Card("coder"), echo)
    alive = LiveTasks()
    old = alive.enter(LiveTask(remit, agent, Attempt(fence=1, queued=True)))
    new = alive.enter(LiveTask(remit, agent, Attempt(fence=3, queued=True)))
    assert (alive.latest(old), alive.latest(new)) == (old, new)
    assert alive.with_lost_claims({"task": 3}) == []
    assert alive.with_lost_claims({"task": 5}) == alive.with_lost_claims({}) == [new]
    alive.leave(old)
    assert (old.over, new.over, alive.get("task")) == (True, False, new)
    alive.leave(new)
    assert (new.over, len(alive)) == (True, 0)


class Restarted:
    """A lead that waits for a queued task and has delegated to `works`, before and after a restart. Afterwards it
    requests the delegation only when the queued task is at work."""

    def __init__(self, *, waits: bool) -> None:
        self.crowd = Crowd()
        self.begun, self.other_works, self.resumed = anyio.Event(), anyio.Event(), anyio.Event()
        self._waits = waits

    def join(self, rt: Runtime, *, restarted: bool) -> None:
        rt.add(Card("lead", asks="*"), partial(self._lead, restarted))
        rt.add(Card("works", asks="*"), partial(self._work, restarted))
        rt.add(Card("other"), partial(self._other, restarted))
        rt.add(Card("third"), echo)

    async def _lead(self, restarted: bool, turn: Turn) -> list[object]:
        async def delegates() -> object:
            if restarted:
                await self.other_works.wait()
            return await turn.delegate("works", "y")

        return [*await asyncio.gather(submitted(turn, "other", "x"), delegates())]

    async def _work(self, restarted: bool, turn: Turn) -> object:
        if restarted:
            self.resumed.set()
            await self.crowd.work("works")
        elif not self._waits:
            self.begun.set()
            await anyio.sleep_forever()
        return await submitted(turn, "third", "y") if self._waits else turn.task

    async def _other(self, restarted: bool, turn: Turn) -> str:
        if not restarted:
            self.begun.set()
            await anyio.sleep_forever()
        self.crowd("other", 1)
        self.other_works.set()
        with anyio.move_on_after(1):  # `works` must not be resumed meanwhile
            await self.resumed.wait()
        self.crowd("other", -1)
        return turn.task


async def submitted(turn: Turn, agent: str, task: str) -> object:
    return await (await turn.submit(agent, task)).result()


@pytest.mark.rule("concurrency.line")
@pytest.mark.parametrize("waits", [False, True])
async def test_what_is_resumed_in_a_line_that_waits_takes_a_worker_slot(tmp_path, waits: bool):
    about = Restarted(waits=waits)
    with team(tmp_path / "team.db", hands=1) as first:
        about.join(first, restarted=False)
        task = await first.submit("lead", "go", priority=1)
        await happened(about.begun)
        await first.drain(0)
    with team(tmp_path / "team.db", hands=1) as heir:
        about.join(heir, restarted=True)
        heir.lend()
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == ["x", "y"]
        assert about.crowd.most_in_all == 1
        await sound(heir)


@pytest.mark.rule("concurrency.line")
async def test_a_delegated_task_that_ran_on_record_is_resumed_in_its_own_place(tmp_path):
    """It must not wait for a place in the workspace that it has itself."""
    begun = anyio.Event()

    def join(rt: Runtime, *, restarted: bool) -> None:
        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[object]:
            return [*await asyncio.gather(submitted(turn, "third", "x"), turn.delegate("works", "y"))]

        @rt.agent
        async def works(turn: Turn) -> str:
            if not restarted:
                begun.set()
                await anyio.sleep_forever()
            return turn.task

        rt.add(Card("third"), echo)

    with team(tmp_path / "team.db", concurrency=1) as first:
        join(first, restarted=False)
        task = await first.submit("lead", "go")
        await happened(begun)
        await first.drain(0)
    with team(tmp_path / "team.db", concurrency=1) as heir:
        join(heir, restarted=True)
        heir.lend()
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == ["x", "y"]
        await sound(heir)
