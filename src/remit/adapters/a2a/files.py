"""Files in messages and results of A2A: content of artifacts, within limits."""

from collections.abc import Sequence
from typing import Final, cast

from a2a.types.a2a_pb2 import Part

from remit.adapters.a2a.parts import as_text, data_in, keepable, texts_in
from remit.adapters.program_files import HasFiles, files_seen
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
from remit.core.values import Json, checked, encode
from remit.errors import BadInput, NotFound, Refused
from remit.ports import View
from remit.runtime.workspace import Workspace

MOST_BYTES: Final = 4 * 1_024 * 1_024  # of all files in one answer; larger ones stay references
MOST_SENT: Final = 1_024 * 1_024  # of all files in one message: a server takes 2 MiB, and a file is sent as base64
MOST_FILES: Final = 20
MOST_TEXT: Final = 500_000  # characters, as JSON, of the text of an answer, and of its values: both fit into a result


async def files_of(workspace: Workspace, task: str, result: Json) -> list[Part]:
    """Return the files that a result refers to, as far as they fit. A value may refer to every file that its author
    sees; a text only to files that the task itself has saved."""
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


async def files_for(turn: HasFiles) -> tuple[list[Part], list[str]]:
    """Return the files that a turn was given and that fit into a message, and the names of the others."""
    parts: list[Part] = []
    names: list[str] = []
    left = MOST_SENT
    async for artifact, opened in files_seen(turn):
        if artifact.size > left or len(parts) == MOST_FILES:
            names.append(artifact.name)
            continue
        left -= artifact.size
        parts.append(file_part(artifact, await opened.read()))
    return parts, names


async def answer_of(turn: HasFiles, parts: Sequence[Part], said: str) -> Json:
    """Return the result of an agent of another server: its text, its value, references to its files, or several of
    these. Its files become untrusted artifacts of the turn, and so do a text and values that do not fit into a result.
    The message with which the remote task ended, `said`, is used only if there is no other result."""
    text, values = texts_in(parts), data_in(parts)
    raw = [part for part in parts if part.HasField("raw")]
    saved = [await turn.artifacts.save(one.raw, *named_file(one), trust="untrusted") for one in raw[:MOST_FILES]]
    missing = [_name_of(part) for part in (*raw[MOST_FILES:], *(part for part in parts if part.HasField("url")))]
    if unseen := [one.name for value in values for one in references(value) if not await _sees(turn, one)]:
        # A value may refer only to what its author sees, so this one becomes text.
        text, values, missing = "\n\n".join(filter(None, [text, *map(as_text, values)])), [], [*missing, *unseen]
    if missing:
        text = f"{text}\n\n[files that did not arrive: {keepable(', '.join(missing))[:500]}]".strip()
    if not (text or values or saved):
        text = said
    if not _fits(text):
        saved.append(await turn.artifacts.save(text.encode(), "answer.txt", "text/plain", trust="untrusted"))
        text = ""
    if not _fits(values):
        content = encode(values if len(values) > 1 else values[0]).encode()
        saved.append(await turn.artifacts.save(content, "answer.json", "application/json", trust="untrusted"))
        values = []
    named = {one.digest for value in values for one in references(value)} | digests_in(text)
    made: dict[str, Json] = {"text": text} if text else {}
    if values:
        made["data"] = values[0] if len(values) == 1 else cast("Json", values)
    if files := [one.data() for one in saved if one.digest not in named]:
        made["files"] = files[0] if len(files) == 1 and not made else cast("Json", files)
    if len(made) > 1:
        return made
    return next(iter(made.values()), "")


def _fits(part: object) -> bool:
    """Whether the text or the values of an answer fit into a result, which adds two levels."""
    try:
        checked([[part]], "a part of an answer", MOST_TEXT)
    except BadInput:
        return False
    return True


async def _sees(turn: HasFiles, one: Artifact) -> bool:
    try:
        await turn.artifacts.open(one.digest)
    except Refused:
        return False
    return True


def _name_of(part: Part) -> str:
    return part.filename or part.media_type or "a file"


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
    """Return a name and a media type for a received file. Only the last part of its name is used, because the rest
    could lead to another folder. An invalid name becomes "file", an invalid media type `BINARY`."""
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
