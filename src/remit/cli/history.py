"""`remit history`: the journal."""

import asyncio

from remit.cli.options import HERE, AsJson, Where, emit, opened, out
from remit.core.checks import limit as checked_limit
from remit.core.text import canonical
from remit.ports import Span
from remit.report import wire
from remit.report.lines import plain_line


def history(
    *,
    place: Where = HERE,
    run: str | None = None,
    session: str | None = None,
    agent: str | None = None,
    limit: int = 1_000,
    json: AsJson = False,
) -> None:
    """Print the journal, or the events that meet every condition.

    Parameters
    ----------
    run
        Only this run.
    session
        Only this session.
    agent
        Only what this agent did.
    limit
        At most this many events, the latest ones.
    json
        Print JSON instead of lines.
    """
    most = checked_limit(limit, most=1_000_000)
    span = Span(run=run, session=session, agent=canonical(agent) if agent else None)
    with opened(place) as workspace:
        events = asyncio.run(workspace.read(lambda view: view.events(span)))[-most:]
    if json:
        emit([wire.event(event) for event in events])
        return
    console = out()
    for event in events:
        console.print(f"{event.seq:>6} {plain_line(event)}", markup=False)
