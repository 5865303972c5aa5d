"""Folders that the user trusts. For an untrusted folder, a command that only reads connects to no server that the file
names, imports no module and starts no MCP server.

Trust is stored outside of the folder, in `$XDG_CONFIG_HOME/remit/trusted.json`, by the folder's path and a digest of
the file's powers: a new server or module needs trust again. `REMIT_TRUSTED` names folders below which everything is
trusted, for machines that run only what is built there.
"""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from remit.config.linking import tables_of, tables_or_texts, texts
from remit.config.places import store_in, tables_in
from remit.core.values import shown
from remit.errors import BadInput
from remit.stores.addresses import each_address, is_server, redacted

VARIABLE: Final = "REMIT_TRUSTED"

_AGENT_KEYS: Final = ("function", "guest", "before", "after", "deps", "output")
_POLICY_KEYS: Final = ("needs_approval", "classify", "around", "guards")


class Powers(NamedTuple):
    """The parts of a file that need trust: a server's address (without its password), modules to import, and MCP
    servers."""

    server: str = ""
    modules: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()
    digest: str = ""

    def any(self) -> bool:
        return bool(self.server or self.modules or self.mcp)


def powers_of(file: Path) -> Powers:
    """Return what a team file makes a command do on this machine: the server that it connects to, the modules that it
    imports and the MCP servers that it starts. A missing file does nothing. Raise `BadInput` if the file cannot be
    read."""
    tables = tables_in(file)
    said_of_store = texts_in_store(tables.get("store"))
    store = store_in(said_of_store, file.parent)
    servers = tables_of(tables, "mcp")
    modules = tuple(sorted(set(_modules(tables))))
    said = json.dumps([said_of_store, modules, servers], sort_keys=True, default=str)
    return Powers(
        server_shown(store) if store and names_server(store) else "",
        modules,
        tuple(f"{name}: {_reached(table)}" for name, table in sorted(servers.items())),
        sha256(said.encode(errors="surrogatepass")).hexdigest(),
    )


def is_trusted(file: Path) -> bool:
    """Whether the user trusts the folder of a file with its current content. A file without powers needs no trust."""
    folder = _folder(file)
    if any(folder.is_relative_to(one) for one in _paths_in_variable()):
        return True
    powers = powers_of(file)
    return not powers.any() or _read_trusted().get(str(folder)) == powers.digest


def trust(file: Path) -> Powers:
    """Trust the folder of a file with its current content. Return what that allows."""
    powers = powers_of(file)
    kept, folder = _read_trusted(), str(_folder(file))
    if powers.any() and kept.get(folder) != powers.digest:
        _keep({**kept, folder: powers.digest})
    return powers


def trust_by_running(file: Path) -> None:
    """Trust a folder whose team the user runs: its code has run already, so reading adds no risk. If trust cannot be
    stored, as in a container without a home folder, the next command that reads asks for it."""
    with suppress(BadInput):
        if not is_trusted(file):
            trust(file)


def distrust(folder: Path) -> bool:
    """Stop trusting a folder. Return whether it was trusted."""
    kept = _read_trusted()
    if kept.pop(str(folder.absolute().resolve()), None) is None:
        return False
    _keep(kept)
    return True


def trusted_folders() -> list[str]:
    """Return the trusted folders, those from the environment first."""
    return [*map(str, _paths_in_variable()), *sorted(_read_trusted())]


def server_shown(store: str) -> str:
    """Return a server's address without its password, or those of several. If the password cannot be separated from the
    rest, return only the end."""
    if "\n" in store:
        return ", ".join(server_shown(one) for one in each_address(store))
    text = redacted(store)
    head, at, tail = text.rpartition("@")
    return f"***@{tail}" if at and ":" in head.partition("://")[2].replace(":***", "") else text


def names_server(store: str) -> bool:
    """Whether a store is a server. An invalid address is none: no process can connect to it."""
    try:
        return is_server(store)
    except BadInput:
        return False


# -- inside --------------------------------------------------------------------------------------------------------


def _folder(file: Path) -> Path:
    return file.parent.absolute().resolve()


def _paths_in_variable() -> list[Path]:
    return [Path(one).resolve() for one in os.environ.get(VARIABLE, "").split(os.pathsep) if Path(one).is_absolute()]


def _modules(tables: Mapping[str, Any]) -> Iterator[str]:
    """Yield every `module:name` of a file."""
    for table in ("tools", "channels"):
        yield from (one for one in tables_or_texts(tables, table).values() if isinstance(one, str))
    policy = dict(tables_or_texts(tables, "policy"))
    for table, keys in ((policy, _POLICY_KEYS), *((one, _AGENT_KEYS) for one in tables_of(tables, "agents").values())):
        for key in keys:
            yield from (one for one in texts(table.get(key)) if ":" in one)


def texts_in_store(given: object) -> dict[str, object]:
    """Return the texts and lists of texts of a table; empty if it is not a table."""
    table = cast("dict[str, object]", given) if isinstance(given, dict) else {}
    return {key: one if isinstance(one, str) else texts(one) for key, one in table.items() if texts(one)}


def _reached(table: Mapping[str, Any]) -> str:
    """Return how an MCP server is reached: its command or its address."""
    command = texts(table.get("command"))
    return " ".join(command) if command else redacted(str(table.get("url", "")))


def _place() -> Path:
    above = os.environ.get("XDG_CONFIG_HOME", "")
    try:
        return (Path(above) if Path(above).is_absolute() else Path.home() / ".config") / "remit" / "trusted.json"
    except RuntimeError as error:
        raise BadInput(f"there is no home folder to keep trust in; set XDG_CONFIG_HOME, or {VARIABLE}") from error


def _read_trusted() -> dict[str, str]:
    place = _place()
    try:
        found: object = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadInput(f"{place} cannot be read: {error.strerror}") from error
    except ValueError:
        raise BadInput(f"{place} is not what remit wrote; remove it and trust your folders again") from None
    return cast("dict[str, str]", found) if isinstance(found, dict) else {}


def _keep(kept: Mapping[str, str]) -> None:
    """Write the trusted folders and their digests to the trust file. The file is replaced as a whole, so it stays
    complete even if two commands write it concurrently."""
    place = _place()
    text = json.dumps(kept, indent=2, sort_keys=True)
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, draft = tempfile.mkstemp(dir=place.parent, prefix=".trusted")  # readable by its owner only
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
        Path(draft).replace(place)
    except OSError as error:
        raise BadInput(f"{shown(str(place))} cannot be written: {error.strerror}") from error
