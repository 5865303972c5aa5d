"""A breaker learns from an agent's own failures, once for each task, and from nothing else."""

import asyncio

import anyio
import pytest

from engine.helping import PATIENCE, Shaky, ends, happened, sound
from remit import Failed, Plan, Refused, Runtime, Step, Turn
from remit.errors import BadInput
from remit.testing import FakeClock

pytestmark = pytest.mark.anyio


def broken(rt: Runtime) -> None:
    @rt.agent
    async def leaf(turn: Turn) -> None:
        raise ValueError("poison")


async def open_breakers(rt: Runtime) -> set[str]:
    return {name for name, breaker in (await rt.workspace.agents.breakers()).items() if breaker.state != "closed"}


@pytest.mark.rule("breaker.own-failures")
@pytest.mark.case("whose_failure")
async def test_a_failure_that_came_through_from_another_is_not_ones_own(rt: Runtime):
    broken(rt)

    @rt.agent(asks="*")
    async def plain(turn: Turn) -> None:
        await turn.delegate("leaf", "x")

    @rt.agent(asks="*")
    async def caused(turn: Turn) -> None:
        try:
            await turn.delegate("leaf", "x")
        except Failed as error:
            raise RuntimeError("could not go on") from error

    @rt.agent(asks="*")
    async def grouped(turn: Turn) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(turn.delegate("leaf", "x"))
            group.create_task(turn.delegate("nobody", "x"))

    @rt.agent(asks="*")
    async def above(turn: Turn) -> None:
        await turn.delegate("plain", "x")

    for _ in range(3):
        for name in ("plain", "caused", "grouped", "above"):
            assert (await rt.outcome(name, "x")).state == "failed"
            await rt.workspace.agents.reset("leaf")
    assert await open_breakers(rt) == set()
    await sound(rt)


@pytest.mark.rule("breaker.own-failures")
async def test_a_failure_of_its_own_beside_anothers_counts(rt: Runtime):
    broken(rt)

    @rt.agent(asks="*")
    async def both(turn: Turn) -> None:
        raise ExceptionGroup("two", [Refused("no", rule="loop"), ValueError("mine")])

    for _ in range(3):
        await rt.outcome("both", "x")
    assert await open_breakers(rt) == {"both"}


@pytest.mark.rule("breaker.own-failures")
@pytest.mark.case("breaker")
async def test_a_time_limit_shorter_than_usual_is_no_failure_of_the_agent(rt: Runtime, clock: FakeClock):
    begun = anyio.Event()

    @rt.agent
    async def slow(turn: Turn) -> None:
        begun.set()
        await anyio.Event().wait()

    @rt.agent(asks="*")
    async def mean(turn: Turn) -> list[str]:
        return [one.state for one in await turn.delegate_all([("slow", str(n)) for n in range(3)], timeout=0.5)]

    async def timed_out(name: str, later: float, **how: float) -> None:
        nonlocal begun
        begun = anyio.Event()
        asking = asyncio.ensure_future(rt.outcome(name, "x", **how))  # pyright: ignore[reportArgumentType]
        await happened(begun)
        clock.advance(later)
        await asking

    await timed_out("mean", 0.5)
    await timed_out("slow", 299, timeout=299)
    assert await open_breakers(rt) == set()
    for _ in range(3):  # its own time is another matter
        await timed_out("slow", 300)
    assert await open_breakers(rt) == {"slow"}
    await sound(rt)


@pytest.mark.rule("breaker.own-failures")
async def test_an_answer_that_is_not_accepted_is_no_failure_that_its_breaker_learns_from(rt: Runtime):
    @rt.agent
    async def doubling(turn: Turn) -> str:
        return turn.task * 2

    for _ in range(3):
        outcome = await rt.outcome("doubling", "x" * 600_000)
        assert outcome.state == "failed"
        assert isinstance(outcome.error, Failed)
        assert isinstance(outcome.error.__cause__, BadInput)
    assert await open_breakers(rt) == set()


