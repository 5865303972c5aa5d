"""What a user's module has: found by `module:name`, and what is wrong with the module told in one sentence."""

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from remit.core.text import shown
from remit.errors import BadInput


def imported(name: str, folder: Path) -> ModuleType:
    """Import a module; those of the folder come first."""
    place = str(folder.absolute())
    if place not in sys.path[:1]:
        sys.path.insert(0, place)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise BadInput(f"module {shown(name)} cannot be imported: {error}") from error
    except Exception as error:  # the user's own code: where it broke is what they need to know
        raise BadInput(f"module {shown(name)} broke while it was imported: {_where(error)}") from error


def found_at(where: str, folder: Path) -> Any:
    """Give what stands at `module:name`."""
    module_name, _, name = where.partition(":")
    found: Any = imported(module_name, folder)
    for part in name.split("."):
        if not hasattr(found, part):
            raise BadInput(f"module {shown(module_name)} has no {shown(name)}")
        found = getattr(found, part)
    return found


def _where(error: Exception) -> str:
    """ValueError: no such key (team.py, line 7)"""
    what = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) or not frames:
        return what
    return f"{what} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
