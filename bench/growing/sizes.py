"""The same at each size of the journal: what grows, and by how much."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import page
from growing.building import Built, build
from growing.looks import Took
from measure import Skipped, child

BENCH = Path(__file__).parents[1]
COMMANDS = (
    ("ps",),
    ("ps", "--all"),
    ("history",),
    ("history", "--agent", "worker"),
    ("runs",),
    ("show", "last"),
    ("stats",),
    ("doctor",),
)
BUILDING = "build 1,000 events"


class Grown(NamedTuple):
    """What was found on one database: for each size what each thing took, or text that says why that is not known."""

    database: str
    sizes: list[int]
    found: list[dict[str, Took | str]]


def measured(database: str, sizes: list[int], place: Callable[[int], str], rounds: int) -> Grown:
    """Build a journal of each size and measure everything on it."""
    found: list[dict[str, Took | str]] = []
    for size in sizes:
        print(f"{database}, {size:,} events: building ...", file=sys.stderr, flush=True)
        built = build(place(size), size)
        print(f"  built in {built.seconds:,.0f} s, {built.cpu:,.0f} s of processor time", file=sys.stderr, flush=True)
        thousands = size / 1_000
        cost: dict[str, Took | str] = {BUILDING: Took(built.seconds / thousands * 1e3, built.cpu / thousands * 1e3, 0)}
        # Commands come first: they only read, and the library's part writes a little.
        found.append(cost | commands(built, rounds) | library(built, rounds))
    return Grown(database, sizes, found)


def library(built: Built, rounds: int) -> dict[str, Took | str]:
    """What the library takes, in a process of its own."""
    command = [sys.executable, "-m", "growing.looks", json.dumps(built._asdict()), str(rounds)]
    done = subprocess.run(command, cwd=BENCH, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return {name: Took(**took) for name, took in json.loads(done.stdout).items()}


def commands(built: Built, rounds: int) -> dict[str, Took | str]:
    """What the commands take, each a process of its own."""
    return {f"`remit {' '.join(words)}`": _command(words, built.address, rounds) for words in COMMANDS}


def _command(words: tuple[str, ...], address: str, rounds: int) -> Took | str:
    print(f"  remit {' '.join(words)}", file=sys.stderr, flush=True)
    tries: list[Took] = []
    for _ in range(rounds):
        try:
            tries.append(Took(*child([sys.executable, "-m", "remit.cli", *words, "--store", address])))
        except Skipped as why:
            return str(why)
        if tries[-1].wall > 20_000:  # what takes that long is known well enough after one try
            break
    return Took(*(sorted(values)[len(values) // 2] for values in zip(*tries, strict=True)))


# -- told ------------------------------------------------------------------------------------------------


def markdown(grown: Grown) -> str:
    by_clock = grown.database != "SQLite"  # a server's processor time is not its client's
    unit = "ms by the clock" if by_clock else "ms of processor time"
    sizes = [f"{size:,}" for size in grown.sizes]
    head = [f"{grown.database}, {unit}", *sizes, "largest / smallest", "peak, MB, smallest", "largest"]
    rows: list[list[str]] = []
    for name in grown.found[0]:
        takes = [found.get(name, "") for found in grown.found]
        values = [took if isinstance(took, str) else page.number(took.wall if by_clock else took.cpu) for took in takes]
        first, last = takes[0], takes[-1]
        if isinstance(first, Took) and isinstance(last, Took):
            ratio = f"{last.wall / first.wall:.2g}" if by_clock else f"{last.cpu / max(first.cpu, 1e-3):.2g}"
            peaks = [page.number(first.peak), page.number(last.peak)] if first.peak else ["", ""]
        else:
            ratio, peaks = "", ["", ""]
        rows.append([name, *values, ratio, *peaks])
    return page.table(head, rows)


def data(grown: Grown) -> dict[str, Any]:
    return {
        "database": grown.database,
        "sizes": {
            str(size): {name: took if isinstance(took, str) else took._asdict() for name, took in found.items()}
            for size, found in zip(grown.sizes, grown.found, strict=True)
        },
    }
