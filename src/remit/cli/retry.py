"""`remit retry`: run a task again."""

import asyncio
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from remit.cli.options import HERE, MYSELF, Acting, AsJson, Where, aside, emit, opened, options_for, out
from remit.runtime.finding import task_of
from remit.runtime.workspace import Workspace


def retry(
    task: str,
    *,
    anew: Annotated[bool, Parameter(negative="")] = False,
    place: Where = HERE,
    act: Acting = MYSELF,
    json: AsJson = False,
) -> None:
    """Run a task again that did not complete; what it had finished is not done again.

    Parameters
    ----------
    task
        Its id, the id's beginning or end as long as only one fits, or `last`.
    anew
        Begin conversations with models again that cannot be continued; the model is told which tools were used.
    json
        Print the new task's id as JSON.
    """
    with opened(place) as workspace:
        again = asyncio.run(_retry(workspace, task, act, anew=anew))
        where = options_for(workspace.database, workspace.name, place.store)
    if json:
        emit({"task": again})
        return
    out().print(Text(again))
    aside().print(Text(f"remit wait {again}{where}", "dim"))


async def _retry(workspace: Workspace, typed: str, act: Acting, *, anew: bool) -> str:
    record = await workspace.read(lambda view: task_of(view, typed))
    return (await workspace.retry(record.id, anew=anew, **act.said)).id
