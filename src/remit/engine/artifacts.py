"""Artifacts: saving files, opening them, removing those that nothing refers to, and `turn.artifacts`."""

from __future__ import annotations

import hashlib
import mimetypes
import os
import secrets
import stat
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing, closing, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TypeAlias, cast

from anyio import CancelScope, to_thread

from remit.core.artifact import BINARY, Artifact, digest_of, file_name, media_type, references
from remit.core.entry import Writer
from remit.core.events import Place
from remit.core.kinds.sharing import ArtifactData, artifact_saved
from remit.core.receipt import Slice
from remit.core.trust import TRUSTED, UNTRUSTED, Trust, known_trust, least
from remit.core.values import Json, shown
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.seeing import rows_seen, unseen
from remit.engine.ground import Ground
from remit.errors import BadInput, Refused, StoreError
from remit.ports import ArtifactRow, Decision, Store, View
from remit.ports.contents import PART, ContentReader, Contents, Saving

Source: TypeAlias = bytes | bytearray | memoryview | os.PathLike[str] | AsyncIterable[bytes] | Iterable[bytes]
_SAVED: Final = "artifact.saved"
_SAVES: Final = 50  # saved artifacts of one process, after which it removes contents that nothing refers to
_PAGE: Final = 500  # contents checked in one step
_SOURCE: Final = (
    "save takes bytes, a pathlib.Path, or an iterator of bytes; for a text pass text.encode(), for a path Path(...)"
)


# -- saving --------------------------------------------------------------------------------------------------------


class Saver(NamedTuple):
    """The author of an artifact and its place, the trust label of the content, the check before the artifact is
    recorded, and the function that records its event."""

    by: Writer
    at: Place
    trust: Trust
    check: Callable[[View], None]
    record: Callable[[Artifact, Callable[[View], Decision[None]]], Awaitable[object]]


class ArtifactFiles:
    """Saves and opens the artifacts of a workspace."""

    def __init__(self, ground: Ground, most: int | None, most_of_run: int) -> None:
        self._ground = ground
        self._most = most
        self._most_of_run = most_of_run
        self._saves = 0

    @property
    def ground(self) -> Ground:
        return self._ground

    async def save(self, source: Source, name: str, kind: str, saver: Saver) -> Artifact:
        """Store the content, then record the event that refers to it. If the process dies in between, the content is
        removed later, because nothing refers to it."""
        named, kind = described(source, name, kind)
        parts = parts_of(source)
        await self._ground.store.read(lambda view: self._must_fit(view, saver, 0))
        begun: list[Saving] = []  # filled in the thread, so that a cancellation loses none
        contents = self._ground.contents()
        try:
            await to_thread.run_sync(lambda: begun.append(contents.begin()))
            [saving] = begun
            async for part in parts:
                size = await to_thread.run_sync(saving.write, part)
                self._must_be_small(size, saver)
            kept = await to_thread.run_sync(saving.keep)
            artifact = Artifact(kept.digest, kept.size, named, kind)
            await saver.record(artifact, partial(self._saved, artifact, saver))
        finally:
            with CancelScope(shield=True):
                for saving in begun:
                    await to_thread.run_sync(saving.close)
        self._saves += 1
        if self._saves % _SAVES == 0:
            await clear(self._ground)
        return artifact

    def _saved(self, artifact: Artifact, saver: Saver, view: View) -> Decision[None]:
        saver.check(view)
        self._must_fit(view, saver, artifact.size, artifact.digest)
        data: ArtifactData = {**cast("ArtifactData", artifact.data()), "trust": saver.trust}
        return Decision(None, (artifact_saved(data, saver.by, saver.at, self._ground.clock.now()),))

    def _must_be_small(self, size: int, saver: Saver) -> None:
        """Raise `Refused` as soon as the part of a content that is already written exceeds a size limit by itself."""
        if saver.at.run and size > self._most_of_run:
            raise self._too_much(saver, size, self._most_of_run)
        if self._most is not None and size > self._most:
            raise self._too_much(saver, size, self._most)

    def _must_fit(self, view: View, saver: Saver, size: int, digest: str = "") -> None:
        """Raise `Refused` if another `size` bytes would exceed the size limit of the run or of the workspace."""
        if saver.at.run and (had := view.artifact_bytes(saver.at.run)) + size > self._most_of_run:
            raise self._too_much(saver, had + size, self._most_of_run)
        if self._most is None or (digest and view.artifact_rows(digest)):  # a content is stored once
            return
        if (had := view.artifact_bytes()) + size > self._most:
            raise self._too_much(saver, had + size, self._most, "workspace")

    @staticmethod
    def _too_much(saver: Saver, size: int, most: int, whose: str = "") -> Refused:
        owner = f"'{saver.by.agent}'" if saver.by.agent else "this"
        of, setting = ("the workspace", "artifact_bytes")
        if saver.at.run and whose != "workspace":
            of, setting = ("its run", "run_artifact_bytes")
        sentence = (
            f"{owner} cannot save that much: the artifacts of {of} would have {size:,} bytes, and {most:,} are allowed "
            f"(Policy({setting}=...)); save less"
        )
        return Refused(sentence, rule="artifact-bytes")

    def open(self, given: object, rows: list[ArtifactRow], check: Callable[[], None]) -> OpenedArtifact:
        """Return a stored content for reading. The name and the media type come from the reference in `given`, if there
        is one. `check` runs before each part is read."""
        row = rows[0]
        artifact = Artifact(row.digest, row.size, row.name, row.media_type)
        for one in references(given.data() if isinstance(given, Artifact) else cast("Json", given)):
            artifact = Artifact(row.digest, row.size, one.name, one.media_type)
        label = least(row.trust for row in rows)
        return OpenedArtifact(artifact, label, partial(_stored, self._ground, artifact), check)


