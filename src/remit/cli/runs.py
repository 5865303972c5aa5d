"""`remit runs`: the latest runs of a store."""

import asyncio

from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, emit, opened, out, typed_with_team, where_is
from remit.cli.ps import took
from remit.cli.terminal import Rows, state_text
from remit.core.checks import limit as checked_limit
from remit.ports import RunLine
from remit.report import wire
from remit.report.figures import age, money
from remit.report.printable import escaped
from remit.runtime.workers import Crew
from remit.runtime.workspace import opening_of


def runs(*, place: Where = HERE, limit: int = 20, json: AsJson = False) -> None:
    """List recent runs, newest first.

    Parameters
    ----------
    limit
        Maximum number of rows.
    json
        Print JSON.
    """
    most = checked_limit(limit)
    with opened(place) as workspace:
        now = opening_of(workspace).clock.now()
        lines, crew = asyncio.run(workspace.journal.read(lambda view: (view.runs(most), Crew(view.workers()))))
        where = where_is(opening_of(workspace).database)
    if json:
        emit([wire.run(line, state=crew.state(line.record, now)) for line in lines])
    elif not lines:
        out().print(Text(f"no runs yet in {where}; start one: {typed_with_team('run', ' AGENT TASK')}"))
    else:
        out().print(_table(lines, crew, now))


def _table(lines: list[RunLine], crew: Crew, now: int) -> Rows:
    names = ("run", "state", "agent", "task", "tasks", "refused", "spent", "took", "age")
    return Rows(names, [_row(line, crew, now) for line in lines], left=3, gives_way="task")


def _row(line: RunLine, crew: Crew, now: int) -> list[Text | str]:
    record = line.record
    return [
        Text(record.id),
        state_text(crew.state(record, now)),
        Text(escaped(record.holder, 64), "bold"),
        Text(escaped(line.task, 200)),
        str(line.facts.tasks),
        str(line.facts.refusals) if line.facts.refusals else "",
        money(line.facts.credits) if line.facts.credits else "",
        took(record, min(now, record.until)),
        age(now - record.asked_at),
    ]
