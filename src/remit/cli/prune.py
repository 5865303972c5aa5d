"""`remit prune`: delete runs that ended long ago."""

import asyncio
from typing import Annotated, Final

from cyclopts import Parameter
from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, emit, opened, out
from remit.core.lifecycle import TERMINAL
from remit.core.times import DAY, SECOND, span
from remit.ports import View
from remit.report.figures import count

_LOOKED_AT: Final = 100_000  # runs


def prune(
    *,
    place: Where = HERE,
    days: float,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    json: AsJson = False,
) -> None:
    """Delete runs that ended long ago; the journal keeps a line of each, and the idempotency keys they used.

    Nothing is deleted by itself, unless a worker's `keep_days` says so.

    Parameters
    ----------
    days
        How many days ago.
    dry_run
        Only say how many there are.
    json
        Print what came of it as JSON.
    """
    older = span(days, "--days") * (DAY // SECOND)
    with opened(place) as workspace:
        if dry_run:
            before = workspace.clock.now() - older
            number = asyncio.run(workspace.read(lambda view: _old(view, before)))
        else:
            number = asyncio.run(workspace.prune(days))
    if json:
        emit({"pruned": 0 if dry_run else number, "old": number})
    elif dry_run:
        out().print(Text(f"{count(number, 'run')} ended more than {days:g} days ago and would be deleted"))
    else:
        out().print(Text(f"{count(number, 'run')} that ended more than {days:g} days ago deleted"))


def _old(view: View, before: int) -> int:
    return sum(
        all(state in TERMINAL and ended is not None and ended < before for _, state, ended in view.of_run(run))
        for run in view.old(before, _LOOKED_AT)
    )
