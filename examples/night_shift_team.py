"""The team of night_shift.py. Started as a script it is the process that dies: `python night_shift_team.py team.db`."""

import asyncio
import os
import sys

from remit import Runtime, Turn

rt = Runtime()
DYING = __name__ == "__main__"


@rt.agent(asks=["baker"])
async def lead(turn: Turn) -> str:
    dough = await turn.delegate("baker", "make the dough")
    flour = await turn.once("order", order, "flour")
    if DYING:
        os.kill(os.getpid(), 9)  # the lights go out
    return f"bread from {dough}; {flour}"


@rt.agent
async def baker(turn: Turn) -> str:
    print(f"baker: {turn.task}", flush=True)
    return "dough"


async def order(what: str) -> str:
    print(f"order: {what}", flush=True)
    return f"{what} is on its way"


async def main() -> None:
    task = await rt.at(sys.argv[1]).submit("lead", "bake", key="tomorrow")
    await task.result()


if DYING:
    asyncio.run(main())
