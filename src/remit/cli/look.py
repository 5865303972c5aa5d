"""`remit runs`, `show`, `flow`, `history`: looking at what happened."""

import asyncio

from rich.table import Table
from rich.text import Text

from remit.cli.drawing import age, answer, drawn, receipts, refusals, summary, tabled
from remit.cli.lines import plain_line
from remit.cli.options import HERE, AsJson, Place, emit, opened, out
from remit.core.entry import limit as checked_limit
from remit.core.events import Event
from remit.core.printable import escaped
from remit.core.report import Node, node_data, tree
from remit.core.text import canonical, shown
from remit.core.times import iso
from remit.core.values import Json
from remit.core.words import duration
from remit.engine.system import SystemClock
from remit.errors import NotFound
from remit.ports import RunLine, Span, Store

_MANY = 100_000
_COLOURS = {
    "running": "cyan",
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "lost": "magenta",
}


def runs(*, place: Place = HERE, limit: int = 20, json: AsJson = False) -> None:
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
    with opened(place) as (_, store):
        found = asyncio.run(store.read(lambda view: view.runs(most)))
    if json:
        emit([_line_data(line, now) for line in found])
    elif not found:
        out().print(Text(f"no runs yet in {place.store}; start one with: remit run module:runtime AGENT 'task'"))
    else:
        out().print(_table(found, now))


def show(run: str = "last", *, place: Place = HERE, json: AsJson = False) -> None:
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
    place: Place = HERE,
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


def root_of(run: str, place: Place) -> Node:
    with opened(place) as (_, store):
        return asyncio.run(_read_root(run, store))


async def _read_root(run: str, store: Store) -> Node:
    found = await store.read(lambda view: view.runs(_MANY if run != "last" else 1))
    ids = [line.record.id for line in found]
    fits = ids[:1] if run == "last" else [one for one in ids if one == run or one.startswith(run) or one.endswith(run)]
    if not fits:
        raise NotFound(f"there is no run {shown(run)} in workspace '{store.workspace}'; `remit runs` lists them")
    if len(fits) > 1 and run not in fits:
        raise NotFound(f"{len(fits)} runs fit {shown(run)}; say more of the id: {', '.join(fits[:5])}")
    chosen = run if run in fits else fits[0]
    root = tree(await store.read(lambda view: view.events(Span(run=chosen))))
    assert root is not None
    return root


def _state(line: RunLine, now: int) -> str:
    """A run that is past its time and has not ended was lost with its process."""
    lost = line.record.status == "running" and line.record.until <= now
    return "lost" if lost else line.record.status


def _table(found: list[RunLine], now: int) -> Table:
    names = ("run", "state", "agent", "task", "tasks", "refused", "took", "age")
    return tabled(names, [_row(line, now) for line in found], left=3, gives_way="task")


def _row(line: RunLine, now: int) -> list[Text | str]:
    record = line.record
    state = _state(line, now)
    ended = record.ended_at if record.ended_at is not None else min(now, record.until)
    return [
        Text(record.id),
        Text(state, _COLOURS[state]),
        Text(escaped(record.holder, 20), "bold"),
        Text(escaped(line.task, 200)),
        str(line.tasks),
        str(line.refused) if line.refused else "",
        duration(ended - record.started_at),
        age(now - record.started_at),
    ]


def _line_data(line: RunLine, now: int) -> dict[str, Json]:
    record = line.record
    return {
        "id": record.id,
        "state": _state(line, now),
        "agent": record.holder,
        "task": line.task,
        "session": record.session,
        "tasks": line.tasks,
        "refused": line.refused,
        "started_at": record.started_at,
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
