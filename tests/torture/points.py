"""Which points there are, and running them: several programs at a time, many points in each."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from programs import Program
from torture.scenarios import EVERY_HOOK, HOOKS

LIVES = Path(__file__).parent / "lives.py"


def program(folder: Path, scenario: str, cases: list[str], *, server: str = "") -> Program:
    """Begin to carry cases out: on a file for each, or in a workspace for each on a server."""
    where = {**os.environ, "REMIT_TORTURE_SERVER": server}
    return Program("-W", "error", LIVES, folder, scenario, *cases, env=where)


def measured(folder: Path, scenario: str, *, server: str = "") -> dict[str, Any]:
    running = program(folder, scenario, ["measure"], server=server)
    out, err = running.communicate(timeout=60)
    assert running.wait() == 0, err
    return json.loads(out)


def points(reached: dict[str, int]) -> list[str]:
    """Every hook, every time it is reached."""
    return [f"{hook}:{time}" for hook in EVERY_HOOK for time in range(1, reached.get(hook, 0) + 1)]


def spread(all_of_them: list[str], count: int, offset: float = 0.5) -> list[str]:
    """An even choice, from the first to the last of each hook."""
    if count >= len(all_of_them):
        return all_of_them
    pace = len(all_of_them) / count
    return [all_of_them[int((number + offset) * pace)] for number in range(count)]


# Where the process that carries on is killed in its turn. It does less than the first, so early times are likelier.
SECOND = [f"{hook}:{time}" for time in (1, 2, 4, 8, 3, 6, 12) for hook in HOOKS]


def twice(first: Iterable[str], start: int = 0) -> list[str]:
    """Each point with a second one; over all of them every pair of hooks comes up."""
    return [f"{point}+{SECOND[(start + number * 5) % len(SECOND)]}" for number, point in enumerate(first)]


def told(running: Program) -> Iterator[dict[str, Any]]:
    """What came of each case, as it comes."""
    for line in running.stdout:
        yield json.loads(line)


def repeat(scenario: str, case: str, server: str = "") -> str:
    """The command that does it again."""
    where = f"REMIT_TORTURE_SERVER='{server}' " if server else ""
    return f"{where}.venv/bin/python tests/torture/lives.py $(mktemp -d) {scenario} {case}"
