"""`remit history`: the journal."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import nullcontext
from typing import Annotated, Final, Unpack

from cyclopts import Parameter

from remit.cli.completing import ids
from remit.cli.options import HERE, AsJson, Where, json_list, opened_workspace, out
from remit.core.checks import limit as checked_limit
from remit.core.events import Event, is_blob
from remit.core.values import INT_LIMIT, canonical
from remit.report import wire
from remit.report.lines import plain_line
from remit.runtime.filters import HistoryFilter
from remit.runtime.workspace import Workspace

PAGE: Final = 1_000


def history(
    *,
    place: Where = HERE,
    run: Annotated[str | None, Parameter(completer=ids)] = None,
    session: str | None = None,
    agent: str | None = None,
    limit: int = 1_000,
    json: AsJson = False,
) -> None:
    """Print journal events, filtered by the given options.

    Parameters
    ----------
    run
        Only this run, or this task: its id, a unique prefix or suffix of it, or `last`.
    session
        Only this session.
    agent
        Only events of this agent.
    limit
        Maximum number of events; the newest are printed.
    json
        Print JSON, including the answers of models and tools.
    """
    most = checked_limit(limit, most=INT_LIMIT)
    which: HistoryFilter = {"session": session, "agent": canonical(agent) if agent else None}
    with opened_workspace(place) as workspace:
        asyncio.run(_print(workspace, which, run, most, as_json=json))


async def _print(workspace: Workspace, which: HistoryFilter, run: str | None, most: int, *, as_json: bool) -> None:
    """Print page by page, so that few events are in memory, however many are printed."""
    console = out()
    if run is not None:
        record = await workspace.looks.run(run)
        which |= {"run": record.run, "task": record.id if record.parent else None}
    with json_list() if as_json else nullcontext() as emit:
        async for events in _latest(workspace, which, most):
            long = await long_answers(workspace, events) if emit is not None else {}
            for event in events:
                if emit is not None:
                    emit(wire.event(event, long.get(event.seq)))
                else:
                    console.print(f"{event.seq:>6} {plain_line(event)}", markup=False)
            if console.quiet:  # the reader has gone
                return


async def long_answers(workspace: Workspace, events: list[Event]) -> dict[int, str]:
    """Return the answers that are stored next to these events, by event number."""
    long = [event.seq for event in events if is_blob(event.answer)]
    return await workspace.looks.answers(long) if long else {}


async def _latest(workspace: Workspace, which: HistoryFilter, most: int) -> AsyncGenerator[list[Event]]:
    """Yield the latest `most` events in pages, the oldest page first. If there are several pages, search backwards for
    the first event, then read forwards, so that few events are in memory."""

    async def read(**place: Unpack[HistoryFilter]) -> list[Event]:
        return await workspace.journal.history(**{**which, **place})

    events = await read(latest=True, limit=min(most, PAGE))
    if most <= PAGE or len(events) < PAGE:
        yield events
        return
    left, first, end = most - len(events), events[0].seq, events[-1].seq + 1
    while left and (events := await read(latest=True, limit=min(left, PAGE), before=first)):
        left, first = left - len(events), events[0].seq
    while events := await read(limit=PAGE, after=first - 1, before=end):
        yield events
        first = events[-1].seq + 1
