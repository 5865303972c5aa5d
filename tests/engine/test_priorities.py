"""Priorities: of the tasks that wait, the one with the highest starts first; tasks that have started stay."""

import anyio
import pytest

from engine.helping import PATIENCE, Shaky, ends, found, happened, serving, sound
from remit import Card, Plan, Runtime, Step, Turn
from remit.core.breaker import BreakerPolicy
from remit.errors import BadInput, Conflict
from remit.testing import FakeClock
from teams import echo, team

pytestmark = pytest.mark.anyio


def recording(rt: Runtime, *names: str, concurrency: int | None = None) -> list[str]:
    """Add agents that note their tasks in the order in which they start."""
    begun: list[str] = []

    async def work(turn: Turn) -> str:
        begun.append(turn.task)
        return turn.task

    for name in names:
        rt.add(Card(name, concurrency=concurrency), work)
    return begun


@pytest.fixture(params=["memory", "file", "postgres"])
def one_slot(request: pytest.FixtureRequest, tmp_path, clock: FakeClock):
    """A workspace that runs one task at a time."""
    where = {"memory": lambda: ":memory:", "file": lambda: tmp_path / "team.db"}.get(request.param)
    with team(where() if where else request.getfixturevalue("address"), clock=clock, concurrency=1) as rt:
        yield rt


async def behind_a_gate(rt: Runtime) -> anyio.Event:
    """Fill the one slot of a workspace until the gate opens."""
    inside, gate = anyio.Event(), anyio.Event()

    @rt.agent
    async def porter(turn: Turn) -> None:
        inside.set()
        await gate.wait()

    await rt.submit("porter", "hold")
    await happened(inside)
    return gate


@pytest.mark.rule("priority.order")
@pytest.mark.parametrize("names", [("coder",), ("coder", "tester", "writer")])
async def test_the_highest_priority_starts_first_in_a_queue_and_between_agents(one_slot: Runtime, names):
    begun = recording(one_slot, *names)
    async with serving(one_slot):
        gate = await behind_a_gate(one_slot)
        tasks = [
            await one_slot.submit(names[number % len(names)], f"{priority} {number}", priority=priority)
            for number, priority in enumerate((0, -100, 5, 0, 100, 5, -1))
        ]
        gate.set()
        for task in tasks:
            await task.result(PATIENCE)
    assert begun == ["100 4", "5 2", "5 5", "0 0", "0 3", "-1 6", "-100 1"]
    await sound(one_slot)


@pytest.mark.rule("priority.order")
async def test_within_an_agents_limit_the_highest_priority_starts_first(rt: Runtime):
    inside, gate = anyio.Event(), anyio.Event()
    begun: list[str] = []

    async def work(turn: Turn) -> None:
        begun.append(turn.task)
        inside.set()
        await gate.wait()

    rt.add(Card("coder", concurrency=1), work)
    tasks = [await rt.submit("coder", "first")]
    await happened(inside)
    tasks += [await rt.submit("coder", task, priority=priority) for task, priority in (("low", -1), ("high", 1))]
    gate.set()
    for task in tasks:
        await task.result(PATIENCE)
    assert begun == ["first", "high", "low"]


@pytest.mark.rule("priority.kept")
async def test_a_retry_and_a_retry_by_hand_keep_the_priority_and_subtasks_have_none(clock: FakeClock):
    with team(clock=clock, breaker=BreakerPolicy(failures=1_000)) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            await turn.delegate("coder", "delegated")
            await (await turn.submit("coder", "submitted")).result()
            await (await turn.submit("coder", "urgent", priority=9)).result()
            raise Shaky

        rt.add(Card("coder"), echo)
        task = await rt.submit("lead", "x", priority=7, attempts=2)
        assert (await ends(clock, task)).state == "dead"
        status = await task.status()
        assert (status.attempt, status.priority) == (2, 7)
        again = await task.retry()
        assert (await again.status()).priority == 7
        parts = {one.task: one.priority for one in await rt.workspace.tasks.list(agent="coder")}
        assert parts == {"delegated": 0, "submitted": 0, "urgent": 9}
        await sound(rt)


@pytest.mark.rule("priority.order")
async def test_delayed_tasks_plans_and_teams_have_priorities_too(rt: Runtime, clock: FakeClock):
    begun = recording(rt, "coder", concurrency=1)
    rt.add(Card("boss", asks="*"), echo)
    for task, priority in (("low", 1), ("high", 2)):
        await rt.submit("coder", task, after=60, priority=priority)
    plan = await rt.submit_plan(Plan([Step("a", "A", agent="coder")]), after=6_000, priority=3)
    goal = await rt.submit_team("a cake", "boss", after=6_000, priority=4)
    assert ((await plan.status()).priority, (await goal.status()).priority) == (3, 4)
    clock.advance(60)
    await found(rt, lambda view: len(begun) == 2 or None)
    assert begun == ["high", "low"]


@pytest.mark.rule("priority.same")
async def test_the_priority_is_part_of_a_request(rt: Runtime):
    rt.add(Card("coder"), echo)
    first = await rt.submit("coder", "x", key="k", priority=5)
    assert (await rt.submit("coder", "x", key="k", priority=5)).id == first.id
    for how in ({}, {"priority": 6}):
        with pytest.raises(Conflict, match="was used for another request"):
            await rt.submit("coder", "x", key="k", **how)
    plain = await rt.submit("coder", "x", key="plain")
    assert (await rt.submit("coder", "x", key="plain", priority=0)).id == plain.id


@pytest.mark.rule("priority.input")
@pytest.mark.parametrize("priority", [101, -101, 0.5, "high", True, None])
async def test_a_priority_is_a_whole_number_from_minus_100_to_100(rt: Runtime, priority: object):
    rt.add(Card("coder"), echo)
    with pytest.raises(BadInput, match="priority"):
        await rt.submit("coder", "x", priority=priority)  # pyright: ignore[reportArgumentType]
