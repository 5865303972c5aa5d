"""Run as a program: looks at what a chaos run left behind and says what is wrong with it.

    python checker.py FOLDER [--store ADDRESS] [--json]

It knows nothing of remit: it reads the store with plain sqlite3 or psycopg, works the chain of hashes and the states of
tasks out for itself, and compares them with the ledger that agents, askers and the conductor wrote outside of it.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from torture.chaos import journal, outside, promises
from torture.chaos.ledger import Line, ledgers
from torture.chaos.picture import Picture, Violation, picture

SHOWN = 3  # of each class


def violations(seen: Picture, lines: list[Line]) -> list[Violation]:
    """List every promise that does not hold."""
    found = outside.effects(lines)
    return [
        *journal.chain(seen),
        *journal.fold(seen),
        *promises.acknowledged(seen, lines),
        *promises.told(seen, lines),
        *promises.ended(seen, lines),
        *promises.answered(seen, found),
        *promises.announced(seen),
        *promises.lived(lines),
        *outside.done_once(found, lines),
        *outside.recorded_once(found, seen),
    ]


def figures(seen: Picture, lines: list[Line]) -> str:
    """Tell how much there was to look at."""
    kinds = Counter(line["kind"] for line in lines)
    done = [effect for effect in outside.effects(lines) if effect.doings]
    repeated = sum(len(effect.doings) > effect.times for effect in done)
    return (
        f"{len(seen.events):,} events, {len(seen.tasks):,} tasks and {len(seen.pruned):,} pruned, "
        f"{kinds['ack']:,} acks, {len(done):,} effects of which {repeated} were done again; "
        f"{kinds['killed']} kills, {kinds['stopped']} stops, {kinds['terminated']} told to stop, "
        f"{kinds['told no']} times told no, {kinds['started']} lives"
    )


def report(seen: Picture, found: list[Violation]) -> str:
    """Tell what is wrong: how many of each class, some of them, and the last events of the task concerned."""
    said: list[str] = []
    for kind, number in Counter(violation.kind for violation in found).most_common():
        said.append(f"{number} x {kind}")
        for violation in [one for one in found if one.kind == kind][:SHOWN]:
            said.append(f"    {violation.sentence}")
            said += [f"        {line}" for line in seen.story(violation.task)] if violation.task else []
    return "\n".join(said)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Look at what a chaos run left behind.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--store", default="", help="the address of the server, while it is there")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each thing that is wrong")
    given = parser.parse_args(arguments)
    lines = ledgers(given.folder / "ledger")
    seen = picture(given.folder, given.store)
    found = violations(seen, lines)
    if given.json:
        for violation in found:
            print(json.dumps(violation._asdict()))
    else:
        print(figures(seen, lines))
        print(report(seen, found) if found else "nothing is wrong")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
