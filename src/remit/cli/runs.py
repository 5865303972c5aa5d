"""`remit runs`: the latest runs of a store."""

import asyncio

from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, emit, opened_workspace, out, typed_with_team
from remit.cli.ps import EVERY, Narrowed, labelled, took
from remit.cli.terminal import Rows, state_text
from remit.core.checks import limit as checked_limit
from remit.ports import RunLine, RunVitals
from remit.report import wire
from remit.report.figures import age, money
from remit.report.printable import escaped
from remit.runtime.workers import Crew


def runs(*, place: Where = HERE, only: Narrowed = EVERY, limit: int = 20, json: AsJson = False) -> None:
    """List runs, newest first.

    Parameters
    ----------
    only
        Which runs to list, by their first task.
    limit
        Maximum number of rows.
    json
        Print JSON.
    """
    most = checked_limit(limit)
    with opened_workspace(place) as workspace:
        lines, crew, vitals = asyncio.run(workspace.looks.runs(most, **only.which()))
        where = workspace.where
    if json:
        emit([_data(line, crew, vitals[line.record.id]) for line in lines])
    elif not lines and only != EVERY:
        out().print(Text("no such runs", "dim"))
    elif not lines:
        out().print(Text(f"no runs yet in {where}; start one: {typed_with_team('run', ' AGENT TASK')}"))
    else:
        out().print(_table(lines, crew))


def _data(line: RunLine, crew: Crew, vitals: RunVitals) -> wire.Data:
    record = line.record
    return wire.run(line, state=crew.state(record), vitals=vitals, signs=crew.signs(record, vitals))


def _table(lines: list[RunLine], crew: Crew) -> Rows:
    names = ("run", "state", "agent", "task", "tasks", "refused", "spent", "took", "age")
    return Rows(names, [_row(line, crew) for line in lines], left=3, gives_way="task")


def _row(line: RunLine, crew: Crew) -> list[Text | str]:
    record = line.record
    return [
        Text(record.id),
        state_text(crew.state(record)),
        Text(escaped(record.holder, 64), "bold"),
        Text(escaped(labelled(line.task, line.labels), 200)),
        str(line.facts.tasks),
        str(line.facts.refusals) if line.facts.refusals else "",
        money(line.facts.credits) if line.facts.credits else "",
        took(record, min(crew.at, record.until)),
        age(crew.at - record.asked_at),
    ]
