"""The store of a team, read from its file without loading the team: for commands that only read."""

import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from remit.core.patterns import pattern
from remit.core.records import NamedTuple
from remit.errors import BadInput

FILE_NAME: Final = "remit.toml"
_PARTS: Final = 200
_APART: Final = pattern(r"[^\w.\-\"']")  # separators between the names in a file
FILE_LIMIT: Final = 1_000_000  # bytes of a team's file, or of a script

_KINDS: Final = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


class TeamPlace(NamedTuple):
    """The store and the workspace that a file names; empty where it names none."""

    store: str = ""
    workspace: str = ""


def store_in(table: Mapping[str, Any], folder: Path) -> str:
    """Return the store that a `[store]` table names: an address, or a file next to the team's file; "" for none. A list
    names several databases, which are on a line each."""
    paths = [str(folder / path) for path in _as_list(table.get("path"))]
    return "\n".join(_as_list(table.get("address")) or paths)


def _as_list(given: object) -> list[str]:
    """Return one text or a list of texts as a list; other values are reported when the file is checked."""
    found = cast("list[object]", given) if isinstance(given, list) else [given] if given else []
    return [one for one in found if isinstance(one, str)]


def text_in(file: Path) -> str:
    """Return the text of a file. Raise FileNotFoundError if it does not exist. Raise BadInput if it cannot be read, is
    not UTF-8, is a pipe or a device, which might never end, or has more than `FILE_LIMIT` bytes or a name of more than
    200 parts."""
    try:
        data = _data_in(file)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}") from error
    if len(data) > FILE_LIMIT:
        raise BadInput(f"{file} has more than {FILE_LIMIT:,} bytes, which is too much for such a file")
    try:
        text = data.decode().replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not text in UTF-8: {error.reason} at byte {error.start}; save it as UTF-8") from None
    # tomllib takes hours for a key of 100,000 parts: refuse it first.
    if any(one.count(".") > _PARTS for one in _APART.split(text.replace(" ", "").replace("\t", ""))):
        raise BadInput(f"{file} has a name of more than {_PARTS} parts with dots between them; shorten it")
    return text


def _data_in(file: Path) -> bytes:
    # Without O_NONBLOCK a pipe would wait for a writer.
    number = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        kind = stat.S_IFMT(os.fstat(number).st_mode)
        if kind != stat.S_IFREG:
            raise BadInput(f"{file} cannot be read: it is {_KINDS.get(kind, 'something else')} and not a file")
        data = b""
        while len(data) <= FILE_LIMIT and (more := os.read(number, FILE_LIMIT + 1 - len(data))):
            data += more
        return data
    finally:
        os.close(number)


def tables_in(file: Path) -> dict[str, Any]:
    """Return the tables of a file, unchecked; a file that does not exist has none. Raise `BadInput` if it cannot be
    read or is not TOML."""
    try:
        return tomllib.loads(text_in(file))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(f"{file} is not TOML: {error}") from error


def place_of(file: Path) -> TeamPlace:
    """Return the store and workspace that a file names. Raise `BadInput` if the file cannot be read, is not TOML, or
    names them by values that are not texts. Other problems of the file are ignored, and a missing file names
    nothing."""
    try:
        found: object = tables_in(file).get("store", {})
    except BadInput as error:
        raise BadInput(f"the store cannot be found: {error}; run `remit check`, or pass --store") from error
    table = cast("dict[str, object]", found) if isinstance(found, dict) else {"path": found}
    said = [table.get(name, "") for name in ("address", "path")]
    places = [each for one in said for each in (cast("list[object]", one) if isinstance(one, list) else [one])]
    workspace = table.get("workspace", "")
    if not all(isinstance(one, str) for one in (*places, workspace)):
        raise BadInput(f"{file} does not say in [store] where its store is: `remit check` says why; or pass --store")
    return TeamPlace(store_in(table, file.parent), str(workspace))
