"""The runtime that a command works with: of a team's file, or found in a user's module, and put where the command
says."""

from pathlib import Path

from remit.config.importing import imported
from remit.config.places import FILE_NAME
from remit.config.teams import RunDefaults, Team, team
from remit.core.text import shown
from remit.errors import BadInput
from remit.runtime.runtime import Runtime

_TOML = ".toml"


def load_team(where: str = "", *, runs: bool = True) -> Team:
    """Load a team: that of `module:name`, of a file, or of the file in this folder if nothing is said. What is
    wrong with it is told in sentences. A team that only is looked at needs no keys: it does not run."""
    if not where and not has_file():
        raise BadInput(
            f"there is no {FILE_NAME} in this folder: `remit init` makes a team to begin with; "
            "or say where the runtime is, as module:name, for example team:rt"
        )
    if not where or is_file(where):
        return team(Path(where or FILE_NAME), runs=runs)
    module_name, separator, name = where.partition(":")
    if not separator or not module_name or not name:
        raise BadInput(f"say where the runtime is as module:name, for example team:rt, not {shown(where)}")
    return Team(_in_module(module_name, name), RunDefaults())


def is_file(where: str) -> bool:
    """Tell whether a word means a team's file."""
    return where.endswith(_TOML)


def has_file() -> bool:
    """Tell whether there is a team's file in this folder."""
    return Path(FILE_NAME).exists()


def lasting(runtime: Runtime, why: str) -> Runtime:
    """Give the runtime back, if others can see its store."""
    if not runtime.workspace.database.lasting:
        raise BadInput(f"this runtime keeps everything in memory, so {why}; add --store FILE")
    return runtime


def _in_module(module_name: str, name: str) -> Runtime:
    module = imported(module_name, Path.cwd())
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Runtime):
        have = [key for key, value in vars(module).items() if isinstance(value, Runtime)]
        hint = f"; it has {', '.join(have)}" if have else ""
        raise BadInput(f"{shown(name)} in {module_name} is not a remit.Runtime{hint}")
    return found
