"""`remit artifacts`: the files of a workspace."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter
from rich.text import Text

from remit.cli.options import HERE, MYSELF, Acting, AsJson, Where, emit, opened_workspace, out, typed
from remit.cli.terminal import Rows, moment
from remit.core.values import shown
from remit.engine.artifacts import OpenedArtifact, Source
from remit.errors import BadInput, NotFound
from remit.ports.contents import PART
from remit.report.figures import count
from remit.report.printable import block, escaped
from remit.runtime.artifacts import StoredArtifact
from remit.runtime.workspace import Workspace

_SHOWN: Final = 19  # characters of a digest that a table shows: enough to name one
_ALL: Final = 10_000  # artifacts among which a shortened digest is looked up
_PIPE: Final = "-"
FileOrPipe: TypeAlias = Annotated[str, Parameter(allow_leading_hyphen=True)]


def listing(*, run: str | None = None, place: Where = HERE, limit: int = 100, json: AsJson = False) -> None:
    """List files that agents and people have stored, the latest first.

    Parameters
    ----------
    run
        Only files that this run refers to.
    limit
        Maximum number of rows.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        found = asyncio.run(workspace.artifacts.list(run=run, limit=limit))
    if json:
        emit([_data(one) for one in found])
    elif not found:
        out().print(Text(f"no artifacts; add one: {typed('remit artifacts put FILE')}", "dim"))
    else:
        names = ("artifact", "bytes", "type", "agent", "run", "saved", "name")
        out().print(Rows(names, [_row(one) for one in found], gives_way="name"))


def get(artifact: str, file: FileOrPipe = "", *, place: Where = HERE) -> None:
    """Write a stored file to a new file, or to standard output.

    The command overwrites nothing, and it writes a complete file or none. On a terminal, it prints only text.

    Parameters
    ----------
    artifact
        Digest of the stored file, or the beginning of it as `remit artifacts ls` shows it.
    file
        The new file; "-" for standard output. [default: the name of the stored file, in this folder]
    """
    with opened_workspace(place) as workspace:
        asyncio.run(_get(workspace, artifact, file))


def put(
    file: FileOrPipe,
    *,
    name: str = "",
    media_type: str = "",
    untrusted: bool = False,
    place: Where = HERE,
    act: Acting = MYSELF,
    json: AsJson = False,
) -> None:
    """Store a file, and print its digest.

    Parameters
    ----------
    file
        The file; "-" for standard input.
    name
        The file name that people see. [default: that of the file]
    media_type
        Its media type, such as text/plain. [default: by its name]
    untrusted
        Label the file as untrusted: turns that read it become untrusted.
    json
        Print JSON.
    """
    source: Source = _standard_input() if file == _PIPE else Path(file)
    trust = "untrusted" if untrusted else "trusted"
    with opened_workspace(place, create=True) as workspace:
        saved = asyncio.run(workspace.artifacts.save(source, name, media_type, trust=trust, **act.said))
    if json:
        emit(saved.data())
    else:
        out().print(Text(saved.digest))


async def _get(workspace: Workspace, artifact: str, file: str) -> None:
    opened_ = await workspace.artifacts.open(await _digest(workspace, artifact))
    if file == _PIPE:
        await _print(opened_)
        return
    name = opened_.artifact.name
    if not file and name.startswith("."):
        raise BadInput(f"{shown(name)} is a hidden file; name the file to write: remit artifacts get {artifact} FILE")
    written = await opened_.save_to(file or name)
    out().print(Text(f"{escaped(str(written), 200)}: {count(opened_.artifact.size, 'byte')}"))


async def _print(file: OpenedArtifact) -> None:
    """Write a content to standard output; to a terminal as harmless text."""
    if sys.stdout.isatty():
        out().print(Text(block(await file.text())))
        return
    async for part in file:
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


async def _digest(workspace: Workspace, given: str) -> str:
    """Return the stored digest that begins with `given`; a complete digest is returned unchecked. Raise `NotFound` if
    there is none, and `BadInput` if there are several."""
    begins = given if given.startswith("sha256:") else f"sha256:{given}"
    if len(begins) == len("sha256:") + 64:
        return begins
    digests = [one.artifact.digest for one in await workspace.artifacts.list(limit=_ALL)]
    found = [one for one in digests if one.startswith(begins)]
    if not given or not found:
        raise NotFound(f"there is no artifact {shown(given)}; `remit artifacts ls` lists them")
    if len(found) > 1:
        raise BadInput(f"{shown(given)} begins {len(found)} digests; write more of it")
    return found[0]


def _standard_input() -> Iterator[bytes]:
    while part := sys.stdin.buffer.read(PART):
        yield part


def _row(one: StoredArtifact) -> list[Text | str]:
    artifact = one.artifact
    return [
        Text(artifact.digest[:_SHOWN], "bold"),
        f"{artifact.size:,}",
        artifact.media_type,
        escaped(one.agent or "person", 64),
        one.run,
        moment(one.at),
        escaped(artifact.name, 200),
    ]


def _data(one: StoredArtifact) -> dict[str, object]:
    where = {"run": one.run, "task": one.task, "agent": one.agent, "trust": one.trust, "at": one.at}
    return {**one.artifact.data(), **where}
