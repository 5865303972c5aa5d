"""Many more random trees and pairs of worlds than the tests have time for, each with a seed that they do not use."""

import os
import subprocess
import sys

NAME = "trees"
TREES, PAIRS = 25_000, 25_000
FIRST = 1_000_000  # seed; the tests begin at 0
PART = 1_000  # in one program: what a store has kept makes it no faster


def parts() -> list[list[str]]:
    """The arguments of the programs that together do all of it."""
    share = PART * PAIRS // TREES
    starts = range(FIRST, FIRST + TREES, PART)
    return [["--from", str(start), "--trees", str(PART), "--spies", str(share)] for start in starts]


def carried_out(arguments: list[str]) -> str:
    """What is wrong, as the program says it; empty if nothing is."""
    command = [sys.executable, "-m", "oracle", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ)
    return "" if done.returncode == 0 else f"{done.stdout}{done.stderr[-2_000:]}"