def described(source: Source, name: str, kind: str) -> tuple[str, str]:
    """Return the name and the media type of a file that is saved: those given, or those that its path says."""
    named = file_name(name or _name_of(source))
    return named, media_type(kind or mimetypes.guess_type(named)[0] or BINARY)


def _name_of(source: Source) -> str:
    if isinstance(source, os.PathLike):
        return os.path.basename(os.fspath(source))  # noqa: PTH119 - any kind of path
    raise BadInput("name= is needed: the file name that people see, such as 'report.pdf'")


def parts_of(source: object) -> AsyncIterator[bytes]:
    """Return an iterator over the parts of a source's content. Raise `BadInput` if the source is none of the accepted
    kinds."""
    if isinstance(source, bytes | bytearray | memoryview):
        return _of_bytes(bytes(cast("bytes", source)))
    if isinstance(source, os.PathLike):
        return _of_file(cast("os.PathLike[str]", source))
    if isinstance(source, AsyncIterable):
        return _of_async(cast("AsyncIterable[object]", source))
    if isinstance(source, Iterable) and not isinstance(source, str | dict):
        return _of_iterable(cast("Iterable[object]", source))
    raise BadInput(f"{_SOURCE}, not {shown(cast('object', source))}")


async def _of_bytes(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), PART):
        yield data[start : start + PART]


async def _of_file(path: os.PathLike[str]) -> AsyncIterator[bytes]:
    opened: list[IO[bytes]] = []
    try:
        await to_thread.run_sync(lambda: opened.append(_open_regular_file(path)))
        while data := await to_thread.run_sync(opened[0].read, PART):
            yield data
    except OSError as error:
        raise BadInput(f"{shown(str(path))} cannot be read: {error.strerror or error}") from error
    finally:
        for file in opened:
            file.close()


def _open_regular_file(path: os.PathLike[str]) -> IO[bytes]:
    file = Path(path).open("rb")  # noqa: SIM115 - the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise BadInput(f"{shown(str(path))} is not a regular file, so it cannot be saved")
    return file


async def _of_async(source: AsyncIterable[object]) -> AsyncIterator[bytes]:
    async for part in source:
        yield _bytes(part)


async def _of_iterable(source: Iterable[object]) -> AsyncIterator[bytes]:
    """Yield the parts of an iterator; they are made in a thread, because that may block."""
    parts: Iterator[object] = iter(source)
    end = object()
    while (part := await to_thread.run_sync(next, parts, end)) is not end:
        yield _bytes(part)


def _bytes(part: object) -> bytes:
    if not isinstance(part, bytes | bytearray | memoryview):
        raise BadInput(f"{_SOURCE}; the iterator yielded {shown(part)}")
    return bytes(cast("bytes", part))


# -- opening -------------------------------------------------------------------------------------------------------


