"""`remit runs`, `show`, `flow`, `history`: looking at what happened."""

import asyncio

from rich.table import Table
from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, emit, opened, out, where_is
from remit.cli.ps import COLOURS, took
from remit.cli.terminal import age, answer, drawn, receipts, refusals, summary, tabled
from remit.core.checks import limit as checked_limit
from remit.core.events import Event
from remit.core.text import canonical
from remit.core.times import iso
from remit.core.values import Json
from remit.engine.system import SystemClock
from remit.errors import NotFound
from remit.ports import RunLine, Span, Store, View
from remit.report.lines import plain_line
from remit.report.printable import escaped
from remit.report.tree import Node, node_data, tree
from remit.runtime.finding import run_of
from remit.runtime.workers import Crew


def runs(*, place: Where = HERE, limit: int = 20, json: AsJson = False) -> None:
    """The latest runs of a store, newest first.

    Parameters
    ----------
    limit
        How many.
    json
        Print JSON instead of a table.
    """
    now = SystemClock().now()
    most = checked_limit(limit)
    with opened(place) as (database, store):
        found, crew = asyncio.run(store.read(lambda view: (view.runs(most), Crew(view.workers()))))
        where = where_is(database)
    if json:
        emit([_line_data(line, crew, now) for line in found])
    elif not found:
        out().print(Text(f"no runs yet in {where}; start one with: remit run module:runtime AGENT 'task'"))
    else:
        out().print(_table(found, crew, now))


def show(run: str = "last", *, place: Where = HERE, json: AsJson = False) -> None:
    """One run: its tree, times, refusals and receipts.

    Parameters
    ----------
    run
        The run's id, its beginning or its end as long as only one fits, or `last`.
    json
        Print JSON instead.
    """
    root = root_of(run, place)
    if json:
        emit(node_data(root))
        return
    now = SystemClock().now()
    console = out()
    console.print(Text.assemble((root.id, "bold"), (f"  {iso(root.started_at)[:19]}Z", "dim")))
    console.print(summary(root, now))
    console.print()
    console.print(drawn(root, now))
    console.print()
    for text in refusals(root):
        console.print(text)
    console.print()
    console.print(Text("What each turn saw", "bold"))
    for text in receipts(root):
        console.print(text)
    console.print()
    console.print(Text("Result", "bold"))
    console.print(answer(root))


def history(
    *,
    place: Where = HERE,
    run: str | None = None,
    session: str | None = None,
    agent: str | None = None,
    limit: int = 1_000,
    json: AsJson = False,
) -> None:
    """The journal, or the part of it that meets every condition.

    Parameters
    ----------
    run
        Only this run.
    session
        Only this session.
    agent
        Only what this agent did.
    limit
        At most the last so many events.
    json
        Print JSON instead of lines.
    """
    most = checked_limit(limit, most=1_000_000)
    span = Span(run=run, session=session, agent=canonical(agent) if agent else None)
    with opened(place) as (_, store):
        found = asyncio.run(store.read(lambda view: view.events(span)))[-most:]
    if json:
        emit([_event_data(event) for event in found])
        return
    console = out()
    for event in found:
        console.print(f"{event.seq:>6} {plain_line(event)}", markup=False)


def root_of(run: str, place: Where) -> Node:
    with opened(place) as (_, store):
        return asyncio.run(_read_root(run, store))


async def _read_root(given: str, store: Store) -> Node:
    def look(view: View) -> tuple[str, list[Event]]:
        run = run_of(view, given)
        return run, view.events(Span(run=run))

    run, events = await store.read(look)
    root = tree(events)
    if root is None:
        raise NotFound(f"the journal has nothing of run {run}; `remit doctor` says what is wrong with the store")
    return root


def _table(found: list[RunLine], crew: Crew, now: int) -> Table:
    names = ("run", "state", "agent", "task", "tasks", "refused", "took", "age")
    return tabled(names, [_row(line, crew, now) for line in found], left=3, gives_way="task")


def _row(line: RunLine, crew: Crew, now: int) -> list[Text | str]:
    record = line.record
    state = crew.state(record, now)
    return [
        Text(record.id),
        Text(state, COLOURS[state]),
        Text(escaped(record.holder, 20), "bold"),
        Text(escaped(line.task, 200)),
        str(line.facts.tasks),
        str(line.facts.refusals) if line.facts.refusals else "",
        took(record, min(now, record.until)),
        age(now - record.asked_at),
    ]


def _line_data(line: RunLine, crew: Crew, now: int) -> dict[str, Json]:
    record = line.record
    return {
        "id": record.id,
        "state": crew.state(record, now),
        "agent": record.holder,
        "task": line.task,
        "session": record.session,
        "tasks": line.facts.tasks,
        "refused": line.facts.refusals,
        "by": line.facts.by,
        "asked_at": record.asked_at,
        "ended_at": record.ended_at,
    }


def _event_data(event: Event) -> dict[str, Json]:
    return {
        "seq": event.seq,
        "at": event.at,
        "kind": event.kind,
        "run": event.run,
        "session": event.session,
        "task": event.task,
        "agent": event.agent,
        "data": event.data,
        "hash": event.hash,
    }
