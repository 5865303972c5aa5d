"""`remit prune`: delete runs that ended long ago."""

import asyncio
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from remit.cli.options import HERE, MYSELF, Acting, AsJson, Where, aside, emit, opened_workspace, out
from remit.core.times import span_of_days
from remit.report.figures import count
from remit.runtime.workspace import Workspace


def prune(
    *,
    place: Where = HERE,
    act: Acting = MYSELF,
    days: float,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    json: AsJson = False,
) -> None:
    """Delete old runs and their events.

    The journal keeps one line for each deleted run, until the line itself is that many days old. It keeps idempotency
    keys forever. By default remit deletes nothing; workers prune every hour if `keep_days` is set.

    Parameters
    ----------
    days
        Delete runs that ended more than this many days ago.
    dry_run
        Only print the number of runs.
    json
        Print JSON.
    """
    span_of_days(days, "--days")
    with opened_workspace(place) as workspace:
        number = asyncio.run(workspace.looks.prunable(days)) if dry_run else _pruned(workspace, days, act)
    if json:
        emit({"pruned": 0 if dry_run else number, "old": number})
    elif dry_run:
        out().print(Text(f"{count(number, 'run')} ended more than {days:g} days ago and would be deleted"))
    else:
        out().print(Text(f"{count(number, 'run')} that ended more than {days:g} days ago deleted"))


def _pruned(workspace: Workspace, days: float, act: Acting) -> int:
    """Prune, and return the number of deleted runs. A terminal shows the progress, because many runs take a while."""
    console = aside()
    if not console.is_terminal:
        return asyncio.run(workspace.prune(days, **act.said))
    with console.status("searching for old runs") as status:

        def told(gone: int) -> None:
            status.update(f"{count(gone, 'run')} deleted")

        return asyncio.run(workspace.prune(days, told=told, **act.said))
