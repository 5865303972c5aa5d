"""Imported last by the process from which programs are forked. It runs an agent, so that a fork need not import what
comes with the first run. Then all that it has stays for ever: no collection looks through it in a fork, where each look
would copy the page.
"""

import gc

from remit import Runtime, Turn, run


async def one(turn: Turn) -> str:
    return turn.task


with Runtime() as rt:
    rt.agent(one)
    run(rt, "one", "go")
gc.collect()
gc.freeze()
