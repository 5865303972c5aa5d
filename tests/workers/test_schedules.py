"""Schedules with three worker processes: each planned run is started once, through kills and a day of downtime."""

from collections import Counter
from collections.abc import Awaitable, Callable

import anyio
import pytest

from deep import some
from programs import Program
from remit import Runtime
from remit.core.schedule import CATCH_UP
from remit.core.times import DAY, HOUR, SECOND
from workers.clocks import SharedClock
from workers.crew import PATIENCE, Crew, gone, sound

pytestmark = pytest.mark.anyio

MOMENT = SECOND // 5


@pytest.fixture(params=some(["file", "postgres"]))
def team(request: pytest.FixtureRequest) -> Crew:
    return request.getfixturevalue("crew" if request.param == "postgres" else "crew_on_file")


async def until(rt: Runtime, true: Callable[[], Awaitable[bool]]) -> None:
    """Wait for a change in the store."""
    with anyio.fail_after(PATIENCE):
        async with rt.workspace.journal.follow() as follow:
            while not await true():
                await follow.next()


async def started(rt: Runtime) -> dict[str, list[int]]:
    """Return the planned times for which each schedule has started runs, in order."""
    found: dict[str, list[int]] = {name: [] for name in CATCH_UP}
    for event in await rt.workspace.journal.history(kinds=["schedule.fired"]):
        found[event.data["name"]].append(event.data["last"])
    return found


async def work(team: Crew, number: int = 3) -> list[Program]:
    workers = [team.start(clock="time", silence=1) for _ in range(number)]
    await team.ready(*workers)
    return workers


async def kill(*workers: Program) -> None:
    for worker in workers:
        worker.kill()
    for worker in workers:
        await gone(worker)


@pytest.mark.long
@pytest.mark.rule("schedule.once", "schedule.catch-up")
async def test_each_planned_run_is_started_once_through_kills_and_a_day_of_downtime(team: Crew):
    clock = SharedClock(team.folder / "time")
    with team.runtime(clock=clock) as rt:
        for name in CATCH_UP:
            await rt.workspace.schedules.add(name, "0 * * * *", "echo", name, catch_up=name)
        first = (await rt.workspace.schedules.list())[0].next
        assert first is not None
        expected: dict[str, list[int]] = {name: [] for name in CATCH_UP}

        async def run_all() -> bool:
            return await started(rt) == expected

        async def run_one() -> bool:
            return await started(rt) != before

        workers = await work(team)
        for hour, killed in enumerate((0, 1, 3)):
            before = await started(rt)
            for times in expected.values():
                times.append(first + hour * HOUR)
            clock.jump_to(first + hour * HOUR + MOMENT)
            if hour:  # in the middle of it
                await until(rt, run_one)
            await kill(*workers[: killed or 1])
            workers = [*workers[killed or 1 :], *await work(team, killed or 1)]
            await until(rt, run_all)

        await kill(*workers)
        last = first + 2 * HOUR
        clock.jump_to(last + DAY + 300 * SECOND)
        expected["latest"].append(last + DAY)
        expected["all"] += [last + hour * HOUR for hour in range(1, 25)]
        await work(team)
        await until(rt, run_all)

        for times in expected.values():
            times.append(last + DAY + HOUR)
        clock.jump_to(last + DAY + HOUR + MOMENT)
        await until(rt, run_all)

        async def ended() -> bool:
            return {task.state for task in await rt.workspace.tasks.list(limit=100)} == {"completed"}

        await until(rt, ended)
        tasks = Counter(task.task for task in await rt.workspace.tasks.list(limit=100))
        assert tasks == {name: len(times) for name, times in expected.items()} == {"latest": 5, "all": 28, "none": 4}
        assert await started(rt) == expected
        assert [one.runs for one in await rt.workspace.schedules.list()] == [28, 5, 4]
        (skipped,) = await rt.workspace.journal.history(kinds=["schedule.skipped"])
        assert (skipped.data["name"], skipped.data["planned"]) == ("none", last + HOUR)
        await sound(rt)
