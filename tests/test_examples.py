"""The examples are small, run without a key, and print what their README says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
PROMISED = dict(
    re.findall(
        r"^## \[(\w+\.py)\].*?^```text\n(.*?)^```", (EXAMPLES / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
)
PARTS = {"night_shift_team.py"}  # imported or started by others
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py") if path.name not in PARTS)


def test_every_example_is_in_the_readme_and_the_other_way_round():
    assert sorted(PROMISED) == SCRIPTS


@pytest.mark.parametrize("name", [*SCRIPTS, *PARTS])
def test_an_example_fits_on_one_screen(name: str):
    assert len((EXAMPLES / name).read_text().splitlines()) <= 45


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_runs_and_prints_what_the_readme_shows(name: str, tmp_path: Path):
    script = [sys.executable, "-W", "error", EXAMPLES / name]
    done = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    assert PROMISED[name] in done.stdout
    assert not done.stderr
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"


def test_a_member_of_the_team_is_told_its_step_and_its_dependency_only(tmp_path: Path):
    done = subprocess.run([sys.executable, EXAMPLES / "team.py"], cwd=tmp_path, capture_output=True, text=True)
    told, _, synthesis = done.stdout.partition("--- what the coordinator is told at the end")
    assert "Study the market (by analyst)" in told
    assert "customers" not in told
    assert "teapot" not in told
    assert "launch the new teapot" in synthesis
