"""The places of a coding agent's task: a home for its session, and the folder that it works in.

Both belong to the task and its retries, not to one attempt: a later attempt finds the session, and the work, where it
was left.
"""

import asyncio
import contextlib
import fcntl
import os
import re
import shutil
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from anyio import to_thread

from remit.adapters.process import Finished, last_words, run_process
from remit.core.artifact import Artifact
from remit.errors import BadInput

_ODD: Final = re.compile(r"[^A-Za-z0-9._-]")
_KEPT: Final = 14 * 86_400  # seconds that the home of an unfinished task is kept after its last attempt
_PATIENCE: Final = 30.0  # seconds for the attempt before to leave
_PAUSE: Final = 0.1
_LOCK, _BASE, _TREE = "lock", "base", "tree"


class TaskPlace(NamedTuple):
    """The folders of one task. `home` has the session and the settings of the program; only this user can read it.
    `base` is the commit that the worktree started from, "" if the program works in the owner's folder. `is_new` is true
    if the worktree was created for this attempt."""

    home: Path
    cwd: Path
    base: str = ""
    is_new: bool = False


class TaskPlaces(NamedTuple):
    """The places of all tasks of an agent. With `own_tree`, each task gets a git worktree of the folder `cwd`."""

    root: Path | None
    cwd: Path
    own_tree: bool

    @asynccontextmanager
    async def of(self, turn: Any) -> AsyncGenerator[TaskPlace]:
        """Lock the place of the turn's task while the body runs, and yield it. If another attempt works in it, wait for
        its end; raise `TimeoutError` after 30 seconds."""
        home = (self.root or state_folder()) / _ODD.sub("-", f"{turn.agent}-{turn.origin}")
        lock = await to_thread.run_sync(_lock_home, home)
        try:
            await _locked(lock, home)
            yield await self._tree(home) if self.own_tree else TaskPlace(home, self.cwd)
        finally:
            os.close(lock)

    async def _tree(self, home: Path) -> TaskPlace:
        """Return the worktree of a task; make it if this is its first attempt."""
        tree, base = home / _TREE, home / _BASE
        within = await self._within()
        is_new = not base.exists()
        if is_new:  # it is written last, so a tree without it was not finished
            await to_thread.run_sync(lambda: shutil.rmtree(tree, ignore_errors=True))
            commit = await self._commit()
            await _git(self.cwd, "worktree", "prune")
            await _git(self.cwd, "worktree", "add", "--detach", str(tree), commit)
            base.write_text(commit)
        (tree / within).mkdir(parents=True, exist_ok=True)  # it may have no file that git knows
        return TaskPlace(home, tree / within, base.read_text(), is_new)

    async def _within(self) -> str:
        """Return the path of the agent's folder within its repository, "" at the top. Raise `BadInput` if there is no
        repository."""
        try:
            return (await _git(self.cwd, "rev-parse", "--show-prefix")).out.decode().strip()
        except BadInput as error:
            raise BadInput(f"worktree=True needs a git repository: {error}") from None

    async def _commit(self) -> str:
        try:
            return (await _git(self.cwd, "rev-parse", "--verify", "HEAD")).out.decode().strip()
        except BadInput:
            raise BadInput(f"worktree=True needs a commit to begin with, and {self.cwd} has none; make one") from None

    async def saved(self, turn: Any, place: TaskPlace) -> list[Artifact]:
        """Save the diff of the agent's worktree as an artifact, and return a list with its reference. The list is empty
        if nothing changed, or if the agent works in the owner's folder."""
        if not place.base:
            return []
        diff = place.home / f"{turn.agent}.diff"
        await _git(place.cwd, "add", "--all")
        # Not git diff: settings of the user could give it a form that git apply does not read.
        await _git(place.cwd, "diff-index", "--cached", "--patch", "--binary", f"--output={diff}", place.base)
        return [await turn.artifacts.save(diff)] if diff.stat().st_size else []

    async def remove(self, place: TaskPlace) -> None:
        """Remove the place of a task that is done."""
        await to_thread.run_sync(lambda: shutil.rmtree(place.home, ignore_errors=True))
        if place.base:  # not git worktree remove: it refuses a tree with submodules
            await _git(self.cwd, "worktree", "prune")


def state_folder() -> Path:
    """Return the folder for the homes of tasks: remit/coding in `$XDG_STATE_HOME` if that is an absolute path,
    otherwise in ~/.local/state. Raise `BadInput` if there is no home folder."""
    above = os.environ.get("XDG_STATE_HOME", "")
    try:
        folder = Path(above) if Path(above).is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise BadInput("there is no home folder for the sessions of coding agents; set XDG_STATE_HOME") from error
    return folder / "remit" / "coding"


def _lock_home(home: Path) -> int:
    """Make the home of a task if there is none. Return the descriptor of its lock file, which is not locked yet. Remove
    homes that no attempt has used for 14 days."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(home / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.utime(home)
    now = home.stat().st_mtime
    for old in home.parent.iterdir():
        with contextlib.suppress(OSError):  # another process removes it as well
            if now - old.stat().st_mtime > _KEPT:
                shutil.rmtree(old)
    return lock


async def _locked(lock: int, home: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if time.monotonic() > until:
            raise TimeoutError(f"another attempt at this task still works in {home}")
        await asyncio.sleep(_PAUSE)


async def _git(folder: Path, *words: str) -> Finished:
    done = await run_process(["git", "-C", str(folder), *words])
    if done.code:
        raise BadInput(f"git {words[0]} failed in {folder}: {last_words(done.err)}")
    return done
