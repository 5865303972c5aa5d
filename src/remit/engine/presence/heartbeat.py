"""Being there: a process says so from time to time, so that others can take over what it leaves behind.

Whether another process is still there is never judged by comparing clocks. On the same machine the process list
says it at once; of others, only that they have not been heard of for a while on our own watch. Being wrong about it is
harmless: fences see to it that only one of two processes can record anything.
"""

import asyncio
import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from remit.core.times import SECOND
from remit.errors import StoreError
from remit.ports import Beat, Clock, Decision, Ids, Store

SILENCE_SECONDS: Final = 15.0
BEATS: Final = 3  # in the time that we may be silent

_log = logging.getLogger("remit")


class Presence:
    """This process, as others see it. `lasting` is False where nobody else could see it."""

    def __init__(self, store: Store, ids: Ids, *, lasting: bool, silence: float) -> None:
        self.worker = ids.new()
        self.hands = 0
        self.silence = silence
        self._store = store
        self._ids = ids
        self._lasting = lasting
        self._count = 0
        self._users = 0
        self._timer: asyncio.TimerHandle | None = None
        self._saying: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def first_beat(self) -> Beat | None:
        """Goes along with the first thing this process writes, so that being there costs nothing extra."""
        return Beat(self.worker, process_address(), 1, self.hands) if self._lasting and not self._count else None

    def beat_written(self) -> None:
        """What the first beat went along with is written."""
        self._count = self._count or 1

    @contextmanager
    def while_working(self) -> Generator[None]:
        """Keeps on saying it as long as there is work here."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # what was kept in an earlier loop ended with it
            self._loop, self._users, self._timer = loop, 0, None
        self._users += 1
        if self._timer is None and self._lasting:
            self._timer = loop.call_later(self.silence / BEATS, self._beat, loop)
        try:
            yield
        finally:
            self._users -= 1
            if not self._users and self._timer is not None:
                self._timer.cancel()
                self._timer = None

    @contextmanager
    def while_serving(self, hands: int) -> Generator[None]:
        """The same, and others are told how many tasks are carried out here."""
        self.hands = hands
        try:
            with self.while_working():
                yield
        finally:
            self.hands = 0

    async def beat_now(self) -> None:
        """Says it right away."""
        if self._lasting:
            self._count += 1
            beat = Beat(self.worker, process_address(), self._count, self.hands)
            await self._store.tx(self._ids.new(), lambda _view: Decision(None, (), beat))

    async def leave(self) -> None:
        """Says that there is nothing here to take over."""
        if self._lasting and self._count:
            self._count = 0
            await self._store.tx(
                self._ids.new(), lambda _view: Decision(None, (), Beat(self.worker, process_address(), 0))
            )

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(self.silence / BEATS, self._beat, loop)
        self._saying = loop.create_task(self._say())

    async def _say(self) -> None:
        try:
            await self.beat_now()
        except StoreError as error:  # the work itself will be told; being there is tried again
            _log.warning("could not say that this process is there: %s", error)


class Peers:
    """Who of the others is gone."""

    def __init__(self, clock: Clock, silence: float) -> None:
        self._clock = clock
        self._silence = round(silence * SECOND)
        self._heard: dict[str, tuple[int, int]] = {}

    def gone(self, beats: list[Beat]) -> list[Beat]:
        """Those whose process has ended, or who have been silent for too long while we watched."""
        now = self._clock.ticks()
        self._heard = {
            beat.worker: known
            if (known := self._heard.get(beat.worker)) is not None and known[0] == beat.count
            else (beat.count, now)
            for beat in beats
        }
        return [
            beat for beat in beats if process_ended(beat.home) or now - self._heard[beat.worker][1] >= self._silence
        ]


@cache
def _machine() -> str:
    """This boot of this machine, as far as processes see each other; empty where that cannot be known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}:{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def process_address() -> str:
    """Where this process is: machine, number, and when it began, because numbers are used again."""
    return f"{_machine()}:{os.getpid()}:{_began(os.getpid())}"


def process_ended(where: str) -> bool:
    """Whether a process of this machine has ended; of others nothing is known."""
    machine, _, process = where.rpartition(":")
    machine, _, number = machine.rpartition(":")
    return bool(machine) and machine == _machine() and number.isdigit() and _began(int(number)) != process


def _began(process: int) -> str:
    """When a process began, in ticks since the machine did; empty if it has ended."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()  # its name comes before, and may have spaces
    return "" if fields[0] in "ZX" else fields[19]
