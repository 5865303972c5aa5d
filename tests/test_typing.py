"""The public surface as a type checker sees it: what is right is accepted, and what is wrong is an error."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "typing"
ROOT = HERE.parent.parent
CHECKER = Path(sys.executable).with_name("basedpyright")


@pytest.fixture(scope="module")
def complaints() -> dict[str, set[int]]:
    """The lines of each file that the checker has something against."""
    checker = str(CHECKER) if CHECKER.exists() else shutil.which("basedpyright")
    assert checker, "basedpyright is not installed"
    files = sorted(str(path) for path in HERE.glob("*.py"))
    done = subprocess.run([checker, "--outputjson", *files], cwd=ROOT, capture_output=True, text=True)
    lines: dict[str, set[int]] = {Path(file).name: set() for file in files}
    for found in json.loads(done.stdout)["generalDiagnostics"]:
        if found["severity"] == "error":
            lines[Path(found["file"]).name].add(found["range"]["start"]["line"] + 1)
    return lines


def marked(name: str) -> set[int]:
    lines = (HERE / name).read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if re.search(r"# wrong$", line)}


@pytest.mark.parametrize("name", sorted(path.name for path in HERE.glob("*.py")))
def test_the_checker_refuses_what_is_wrong_and_nothing_else(name: str, complaints: dict[str, set[int]]):
    assert complaints[name] == marked(name)


PAGES = ("README.md", "docs/guide/python.md")


def test_readme_the_page_on_python_and_the_examples_are_clean_for_a_user(tmp_path: Path):
    for page in PAGES:
        blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
        for number, block in enumerate(blocks):
            (tmp_path / f"{Path(page).stem.lower()}_{number}.py").write_text(block)
    for example in (ROOT / "examples").glob("*.py"):
        shutil.copy(example, tmp_path)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard", "pythonVersion": "3.11"}')
    checker = str(CHECKER) if CHECKER.exists() else shutil.which("basedpyright")
    assert checker, "basedpyright is not installed"
    command = [checker, "--outputjson", "-p", str(tmp_path), "--pythonpath", sys.executable]
    found = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)

    assert found["summary"]["filesAnalyzed"] > len(PAGES)
    assert [(one["file"], one["message"]) for one in found["generalDiagnostics"] if one["severity"] == "error"] == []
