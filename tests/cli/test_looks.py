"""Commands show what `ws.looks` and the other groups return: none of them reads a store itself."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import remit.cli

# Commands that work on a store itself, or run a team in their own process.
LOCAL = {"backup", "chat", "db", "doctor", "move", "run", "serve", "web", "worker"}
STORES = ("remit.stores", "remit.ports.views")
FORM = "remit.stores.addresses"  # of an address: it opens nothing
READS = {"read", "browse", "opening_of"}
VIEWS = {"View", "Which", "Span", "Store", "Database", "opening_of"}


def reaches(tree: ast.Module) -> Iterator[str]:
    """Every place where a module imports a store or a view, or calls what reads one."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                if module.startswith(STORES) and module != FORM:
                    yield f"{node.lineno}: from {module}"
                yield from (f"{node.lineno}: import {one.name}" for one in names if one.name in VIEWS)
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="journal" | "records"), attr=name)):
                if name in READS:
                    yield f"{node.lineno}: {name}()"
            case _:
                pass


@pytest.mark.rule("looks.values")
@pytest.mark.parametrize("file", sorted(Path(remit.cli.__path__[0]).glob("*.py")), ids=lambda file: file.stem)
def test_no_command_reads_a_store_or_a_view(file: Path):
    if file.stem in LOCAL:
        return
    assert [*reaches(ast.parse(file.read_text()))] == []
