"""Tests are found under the same names everywhere: those who share them out between processes compare the names."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

# A process whose clock is off by as many seconds as it is told.
COLLECTS = """
import sys, time
def off(clock, by, unit):
    return lambda: clock() + by * unit
time.time, time.time_ns = off(time.time, int(sys.argv[1]), 1), off(time.time_ns, int(sys.argv[1]), 10**9)
import pytest
without = [word for name in ("cacheprovider", "xdist", "randomly") for word in ("-p", f"no:{name}")]
sys.exit(pytest.main(["--collect-only", "-q", *without, "tests"]))
"""


def collecting(seed: int, seconds: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", COLLECTS, str(seconds)]
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def names(process: "subprocess.Popen[str]") -> list[str]:
    said = process.communicate()[0]
    assert process.returncode == 0, said[-2_000:]
    return [line for line in said.splitlines() if "::" in line]


def test_tests_have_the_same_names_in_every_process():
    """Whatever the seed, and whatever the second in which they are collected."""
    one, other = collecting(seed=1, seconds=0), collecting(seed=2, seconds=86_400)
    first, second = names(one), names(other)
    assert len(first) > 1_000
    assert first == second
