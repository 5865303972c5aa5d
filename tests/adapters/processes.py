"""Processes for tests of programs, and what the kernel tells of them."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio

from remit.core.allow import NONE
from remit.core.bounds import TOP
from remit.core.remit import Chain, Remit
from remit.core.scope import NOTHING
from remit.core.session import EarlierExchange
from remit.types import Handoff

CORPUS = ["$(id)", "`id`", "-o", "--help", "a\nb", "; rm -rf /", "$HOME", "*", "'\"", "a\\nb", "é 𝄞", "%s", " "]

# Says who it is as soon as it and its child are there. Both are deaf to SIGTERM: what is ignored stays so in a child.
STUBBORN = """
import os, pathlib, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "1000"])
draft = pathlib.Path(sys.argv[1] + ".draft")
draft.write_text(str(os.getpgrp()))
draft.rename(sys.argv[1])
child.wait()
"""


def python(code: str, *args: str) -> list[str]:
    return [sys.executable, "-c", code, *args]


class Task:
    """All that a program wants to know of a turn."""

    def __init__(self, task: str = "go") -> None:
        self.remit = Remit("t1", "default", "s1", "agent", task, TOP, Chain(), "", "t1", NOTHING, NONE)
        self.took: list[str] = []

    handoff = Handoff()

    async def talk_so_far(self) -> list[EarlierExchange]:
        return []

    def mark_untrusted(self, source: str, text: str = "") -> None:
        self.took.append(source)

    def progress(self, text: str, fraction: float | None = None, *, every: float = 0) -> bool:
        return bool(text)


def running(group: int) -> list[int]:
    """The processes of a group that are alive, as the kernel tells it."""
    return [pid for pid, fields in table() if int(fields[2]) == group and fields[0] not in "ZX"]


def table() -> list[tuple[int, list[str]]]:
    found: list[tuple[int, list[str]]] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            found.append((int(path.parent.name), path.read_text(errors="replace").rpartition(")")[2].split()))
        except OSError:
            continue
    return found


def marked(word: str) -> list[int]:
    """The processes that were started with a word in their environment, or by one that was."""
    found: list[int] = []
    for pid, _ in table():
        try:
            if word.encode() in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def text_of(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


async def written(path: Path) -> str:
    """Waits for a file that someone else puts there in one piece."""
    with anyio.fail_after(30):
        while (text := text_of(path)) is None:  # noqa: ASYNC110 - the writer is another process
            await anyio.sleep(0.005)
    return text


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class Roll:
    """A fifo that processes sign with a line and hold open: it is at its end when the last of them, and of those that
    they started, has ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self._read = b""

    async def signed(self) -> str:
        """Wait for the next line."""
        with anyio.fail_after(30):
            while b"\n" not in self._read:
                await anyio.wait_readable(self._fd)
                assert self._look(), "they ended without a word"
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()

    async def ended(self) -> None:
        with anyio.fail_after(30):
            while not self.over():
                await anyio.wait_readable(self._fd)

    def over(self) -> bool:
        """Whether nobody is left."""
        try:
            while self._look():
                pass
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        os.close(self._fd)

    def _look(self) -> bytes:
        more = os.read(self._fd, 65_536)
        self._read += more
        return more


@contextmanager
def roll_at(path: Path) -> Generator[Roll]:
    roll = Roll(path)
    try:
        yield roll
    finally:
        roll.close()
