"""`remit retry`: run a task again."""

import asyncio
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from remit.cli.completing import TaskId
from remit.cli.options import HERE, MYSELF, Acting, AsJson, Where, aside, emit, opened_workspace, out, typed
from remit.runtime.workspace import Workspace


def retry(
    task: TaskId,
    *,
    from_step: Annotated[str | None, Parameter(name="--from")] = None,
    restart: Annotated[bool, Parameter(negative="")] = False,
    place: Where = HERE,
    act: Acting = MYSELF,
    json: AsJson = False,
) -> None:
    """Retry a failed, dead or cancelled task. remit does not repeat its finished work.

    With `--from`, run a plan that has ended again from one of its steps, in a new run. The step and the steps that
    depend on it are done again; the results of the others count. A worker runs it.

    Parameters
    ----------
    task
        Id of a run or a task, a unique prefix or suffix of it, or `last`.
    from_step
        Id of the step from which the plan runs again.
    restart
        Restart conversations with models that cannot be continued. The prompt lists the tools that were used.
    json
        Print the id of the new task as JSON.
    """
    with opened_workspace(place) as workspace:
        again = asyncio.run(_retry(workspace, task, act, from_step, restart=restart))
    if json:
        emit({"task": again})
        return
    out().print(Text(again))
    aside().print(Text(typed(f"remit wait {again}"), "dim"))


async def _retry(workspace: Workspace, typed: str, act: Acting, from_step: str | None, *, restart: bool) -> str:
    record = await workspace.looks.task(typed)
    return (await workspace.tasks.retry(record.id, from_step=from_step, restart=restart, **act.said)).id
