"""What a hop costs inside of a run that goes on, a step of a plan, and a session that has become long."""

from measure import AsyncCosts, Cost, Load, Subject, written
from subjects.team import team


def delegations(*, durable: bool) -> Subject:
    """Microseconds for a delegation, one after the other in one run."""

    async def costs(load: Load) -> AsyncCosts:
        times = load.of(500 if durable else 2_000)
        with team(load.folder if durable else None) as runtime:
            await runtime.run("sequence", "10")  # warm
            while True:
                value, cpu = await runtime.run("sequence", str(times))
                yield Cost(value, cpu)

    return costs


async def plan_step(load: Load) -> AsyncCosts:
    """Microseconds that a step costs beyond delegating it."""
    with team(None) as runtime:
        await runtime.run("planner", "10")
        while True:
            yield Cost(await runtime.run("planner", str(load.of(1_000))))


def session(events: int, *, count_bytes: bool = False) -> Subject:
    """Microseconds, or bytes written, for a delegation in a session that has so many delegations already."""

    async def costs(load: Load) -> AsyncCosts:
        with team(load.folder) as runtime:
            await runtime.run("sequence", str(load.of(events)), session="one")
            while True:
                before = written()
                value, cpu = await runtime.run("sequence", "100", session="one")
                yield Cost((written() - before) / 100) if count_bytes else Cost(value, cpu)

    return costs
