"""What grows with the journal, with the number of runs at once and with time: `make bench-growth`, or single parts.

`journal` builds journals of 1,000 to 1,000,000 events (3,000,000 with --large, 300,000 on PostgreSQL) and measures
everything on each; `crowd` is 10,000 runs begun at one moment; `day` is 24 hours of steady load on a fake clock.
"""

import argparse
import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import page
from growing import crowd, sizes
from machine import Machine, sentence
from subjects.servers import server

PARTS = ("journal", "crowd", "day")
_WHERE = ("memory", "file")


def main() -> None:
    given = _arguments()
    machine = Machine()
    found: dict[str, Any] = {}
    for part in given.parts or PARTS:
        found[part] = {"journal": _journal, "crowd": _crowd, "day": _day}[part](given)
    told = machine.told()
    body = f"{sentence(told)}{_short(given)}\n\n" + "\n\n".join(_markdown(part, found[part]) for part in found)
    if given.page:
        page.write("growth", body)
    if given.json:
        print(json.dumps({"machine": told, **{part: _data(part, found[part]) for part in found}}, indent=2))
    else:
        print(body)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"which ones: {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="up to 20,000 events, 1,000 runs, a tenth of the load")
    parser.add_argument("--large", action="store_true", help="3,000,000 events, too")
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL, too, up to 300,000 events")
    parser.add_argument("--rounds", type=int, default=3, help="how often each thing is measured; the median counts")
    parser.add_argument("--cache", type=Path, help="a folder for journals on SQLite, to be used again the next time")
    parser.add_argument("--json", action="store_true", help="JSON instead of tables")
    parser.add_argument("--page", action="store_true", help="put the tables into docs/performance.md too")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    if given.page and given.parts:
        parser.error("the page has all parts: say --page without names")
    return given


def _short(given: argparse.Namespace) -> str:
    return " A fraction of the load: a first look, not figures to quote." if given.quick else ""


def _journal(given: argparse.Namespace) -> list[sizes.Grown]:
    wanted = [1_000, 20_000] if given.quick else [1_000, 100_000, 1_000_000]
    on_a_server = wanted if given.quick else [1_000, 100_000, 300_000]
    if given.large:
        wanted.append(3_000_000)
    with ExitStack() as stack:
        if given.cache:
            given.cache.mkdir(parents=True, exist_ok=True)
        folder = given.cache or Path(stack.enter_context(TemporaryDirectory(prefix="remit-growth-")))
        found = [sizes.measured("SQLite", wanted, lambda size: str(folder / f"{size}.db"), given.rounds)]
        if given.postgres:
            place = Path(stack.enter_context(TemporaryDirectory(prefix="remit-growth-")))

            def address(_size: int) -> str:
                return stack.enter_context(server(place))

            found.append(sizes.measured("PostgreSQL", on_a_server, address, given.rounds))
    return found


def _crowd(given: argparse.Namespace) -> dict[str, Any]:
    runs = crowd.RUNS // 10 if given.quick else crowd.RUNS
    return {"runs": runs, **{where: _child("growing.crowd", where, str(runs)) for where in _WHERE}}


def _day(given: argparse.Namespace) -> dict[str, Any]:
    runs = 3 if given.quick else 30
    return {"runs_a_minute": runs, **{where: _child("growing.day", where, str(runs)) for where in _WHERE}}


def _child(module: str, *words: str) -> Any:
    print(f"{module.removeprefix('growing.')}: {' '.join(words)} ...", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", module, *words], cwd=sizes.BENCH, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


# -- told ------------------------------------------------------------------------------------------------


def _markdown(part: str, found: Any) -> str:
    if part == "journal":
        return "\n\n".join(sizes.markdown(grown) for grown in found)
    return _crowd_table(found) if part == "crowd" else _day_table(found)


def _crowd_table(found: dict[str, Any]) -> str:
    names = {
        "p50_ms": "a run, p50, ms",
        "p99_ms": "a run, p99, ms",
        "all_ms": "all of them, ms",
        "cpu_us_a_run": "processor time of a run, µs",
        "kb_a_run": "memory of a run, KB",
    }
    rows = [[text, *(page.number(found[where][name]) for where in _WHERE)] for name, text in names.items()]
    return page.table([f"{found['runs']:,} runs begun at one moment", *(f"in {where}" for where in _WHERE)], rows)


def _day_table(found: dict[str, Any]) -> str:
    memory, file = found["memory"], found["file"]
    rows = [
        [
            f"{inside['hour']}",
            page.number(inside["resident_mb"]),
            f"{inside['runs']:,}",
            page.number(outside["resident_mb"]),
            page.number(outside["file_mb"]),
            f"{outside['runs']:,}",
        ]
        for inside, outside in zip(memory, file, strict=True)
        if inside["hour"] <= 4 or inside["hour"] % 4 == 0
    ]
    title = f"hour of a day with {found['runs_a_minute']} runs and as many tasks a minute"
    head = [title, "in memory: process, MB", "runs kept", "on a file: process, MB", "file, MB", "runs kept"]
    return page.table(head, rows)


def _data(part: str, found: Any) -> Any:
    return [sizes.data(grown) for grown in found] if part == "journal" else found


if __name__ == "__main__":
    main()
