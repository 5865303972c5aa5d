"""`remit fork`: continue a run from one of its events, in a new run."""

import asyncio
from typing import Annotated, Final

from cyclopts import Parameter
from rich.text import Text

from remit.cli.options import (
    HERE,
    MYSELF,
    Acting,
    AsJson,
    DataOption,
    Where,
    aside,
    emit,
    opened_workspace,
    out,
    typed,
    typed_data,
)
from remit.codec import decode
from remit.core.values import Json
from remit.errors import BadInput
from remit.report.printable import escaped
from remit.runtime.workspace import Workspace

_NAMES: Final = 400  # columns of the agents that run again


def fork(
    run: str,
    *,
    at: int | None = None,
    task: str | None = None,
    data: DataOption = None,
    answer: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    place: Where = HERE,
    act: Acting = MYSELF,
    json: AsJson = False,
) -> None:
    """Start a new run that continues another one from one of its events. The other run stays as it is.

    The new run has everything that was recorded up to the event: remit repeats no finished task, model request, tool
    call or payment of that part. A worker runs the rest. The command lists the agents that had not finished at the
    event: their code starts again and gets the recorded answers. A program runs again as a whole.

    Parameters
    ----------
    run
        Id of a run, a unique prefix or suffix of it, or `last`.
    at
        Number of the last event that the new run keeps; `remit history --run RUN` lists them. [default: all events]
    task
        Text of the task, instead of the original.
    data
        Data of the task, instead of the original, as JSON; `null` for none.
    answer
        Result of the effect or tool that the event recorded, instead of the original, as JSON.
    json
        Print the id of the new run as JSON.
    """
    other = {} if answer is None else {"answer": _read(answer)}
    if data is not None:
        other["data"] = typed_data(data)
    with opened_workspace(place) as workspace:
        forked, again = asyncio.run(_fork(workspace, run, at, task, other, act))
    if json:
        emit({"run": forked, "again": again})
        return
    out().print(Text(forked))
    if again:
        names = escaped(", ".join(again), _NAMES)
        aside().print(Text(f"had not ended there, and run again with what was recorded: {names}", "dim"))
    aside().print(Text(typed(f"remit wait {forked}"), "dim"))


def _read(answer: str) -> Json:
    try:
        return decode(answer)
    except ValueError as error:
        raise BadInput(f"--answer takes JSON, such as '\"yes\"' or '[1, 2]': {error}") from error


async def _fork(
    workspace: Workspace, typed: str, at: int | None, task: str | None, answer: dict[str, Json], act: Acting
) -> tuple[str, list[str]]:
    """Fork a run. Return the id of the fork, and the agents whose tasks were open at the event."""
    record = await workspace.looks.task(typed)
    forked = (await workspace.fork(record.id, at, task=task, **answer, **act.said)).id
    kept = [event for event in await workspace.journal.history(run=forked) if event.kind == "work.kept"]
    ended = {f"{event.op}/forked" for event in kept}
    marks = [event for event in kept if (event.op or "").count("/") > 1 and (event.op or "").endswith("/forked")]
    return forked, sorted({event.agent for event in marks if event.op not in ended})