class OpenedArtifact:
    """A stored file that can be read: `await file.read()`, `await file.text()`, `async for part in file`, `await
    file.save_to(path)`. Each reads it from the beginning, and raises `StoreError` if the content is not what was saved.

    `trust` is the label of the content: "untrusted" if it, or what its author had read, came from outside.
    """

    __slots__ = ("_check", "_content", "artifact", "trust")

    def __init__(
        self, artifact: Artifact, trust: Trust, content: Callable[[], AsyncGenerator[bytes]], check: Callable[[], None]
    ) -> None:
        self.artifact = artifact
        self.trust: Trust = trust
        self._content = content
        self._check = check

    def __repr__(self) -> str:
        return f"<OpenedArtifact {self.artifact.name}: {self.artifact.size:,} bytes>"

    async def read(self) -> bytes:
        """Return the whole content. For a large file use the parts, or `save_to`."""
        return b"".join([part async for part in self])

    async def text(self, encoding: str = "utf-8") -> str:
        """Return the whole content as text. Raise `BadInput` if it is not text in this encoding."""
        data = await self.read()
        try:
            return data.decode(encoding)
        except (UnicodeDecodeError, LookupError) as error:
            raise BadInput(f"{shown(self.artifact.name)} is not text in {shown(encoding)}: {error}") from error

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._parts()

    async def _parts(self) -> AsyncIterator[bytes]:
        """Yield parts of at most 1 MiB. The last one comes only after the digest of all was checked."""
        self._check()
        found, waiting = hashlib.sha256(), b""
        async with aclosing(self._content()) as content:
            async for data in content:
                found.update(data)
                if waiting:
                    yield waiting
                    self._check()
                waiting = data
        if f"sha256:{found.hexdigest()}" != self.artifact.digest:
            raise StoreError(f"the content of {shown(self.artifact.name)} is damaged; run `remit doctor`")
        if waiting:
            yield waiting

    async def save_to(self, path: str | os.PathLike[str]) -> Path:
        """Write the content to a new file and return its path. Raise `BadInput` if there is a file already. The file
        appears when it is complete."""
        target = Path(path)
        draft = target.parent / f".{secrets.token_hex(8)}.part"
        try:
            file = await to_thread.run_sync(lambda: _new(draft, target))
            with file:
                async for part in self:
                    await to_thread.run_sync(file.write, part)
            await to_thread.run_sync(_give_name, draft, target)
        except OSError as error:
            raise BadInput(f"{shown(str(target))} cannot be written: {error.strerror or error}") from error
        finally:
            with suppress(OSError):
                draft.unlink()
        return target


async def _stored(ground: Ground, artifact: Artifact) -> AsyncGenerator[bytes]:
    """Yield the parts of a content as the store has it."""
    opened: list[ContentReader | None] = []
    try:
        await to_thread.run_sync(lambda: opened.append(ground.contents().open(artifact.digest)))
        reader = opened[0]
        if reader is None:
            raise StoreError(f"the content of {shown(artifact.name)} is missing; run `remit doctor`")
        while data := await to_thread.run_sync(reader.read):
            yield data
    finally:
        for reader in opened:
            if reader is not None:
                reader.close()


def _new(draft: Path, target: Path) -> IO[bytes]:
    if os.path.lexists(target):
        raise BadInput(f"{shown(str(target))} exists already, and nothing is overwritten; name another file")
    return draft.open("xb")


def _give_name(draft: Path, target: Path) -> None:
    """Give a completely written file its final name. If another file has taken that name meanwhile, raise
    `BadInput`."""
    try:
        try:
            target.hardlink_to(draft)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links: take the name with an empty file, then replace that one
            target.touch(exist_ok=False)
            draft.replace(target)
    except FileExistsError:
        raise BadInput(f"{shown(str(target))} exists already, and nothing is overwritten; name another file") from None


# -- turn.artifacts ----------------------------------------------------------------------------------------------------


