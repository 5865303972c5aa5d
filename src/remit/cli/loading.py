"""The runtime that a command works with: found in a user's module, and put where the command says."""

import importlib
import sys
import traceback
from pathlib import Path
from typing import Any

from remit.core.text import shown
from remit.errors import BadInput
from remit.runtime.runtime import Runtime


def load(where: str) -> Runtime:
    """Load the runtime at `module:name`; what is wrong with the module is told in one sentence."""
    module_name, separator, name = where.partition(":")
    if not separator or not module_name or not name:
        raise BadInput(f"say where the runtime is as module:name, for example team:rt, not {shown(where)}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise BadInput(f"module {shown(module_name)} cannot be imported: {error}") from error
    except Exception as error:  # the user's own code: where it broke is what they need to know
        raise BadInput(f"module {shown(module_name)} broke while it was imported: {_where(error)}") from error
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Runtime):
        have = [key for key, value in vars(module).items() if isinstance(value, Runtime)]
        hint = f"; it has {', '.join(have)}" if have else ""
        raise BadInput(f"{shown(name)} in {module_name} is not a remit.Runtime{hint}")
    return found


def lasting(runtime: Runtime, why: str) -> Runtime:
    """Give the runtime back, if others can see its store."""
    if not runtime.workspace.database.lasting:
        raise BadInput(f"this runtime keeps everything in memory, so {why}; add --store FILE")
    return runtime


def _where(error: Exception) -> str:
    """ValueError: no such key (team.py, line 7)"""
    what = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) or not frames:
        return what
    return f"{what} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
