"""The figures of `make bench`: a table for people, JSON for programs, Markdown for the page."""

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from rich.console import Console
from rich.table import Table

import page
from jobs import FLOOR, JOBS, REMIT, Aim
from machine import sentence
from measure import Cost
from rounds import Figure, Found

_WIDTH = 140  # a pipe has no width of its own


def show(lines: Iterable[Found], machine: dict[str, object]) -> None:
    table = Table("job", "floor", "remit", "others", "aims", title="median of the rounds (least to most)")
    table.show_lines = True
    for found in lines:
        table.add_row(
            f"{found.job.name}\n[dim]{found.job.what}, {found.job.unit}[/]",
            spread(found.figure(FLOOR)),
            spread(found.figure(REMIT)),
            "\n".join(f"{name}: {spread(found.figure(name))}" for name in found.costs if name not in (FLOOR, REMIT)),
            "\n".join(_aim(found, aim) for aim in found.job.aims),
        )
    console = Console(width=max(Console().width, _WIDTH))
    console.print(table)
    console.print(sentence(machine))


def spread(figure: Figure | str) -> str:
    if isinstance(figure, str):
        return figure
    least, most = page.number(figure.least), page.number(figure.most)
    return page.number(figure.median) + (f" ({least} to {most})" if least != most else "")


def _aim(found: Found, aim: Aim) -> str:
    """Return an aim and its result, such as `1/17 of openai-agents (aim 1/15): reached`."""
    who = "" if aim.of == REMIT else f"{aim.of.removeprefix('remit, ')}: "
    verdict = {True: "reached", False: "missed", None: "not measured"}[found.reached(aim)]
    if not aim.against:
        return f"{who}aim {'≥' if found.job.more else '≤'} {page.number(aim.limit)} {found.job.unit}: {verdict}"
    wanted = f"aim {ratio(aim.limit)} of {_whom(aim)}"
    if (figure := found.ratio(aim)) is None:
        return f"{who}{wanted}: {verdict}"
    cpu = found.ratio(aim, cpu=True)
    by_cpu = f", by processor time {ratio(cpu.median)}" if cpu else ""
    return f"{who}{ratio(figure.median)} ({wanted}): {verdict}{by_cpu}"


def _whom(aim: Aim) -> str:
    return aim.against[0] if len(aim.against) == 1 else f"the best of {', '.join(aim.against)}"


def ratio(value: float) -> str:
    """A ratio as people say it: 1/12, or 1.26x."""
    return f"1/{1 / value:.3g}" if value < 0.7 else f"{value:.3g}x"


# -- the page --------------------------------------------------------------------------------------------


def markdown(lines: Iterable[Found], told: str, kept: Mapping[str, str] = MappingProxyType({})) -> str:
    """What is told of the machine, and the table; jobs that were not measured keep the lines that they had."""
    fresh = {found.job.name: page.line(_row(found)) for found in lines}
    merged = {**kept, **fresh}
    order = [job.name for job in JOBS]
    every = sorted(merged, key=lambda name: order.index(name) if name in order else len(order))
    before = f" The last run was of {', '.join(fresh)}; the other lines are from runs before it." if kept else ""
    head = page.table(["what", "unit", "floor", "remit", "others", "aims"], [], words=("unit", "others", "aims"))
    return "\n".join([f"{told}{before}\n", head, *(merged[name] for name in every)])


def _row(found: Found) -> list[str]:
    others = [name for name in found.costs if name not in (FLOOR, REMIT)]
    return [
        f"`{found.job.name}`: {found.job.what}",
        found.job.unit,
        _short(found, FLOOR),
        _short(found, REMIT),
        "<br>".join(f"{name} {_short(found, name)}" for name in others),
        "<br>".join(_aim(found, aim) for aim in found.job.aims),
    ]


def _short(found: Found, subject: str) -> str:
    figure = found.figure(subject)
    return page.number(figure.median) if isinstance(figure, Figure) else figure


# -- JSON ------------------------------------------------------------------------------------------------


def dump(lines: Iterable[Found], machine: dict[str, object]) -> str:
    return json.dumps({"machine": machine, "jobs": [_data(found) for found in lines]}, indent=2)


def _data(found: Found) -> dict[str, object]:
    return {
        "job": found.job.name,
        "what": found.job.what,
        "unit": found.job.unit,
        "subjects": {name: _plain(costs) for name, costs in found.costs.items()},
        "aims": [
            {
                "of": aim.of,
                "against": list(aim.against),
                "limit": aim.limit,
                "ratio": figure._asdict() if (figure := found.ratio(aim)) else None,
                "reached": found.reached(aim),
            }
            for aim in found.job.aims
        ],
    }


def _plain(costs: list[Cost] | str) -> object:
    return costs if isinstance(costs, str) else [cost._asdict() for cost in costs]
