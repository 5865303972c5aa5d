"""What remit costs, beside a bare floor and the peers that are installed: `make bench`, or single jobs by name.

A bench is not a test: it prints what it finds and never fails on a figure.
"""

import argparse
import sys

import page
from jobs import JOBS, Job
from machine import Machine, sentence
from measure import FULL, QUICK
from rounds import Found, measured
from table import dump, markdown, show


def main() -> None:
    given = _arguments()
    effort = QUICK if given.quick else FULL
    if given.rounds:
        effort = effort._replace(rounds=given.rounds)
    machine = Machine()
    chosen = [job for job in JOBS if not given.jobs or job.name in given.jobs]
    kept = {name: line for name, line in page.rows("bench").items() if name in _left_out(chosen)}
    found: list[Found] = []
    for job in chosen:
        print(f"{job.name} ...", file=sys.stderr, flush=True)
        found.append(measured(job, effort, frozenset(given.only)))
        if given.page:  # at once, so that a run that is stopped has not been in vain
            page.write("bench", markdown(found, f"{sentence(machine.told())}{_effort(given.quick)}", kept))
    told = machine.told()
    if given.json:
        print(dump(found, told))
    else:
        show(found, told)


def _left_out(chosen: list[Job]) -> set[str]:
    return {job.name for job in JOBS} - {job.name for job in chosen}


def _effort(quick: bool) -> str:
    return " A tenth of the load and few rounds: a first look, not figures to quote." if quick else ""


def _arguments() -> argparse.Namespace:
    names = [job.name for job in JOBS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", metavar="job", help=f"which ones: {', '.join(names)}")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument("--quick", action="store_true", help="a tenth of the load, fewer rounds")
    parser.add_argument("--rounds", type=int, default=0, help="how many rounds")
    parser.add_argument("--only", action="append", default=[], metavar="SUBJECT", help="floor, remit, or a peer's name")
    parser.add_argument("--page", action="store_true", help="put what is measured into docs/performance.md too")
    given = parser.parse_args()
    if unknown := set(given.jobs) - set(names):
        parser.error(f"there is no job {', '.join(sorted(unknown))}")
    if unknown := set(given.only) - {name for job in JOBS for name in job.subjects}:
        parser.error(f"there is no subject {', '.join(sorted(unknown))}")
    if given.page and given.only:
        parser.error("the page has all subjects: say --page without --only")
    return given


if __name__ == "__main__":
    main()
