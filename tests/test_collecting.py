"""Tests are found under the same names everywhere: those who share them out between processes compare the names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# A process whose clock is off by as many seconds as it is told.
COLLECTS = """
import sys, time
def off(clock, by, unit):
    return lambda: clock() + by * unit
time.time, time.time_ns = off(time.time, int(sys.argv[1]), 1), off(time.time_ns, int(sys.argv[1]), 10**9)
import pytest
without = [word for name in ("cacheprovider", "xdist", "randomly") for word in ("-p", f"no:{name}")]
sys.exit(pytest.main(["--collect-only", "-q", *without, *sys.argv[2:]]))
"""


def test_tests_have_the_same_names_in_every_process(request: pytest.FixtureRequest):
    """Whatever the seed of hashes, and whatever the second in which they are collected: as here, so elsewhere."""
    here = {item.nodeid for item in request.session.items}
    command = [sys.executable, "-c", COLLECTS, "86400", *request.config.args]
    environment = {**os.environ, "PYTHONHASHSEED": "2"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2_000:]
    elsewhere = {line for line in done.stdout.splitlines() if "::" in line}
    assert sorted(here - elsewhere) == []
