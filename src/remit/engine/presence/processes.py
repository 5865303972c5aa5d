"""What the process table of this machine says about a process."""

import os
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Final

_TABLE: Final = Path("/proc")
_ENDED: Final = "ZX"
_STOPPED: Final = "Tt"


class Fate(Enum):
    """What is known of a process. One that is stopped by a signal is there and does nothing."""

    UNKNOWN = "unknown"
    ENDED = "ended"
    ALIVE = "alive"
    STOPPED = "stopped"


class ProcessTable:
    """The processes of a machine, as far as `folder` tells of them."""

    def __init__(self, folder: Path = _TABLE) -> None:
        self._folder = folder

    def fate(self, address: str) -> Fate:
        """Tell what became of the process with this address; of other machines nothing is known.

        A process has ended only if the table has no line for it, and the system knows no such number either: a table
        may be hidden, and a line unreadable for want of a file descriptor.
        """
        machine, number, began = _parts(address)
        if not machine or machine != _machine():
            return Fate.UNKNOWN
        try:
            state, since = self._line(number)
        except (FileNotFoundError, ProcessLookupError):
            return Fate.UNKNOWN if _exists(number) else Fate.ENDED
        except (OSError, IndexError):
            return Fate.UNKNOWN
        if state in _ENDED or since != began:  # numbers are used again
            return Fate.ENDED
        return Fate.STOPPED if state in _STOPPED else Fate.ALIVE

    def address(self) -> str:
        """Say where this process is: machine, number, and when it began."""
        try:
            began = self._line(os.getpid())[1]
        except (OSError, IndexError):
            return f":{os.getpid()}:"  # others can only listen to its heartbeats
        return f"{_machine()}:{os.getpid()}:{began}"

    def _line(self, process: int) -> tuple[str, str]:
        """Give the state of a process, and when it began in ticks since the machine did."""
        text = (self._folder / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
        fields = text.rpartition(")")[2].split()  # its name comes before, and may have spaces
        return fields[0], fields[19]


def process_address() -> str:
    """Say where this process is."""
    return ProcessTable().address()


def process_ended(address: str) -> bool:
    """Whether a process of this machine has ended; of others nothing is known."""
    return ProcessTable().fate(address) is Fate.ENDED


def process_number(address: str) -> str:
    """Give the number of a process of this machine; empty for another machine's."""
    machine, number, _ = _parts(address)
    return str(number) if machine and machine == _machine() else ""


@cache
def _machine() -> str:
    """Name this boot of this machine, as far as processes see each other; empty where that cannot be known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}:{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def _parts(address: str) -> tuple[str, int, str]:
    """Split an address into machine, number and start; a malformed one has no machine."""
    machine, _, began = address.rpartition(":")
    machine, _, number = machine.rpartition(":")
    return (machine, int(number), began) if number.isascii() and number.isdigit() and began else ("", 0, "")


def _exists(process: int) -> bool:
    """Whether a process with this number exists, whoever owns it."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it is not ours to ask
        return True
    return True
