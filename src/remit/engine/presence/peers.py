"""Other processes: whether they are still there.

That is never judged by comparing clocks. On the same machine the process list says it at once; of others, only that
no heartbeat came for a while on our own watch. Being wrong about it is harmless: fences see to it that only one of two
processes can record anything.
"""

import os
from functools import cache
from pathlib import Path

from remit.core.times import SECOND
from remit.ports import Beat, Clock


class Peers:
    """Watches the heartbeats of the others."""

    def __init__(self, clock: Clock, silence: float) -> None:
        self._clock = clock
        self._silence = round(silence * SECOND)
        self._heard: dict[str, tuple[int, int]] = {}

    def gone(self, beats: list[Beat]) -> list[Beat]:
        """List those whose process has ended, or who have been silent for too long while we watched."""
        now = self._clock.ticks()
        self._heard = {beat.worker: self._last_heard(beat, now) for beat in beats}
        return [beat for beat in beats if process_ended(beat.home) or self._silent(beat, now)]

    def _last_heard(self, beat: Beat, now: int) -> tuple[int, int]:
        known = self._heard.get(beat.worker)
        return known if known is not None and known[0] == beat.count else (beat.count, now)

    def _silent(self, beat: Beat, now: int) -> bool:
        return now - self._heard[beat.worker][1] >= self._silence


@cache
def _machine() -> str:
    """Name this boot of this machine, as far as processes see each other; empty where that cannot be known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}:{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def process_address() -> str:
    """Say where this process is: machine, number, and when it began, because numbers are used again."""
    return f"{_machine()}:{os.getpid()}:{_began(os.getpid())}"


def process_ended(address: str) -> bool:
    """Whether a process of this machine has ended; of others nothing is known."""
    machine, _, process = address.rpartition(":")
    machine, _, number = machine.rpartition(":")
    return bool(machine) and machine == _machine() and number.isdigit() and _began(int(number)) != process


def process_number(address: str) -> str:
    """Give the number of a process of this machine; empty for another machine's."""
    machine, number, _ = address.rsplit(":", 2)
    return number if machine and machine == process_address().rsplit(":", 2)[0] else ""


def _began(process: int) -> str:
    """Tell when a process began, in ticks since the machine did; empty if it has ended."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()  # its name comes before, and may have spaces
    return "" if fields[0] in "ZX" else fields[19]
