"""The public surface as type checkers see it: what is right is accepted, and what is wrong is an error."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from page_blocks import ROOT, blocks

SURFACE = Path(__file__).parent / "typing"
PROGRAM = re.compile(r"(?:# .*\n)?(?:import|from) ")  # how a block begins that is more than a part of one
PYRIGHT = Path(sys.executable).with_name("basedpyright")
# Frameworks of agents take most of a minute, Django has no types, and their decorators are then untyped.
MYPY = """
[mypy]
strict = True
disallow_untyped_decorators = False
explicit_package_bases = True
python_version = 3.11

[mypy-surface.*]
disallow_untyped_decorators = True

[mypy-guide.*]
disallow_untyped_defs = False
disallow_incomplete_defs = False
disallow_untyped_calls = False

[mypy-agents.*,anthropic.*,django.*,langchain.*,langchain_core.*,langchain_openai.*,langgraph.*,mcp.*,openai.*,\
pydantic_ai.*,IPython.*]
follow_imports = skip
ignore_missing_imports = True
"""


def by_users(folder: Path) -> Path:
    """A folder with what users write: the programs on our pages, also those that cannot run here, and our examples."""
    for block in blocks("python"):
        if not block.skipped or PROGRAM.match(block.code):
            room = folder / ("readme" if block.page == ROOT / "README.md" else "guide")
            room.mkdir(parents=True, exist_ok=True)
            page = re.sub(r"\W", "_", str(block.page.relative_to(ROOT).with_suffix("")))
            (room / f"{page}_{block.number}.py").write_text(block.code)
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("published", "__pycache__"))
    return folder


def pyright(*given: str | Path) -> Iterator[tuple[Path, int, str]]:
    checker = str(PYRIGHT) if PYRIGHT.exists() else shutil.which("basedpyright")
    assert checker, "basedpyright is not installed"
    command = [checker, "--outputjson", "--pythonpath", sys.executable, *map(str, given)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] > 1
    for one in found["generalDiagnostics"]:
        if one["severity"] == "error":
            yield Path(one["file"]), one["range"]["start"]["line"] + 1, one["message"]


def mypy(folder: Path) -> Iterator[tuple[Path, int, str]]:
    (folder / "mypy.ini").write_text(MYPY)
    options = ["--no-error-summary", "--config-file", "mypy.ini", "--cache-dir", str(ROOT / ".mypy_cache")]
    for rooms in rounds(folder):
        ours = [str(room) for room in rooms if "examples" in room.parts]
        environment = {**os.environ, "MYPYPATH": os.pathsep.join(ours)}
        files = [str(path.relative_to(folder)) for room in rooms for path in room.glob("*.py")]
        command = [sys.executable, "-m", "mypy", *options, *files]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        for path, line, message in re.findall(r"^(.+?):(\d+): error: (.*)$", done.stdout, re.MULTILINE):
            yield folder / path, int(line), message


def rounds(folder: Path) -> list[list[Path]]:
    """The folders with code, in groups in which no two files have the same name: an example imports its neighbours by
    name, and mypy knows one module of a name at a time."""
    found: list[tuple[set[str], list[Path]]] = []
    for room in sorted({path.parent for path in folder.rglob("*.py")}):
        names = {path.name for path in room.glob("*.py")}
        for taken, rooms in found:
            if not taken & names:
                taken.update(names)
                rooms.append(room)
                break
        else:
            found.append((names, [room]))
    return [rooms for _, rooms in found]


def told(found: Iterable[tuple[Path, int, str]]) -> str:
    return "\n".join(f"{path.parent.name}/{path.name}, line {line}: {message}" for path, line, message in found)


def marked(marks: Iterable[str]) -> set[tuple[str, int]]:
    """The lines of the surface that end with one of these marks."""
    pattern = re.compile(rf"# (?:{'|'.join(marks)})$")
    return {
        (path.name, number)
        for path in SURFACE.glob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    }


@pytest.mark.rule("surface.types")
def test_basedpyright_refuses_what_is_wrong_and_nothing_else():
    found = pyright(*SURFACE.glob("*.py"))

    assert {(path.name, line) for path, line, _ in found} == marked(["wrong", "wrong for pyright"])


@pytest.mark.deep
@pytest.mark.rule("surface.types")
def test_basedpyright_has_nothing_against_the_pages_and_the_examples(tmp_path: Path):
    by_users(tmp_path)
    settings = {"typeCheckingMode": "standard", "pythonVersion": "3.11", "extraPaths": ["examples/real_model"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))

    assert told(pyright("-p", tmp_path)) == ""


@pytest.mark.deep
@pytest.mark.rule("surface.types")
def test_strict_mypy_refuses_what_is_wrong_and_has_nothing_against_the_pages_and_the_examples(tmp_path: Path):
    by_users(tmp_path)
    shutil.copytree(SURFACE, tmp_path / "surface")

    found = list(mypy(tmp_path))

    assert {(path.name, line) for path, line, _ in found if path.parent.name == "surface"} == marked(["wrong"])
    assert told(one for one in found if one[0].parent.name != "surface") == ""
