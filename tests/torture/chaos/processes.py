"""The processes of a chaos run, as whoever starts and kills them sees them. Each is a fork of this one, which has no
thread and nothing open, so that a process that lives for half a second does not spend it on importing."""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from remit.errors import StoreError
from torture.chaos.ledger import Ledger, name_of
from torture.chaos.life import Where, live
from torture.chaos.promises import NO_STORE
from torture.chaos.stage import Life

LONGEST = 900  # seconds that any of them lives, should nobody be there any more to end it


@dataclass
class Process:
    """One of the roles, and who plays it now."""

    role: str
    elsewhere: bool
    pid: int = 0
    lives: int = 0
    stopped: float = 0  # since when it stands still
    told: float = 0  # since when it knows that it is to stop, less the time in which it stood still
    starts_at: float = 0

    @property
    def name(self) -> str:
        return name_of(self.role, self.lives)


class Processes:
    """Starts them, ends them, and notes both in the ledger."""

    def __init__(self, folder: Path, seed: int, where: Where, roles: list[str]) -> None:
        self._folder = folder
        self._seed = seed
        self._where = where
        self._ledger = Ledger(folder / "ledger", "conductor")
        # Every other worker passes for one of another machine.
        self.all = [Process(role, elsewhere=role.startswith("worker") and role.endswith(("1", "3"))) for role in roles]
        self.deaths = 0

    def start(self, process: Process) -> None:
        process.lives += 1
        life = Life(self._folder, self._seed, process.role, process.lives)
        where = self._where._replace(elsewhere=process.elsewhere)
        process.pid = forked(lambda: asyncio.run(live(life, where)), self._folder / f"{process.role}.log")
        process.stopped, process.told = 0, 0
        self._ledger.note("started", target=process.name, process=process.pid)

    def send(self, process: Process, number: int) -> None:
        """Send it a signal, noted before it is sent: what it does after that it does after the note."""
        if process.pid:
            self._ledger.note(_WORDS[number], target=process.name)
            os.kill(process.pid, number)

    def halt(self, process: Process) -> None:
        """Have it stand still."""
        self.send(process, signal.SIGSTOP)
        process.stopped = time.monotonic()

    def resume(self, process: Process) -> None:
        """Let it go on."""
        self.send(process, signal.SIGCONT)
        if process.told:
            process.told += time.monotonic() - max(process.told, process.stopped)
        process.stopped = 0

    def note(self, kind: str, **what: object) -> None:
        self._ledger.note(kind, **what)

    def ended(self, process: Process) -> bool:
        """Tell whether it is gone, and note how it ended."""
        if not process.pid:
            return True
        pid, status = os.waitpid(process.pid, os.WNOHANG)
        if not pid:
            return False
        self._note_end(process, os.waitstatus_to_exitcode(status))
        return True

    def kill(self, process: Process) -> None:
        """Kill it and see it gone."""
        if process.pid:
            self.send(process, signal.SIGKILL)
            _, status = os.waitpid(process.pid, 0)
            self._note_end(process, os.waitstatus_to_exitcode(status))

    def _note_end(self, process: Process, code: int) -> None:
        self.deaths += code == -signal.SIGKILL
        self._ledger.note("ended", target=process.name, process=process.pid, code=code)
        process.pid, process.stopped, process.told = 0, 0, 0


_WORDS = {
    signal.SIGKILL: "killed",
    signal.SIGSTOP: "stopped",
    signal.SIGCONT: "continued",
    signal.SIGTERM: "terminated",
}


def forked(what: Callable[[], None], log: Path) -> int:
    """Do something in a new process, whose words go to a file."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.alarm(LONGEST)
        _die_with_parent()
        _words_to(log)
        what()
        code = 0
    except StoreError as error:
        print(f"{os.getpid()}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        code = NO_STORE
    except BaseException:
        print(f"{os.getpid()} at {time.monotonic():.3f}", file=sys.stderr)
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def _die_with_parent() -> None:
    """Have the system kill this process should its parent be killed; where it cannot, the alarm ends it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _words_to(log: Path) -> None:
    file = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    logging.basicConfig(level=logging.WARNING, format="%(process)d %(levelname)s %(name)s: %(message)s", force=True)
