"""Where a team keeps everything, read from its file without the team: what commands need that only look."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from remit.errors import BadInput

FILE_NAME: Final = "remit.toml"


class TeamPlace(NamedTuple):
    """The store and the workspace that a file names; empty where it names none."""

    store: str = ""
    workspace: str = ""


def store_in(table: Mapping[str, Any], folder: Path) -> str:
    """Give the store that a `[store]` table names: an address, or a file beside the team's; empty for none."""
    return table.get("address") or (str(folder / table["path"]) if "path" in table else "")


def place_of(file: Path) -> TeamPlace:
    """Read where the team of a file keeps everything. Raises BadInput if that cannot be read; what else is wrong with
    the file is not looked at, and a file that is not there names nothing."""
    try:
        found: object = tomllib.loads(file.read_text(encoding="utf-8")).get("store", {})
    except FileNotFoundError:
        return TeamPlace()
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{file} cannot be read for its [store]: {error}; `remit check`, or say --store") from error
    table = cast("dict[str, object]", found) if isinstance(found, dict) else {"path": found}
    said = [table.get(name, "") for name in ("address", "path", "workspace")]
    if not all(isinstance(one, str) for one in said):
        raise BadInput(f"{file} does not say in [store] where its store is: `remit check` says why, or say --store")
    return TeamPlace(store_in(table, file.parent), str(said[2]))
