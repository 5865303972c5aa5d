"""`ws.artifacts`: the files of a workspace, as its owner sees them."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from remit.core.artifact import Artifact, digest_of
from remit.core.checks import limit as checked_limit
from remit.core.entry import Writer
from remit.core.events import Place
from remit.core.times import aware
from remit.core.trust import TRUSTED, Trust, known_trust
from remit.core.values import NAME_LIMIT, line
from remit.engine.acts import Act, ActContent, act_of
from remit.engine.artifacts import ArtifactFiles, OpenedArtifact, Saver, Source
from remit.errors import NotFound
from remit.ports import ArtifactRow, Decision, View
from remit.runtime.opening import Opening


class StoredArtifact(NamedTuple):
    """A file of a workspace: its reference, and the run, task and agent that saved it or, if the list was read without
    the save, that referred to it. They are empty for a person. `at` is the time of that event in microseconds since
    1970, `saved` the same as a datetime."""

    artifact: Artifact
    run: str
    task: str
    agent: str
    trust: Trust
    at: int

    @property
    def saved(self) -> datetime:
        return aware(self.at)


class ArtifactLook(NamedTuple):
    """A file that can be opened: its reference, and the label of its content."""

    artifact: Artifact
    trust: Trust


class WorkspaceArtifacts:
    """The files of a workspace: save, open and list them."""

    __slots__ = ("_opening",)

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    async def save(
        self,
        source: Source,
        name: str = "",
        media_type: str = "",
        *,
        trust: Trust = TRUSTED,
        op: str = "",
        by: str = "",
    ) -> Artifact:
        """Save a file, given as bytes, a `pathlib.Path` or an iterator of bytes, and return the reference to it.

        Write the reference into an entry, or into the text of a task, to give the file to an agent. Until then nothing
        but the journal refers to it, and `prune` removes it when it is old.
        """
        act = act_of(op, by)
        self._opening.must_be_outside("artifacts.save", "turn.artifacts.save")
        known_trust(trust)
        saver = Saver(Writer("", person=act.by), Place(), trust, _anyone, _Recording(self._files, act).record)
        return await self._files.save(source, name, media_type, saver)

    async def open(self, artifact: Artifact | str | dict[str, Any]) -> OpenedArtifact:
        """Open a file by its reference or its digest. Raise `NotFound` if there is none."""
        digest = digest_of(artifact)
        rows = await self._opening.records.read(lambda view: view.artifact_rows(digest))
        if not rows:
            raise NotFound(f"there is no artifact {digest}; `remit artifacts ls` lists them")
        return self._files.open(artifact, rows, _always)

    async def list(self, *, run: str | None = None, limit: int = 100) -> "list[StoredArtifact]":
        """Return the files, the latest first, each content once; with `run`, those that events of this run refer to."""
        most = checked_limit(limit)
        if run is not None:
            name = line(run, "a run's id", NAME_LIMIT)
            return _once(await self._opening.records.browse(lambda view: view.artifacts_of_run(name)[::-1]))[:most]
        return await self._opening.records.browse(lambda view: _latest(view, most))

    @property
    def _files(self) -> ArtifactFiles:
        policy = self._opening.settings.policy
        return ArtifactFiles(self._opening.ground, policy.artifact_bytes, policy.run_artifact_bytes)


class _Recording(NamedTuple):
    """The recording of an owner's save as an action: with the same `op` again, it is the same action."""

    files: ArtifactFiles
    act: Act

    async def record(self, artifact: Artifact, decide: Callable[[View], Decision[None]]) -> None:
        content = ActContent("artifacts.save", artifact.digest, [artifact.name, artifact.media_type])
        await self.act.perform(self.files.ground, content, decide)


def _latest(view: View, most: int) -> list[StoredArtifact]:
    """Return the latest artifacts, page by page until there are enough."""
    rows: list[ArtifactRow] = []
    while page := view.artifacts(most, rows[-1].seq) if rows else view.artifacts(most):
        rows += page
        if len(found := _once(rows)) >= most:
            return found[:most]
    return _once(rows)


def _once(rows: list[ArtifactRow]) -> list[StoredArtifact]:
    """Return each content once, as described by the latest event that saved it or, without one, that refers to it. The
    rows are the latest first."""
    found: dict[str, ArtifactRow] = {}
    for row in rows:
        before = found.get(row.digest)
        if before is None or (before.kind != "artifact.saved" and row.kind == "artifact.saved"):
            found[row.digest] = row
    return [
        StoredArtifact(
            Artifact(row.digest, row.size, row.name, row.media_type), row.run, row.task, row.agent, row.trust, row.at
        )
        for row in found.values()
    ]


def _anyone(_view: View) -> None:
    """Check nothing: the owner needs no permission."""


def _always() -> None:
    """Check nothing: a workspace has no turn that could be over."""
