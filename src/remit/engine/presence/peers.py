"""Other processes: whether they are alive, by their heartbeats and by this machine's process table."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from remit.core.times import SECOND, iso
from remit.engine.ground import StoreAround
from remit.engine.system import TOLERANCE, SystemClock
from remit.errors import StoreError
from remit.ports import NOTHING, Beat, Clock, Decide, Decided, Store, View, Wants

_TABLE: Final = Path("/proc")
_ENDED: Final = "ZX"
_STOPPED: Final = "Tt"


class Fate(Enum):
    """What is known of a process. A process stopped by a signal exists and does nothing."""

    UNKNOWN = "unknown"
    ENDED = "ended"
    ALIVE = "alive"
    STOPPED = "stopped"


class ProcessTable:
    """The processes of a machine, as far as `folder` shows them."""

    def __init__(self, folder: Path = _TABLE) -> None:
        self._folder = folder

    def fate(self, address: str) -> Fate:
        """Return the state of the process with this address; unknown for other machines.

        A process has ended only if the table has no line for it and the system does not know its number either: the
        table may be hidden, and a line unreadable for lack of a file descriptor.
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
        if state in _ENDED or since != began:  # process ids are reused
            return Fate.ENDED
        return Fate.STOPPED if state in _STOPPED else Fate.ALIVE

    def address(self) -> str:
        """Return the address of this process: machine, number and start time."""
        try:
            began = self._line(os.getpid())[1]
        except (OSError, IndexError):
            return f":{os.getpid()}:"  # others can only watch its heartbeats
        return f"{_machine()}:{os.getpid()}:{began}"

    def _line(self, process: int) -> tuple[str, str]:
        """Return the state of a process, and its start in ticks since the boot."""
        text = (self._folder / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
        fields = text.rpartition(")")[2].split()  # the process name comes before, and may contain spaces
        return fields[0], fields[19]


def process_address() -> str:
    """Return the address of this process."""
    return ProcessTable().address()


def process_ended(address: str) -> bool:
    """Whether a process of this machine has ended; False for other machines, of which nothing is known."""
    return ProcessTable().fate(address) is Fate.ENDED


def process_number(address: str) -> str:
    """Return the number of a process of this machine, or "" for another machine's."""
    machine, number, _ = _parts(address)
    return str(number) if machine and machine == _machine() else ""


@cache
def _machine() -> str:
    """Return an id of this boot and process namespace, or "" if it is unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}:{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def _parts(address: str) -> tuple[str, int, str]:
    """Return the machine, number and start of an address; a malformed one has no machine."""
    machine, _, began = address.rpartition(":")
    machine, _, number = machine.rpartition(":")
    return (machine, int(number), began) if number.isascii() and number.isdigit() and began else ("", 0, "")


def _exists(process: int) -> bool:
    """Whether a process with this number exists, of any user."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # not permitted to signal it, so it exists
        return True
    return True


PATIENCE: Final = 20  # factor on the heartbeat timeout for a process that is visibly alive
_ROUNDS: Final = 3  # missed polls after which the recorded heartbeats no longer count


class Peers:
    """Watches the heartbeats of other processes: a process is gone after `silence` seconds without one. Polls every
    `look` seconds."""

    def __init__(self, clock: Clock, silence: float, look: float, processes: ProcessTable | None = None) -> None:
        self._clock = clock
        self._silence = round(silence * SECOND)
        self._gap = max(self._silence // 2, round(_ROUNDS * look * SECOND))
        self._processes = processes or ProcessTable()
        self._looked = clock.ticks()
        self._heard: dict[str, tuple[int, int]] = {}

    def gone(self, beats: Iterable[Beat], unseen: Iterable[str] = ()) -> list[Beat]:
        """Return the processes that have ended, or have had no heartbeat for too long while we watched. `unseen` are
        workers that hold tasks without a heartbeat."""
        now = self._clock.ticks()
        if now - self._looked > self._gap:
            self.restart_timeouts()
        self._looked = now
        all_ = [*beats, *(Beat(worker, "", 0) for worker in unseen)]
        self._heard = {beat.worker: self._last_heard(beat, now) for beat in all_}
        return [beat for beat in all_ if self._is_gone(beat, now)]

    def restart_timeouts(self) -> None:
        """Restart the heartbeat timeouts of all peers."""
        self._heard.clear()

    def may_have_died(self, beat: Beat) -> bool:
        """Whether a silent process may have died: the process table does not show it as running or stopped."""
        return self._processes.fate(beat.home) not in (Fate.ALIVE, Fate.STOPPED)

    def _last_heard(self, beat: Beat, now: int) -> tuple[int, int]:
        known = self._heard.get(beat.worker)
        return known if known is not None and known[0] == beat.count else (beat.count, now)

    def _is_gone(self, beat: Beat, now: int) -> bool:
        fate = self._processes.fate(beat.home)
        if fate is Fate.ENDED:
            return True
        silence = self._silence * PATIENCE if fate is Fate.ALIVE else self._silence
        return now - self._heard[beat.worker][1] >= silence


T = TypeVar("T")


class TimelyStore(StoreAround):
    """A store that checks this machine's clock before the first write, against the server's clock or the newest event,
    which cannot be in the future."""

    __slots__ = ("_clock", "_right", "_server_time")

    def __init__(self, store: Store, clock: SystemClock, server_time: Callable[[], int | None]) -> None:
        super().__init__(store)
        self._clock = clock
        self._server_time = server_time
        self._right = False

    def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Awaitable[Decided[T]]:
        return self._store.tx(op, decide, wants) if self._right else self._first_tx(op, decide, wants)

    async def _first_tx(self, op: str, decide: Decide[T], wants: Wants) -> Decided[T]:
        await self._check()
        return await self._store.tx(op, decide, wants)

    async def _check(self) -> None:
        self._clock.reread()  # the clock may have been corrected since the last refusal
        server = await asyncio.to_thread(self._server_time)
        now = self._clock.now()
        if server is not None:
            if abs(now - server) > TOLERANCE:
                raise _wrong(now, f"the server's clock says {_time_text(server)}")
        elif (last := await self._store.read(_last)) - now > TOLERANCE:
            raise _wrong(now, f"the last thing in the store happened at {_time_text(last)}")
        self._clock.trust()
        self._right = True


def _last(view: View) -> int:
    """Return the time of the newest event, or 0 if there is none."""
    event = view.event(view.head().seq)
    return 0 if event is None else event.at


def _wrong(now: int, other: str) -> StoreError:
    return StoreError(
        f"this machine's clock says {_time_text(now)}, but {other}; remit writes nothing, because deadlines "
        "and timeouts would be wrong. Set the clock, or, if the other clock is wrong, set REMIT_CHECK_CLOCK=no or pass "
        "System(check_clock=False)"
    )


def _time_text(at: int) -> str:
    return f"{iso(at)[:19]}Z"
