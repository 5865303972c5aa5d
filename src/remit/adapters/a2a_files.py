"""Files in messages and results of A2A: content of artifacts, within limits."""

from typing import Final

from a2a.types.a2a_pb2 import Part

from remit.core.artifact import (
    BINARY,
    NAME_LENGTH,
    Artifact,
    digests_in,
    file_name,
    media_type,
    reference_in,
    references,
)
from remit.core.values import Json
from remit.errors import BadInput, NotFound
from remit.ports import View
from remit.runtime.workspace import Workspace

MOST_BYTES: Final = 4 * 1_024 * 1_024  # of all files in one answer; larger ones stay references
MOST_FILES: Final = 20


async def files_of(workspace: Workspace, task: str, result: Json) -> list[Part]:
    """Return the files that a result refers to, as far as they fit. A value refers to what its author saw; a text names
    what the task itself has saved."""
    if isinstance(result, str):
        found = await workspace.journal.read(lambda view: _named_in(view, task, result))
    else:
        found = references(result)
    parts: list[Part] = []
    left = MOST_BYTES
    for one in found[:MOST_FILES]:
        if one.size > left:
            continue
        try:
            content = await (await workspace.artifacts.open(one)).read()
        except NotFound:  # it was pruned
            continue
        left -= one.size
        parts.append(file_part(one, content))
    return parts


def file_part(artifact: Artifact, content: bytes) -> Part:
    return Part(raw=content, filename=artifact.name, media_type=artifact.media_type)


def _named_in(view: View, task: str, text: str) -> list[Artifact]:
    found: list[Artifact] = []
    for digest in sorted(digests_in(text)):
        rows = [row for row in view.artifact_rows(digest) if row.kind == "artifact.saved" and row.task == task]
        if rows:
            saved = Artifact(digest, rows[0].size, rows[0].name, rows[0].media_type)
            found.append(reference_in(text, digest) or saved)
    return found


def named_file(part: Part) -> tuple[str, str]:
    """Return the name and the media type of a file from outside, or usual ones in their place if they cannot be used:
    a name could lead anywhere."""
    name = part.filename.replace("\\", "/").rpartition("/")[2][-NAME_LENGTH:]
    try:
        file_name(name)
    except BadInput:
        name = "file"
    kind = part.media_type.partition(";")[0].strip().lower()
    try:
        media_type(kind)
    except BadInput:
        kind = BINARY
    return name, kind