class TurnArtifacts:
    """The artifacts of a turn: save files, and open those that the agent was given."""

    def __init__(self, files: ArtifactFiles, live: LiveTask) -> None:
        self._files = files
        self._live = live

    async def save(self, source: Source, name: str = "", media_type: str = "", *, trust: Trust = "trusted") -> Artifact:
        """Save a file and return the reference to it: bytes, a `pathlib.Path`, or an iterator of bytes.

        Put the reference into a result, an entry or a handoff to pass the file on. `name` is the file name that people
        see; a path has one. remit guesses `media_type` from the name. `trust="untrusted"` marks a file from outside.
        The content goes to disk in parts, so it may be larger than the memory.
        """
        live = self._live
        live.must_be_at_work()
        known_trust(trust)
        label = UNTRUSTED if live.says != TRUSTED else trust
        saver = Saver(live.writer, live.place, label, live.must_hold, self._record)
        with live.verb():
            artifact = await self._files.save(source, name, media_type, saver)
        live.has_artifact(artifact.digest)
        return artifact

    async def _record(self, artifact: Artifact, decide: Callable[[View], Decision[None]]) -> None:
        op = self._live.op("artifact", artifact.digest, artifact.name, artifact.media_type)
        await self._files.ground.store.tx(op, decide)

    async def open(self, artifact: Artifact | str | dict[str, Any]) -> OpenedArtifact:
        """Open a file that this agent was given, by its reference or its digest. Raise `Refused` if the agent was not
        given the file.

        If the file is untrusted, the turn is untrusted from then on."""
        live, digest, now = self._live, digest_of(artifact), self._files.ground.clock.now()
        live.must_be_at_work()

        def look(view: View) -> list[ArtifactRow]:
            live.must_hold(view)
            return rows_seen(view, live, digest, now)

        with live.verb():
            rows = await self._files.ground.store.read(look)
        if not rows:
            raise unseen(live, digest)
        opened = self._files.open(artifact, rows, live.must_be_at_work)
        live.take(opened.trust)
        what = f"artifact {opened.artifact.name}"
        live.receipt.beside([Slice(what, "passed", 0, 1, digest.removeprefix("sha256:")[:16], opened.trust)])
        return opened


# -- upkeep ------------------------------------------------------------------------------------------------------------


async def clear(ground: Ground) -> int:
    """Remove the contents that no event refers to, and what dead processes left unfinished. Return the number of
    removed contents. If a process is saving an artifact, remove nothing; the next call does it."""
    contents = ground.contents()
    clearing = await to_thread.run_sync(contents.clearing)
    if clearing is None:
        return 0
    removed = 0
    try:
        await to_thread.run_sync(clearing.sweep)
        stored = [kept.digest for kept in await to_thread.run_sync(lambda: [*contents.stored()])]
        for start in range(0, len(stored), _PAGE):
            page = stored[start : start + _PAGE]
            used = await ground.store.read(lambda view, page=page: {one for one in page if view.artifact_rows(one)})
            for digest in page:
                if digest not in used:
                    await to_thread.run_sync(clearing.remove, digest)
                    removed += 1
    finally:
        with CancelScope(shield=True):
            await to_thread.run_sync(clearing.close)
    return removed


async def examined(store: Store, contents: Contents) -> tuple[list[str], list[str]]:
    """Check every content. Return what is missing or damaged, and what nothing refers to, as sentences."""
    named = await store.browse(_names)
    stored = {kept.digest: kept.size for kept in await to_thread.run_sync(lambda: [*contents.stored()])}
    wrong: dict[str, str] = {}
    for digest, name in named.items():
        what = "is missing" if digest not in stored else await to_thread.run_sync(_fault, contents, digest)
        if what:
            wrong[digest] = f"the content of artifact {shown(name)} ({digest}) {what}"
    # Another process may have pruned it meanwhile.
    gone = await store.browse(lambda view: {digest for digest in wrong if not view.artifact_rows(digest)})
    sentences = [sentence for digest, sentence in wrong.items() if digest not in gone]
    unused = [size for digest, size in stored.items() if digest not in named]
    drafts = await to_thread.run_sync(contents.unfinished)
    if not unused and not drafts:
        return sentences, []
    left = f"{len(unused)} contents of artifacts to which no event refers ({sum(unused):,} bytes)"
    return sentences, [f"{left} and {drafts} unfinished ones; `remit prune` removes them"]


def _names(view: View) -> dict[str, str]:
    """Return the digests that events refer to, each with a name."""
    names: dict[str, str] = {}
    page = view.artifacts(_PAGE)
    while page:
        names |= {row.digest: row.name for row in page}
        page = view.artifacts(_PAGE, page[-1].seq)
    return names


def _fault(contents: Contents, digest: str) -> str:
    """Return what is wrong with a content; "" if it is as it was saved."""
    try:
        reader = contents.open(digest)
        if reader is None:
            return "is missing"
        with closing(reader):
            found = hashlib.sha256()
            for part in iter(reader.read, b""):
                found.update(part)
    except (OSError, StoreError) as error:
        return f"cannot be read: {error}"
    return "" if f"sha256:{found.hexdigest()}" == digest else "was changed after it was saved"
