"""Files of programs: a private folder for each call, with the files that the agent was given and room for new ones.

The program finds the folder in the variable REMIT_FILES. `in/` has the files that its task and the data handed over to
it refer to, `index.json` lists them, and each file that the program leaves in `out/` becomes an artifact. Files are
copied in parts, so the memory does not grow with them.
"""

import json
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

import anyio
from anyio import to_thread

from remit.core.artifact import Artifact, digests_in, reference_in, references
from remit.core.remit import Remit
from remit.core.values import Json, shown
from remit.errors import BadInput, Refused

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows, where folders of dead processes stay
    fcntl = None

VARIABLE: Final = "REMIT_FILES"
MOST: Final = 1_000  # files that a program may save at once
_PREFIX: Final = "remit-files-"
_SETTLED: Final = 60.0  # seconds after which the folder of a live process has its lock for certain


class HasFiles(Protocol):
    """The part of a turn that the files of a program need."""

    @property
    def remit(self) -> Remit: ...
    @property
    def handoff(self) -> Any: ...
    @property
    def artifacts(self) -> Any: ...


class ProgramFolder:
    """The folder of one call of a program."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def fill(self, turn: HasFiles) -> None:
        """Copy the files that the task and the handoff refer to, and that the agent may see, into `in/`. List them in
        `index.json`."""
        index: list[Json] = []
        names: set[str] = {""}
        async for artifact, opened in files_seen(turn):
            name = _unused(artifact.name, names)
            await opened.save_to(self.path / "in" / name)
            index.append({"file": f"in/{name}", **artifact.data()})
        await anyio.Path(self.path / "index.json").write_text(json.dumps(index, ensure_ascii=False, indent=1))

    async def saved(self, turn: HasFiles) -> list[Artifact]:
        """Save the files in `out/` as artifacts, in the order of their names, and return the references. Raise
        `BadInput` if there are more than 1,000, or if one is not a plain file."""
        found = await to_thread.run_sync(lambda: sorted((self.path / "out").iterdir()))
        if len(found) > MOST:
            raise BadInput(f"a program saves at most {MOST:,} files at once, and this one left {len(found):,}")
        strange = await to_thread.run_sync(lambda: [path.name for path in found if not _is_file(path)])
        if strange:
            raise BadInput(f"the program left {shown(strange[0])} in its out folder, which is no plain file")
        return [await turn.artifacts.save(path) for path in found]


def answer_with(text: str, saved: list[Artifact]) -> Any:
    """Return the result of a program that saved files: the references themselves if it printed nothing, otherwise its
    text, with a line for each file."""
    if not saved:
        return text
    if not text:
        return saved[0] if len(saved) == 1 else saved
    return "\n".join([text, "", *(f"file: {one}" for one in saved)])


@asynccontextmanager
async def program_folder(where: str | None = None) -> AsyncGenerator[ProgramFolder]:
    """Make a folder for one call, yield it, and remove it afterwards. Only this user can read it. It is made in the
    folder `where`, by default the system's temporary folder. Folders of processes that were killed are removed by a
    later call."""
    made: list[tuple[Path, int]] = []  # filled in the thread, so that a cancellation loses none
    try:
        await to_thread.run_sync(lambda: made.append(_new_folder(where or tempfile.gettempdir())))
        yield ProgramFolder(made[0][0])
    finally:
        with anyio.CancelScope(shield=True):
            for path, lock in made:
                await to_thread.run_sync(lambda path=path: shutil.rmtree(path, ignore_errors=True))
                os.close(lock)


def _new_folder(where: str) -> tuple[Path, int]:
    path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=where))
    lock = os.open(path, os.O_RDONLY)
    if fcntl is not None:  # pragma: no branch - Windows
        fcntl.flock(lock, fcntl.LOCK_EX)
    for name in ("in", "out"):
        (path / name).mkdir(mode=0o700)
    _sweep(path.parent, path.stat().st_mtime)
    return path, lock


def _sweep(where: Path, now: float) -> None:
    """Remove the folders of processes that have ended, whose locks are free. Skip folders that are younger than a
    minute at the time `now`, in seconds since 1970: their processes may not have locked them yet."""
    if fcntl is None:  # pragma: no cover - Windows
        return
    for path in where.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another process removes it as well, or it belongs to another user
            found = path.lstat()
            is_old = now - found.st_mtime > _SETTLED
            if not (stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and is_old):
                continue
            lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
            finally:
                os.close(lock)


async def files_seen(turn: HasFiles) -> AsyncGenerator[tuple[Artifact, Any]]:
    """Yield the files that a turn was given and that its agent sees, each opened."""
    for given in _references(turn):
        try:
            opened = await turn.artifacts.open(given if isinstance(given, str) else given.data())
        except Refused:  # the text mentions a digest, which gives nothing; the receipt says so
            continue
        yield opened.artifact, opened


def _references(turn: HasFiles) -> Iterator[Artifact | str]:
    """Yield the references in the data handed over and in the task, each digest once. If the task mentions a digest
    outside of a reference, yield the digest."""
    handoff = turn.handoff
    found = {one.digest: one for one in references([handoff.state.data(), *(one.value for one in handoff.results)])}
    task = turn.remit.task
    named = {digest: found.get(digest) or reference_in(task, digest) for digest in sorted(digests_in(task))}
    for digest, one in (found | named).items():
        yield one or digest


def _unused(name: str, names: set[str]) -> str:
    """Return a file name that was not used yet: a second report.pdf becomes 2-report.pdf."""
    number, free = 1, name
    while free in names:
        number += 1
        free = f"{number}-{name}"
    names.add(free)
    return free


def _is_file(path: Path) -> bool:
    """Whether a path is a plain file, and no link: a link could lead to any file of this user."""
    return stat.S_ISREG(path.lstat().st_mode)
