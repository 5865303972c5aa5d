"""Draws what the docs show of the code: `make docs`; with --check it only says whether that is up to date."""

import ast
import json
import re
import sys
from pathlib import Path
from typing import Any

from pages import PAGES
from picture import picture
from tables import tables

HERE = Path(__file__).parent
BUDGETS = HERE.parent / "tests" / "test_budgets.py"
SOURCE = HERE.parent / "src" / "remit"
HEAD = "| | calls | files | changes of file | bytecodes |\n|---|---:|---:|---:|---:|\n"


def drawn() -> dict[str, str]:
    pages = {name: page() for name, page in PAGES.items()} | {"design.md": design()}
    runs = {"demo": "the demo", "coding": "Claude Code and Codex in one team"}
    drawings = {f"{name}.svg": picture(recorded(HERE / f"{name}.json"), title) for name, title in runs.items()}
    store = {"../src/remit/stores/sqlite/migrations/whole.sql": tables()}
    return pages | drawings | examples() | store


def examples() -> dict[str, str]:
    """Return the pictures of the examples, each drawn from its recorded run."""
    runs = sorted((HERE.parent / "examples" / "pictures").glob("*.json"))
    return {f"../examples/pictures/{run.stem}.svg": picture(recorded(run), f"the example {run.stem}") for run in runs}


def recorded(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text())


def design() -> str:
    """Return the page on the design with two parts drawn: the budgets of the walks, which the tests hold, and the
    modules of the core and the engine."""
    found = re.search(r"^WALKS = (\{.*?^\})", BUDGETS.read_text(), re.MULTILINE | re.DOTALL)
    if found is None:
        raise LookupError(f"{BUDGETS} has no WALKS")
    walks: dict[str, list[int]] = ast.literal_eval(re.sub(r"Walk\((.*?)\)", r"[\1]", found[1]))
    rows = "".join(f"| {name} | {' | '.join(f'{figure:,}' for figure in walk)} |\n" for name, walk in walks.items())
    page = re.sub(re.escape(HEAD) + r"(?:\|.*\n)*", HEAD + rows, (HERE / "design.md").read_text())
    return re.sub(
        r"(<!-- modules of (\w+) -->\n).*?(?=<!-- end of modules -->)",
        lambda part: part[1] + modules(part[2]),
        page,
        flags=re.DOTALL,
    )


def modules(room: str) -> str:
    """Return a table of the modules and packages of a package, each with the first sentence of its docstring."""
    rows = ""
    for path in sorted((SOURCE / room).iterdir()):
        file = path / "__init__.py" if path.is_dir() else path
        if path.name == "__init__.py" or file.suffix != ".py" or not file.exists():
            continue
        text = " ".join((ast.get_docstring(ast.parse(file.read_text())) or "").split())
        name = f"{room}/{path.name}/" if path.is_dir() else f"{room}/{path.name}"
        rows += f"| `{name}` | {re.split(r'(?<=[.]) ', text)[0]} |\n"
    return f"| module | content |\n|---|---|\n{rows}"


def main() -> int:
    stale = {
        name: text for name, text in drawn().items() if not (HERE / name).exists() or (HERE / name).read_text() != text
    }
    if "--check" in sys.argv:
        for name in stale:
            sys.stdout.write(f"{_place(name)} is out of date; run make docs\n")
        return 1 if stale else 0
    for name, text in stale.items():
        (HERE / name).parent.mkdir(exist_ok=True)
        (HERE / name).write_text(text)
        sys.stdout.write(f"drew {_place(name)}\n")
    return 0


def _place(name: str) -> Path:
    return (HERE / name).resolve().relative_to(HERE.parent)


if __name__ == "__main__":
    sys.exit(main())
