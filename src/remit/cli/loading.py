"""Loading the runtime of a command: from a team's file or a user's module, on the store that the command names."""

from pathlib import Path
from types import ModuleType
from typing import Final

from rich.text import Text

from remit.cli.options import TOML, aside, usual_team
from remit.config.parts import import_from
from remit.config.places import FILE_NAME
from remit.config.teams import RunDefaults, Team, team
from remit.config.trusting import is_trusted, trust_by_running
from remit.core.values import shown
from remit.errors import BadInput
from remit.runtime.runtime import Runtime

NOT_IMPORTED: Final = "this folder is not trusted, so remit imported no module of it and started no server"

_SCRIPT: Final = ".py"


def load_team(where: str = "", *, runs: bool = True, looks: bool = False) -> Team:
    """Return the team of `module:name`, `script.py:name` or a team file. If `where` is empty, use REMIT_TEAM, else the
    file in this folder. Raise `BadInput` with all problems. `runs=False` is for a team that does not run: it needs no
    keys, and no MCP server is started.

    For a file in an untrusted folder, `looks=True` imports no module. Without `looks`, the folder of the file becomes
    trusted, because its code has been run. A module or script that `where` names is imported in any case.
    """
    where = where or usual_team()
    if not where:
        raise BadInput(
            f"there is no {FILE_NAME} in this folder: `remit init` creates a team; "
            "or pass the runtime as module:name, for example team:rt, or set REMIT_TEAM to it"
        )
    if is_file(where):
        file = Path(where)
        if looks:
            return _load_for_looking(file)
        made = team(file, runs=runs)
        trust_by_running(file)
        return made
    module_name, separator, name = where.rpartition(":")
    if not separator or not module_name or not name:
        raise BadInput(f"pass the runtime as module:name, for example team:rt, not {shown(where)}")
    return Team(_in_module(module_name, name), RunDefaults())


def _load_for_looking(file: Path) -> Team:
    trusted = is_trusted(file)
    if not trusted:
        aside().print(Text(f"{NOT_IMPORTED}: to allow it: `remit trust`", "yellow"))
    return team(file, runs=False, trusted=trusted)


def is_file(where: str) -> bool:
    """Whether a word names a team's file."""
    return where.endswith(TOML)


def has_team() -> bool:
    """Whether a command can leave out its team: REMIT_TEAM names one, or there is a team's file in this folder."""
    return bool(usual_team())


def lasting(runtime: Runtime, why: str) -> Runtime:
    """Return the runtime if other processes can see its store. Raise `BadInput` otherwise."""
    if not runtime.workspace.lasting:
        raise BadInput(f"this runtime keeps everything in memory, so {why}; add --store FILE")
    return runtime


def _script(file: Path) -> ModuleType:
    """Return the module of a script. A script in a package is imported as a part of it, so that it finds the rest."""
    if not file.is_file():
        raise BadInput(f"there is no file {shown(str(file))}")
    folder, name = file.absolute().parent, file.stem
    while (folder / "__init__.py").exists():
        folder, name = folder.parent, f"{folder.name}.{name}"
    module = import_from(name, folder)
    origin = getattr(module, "__file__", None)
    if origin is None or not file.samefile(origin):
        other = "built into Python" if origin is None else f"at {origin}"
        raise BadInput(f"{file} cannot be imported, because another module {shown(name)} is {other}; rename the file")
    return module


def _in_module(module_name: str, name: str) -> Runtime:
    module = _script(Path(module_name)) if module_name.endswith(_SCRIPT) else import_from(module_name, Path.cwd())
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Runtime):
        have = [key for key, value in vars(module).items() if isinstance(value, Runtime)]
        hint = f"; it has {', '.join(have)}" if have else ""
        raise BadInput(f"{shown(name)} in {module_name} is not a remit.Runtime{hint}")
    return found
