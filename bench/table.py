"""The figures as a table for people, or as JSON for programs."""

import json
from collections.abc import Iterable
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from jobs import Job
from measure import Figure

_WIDTH = 120  # a pipe has no width of its own


class Line(NamedTuple):
    """One job with what was measured; text stands where there is no figure."""

    job: Job
    floor: Figure | str
    remit: Figure | str
    peers: dict[str, Figure | str]

    @property
    def ok(self) -> bool | None:
        if isinstance(self.remit, str) or self.job.aim is None:
            return None
        return self.remit.best >= self.job.aim if self.job.more else self.remit.best <= self.job.aim

    @property
    def ratio(self) -> float | None:
        """How many times dearer than the floor."""
        if isinstance(self.remit, str) or isinstance(self.floor, str):
            return None
        dear, cheap = self.remit.best, self.floor.best
        return cheap / dear if self.job.more else dear / cheap


def show(lines: Iterable[Line]) -> None:
    table = Table("job", "unit", "floor", "remit", "peers", "aim", "ratio", "", title="best of N (median)")
    for line in lines:
        table.add_row(*_cells(line))
    Console(width=max(Console().width, _WIDTH)).print(table)


def _cells(line: Line) -> list[str]:
    peers = "\n".join(f"{name}: {_figure(found)}" for name, found in line.peers.items())
    ratio = "" if line.ratio is None else f"{line.ratio:.1f}x"
    verdict = {True: "[green]ok", False: "[red]over" if not line.job.more else "[red]under", None: "-"}[line.ok]
    aim = "" if line.job.aim is None else f"{'≥' if line.job.more else '≤'} {line.job.aim:,g}"
    return [
        line.job.name,
        line.job.unit,
        _figure(line.floor),
        _figure(line.remit),
        peers,
        aim,
        ratio,
        verdict,
    ]


def _figure(found: Figure | str) -> str:
    if isinstance(found, str):
        return found
    return f"{_short(found.best)} ({_short(found.median)})"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def dump(lines: Iterable[Line]) -> str:
    return json.dumps([_data(line) for line in lines], indent=2)


def _data(line: Line) -> dict[str, object]:
    return {
        "job": line.job.name,
        "unit": line.job.unit,
        "aim": line.job.aim,
        "floor": _plain(line.floor),
        "remit": _plain(line.remit),
        "peers": {name: _plain(found) for name, found in line.peers.items()},
        "ratio": line.ratio,
        "ok": line.ok,
    }


def _plain(found: Figure | str) -> object:
    return found if isinstance(found, str) else found._asdict()
