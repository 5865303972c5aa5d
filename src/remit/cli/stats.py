"""`remit stats`: statistics of agents, durations, handoffs and refusals."""

import asyncio
from collections.abc import Iterable
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from remit.cli.breakers import breaker_state
from remit.cli.options import HERE, AsJson, Where, emit, now, opened_workspace, out, typed
from remit.cli.terminal import Rows
from remit.cli.times import typed_times
from remit.core.times import aware, iso
from remit.core.values import canonical
from remit.report import wire
from remit.report.edges import AskEdge
from remit.report.figures import count, duration, money
from remit.report.printable import escaped
from remit.report.stats import AgentStats, Stats, StatsPoint
from remit.report.words import states
from remit.runtime.filters import SeriesBy


def stats(
    *,
    place: Where = HERE,
    since: str = "",
    until: str = "",
    agent: str = "",
    edges: Annotated[bool, Parameter(negative="")] = False,
    by: SeriesBy | None = None,
    json: AsJson = False,
) -> None:
    """Show statistics: tasks, durations, handoffs and refusals per agent.

    Parameters
    ----------
    since
        Only events after this time: 30m, 1h or 2d ago, or a date and time such as 2026-11-15 or 2026-11-15T02:36Z.
    until
        Only events before this time, in the same format.
    agent
        Only this agent.
    edges
        Show who asks whom: how often, how it ended, and what it cost.
    by
        One row for each hour (of the last day, unless --since says otherwise) or for each day.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        start, end = typed_times(since, until, now())
        who = canonical(agent) if agent else ""
        when = {name: aware(at) for name, at in (("since", start), ("until", end)) if at is not None}
        if edges:
            _show_edges(asyncio.run(workspace.edges(**when, agent=who or None)), (start, end, who), as_json=json)
            return
        if by is not None:
            points = asyncio.run(workspace.looks.stats(by, **when, agent=who or None))
            _show_series(by, points, (start, end, who), as_json=json)
            return
        figures = asyncio.run(workspace.stats(**when, agent=who or None))
    if json:
        emit({"since": start, "until": end, "agent": who, **wire.stats(figures)})
    elif not figures.events:
        out().print(Text("no events in that time" if since or until or agent else "no events yet", "dim"))
    else:
        _print(out(), figures)


def _show_edges(edges: list[AskEdge], part: tuple[int | None, int | None, str], *, as_json: bool) -> None:
    if as_json:
        emit(
            {**dict(zip(("since", "until", "agent"), part, strict=True)), "edges": [wire.edge(edge) for edge in edges]}
        )
    elif not edges:
        out().print(Text("no agent was asked in that time" if any(part) else "no agent was asked yet", "dim"))
    else:
        names = ("asker", "agent", "asked", "completed", "failed", "cancelled", "dead", "refused", "tokens", "spent")
        out().print(Rows(names, [_edge_row(edge) for edge in edges], left=2))


def _show_series(by: str, points: list[StatsPoint], part: tuple[int | None, int | None, str], *, as_json: bool) -> None:
    if as_json:
        told = dict(zip(("since", "until", "agent"), part, strict=True))
        emit({**told, "by": by, "series": [wire.stats_point(point) for point in points]})
    elif not points:
        out().print(Text("no events in that time", "dim"))
    else:
        names = (by, "tasks", "turns", "completed", "failed", "refused", "tokens", "spent")
        out().print(Rows(names, [_point_row(by, point) for point in points]))


def _point_row(by: str, point: StatsPoint) -> list[Text | str]:
    figures, agents = point.stats, point.stats.agents.values()
    numbers = (
        figures.tasks,
        sum(agent.turns for agent in agents),
        sum(agent.completed for agent in agents),
        sum(agent.failed + agent.dead for agent in agents),
        figures.refusals.total(),
        figures.tokens,
    )
    when = iso(point.start)[:10] if by == "day" else f"{iso(point.start)[:16]}Z"
    return [when, *(f"{number:,}" if number else "-" for number in numbers), money(figures.credits or 0)]


def _edge_row(edge: AskEdge) -> list[Text | str]:
    ends = (edge.completed, edge.failed, edge.cancelled, edge.dead, edge.refused, edge.tokens)
    return [
        Text(escaped(edge.asker, 64) or "a person", "bold" if edge.asker else "dim"),
        Text(escaped(edge.agent, 64), "bold"),
        f"{edge.asked:,}",
        *(f"{number:,}" if number else "-" for number in ends),
        money(edge.credits) if edge.credits else "-",
    ]


def _print(console: Console, figures: Stats) -> None:
    console.print(_overview(figures))
    if figures.agents:
        console.print()
        console.print(_agents(figures))
    if figures.refusals:
        console.print()
        console.print(_refusals(figures))
    if figures.breakers:
        console.print()
        console.print(_breakers(figures))


def _overview(figures: Stats) -> Text:
    runs = states(figures.runs.elements()) or "none"
    per_task = f"{figures.mean_handoffs:.2f} a task, " if figures.tasks else ""
    lines = [("runs", runs), ("tasks", f"{figures.tasks:,}"), ("handoffs", f"{figures.total_handoffs:,}")]
    if figures.total_handoffs:
        lines[-1] = ("handoffs", f"{figures.total_handoffs:,}, {per_task}at most {figures.most_handoffs}")
    if figures.latency.count:
        mean, late = duration(figures.latency.mean), duration(figures.latency.percentile(95))
        lines.append(("latency", f"{mean} on average, 95 % within {late}"))
    lines += _queue(figures)
    lines.append(("deadlocks", f"{figures.deadlocks:,}"))
    if figures.credits:
        lines.append(("spent", f"{money(figures.credits)}; details: `{typed('remit money spend')}`"))
    if figures.refused_credits:
        lines.append(("not spent", f"{money(figures.refused_credits)} that refused tasks were to get"))
    return Text("\n").join(Text.assemble((f"{name:<10}", "dim"), text) for name, text in lines)


def _queue(figures: Stats) -> Iterable[tuple[str, str]]:
    """Yield the figures of queued tasks."""
    queue = figures.queue
    if queue.count:
        mean, late = duration(queue.mean), duration(queue.percentile(95))
        yield "queued", f"{mean} on average, 95 % started within {late}"
    if figures.retries or figures.dead:
        yield "attempts", f"{figures.attempts:,}, {figures.retries:,} retried, {count(figures.dead, 'task')} dead"


def _agents(figures: Stats) -> Rows:
    names = ["agent", "turns", "completed", "failed", "cancelled", "handed over", "tokens", "time", "a turn"]
    queued = bool(figures.queue.count or figures.retries or figures.dead)
    names += ["retried", "dead", "queued"] if queued else []
    paid = bool(figures.credits)
    names += ["spent"] if paid else []
    ranked = sorted(figures.agents.items(), key=lambda item: (-item[1].times.total, item[0]))
    rows = [
        [
            Text(escaped(name, 64), "bold"),
            *_turns(agent),
            *(_waits(agent) if queued else ()),
            *([money(agent.credits) if agent.credits else "-"] if paid else ()),
        ]
        for name, agent in ranked
    ]
    return Rows(names, rows)


def _turns(agent: AgentStats) -> Iterable[str]:
    yield f"{agent.turns:,}"
    for number in (agent.completed, agent.failed, agent.cancelled, agent.handed, agent.tokens):
        yield f"{number:,}" if number else "-"
    timed = bool(agent.times.count)
    yield duration(agent.times.total) if timed else "-"
    yield duration(agent.times.mean) if timed else "-"


def _waits(agent: AgentStats) -> Iterable[str]:
    for number in (agent.retries, agent.dead):
        yield f"{number:,}" if number else "-"
    yield duration(agent.queue.mean) if agent.queue.count else "-"


def _refusals(figures: Stats) -> Rows:
    rows = [[Text(escaped(rule, 64), "red"), f"{times:,}"] for rule, times in figures.refusals.most_common()]
    return Rows(("refused by", "times"), rows)


def _breakers(figures: Stats) -> Rows:
    rows = [
        [Text(escaped(name, 64), "bold"), breaker_state(breaker.state), f"{breaker.failures:,}"]
        for name, breaker in sorted(figures.breakers.items())
    ]
    return Rows(("breaker", "state", "failures"), rows, left=2)
