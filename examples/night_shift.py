"""A night shift: a schedule starts the closing of the day, two workers wait for it, and the one that has it is killed.

The other worker goes on: each shop is counted once and the mail is sent once. Set REMIT_STORE=postgresql://... to use
PostgreSQL, as workers on several machines do; without it, the store is a file.
"""

import asyncio
import os
import signal
import sys
from datetime import UTC, datetime, timedelta

from remit import Artifact, Runtime, Turn
from remit.settings import Serving

STORE = os.environ.get("REMIT_STORE", "night_shift.db")
SHOPS = {"harbour": 812, "market": 1_140, "station": 2_305}  # takings in dollars

rt = Runtime(STORE)


@rt.agent(asks=["clerk"])
async def manager(turn: Turn) -> Artifact:
    """Close the day: count every shop, save the report, mail it."""
    rows = ["shop,dollars"]
    for done, shop in enumerate(SHOPS):
        turn.progress(f"{shop}, {done} of {len(SHOPS)}", fraction=done / len(SHOPS))
        rows.append(f"{shop},{await turn.delegate('clerk', shop)}")
    if not await turn.context.board.get("lights"):  # the first worker that comes here dies
        await turn.context.board.set("lights", "out")
        print("the lights go out", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    report = await turn.artifacts.save("\n".join([*rows, ""]).encode(), name="takings.csv")
    await turn.once("mail the report", mail, f"the shops took ${sum(SHOPS.values()):,}, see {report.name}")
    return report


@rt.agent
async def clerk(turn: Turn) -> int:
    print(f"the clerk counts the {turn.task}", flush=True)
    return SHOPS[turn.task]


async def mail(text: str) -> None:
    print(f"mail to the owner: {text}", flush=True)


async def main() -> None:
    office = rt.at(serving=Serving(concurrency=0))  # this process starts no tasks itself
    workspace = office.workspace
    async with office, workspace.journal.follow(kinds=["schedule.fired"]) as starts:
        soon = datetime.now(UTC) + timedelta(seconds=3)
        nightly = f"{soon:%S %M %H} * * *"  # each night at this time, so that you need not wait; "0 2 * * *" is at two
        await workspace.schedules.add("closing", nightly, "manager", "close the day", replace=True)
        command = (sys.executable, "-u", "-m", "remit", "worker", f"{__file__}:rt")
        workers = [await asyncio.create_subprocess_exec(*command) for _ in range(2)]
        try:
            [started] = await starts.next(timeout=60)
            report = await workspace.tasks.get(str(started.data["last_task"])).result(returns=Artifact)
            print(await (await workspace.artifacts.open(report)).text(), end="")
        finally:
            await workspace.schedules.remove("closing")  # one night is enough here
            for worker in workers:
                if worker.returncode is None:
                    worker.terminate()
                await worker.wait()


if __name__ == "__main__":
    asyncio.run(main())
