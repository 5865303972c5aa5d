"""`remit stats`: who works, how long, how often tasks change hands, what is refused."""

import asyncio
import re
from collections.abc import Iterable
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from remit.cli.breakers import COLOURS
from remit.cli.options import HERE, AsJson, Where, emit, opened, out
from remit.cli.terminal import tabled
from remit.core.text import canonical, shown
from remit.core.times import SECOND, moment
from remit.engine.system import SystemClock
from remit.errors import BadInput
from remit.ports import Span
from remit.report.printable import escaped
from remit.report.stats import AgentStats, Stats, stats_data
from remit.report.stats import stats as figures
from remit.report.words import count, duration

_AGO = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(s|min|m|h|d|w)")
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def stats(*, place: Where = HERE, since: str = "", until: str = "", agent: str = "", json: AsJson = False) -> None:
    """Who works, how long, how often tasks change hands, what is refused.

    Parameters
    ----------
    since
        From when on: so long ago, as 30m, 1h or 2d, or a date and time, as 2026-11-15 or 2026-11-15T02:36Z.
    until
        Up to when, written the same way.
    agent
        Only what this agent did.
    json
        Print JSON instead of tables.
    """
    now = SystemClock().now()
    start, end = _when(since, "--since", now), _when(until, "--until", now)
    if start is not None and start >= (now if end is None else end):
        raise BadInput("--since must be before --until, which is now unless told otherwise")
    who = canonical(agent) if agent else ""
    with opened(place) as (_, store):
        events = asyncio.run(store.read(lambda view: view.events(Span(since=start, until=end))))
    found = figures(events, who)
    if json:
        emit({"since": start, "until": end, "agent": who, **stats_data(found)})
    elif not found.events:
        out().print(Text("nothing happened in that time" if since or until or agent else "nothing happened yet", "dim"))
    else:
        _print(out(), found)


def _when(given: str, option: str, now: int) -> int | None:
    """A moment as people write it: so long ago, or a date; without a time zone it is UTC, as everywhere here."""
    if not given:
        return None
    ago = _AGO.fullmatch(given.strip())
    if ago is not None:
        return now - round(float(ago[1]) * _UNITS[ago[2]] * SECOND)
    try:
        found = datetime.fromisoformat(given.strip())
    except ValueError:
        raise BadInput(
            f"{option} is so long ago, as 30m, 1h or 2d, or a date, as 2026-11-15, not {shown(given)}"
        ) from None
    return moment(found if found.tzinfo else found.replace(tzinfo=UTC), option)


def _print(console: Console, found: Stats) -> None:
    console.print(_overview(found))
    if found.agents:
        console.print()
        console.print(_agents(found))
    if found.refusals:
        console.print()
        console.print(_refusals(found))
    if found.breakers:
        console.print()
        console.print(_breakers(found))


def _overview(found: Stats) -> Text:
    runs = ", ".join(f"{number} {state}" for state, number in sorted(found.runs.items())) or "none"
    per_task = f"{found.mean_handoffs:.2f} a task, at most {found.most_handoffs}"
    lines = [("runs", runs), ("tasks", f"{len(found.handoffs):,}"), ("handoffs", f"{found.total_handoffs:,}")]
    if found.total_handoffs:
        lines[-1] = ("handoffs", f"{found.total_handoffs:,}, {per_task}")
    if found.latency.all:
        mean, late = duration(found.latency.mean), duration(found.latency.percentile(95))
        lines.append(("taken up", f"after {mean} on average, 95 % within {late}"))
    lines += _queue(found)
    lines.append(("deadlocks", f"{found.deadlocks:,}"))
    return Text("\n").join(Text.assemble((f"{name:<10}", "dim"), told) for name, told in lines)


def _queue(found: Stats) -> Iterable[tuple[str, str]]:
    """What there is to say of tasks that were put into a queue."""
    queue = found.queue
    if queue.all:
        mean, late = duration(queue.mean), duration(queue.percentile(95))
        yield "queued", f"{mean} on average, 95 % begun within {late}"
    if found.retries or found.dead:
        yield "attempts", f"{found.attempts:,}, {found.retries:,} tried again, {count(found.dead, 'task')} dead"


def _agents(found: Stats) -> Table:
    names = ["agent", "turns", "completed", "failed", "cancelled", "handed on", "tokens", "time", "a turn"]
    queued = bool(found.queue.all or found.retries or found.dead)
    names += ["tried again", "dead", "queued"] if queued else []
    ranked = sorted(found.agents.items(), key=lambda item: (-item[1].times.total, item[0]))
    rows = [[Text(escaped(name, 64), "bold"), *_figures(one), *(_waits(one) if queued else ())] for name, one in ranked]
    return tabled(names, rows)


def _figures(one: AgentStats) -> Iterable[str]:
    yield f"{one.turns:,}"
    for number in (one.completed, one.failed, one.cancelled, one.handed, one.tokens):
        yield f"{number:,}" if number else "-"
    timed = bool(one.times.all)
    yield duration(one.times.total) if timed else "-"
    yield duration(one.times.mean) if timed else "-"


def _waits(one: AgentStats) -> Iterable[str]:
    for number in (one.retries, one.dead):
        yield f"{number:,}" if number else "-"
    yield duration(one.queue.mean) if one.queue.all else "-"


def _refusals(found: Stats) -> Table:
    rows = [[Text(escaped(rule, 64), "red"), f"{times:,}"] for rule, times in found.refusals.most_common()]
    return tabled(("refused by", "times"), rows)


def _breakers(found: Stats) -> Table:
    rows = [
        [Text(escaped(name, 64), "bold"), Text(one.state, COLOURS.get(one.state, "")), f"{one.failures:,}"]
        for name, one in sorted(found.breakers.items())
    ]
    return tabled(("breaker", "state", "failures"), rows, left=2)
