"""What money costs: a call that is held and settled, a delegation that shares or sets aside, and very many reservations
on one account, of which not one may be more than there is."""

import asyncio
import gc
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import remit
from measure import AsyncCosts, Cost, Costs, Load, Subject, each
from remit.core.events import Unsealed
from remit.ports import Decision
from remit.runtime.workspace import opening_of
from subjects.servers import server
from subjects.team import runtime_at

FULL, GRANTED, HELD, PART = 50_000, 5_000_000, 1_000, 300  # reservations, and millionths of a dollar
AT_ONCE = 100


def _dollars(amount: int) -> str:
    return f"${amount / 1_000_000:.6f}"


# -- one call ------------------------------------------------------------------------------------------------------


async def two_transactions(load: Load) -> AsyncCosts:
    """Microseconds for two transactions of one event each that changes no row."""
    with runtime_at(None) as runtime:
        store, numbers = opening_of(runtime.workspace).ground.store, iter(range(1_000_000_000))

        async def work() -> None:
            for _ in range(2):
                event = Unsealed("plan.started", 0, {"steps": []}, "", "", "", "")
                await store.tx(f"empty {next(numbers)}", lambda _view, event=event: Decision(None, (event,)))

        while True:
            yield await each(load.of(3_000), work)


async def pairs(load: Load) -> AsyncCosts:
    """Microseconds to hold a call and settle it, one after the other."""
    with runtime_at(None) as runtime:
        runtime.agent("caller")(_caller)
        await runtime.workspace.money.grant("$900000")
        while True:
            value, cpu = await runtime.run("caller", str(load.of(3_000)))
            yield Cost(value, cpu)


async def _caller(turn: remit.Turn) -> tuple[float, float]:
    times = int(turn.task)
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        async with turn.paid_call("$0.01", why="a call") as call:
            call.cost("$0.005")
    return (time.perf_counter() - wall) / times * 1e6, (time.process_time() - cpu) / times * 1e6


async def pairs_together(load: Load) -> AsyncCosts:
    """Calls that are held and settled in a second, in a file, by 100 flows at once."""
    with runtime_at(load.folder) as runtime:
        runtime.agent("callers")(_callers)
        await runtime.workspace.money.grant("$900000")
        while True:
            yield Cost(await runtime.run("callers", str(load.of(10_000, AT_ONCE))))


async def _callers(turn: remit.Turn) -> float:
    each_of_them = int(turn.task) // AT_ONCE

    async def flow() -> None:
        for _ in range(each_of_them):
            async with turn.paid_call("$0.01", why="a call") as call:
                call.cost("$0.005")

    start = time.perf_counter()
    await asyncio.gather(*(flow() for _ in range(AT_ONCE)))
    return each_of_them * AT_ONCE / (time.perf_counter() - start)


# -- a delegation --------------------------------------------------------------------------------------------------


def delegations(how: str) -> Subject:
    """Microseconds for a delegation in memory: unpaid, of what its asker has, or with an amount set aside."""

    async def sequence(turn: remit.Turn) -> tuple[float, float]:
        times = int(turn.task)
        said: dict[str, Any] = {"credits": "$0.01"} if how == "aside" else {}
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        for number in range(times):
            await turn.delegate("worker", f"go {number}", **said)
        return (time.perf_counter() - wall) / times * 1e6, (time.process_time() - cpu) / times * 1e6

    async def worker(_turn: remit.Turn) -> str:
        return "ok"

    async def costs(load: Load) -> AsyncCosts:
        with runtime_at(None) as runtime:
            runtime.agent(worker)
            runtime.agent(asks="*")(sequence)
            if how != "unpaid":
                await runtime.workspace.money.grant("$900000")
            await runtime.run("sequence", "10")  # warm
            while True:
                yield Cost(*await runtime.run("sequence", str(load.of(2_000))))

    return costs


# -- very many -----------------------------------------------------------------------------------------------------


async def _reserves(turn: remit.Turn) -> int:
    """Hold as often as the task says: a third keeps all, a third settles a part, a third is released. Answers how many
    were refused."""
    left, refused = iter(range(int(turn.task))), 0

    async def flow() -> None:
        nonlocal refused
        for number in left:
            try:
                async with turn.paid_call(_dollars(HELD), why="x") as call:
                    if number % 3 == 2:
                        call.not_sent()
                    else:
                        call.cost(_dollars(PART if number % 3 else HELD))
            except remit.Refused:
                refused += 1

    await asyncio.gather(*(flow() for _ in range(AT_ONCE)))
    return refused


async def _checked(runtime: remit.Runtime, times: int, where: str) -> None:
    """Count what was spent by what is metered, and have the doctor look at it."""
    spent = await runtime.workspace.journal.read(lambda view: view.metered("workspace", "", "credits", ""))
    health = await runtime.workspace.check()
    over = max(0, spent - GRANTED)
    print(
        f"{times:,} reservations {where}: ${spent / 1e6:.4f} of ${GRANTED / 1e6:.2f} spent, overspend {over}",
        file=sys.stderr,
    )
    assert over == 0
    assert health.sound, health.findings


def reservations(*, durable: bool) -> Subject:
    """Reservations in a second, by 100 flows at once on one account."""

    async def costs(load: Load) -> AsyncCosts:
        times = load.of(FULL, AT_ONCE)
        while True:
            with runtime_at(load.folder if durable else None) as runtime:
                runtime.agent("reserves")(_reserves)
                await runtime.workspace.money.grant(_dollars(GRANTED))
                start = time.perf_counter()
                await runtime.run("reserves", str(times), timeout=3_600)
                took = time.perf_counter() - start
                await _checked(runtime, times, "in a file" if durable else "in memory")
            yield Cost(times / took)

    return costs


_PROCESSES = 4


def reserve_at(address: str, times: str) -> None:
    """Reserve in a process of its own, once it is told to go."""

    async def main() -> None:
        with remit.Runtime(address) as runtime:
            runtime.agent("reserves")(_reserves)
            await runtime.workspace.money.account()
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
            await runtime.run("reserves", times, timeout=3_600)
            print("done", flush=True)

    asyncio.run(main())


def reservations_served(load: Load) -> Costs:
    """The same from four processes on PostgreSQL."""
    each_of_them = load.of(FULL, AT_ONCE * _PROCESSES) // _PROCESSES
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); from subjects.money import reserve_at; "
    )
    code += "reserve_at(*sys.argv[1:])"
    while True:
        with server(load.folder) as address:
            asyncio.run(_granted(address))
            command = [sys.executable, "-c", code, address, str(each_of_them)]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            processes = [subprocess.Popen(command, **pipes) for _ in range(_PROCESSES)]
            for one in processes:
                _told(one)
            start = time.perf_counter()
            for one in processes:
                assert one.stdin is not None
                one.stdin.write("go\n")
                one.stdin.flush()
            for one in processes:
                _told(one)
            took = time.perf_counter() - start
            for one in processes:
                one.communicate()
            asyncio.run(_looked_at(address, each_of_them * _PROCESSES))
        yield Cost(each_of_them * _PROCESSES / took)


def _told(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    assert process.stdout.readline(), "a process that reserves has failed"


async def _granted(address: str) -> None:
    with remit.Runtime(address) as runtime:
        await runtime.workspace.money.grant(_dollars(GRANTED))


async def _looked_at(address: str, times: int) -> None:
    with remit.Runtime(address) as runtime:
        await _checked(runtime, times, f"from {_PROCESSES} processes on PostgreSQL")
