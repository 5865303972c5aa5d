"""The ledger outside: lines that no crash takes back, written by whoever does something when it does it.

Every role has a file of its own in one folder. A line is JSON: its kind, who wrote it (a role and the number of its
life, because the system uses numbers of processes again), the moment on the clock that all processes of a machine
share, and what else there is to say. Nothing here knows remit.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Line = dict[str, Any]


def moment() -> int:
    """Tell the microseconds since the machine began, the same for all of its processes."""
    return time.monotonic_ns() // 1_000


def name_of(role: str, life: int) -> str:
    """Name one process of a run."""
    return f"{role}/{life}"


class Ledger:
    """Where one process writes. Each line is one write to the end of the file, so no other process tears it."""

    def __init__(self, folder: Path, role: str, life: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{role}.jsonl"
        self._file = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        self.who = name_of(role, life)

    def note(self, kind: str, **what: object) -> None:
        line = {"kind": kind, "who": self.who, "pid": os.getpid(), "at": moment(), **what}
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def lines(self) -> list[Line]:
        """Read what this role has written, in all its lives."""
        return list(_read(self.path))


def ledgers(folder: Path) -> list[Line]:
    """Read what all have written, in the order in which it happened."""
    found = [line for path in sorted(folder.glob("*.jsonl")) for line in _read(path)]
    return sorted(found, key=lambda line: line["at"])


def _read(path: Path) -> Iterator[Line]:
    with path.open(encoding="utf-8") as file:
        for text in file:
            if text.endswith("\n"):  # a process was killed while it wrote the last one
                yield json.loads(text)
