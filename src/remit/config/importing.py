"""Imports of a user's modules: objects are found by `module:name`, and an error in the module is reported in one
sentence."""

import ast
import importlib
import sys
import traceback
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn

from remit.config.places import text_in
from remit.core.values import shown
from remit.errors import BadInput

_DYNAMIC: Final = frozenset({"globals", "exec", "vars", "setattr"})  # calls that create names dynamically


def imported(name: str, folder: Path) -> ModuleType:
    """Return the module; modules in the folder come first. Raise `BadInput` if the import fails."""
    place = str(folder.absolute())
    if place not in sys.path[:1]:
        sys.path.insert(0, place)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise BadInput(f"module {shown(name)} cannot be imported: {error}") from error
    except Exception as error:  # the user's own code: the error must say where it failed
        raise BadInput(f"module {shown(name)} broke while it was imported: {_where(error)}") from error


def found_at(where: str, folder: Path) -> Any:
    """Return the object at `module:name`. Raise `BadInput` if there is none."""
    module_name, _, name = where.partition(":")
    found: Any = imported(module_name, folder)
    for part in name.split("."):
        if not hasattr(found, part):
            raise BadInput(f"module {shown(module_name)} has no {shown(name)}")
        found = getattr(found, part)
    return found


class NotImported:
    """Stands for an object of a module that was not imported, because its folder is not trusted."""

    def __init__(self, where: str) -> None:
        self.__name__ = where.rpartition(":")[2].rpartition(".")[2]

    async def __call__(self, *_: object, **__: object) -> NoReturn:
        raise BadInput(f"{self.__name__} was not imported: its folder is not trusted")


def named_at(where: str, folder: Path) -> Any:
    """Check that `module:name` exists without importing it: no code of the module runs.

    For a module outside the folder, only its existence is checked. Names that a module creates dynamically are
    accepted.
    """
    module_name, _, name = where.partition(":")
    path = folder.joinpath(*module_name.split("."))
    file = next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)
    if file is None:
        top = module_name.partition(".")[0]
        if not (folder / top).exists() and not _installed(top):
            raise BadInput(f"module {shown(module_name)} cannot be imported: No module named {shown(top)}")
        return NotImported(where)
    try:
        tree = ast.parse(text_in(file), str(file))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadInput(f"module {shown(module_name)} cannot be imported: {error}") from error
    made = _names_in(tree.body)
    if name.partition(".")[0] not in made and not made & {"*", "__getattr__"}:
        raise BadInput(f"module {shown(module_name)} has no {shown(name)}")
    return NotImported(where)


def _installed(top: str) -> bool:
    try:
        return find_spec(top) is not None
    except (ImportError, ValueError):
        return False


def _names_in(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that statements define, including those within if, try and with; "*" if they cannot be known."""
    made: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            made.add(node.name)
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.alias):
                made.add((inner.asname or inner.name).partition(".")[0])
            elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                made.add(inner.id)
            elif isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                made.add(inner.name)
            elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id in _DYNAMIC:
                made.add("*")
    return made


def _where(error: Exception) -> str:
    """Return the error with its place: ValueError: no such key (team.py, line 7)."""
    what = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) or not frames:
        return what
    return f"{what} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
