"""One subject of one job, in a process of its own: gives a cost for each line that it is told, as JSON.

It is started by `rounds.py`. A library that prints does not get in the way: only answers go to standard output.
"""

import asyncio
import inspect
import json
import logging
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

from jobs import JOBS
from measure import AsyncCosts, Cost, Load, Skipped, Subject


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    logging.disable()
    warnings.simplefilter("ignore")
    job, name, share, folder = sys.argv[1:]
    subject = next(one for one in JOBS if one.name == job).subjects[name]
    with asyncio.Runner() as runner:
        following, close = asked(subject, Load(float(share), Path(folder)), runner)
        for _ in sys.stdin:
            print(json.dumps(_answer(following)), file=answers, flush=True)
        close()


def asked(subject: Subject, load: Load, runner: asyncio.Runner) -> tuple[Callable[[], Cost], Callable[[], object]]:
    """What gives the next cost of a subject, and what ends it."""
    costs = subject(load)
    if inspect.isgenerator(costs):
        return lambda: next(costs), costs.close
    assert inspect.isasyncgen(costs)
    return lambda: runner.run(_next(costs)), lambda: runner.run(costs.aclose())


async def _next(costs: AsyncCosts) -> Cost:
    return await anext(costs)


def _answer(following: Callable[[], Cost]) -> dict[str, object]:
    try:
        return dict(following()._asdict())
    except Skipped as why:
        return {"skipped": str(why)}
    except Exception as error:  # noqa: BLE001 - whatever a library fails with stands in the table
        return {"skipped": f"it failed: {type(error).__name__}: {error}"[:100]}


if __name__ == "__main__":
    main()
