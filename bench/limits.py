"""What stops endless agents, in remit and in the installed peers: `make limits`.

Nothing here needs a network or a key: every model is scripted. A bench is not a test: it prints what it finds.
"""

# The figures that we quote were measured with these, on Python 3.11:
#
#   agent-framework-core==1.23.0
#   agent-framework-orchestrations==1.4.0
#   google-adk==2.13.0
#   langchain==1.4.7
#   langgraph==1.2.20
#   langgraph-swarm==0.1.0
#   openai-agents==0.24.0
#   pydantic-ai-slim==2.66.0
#   strands-agents==1.62.0
#
# Other versions may well behave differently; the table says which ones were there.

import argparse
import asyncio
import json
import logging
import sys
import warnings
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

import fanout
import insisting
import pingpong
from measure import Skipped
from pingpong import Rally

_WIDTH = 120  # a pipe has no width of its own


class Found(NamedTuple):
    """A figure; `more` if the experiment gave up before the library did, and `text` says how it ended."""

    figure: int | None
    more: bool
    text: str


class Experiment(NamedTuple):
    name: str
    unit: str
    package: str
    run: Callable[[Any], Awaitable[str]]

    @property
    def quiet_end(self) -> str:
        """What it means when the run comes to its end without a failure."""
        return "the run goes on" if self.unit == TOKENS else "the run comes to its end"


# -- all of them -----------------------------------------------------------------------------------------

HANDOFF, DELEGATION, BUDGET = "insisting on handoffs", "insisting on delegation", "limit of 2,000 tokens"
GIVES_IN = "ping-pong by delegation, models that end with an answer"
CALLS, TOKENS = "model calls", "tokens"
REMIT = tuple(
    Experiment(f"{name}, {kind}", CALLS, "remit", insisting.of_remit(kind, way))
    for name, way in ((HANDOFF, insisting.by_handoff_verb), (DELEGATION, insisting.by_verb))
    for kind in insisting.JOINS
)
EXPERIMENTS = (
    *REMIT,
    Experiment(HANDOFF, CALLS, "openai-agents", insisting.openai_handoff),
    Experiment(HANDOFF, CALLS, "strands-agents", pingpong.strands_handoff),
    Experiment(HANDOFF, CALLS, "agent-framework-core", pingpong.framework_handoff),
    Experiment(HANDOFF, CALLS, "google-adk", pingpong.adk_handoff),
    Experiment(HANDOFF, CALLS, "langgraph-swarm", pingpong.langgraph_handoff),
    Experiment(DELEGATION, CALLS, "openai-agents", insisting.openai_delegation),
    Experiment(DELEGATION, CALLS, "pydantic-ai-slim", insisting.pydantic_delegation),
    Experiment(DELEGATION, CALLS, "langgraph", insisting.langgraph_delegation),
    Experiment(GIVES_IN, CALLS, "strands-agents", pingpong.strands_delegation),
    Experiment(GIVES_IN, CALLS, "agent-framework-core", pingpong.framework_delegation),
    Experiment(GIVES_IN, CALLS, "google-adk", pingpong.adk_delegation),
    Experiment(BUDGET, TOKENS, "pydantic-ai-slim", fanout.pydantic_ai),
    Experiment(BUDGET, TOKENS, "strands-agents", fanout.strands),
)


def measured(experiment: Experiment, calls: int, seconds: float) -> Found:
    rally, purse, failure = Rally(calls, seconds), fanout.Purse(), ""
    try:
        failure = asyncio.run(_in_time(experiment.run(purse if experiment.unit == TOKENS else rally), seconds))
    except Skipped as why:
        return Found(None, False, str(why))
    except Exception as error:  # noqa: BLE001 - whatever a library fails with is what we want to know
        failure = type(error).__name__
    if rally.calls < 2 and not purse.spent:
        return Found(None, False, f"does not fit this version: {failure or 'no model was called'}")
    if rally.given_in:
        return Found(rally.calls, True, "nothing stopped it")
    return Found(rally.calls or purse.spent, False, f"the run fails: {failure}" if failure else experiment.quiet_end)


async def _in_time(work: Awaitable[str], seconds: float) -> str:
    # Models give in on time; this is for a library that hangs without asking them.
    return await asyncio.wait_for(work, seconds * 2)


# -- the command -----------------------------------------------------------------------------------------


def main() -> None:
    given = _arguments()
    logging.disable()  # the libraries tell at length of the failures that we provoke
    warnings.simplefilter("ignore")
    chosen = [one for one in EXPERIMENTS if not given.packages or one.package in given.packages]
    found: list[tuple[Experiment, Found]] = []
    for experiment in chosen:
        print(f"{experiment.name}: {experiment.package} ...", file=sys.stderr, flush=True)
        found.append((experiment, measured(experiment, given.calls, given.seconds)))
    if given.json:
        print(json.dumps([_data(*line) for line in found], indent=2))
    else:
        show(found)


def _arguments() -> argparse.Namespace:
    packages = sorted({experiment.package for experiment in EXPERIMENTS})
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="package", help=f"which ones: {', '.join(packages)}")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument("--calls", type=int, default=1_000, help="model calls after which to give up")
    parser.add_argument("--seconds", type=float, default=120, help="seconds after which to give up")
    given = parser.parse_args()
    if unknown := set(given.packages) - set(packages):
        parser.error(f"there is no package {', '.join(sorted(unknown))} here")
    return given


def show(lines: list[tuple[Experiment, Found]]) -> None:
    table = Table("experiment", "package", "found", "how it ends", title="what stops a runaway")
    for experiment, found in lines:
        table.add_row(experiment.name, _package(experiment, found), _figure(experiment, found), found.text)
    Console(width=max(Console().width, _WIDTH)).print(table)


def _package(experiment: Experiment, found: Found) -> str:
    return experiment.package if found.figure is None else f"{experiment.package} {version(experiment.package)}"


def _figure(experiment: Experiment, found: Found) -> str:
    return "-" if found.figure is None else f"{'more than ' * found.more}{found.figure:,} {experiment.unit}"


def _data(experiment: Experiment, found: Found) -> dict[str, object]:
    return {
        "experiment": experiment.name,
        "package": experiment.package,
        "version": None if found.figure is None else version(experiment.package),
        "unit": experiment.unit,
        "found": found.figure,
        "more": found.more,
        "ends": found.text,
    }


if __name__ == "__main__":
    main()
