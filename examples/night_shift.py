"""A process dies in the middle of its work. Another one carries on, and what was finished is not done twice."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile

from remit import Runtime, Turn

folder = os.environ.get("TEAM") or tempfile.mkdtemp()
rt = Runtime(f"{folder}/team.db")


@rt.agent(asks=["baker"])
async def lead(turn: Turn) -> str:
    dough = await turn.delegate("baker", "make the dough")
    flour = await turn.once("order", order, "flour")
    if "TEAM" in os.environ:  # the first of the two processes
        os.kill(os.getpid(), 9)  # the lights go out
    return f"bread from {dough}; {flour}"


@rt.agent
async def baker(turn: Turn) -> str:
    print(f"baker: {turn.task}", flush=True)
    return "dough"


async def order(what: str) -> str:
    print(f"order: {what}", flush=True)
    return f"{what} is on its way"


if "TEAM" not in os.environ:
    code = subprocess.call([sys.executable, __file__], env={**os.environ, "TEAM": folder})
    print(f"the first process died of signal {-code}")
task = asyncio.run(rt.submit("lead", "bake", key="tomorrow"))  # the second process finds what the first asked for
print(asyncio.run(task.result()))
shutil.rmtree(folder)
