"""`remit trust`: the folders whose remit.toml may name servers to connect to and modules to import."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from remit.cli.options import AsJson, emit, out
from remit.config.places import FILE_NAME
from remit.config.trusting import Powers, distrust, trusted_folders
from remit.config.trusting import trust as trust_folder
from remit.errors import BadInput, NotFound
from remit.report.printable import escaped


def trust(
    folder: Path = Path(),
    *,
    remove: Annotated[bool, Parameter(negative="")] = False,
    listing: Annotated[bool, Parameter(name="--list", negative="")] = False,
    json: AsJson = False,
) -> None:
    """Trust a folder with its present remit.toml, and list what commands may then do.

    If a folder is not trusted, commands that only read do not connect to the server that its remit.toml names, import
    its modules or start its MCP servers. `remit run`, `chat`, `submit` and `worker` do all of this and trust the
    folder. If the file later names another server, module or MCP server, trust it again. The list of trusted folders is
    in ~/.config/remit/trusted.json. The environment variable REMIT_TRUSTED names folders whose subfolders are all
    trusted.

    Parameters
    ----------
    folder
        The folder. [default: this folder]
    remove
        Stop trusting the folder.
    listing
        List the trusted folders.
    json
        Print JSON.
    """
    if listing:
        _list(as_json=json)
    elif remove:
        _remove(folder, as_json=json)
    else:
        _trust(folder, as_json=json)


def _list(*, as_json: bool) -> None:
    folders = trusted_folders()
    if as_json:
        emit(folders)
        return
    for one in folders or ["no folder is trusted"]:
        out().print(Text(escaped(one, 1_000), "" if folders else "dim"))


def _remove(folder: Path, *, as_json: bool) -> None:
    if not distrust(folder):
        raise NotFound(f"{folder.absolute()} is not trusted; `remit trust --list` lists the folders that are")
    if as_json:
        emit({"folder": str(folder.absolute()), "trusted": False})
    else:
        out().print(Text(f"{escaped(str(folder.absolute()), 1_000)} is no longer trusted"))


def _trust(folder: Path, *, as_json: bool) -> None:
    file = folder / FILE_NAME
    if not file.exists():
        raise BadInput(f"there is no {FILE_NAME} in {folder.absolute()}; name the folder of a team")
    powers = trust_folder(file)
    if as_json:
        emit({"folder": str(folder.absolute()), "trusted": True, **powers._asdict()})
        return
    if not powers.any():
        out().print(Text(f"{file} names no server and no module, so there is nothing to trust", "dim"))
        return
    out().print(Text(f"{escaped(str(folder.absolute()), 1_000)} is trusted. Commands that only read may now:"))
    for line in _allowed(powers):
        out().print(Text(f"  {escaped(line, 1_000)}"))


def _allowed(powers: Powers) -> list[str]:
    reach = [f"connect to {powers.server}"] if powers.server else []
    modules = sorted({one.partition(":")[0] for one in powers.modules})
    imports = [f"import {', '.join(modules)}"] if modules else []
    return [*reach, *imports, *(f"reach the MCP server {one}" for one in powers.mcp)]