@pytest.mark.rule("breaker.once")
@pytest.mark.case("retry_meets_breaker")
async def test_the_attempts_of_one_task_count_once_when_it_dies(rt: Runtime, clock: FakeClock):
    tries: list[str] = []

    @rt.agent
    async def shaky(turn: Turn) -> None:
        tries.append(turn.task)
        raise Shaky

    for number in range(3):
        assert await open_breakers(rt) == set()
        outcome = await ends(clock, await rt.submit("shaky", str(number)))
        assert outcome.state == "dead"
    assert len(tries) == 12
    assert (await rt.workspace.agents.breakers())["shaky"].failures == 3
    await sound(rt)


@pytest.mark.rule("breaker.once")
async def test_the_tries_of_a_step_count_once(rt: Runtime):
    tries: list[int] = []

    @rt.agent
    async def shaky(turn: Turn) -> str:
        tries.append(1)
        if len(tries) < 6:
            raise Shaky
        return "sixth time"

    outcome = await rt.run_plan(Plan([Step("1", "A", agent="shaky", retries=5)]))
    assert (outcome.states(), len(tries)) == ({"1": "completed"}, 6)
    tries.clear()
    await rt.run_plan(Plan([Step("1", "A", agent="shaky", retries=2)]))
    assert (await rt.workspace.agents.breakers())["shaky"].failures == 1
    await sound(rt)


@pytest.mark.rule("breaker.probe-back")
@pytest.mark.case("probe")
async def test_a_probe_that_tells_nothing_is_given_back_so_that_the_next_can_try(rt: Runtime, clock: FakeClock):
    switch = {"broken": True}
    begun = anyio.Event()

    @rt.agent
    async def bob(turn: Turn) -> str:
        if switch["broken"]:
            raise ValueError("down")
        begun.set()
        if turn.task == "slow":
            await anyio.Event().wait()
        return "fine"

    for _ in range(3):
        await rt.outcome("bob", "x")
    switch["broken"] = False
    for _ in range(3):  # someone's tiny limits decide nothing for the others
        clock.advance(60)
        asking = asyncio.ensure_future(rt.outcome("bob", "slow", timeout=0.5))
        await happened(begun)
        begun = anyio.Event()
        assert (await rt.outcome("bob", "a second one")).state == "refused"
        clock.advance(0.5)
        assert (await asking).state == "timed-out"
    assert await rt.run("bob", "a person's task") == "fine"
    assert await open_breakers(rt) == set()
    await sound(rt)


@pytest.mark.rule("breaker.probe-back")
async def test_a_probe_that_is_tried_again_is_given_back_meanwhile(rt: Runtime, clock: FakeClock):
    down: list[int] = [1, 1, 1]

    @rt.agent
    async def bob(turn: Turn) -> str:
        if down:
            down.pop()
            raise ValueError("down")
        if turn.task == "queued" and len(tried := seen) < 1:
            tried.append(1)
            raise Shaky
        return "fine"

    seen: list[int] = []
    for _ in range(3):
        await rt.outcome("bob", "x")
    clock.advance(60)
    task = await rt.submit("bob", "queued")
    assert (await ends(clock, task)).state == "completed"
    assert await open_breakers(rt) == set()


@pytest.mark.rule("breaker.told")
async def test_a_person_is_told_how_to_reset_it_and_an_agent_to_ask_someone_else(rt: Runtime):
    broken(rt)

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        with pytest.raises(Refused) as no:
            await turn.delegate("leaf", "x")
        return str(no.value)

    for _ in range(3):
        await rt.outcome("leaf", "x")
    with pytest.raises(
        Refused, match="is paused for 60 s; try again then, or reset it with `remit breaker reset leaf`"
    ):
        await rt.run("leaf", "x")
    with pytest.raises(Refused, match="`remit breaker reset leaf`"):
        await rt.submit("leaf", "x")
    assert await rt.run("lead", "x") == "'leaf' failed 3 times in a row and is paused for 60 s; ask someone else"
    await rt.workspace.agents.trip("leaf", "on holiday")
    with pytest.raises(Refused, match="taken out by an operator: on holiday; reset it with `remit breaker reset leaf`"):
        await rt.run("leaf", "x")
    await rt.workspace.agents.reset("leaf")
    assert (await (await rt.submit("leaf", "x")).wait(PATIENCE)).state == "failed"
