"""What remit costs, beside a bare floor and the peers that are installed: `make bench`, or single jobs by name.

A bench is not a test: it prints what it finds and never fails on a figure.
"""

import argparse
import sys

from jobs import JOBS, Job, Measure
from measure import FULL, QUICK, Effort, Figure, Skipped, figure
from table import Line, dump, show


def main() -> None:
    given = _arguments()
    effort = QUICK if given.quick else FULL
    lines: list[Line] = []
    for job in (job for job in JOBS if not given.jobs or job.name in given.jobs):
        print(f"{job.name} ...", file=sys.stderr, flush=True)
        lines.append(_line(job, effort))
    if given.json:
        print(dump(lines))
    else:
        show(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", metavar="job", help=f"which ones: {', '.join(job.name for job in JOBS)}")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument("--quick", action="store_true", help="a tenth of the load, fewer rounds")
    given = parser.parse_args()
    unknown = set(given.jobs) - {job.name for job in JOBS}
    if unknown:
        parser.error(f"there is no job {', '.join(sorted(unknown))}")
    return given


def _line(job: Job, effort: Effort) -> Line:
    bare = _try(job.floor, effort, job) if job.floor else ""
    ours = _try(job.remit, effort, job)
    return Line(job, bare, ours, {name: _try(peer, effort, job) for name, peer in job.peers.items()})


def _try(measure: Measure, effort: Effort, job: Job) -> Figure | str:
    try:
        return figure(measure(effort), more=job.more)
    except Skipped as why:
        return str(why)


if __name__ == "__main__":
    main()
