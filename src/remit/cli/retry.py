"""`remit retry`: run a task again."""

import asyncio

from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, aside, emit, opened, options_for, out, without_agents
from remit.runtime.finding import task_of
from remit.runtime.runtime import Runtime


def retry(task: str, *, place: Where = HERE, json: AsJson = False) -> None:
    """Run a task again that did not complete; what it had finished is not done again.

    Parameters
    ----------
    task
        Its id, the id's beginning or end as long as only one fits, or `last`.
    json
        Print the new task's id as JSON.
    """
    with opened(place) as (database, store):
        again = asyncio.run(_retry(without_agents(database, store), task))
        where = options_for(database, store.workspace, place.store)
    if json:
        emit({"task": again})
        return
    out().print(Text(again))
    aside().print(Text(f"remit wait {again}{where}", "dim"))


async def _retry(runtime: Runtime, typed: str) -> str:
    record = await runtime.store.read(lambda view: task_of(view, typed))
    return (await runtime.task(record.id).retry()).id
