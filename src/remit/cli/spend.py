"""`remit spend`: who spent what."""

import asyncio
import csv
import sys
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, emit, opened, out
from remit.cli.stats import typed_times
from remit.cli.terminal import tabled
from remit.core.times import aware
from remit.errors import BadInput
from remit.report import wire
from remit.report.figures import money
from remit.report.printable import escaped, harmless
from remit.report.spend import SpendBy, Spending, SpendLine, csv_rows
from remit.runtime.workspace import opening_of

_NAMELESS = {"model": "no model", "agent": "no agent", "session": "no session", "run": "no run"}


def spend(
    *,
    by: SpendBy = "agent",
    since: str = "",
    until: str = "",
    place: Where = HERE,
    as_csv: Annotated[bool, Parameter(name="--csv", negative="")] = False,
    json: AsJson = False,
) -> None:
    """Show spending: credits, tokens and calls, uncertain amounts, and amounts paid with the workspace's own keys.

    The rows add up to the total. Over all time, the total equals the spending of the account. Pruned runs share one
    row.

    Parameters
    ----------
    by
        One row per day, agent, model, session or run.
    since
        Only spending after this time: 30m, 1h or 2d ago, or a date and time such as 2026-11-15 or 2026-11-15T02:36Z.
    until
        Only spending before this time, in the same format.
    as_csv
        Print CSV. Money is in US dollars.
    json
        Print JSON. Credits are in millionths of a US dollar.
    """
    if as_csv and json:
        raise BadInput("pass --csv or --json, not both")
    with opened(place) as workspace:
        start, end = typed_times(since, until, opening_of(workspace).clock.now())
        when = {name: aware(at) for name, at in (("since", start), ("until", end)) if at is not None}
        found = asyncio.run(workspace.money.spend(by, **when))
    if json:
        emit({"since": start, "until": end, **wire.spending(found)})
    elif as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows([*map(harmless, row)] for row in csv_rows(found))
    elif found.lines or found.pruned is not None:
        out().print(_table(found))
    else:
        out().print(Text("no spending in that time" if since or until else "no spending yet", "dim"))


def _table(found: Spending) -> Table:
    total = found.total
    names = [found.by, "credits", "tokens", "calls"]
    names += ["uncertain"] if total.uncertain else []
    names += ["own keys"] if total.own_key else []
    rows = [_row(found, line) for line in found.rows]
    return tabled(names, rows)


def _row(found: Spending, line: SpendLine) -> list[Text | str]:
    ours = line is found.total or line is found.pruned
    name = line.name or _NAMELESS.get(found.by, "")
    row: list[Text | str] = [Text(escaped(name, 64), "dim" if ours or not line.name else "bold")]
    row += [money(line.credits) if line.credits else "-", *(f"{x:,}" if x else "-" for x in (line.tokens, line.calls))]
    row += [money(line.uncertain) if line.uncertain else "-"] if found.total.uncertain else []
    row += [money(line.own_key) if line.own_key else "-"] if found.total.own_key else []
    return row
