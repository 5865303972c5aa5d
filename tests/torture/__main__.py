"""Every point of every scenario, killed once and twice, random trees, teams with money, chaos, and many more examples
of what is tested by chance: `make torture`, or `python -m torture [NAME ...]` for some of the scenarios, for `server`
(those that are killed on PostgreSQL too), for `trees` or for `examples`; `python -m torture chaos [--seconds S ...]`,
`python -m torture money [--seeds N ...]`, `python -m torture talks [--seeds N ...]` and
`python -m torture requests [NUMBER]` for these alone."""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from postgres import running
from torture import money, powercut, requests, talks, trees
from torture.chaos import conductor
from torture.points import measured, points, program, repeat, told, twice
from torture.scenarios import SCENARIOS

BATCH = 60  # points in one program
EXAMPLES = "examples"
SERVER = "server"
ON_A_SERVER = ["disputed"]  # scenarios
EVERYTHING = (*SCENARIOS, SERVER, trees.NAME, money.NAME, talks.NAME, requests.NAME, conductor.NAME, EXAMPLES)


class Batch(NamedTuple):
    scenario: str
    cases: list[str]


def carried_out(folder: Path, server: str, number: int, batch: Batch) -> tuple[Batch, list[dict[str, Any]], str]:
    own = folder / str(number)
    own.mkdir()
    running = program(own, batch.scenario, batch.cases, server=server)
    lines = list(told(running))
    _, complaints = running.communicate()
    return batch, lines, complaints


def batches(folder: Path, scenarios: list[str], server: str) -> list[Batch]:
    made: list[Batch] = []
    for number, scenario in enumerate(scenarios):
        once = points(measured(folder, scenario, server=server)["reached"])
        cases = [*once, *twice(once, number)]
        print(f"  {scenario:10} {len(once)} points, and as many killed twice")
        made += [Batch(scenario, cases[start : start + BATCH]) for start in range(0, len(cases), BATCH)]
    return made


def killed(scenarios: list[str], server: str = "") -> int:
    """How many were broken by being killed, on files or on a server."""
    began = perf_counter()
    memory = Path("/dev/shm")  # what a killed process wrote survives in memory as well as on a disk, and faster
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        folder = Path(name)
        todo = batches(folder, scenarios, server)
        cases = deaths = 0
        wrong: list[str] = []
        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            done = pool.map(lambda numbered: carried_out(folder, server, *numbered), enumerate(todo))
            for batch, lines, complaints in done:
                cases += len(lines)
                deaths += sum(line["killed"] for line in lines)
                bad = [line for line in lines if line["broken"]]
                found = [f"{line['broken']}\n  {repeat(batch.scenario, line['case'], server)}" for line in bad]
                if len(lines) < len(batch.cases):
                    found.append(f"{batch.scenario} ended before {batch.cases[len(lines)]}: {complaints}")
                said = [complaints[-2_000:]] if found else []
                print("\n".join([f"  {batch.scenario}: {cases} cases so far", *found, *said]), flush=True)
                wrong += found
    print(f"{cases} cases, {deaths} processes killed, {len(wrong)} broken, {perf_counter() - began:.0f} s")
    return len(wrong) if cases else 1


def killed_on_a_server() -> int:
    with running() as server:
        address = server.database()
        try:
            return killed(ON_A_SERVER, address)
        finally:
            server.drop(address)


def grown() -> int:
    """How many programs found trees that go other than foreseen, or worlds that can be told apart."""
    began = perf_counter()
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        found = [told for told in pool.map(trees.carried_out, trees.parts()) if told]
    print("\n".join(found))
    print(f"{trees.TREES} trees, {trees.PAIRS} pairs of worlds, {len(found)} wrong, {perf_counter() - began:.0f} s")
    return len(found)


def tried() -> int:
    """Whether a test that takes examples by chance failed, with twenty times as many as in `make test`, and others."""
    chosen = ["-m", "hypothesis", "--hypothesis-profile=torture", "--timeout=1200"]
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(os.cpu_count() or 2), *chosen]
    return int(subprocess.run(command, check=False).returncode != 0)


def main(names: list[str]) -> int:
    alone = {one.NAME: one.main for one in (powercut, conductor, money, talks)}
    if names[0] in alone:
        return alone[names[0]](names[1:])
    if names[0] == requests.NAME and len(names) > 1:
        return requests.main(names[1:])
    if strange := [name for name in names if name not in EVERYTHING]:
        print(f"there is no {', '.join(strange)}; there is {', '.join(EVERYTHING)}, {powercut.NAME}")
        return 2
    scenarios = [name for name in names if name in SCENARIOS]
    broken = killed(scenarios) if scenarios else 0
    broken += killed_on_a_server() if SERVER in names else 0
    broken += grown() if trees.NAME in names else 0
    broken += money.main([]) if money.NAME in names else 0
    broken += talks.main([]) if talks.NAME in names else 0
    broken += requests.main([]) if requests.NAME in names else 0
    broken += conductor.main([]) if conductor.NAME in names else 0
    broken += tried() if EXAMPLES in names else 0
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [*EVERYTHING]))
