"""The real clock and real ids."""

import asyncio
import heapq
import logging
import math
import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from remit.core.records import NamedTuple
from remit.core.times import SECOND
from remit.ports import Timer

AWAKE: Final = getattr(time, "CLOCK_UPTIME_RAW", time.CLOCK_MONOTONIC)  # does not run while the machine sleeps
ALWAYS: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # runs while it sleeps, where such a clock exists
_SECOND: Final = 1_000_000_000
_GAP: Final = 5 * _SECOND  # this long without a sign of life means a stop, not a busy machine
_IDLE: Final = 10  # unused pulses after which the thread ends


class Source(Protocol):
    """The system's clocks, as in the module `time`."""

    def clock_gettime_ns(self, clk_id: int, /) -> int: ...
    def process_time_ns(self) -> int: ...
    def sleep(self, seconds: float, /) -> None: ...


class Woken(Protocol):
    """An object that is notified when the machine has slept."""

    def relook(self) -> None:
        """Check the time again after the machine has slept. Called on a separate thread."""
        ...


class UsableTime:
    """Counts the time in which this process could run; there is one for each process. It leaves out stops (SIGSTOP)
    while a caller is between `enter` and `leave`."""

    def __init__(self, source: Source = time) -> None:
        self._source = source
        self._clock = source.clock_gettime_ns
        self.reset()
        self._stopped = 0

    def reset(self) -> None:
        """Forget the thread and the users. Called in a forked process, where they belong to the parent."""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._users = 0
        self._alive_at = 0  # the last sign of life
        self._spent = 0  # processor time at the last pulse
        self._woken: weakref.WeakSet[Woken] = weakref.WeakSet()

    def ticks(self) -> int:
        """Return the usable time in microseconds; it never goes back."""
        now = self._clock(AWAKE)
        # A gap means that the process was stopped. Without the thread, which gives signs of life, a gap means nothing.
        if now - self._alive_at > _GAP and self._thread is not None:
            self._leave_out(now)
        self._alive_at = now
        return (now - self._stopped) // 1_000

    def enter(self) -> None:
        """Start to leave out time in which the process is stopped."""
        with self._lock:
            self._users += 1
            if self._thread is None:
                source = self._source
                self._alive_at, self._spent = source.clock_gettime_ns(AWAKE), source.process_time_ns()
                self._thread = threading.Thread(target=self._pulse, name="remit-pulse", daemon=True)
                self._thread.start()

    def leave(self) -> None:
        """Release one use; without users the thread ends after a while."""
        with self._lock:
            self._users = max(0, self._users - 1)

    def tell(self, who: Woken) -> None:
        """Call `relook` of this object each time the machine has slept. The object is referenced weakly."""
        with self._lock:
            self._woken.add(who)

    def _leave_out(self, now: int) -> None:
        """Leave out the time since the process last showed that it runs. One second and the processor time used in
        between still count, because code that holds the interpreter for long looks like a stop."""
        with self._lock:
            used = _SECOND + self._source.process_time_ns() - self._spent
            if now - self._alive_at > _GAP:  # another caller may have noticed first
                self._stopped += max(0, now - self._alive_at - used)
                self._alive_at = now

    # -- the thread -----------------------------------------------------------------------------------

    def _pulse(self) -> None:
        idle, asleep = 0, self._asleep()
        while idle < _IDLE or not self._ends():
            self._source.sleep(1.0)
            self.ticks()
            self._spent = self._source.process_time_ns()
            idle = 0 if self._users else idle + 1
            if (now := self._asleep()) - asleep > _SECOND:
                self._tell_all()
            asleep = now

    def _ends(self) -> bool:
        with self._lock:
            if self._users == 0:
                self._thread = None
            return self._users == 0

    def _tell_all(self) -> None:
        with self._lock:
            woken = tuple(self._woken)
        for who in woken:
            who.relook()

    def _asleep(self) -> int:
        """Return how long the machine has slept since it was started."""
        return self._source.clock_gettime_ns(ALWAYS) - self._source.clock_gettime_ns(AWAKE)


USABLE: Final = UsableTime()

if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has no forks
    os.register_at_fork(after_in_child=USABLE.reset)


TOLERANCE: Final = 600 * SECOND  # accepted difference between two clocks
PATIENCE: Final = 3_600.0  # seconds after which a jump of the clock is accepted
_NANO: Final = 1e9
_TOLERANCE: Final = TOLERANCE * 1_000  # in nanoseconds
_SWEEP: Final = 1_000  # cancelled timers that are kept, at least as many as live ones

_log = logging.getLogger("remit")


class Waiting:
    """A timer that has not fired; cancelling it drops its callback."""

    __slots__ = ("_timers", "call")

    def __init__(self, timers: "Timers", call: Callable[[], None]) -> None:
        self._timers = timers
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        if self.call is not None:
            self.call = None
            self._timers.cancelled += 1


class Timers:
    """The timers of one event loop. A timer is only an entry in a heap, because most timers are cancelled long before
    they are due; the loop wakes only for the earliest. `seconds` returns the current time. If the loop wakes too early
    by that time, because the process was stopped, the timer waits for the rest."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: Callable[[], float]) -> None:
        self.loop = loop
        self.cancelled = 0
        self._seconds = seconds
        self._heap: list[tuple[float, int, Waiting]] = []
        self._count = 0
        self._wake: asyncio.TimerHandle | None = None
        self._wakes_at = math.inf

    def call_later(self, seconds: float, call: Callable[[], None]) -> Waiting:
        due = self._seconds() + seconds
        timer = Waiting(self, call)
        self._count += 1
        heapq.heappush(self._heap, (due, self._count, timer))
        if due < self._wakes_at:
            self._arm(due, seconds)
        if self.cancelled > _SWEEP and self.cancelled * 2 > len(self._heap):
            self._sweep()
        return timer

    def relook(self) -> None:
        """Fire the timers that are due. Called from another thread after the machine slept, which the loop does not
        notice."""
        with suppress(RuntimeError):  # the loop has closed
            self.loop.call_soon_threadsafe(self._fire)

    def _arm(self, due: float, seconds: float) -> None:
        if self._wake is not None:
            self._wake.cancel()
        self._wakes_at = due
        self._wake = self.loop.call_later(seconds, self._fire)

    def _fire(self) -> None:
        if self._wake is not None:
            self._wake.cancel()
        self._wake, self._wakes_at = None, math.inf
        now = self._seconds()
        heap = self._heap
        while heap and (heap[0][0] <= now or heap[0][2].call is None):
            timer = heapq.heappop(heap)[2]
            call, timer.call = timer.call, None
            if call is None:
                self.cancelled -= 1
            else:
                call()
        if heap and heap[0][0] < self._wakes_at:
            self._arm(heap[0][0], heap[0][0] - now)

    def _sweep(self) -> None:
        """Drop cancelled timers, which would otherwise stay until they are due."""
        self._heap = [entry for entry in self._heap if entry[2].call is not None]
        heapq.heapify(self._heap)
        self.cancelled = 0


class Doubt(NamedTuple):
    """A reading of the machine's clock that is not accepted yet: its offset, and since when it has been read."""

    offset: int
    since: int


class SystemClock:
    """The real clock. It reads the time of day once and counts from there, so that a change of the machine's clock
    moves no deadline. `ticks` counts only the time in which this process could run, without sleep and stops.

    A reading that differs from the count by more than `TOLERANCE` is a jump. A jump is ignored until the clock of a
    database server confirms it, or until it has lasted for `patience` seconds."""

    def __init__(self, *, patience: float = PATIENCE) -> None:
        self.reread()
        self._trusted = self._offset
        self._patience = round(patience * _NANO)
        self._doubt: Doubt | None = None
        self._timers: Timers | None = None
        self._deadlines: Timers | None = None

    def reread(self) -> None:
        """Read the machine's clock and accept it without a check. Call this only when nothing runs here and another
        clock confirms the time."""
        self._offset = time.time_ns() - time.clock_gettime_ns(ALWAYS)

    def follow(self) -> None:
        """Read the machine's clock again, and accept the time unless the clock jumped. Call this only when nothing runs
        here. The reading is compared with the last confirmed one, so that small steps do not add up to a jump."""
        counted = self._offset
        self.reread()
        if abs(self._offset - self._trusted) <= _TOLERANCE:
            self._doubt = None
            return
        read, self._offset = self._offset, counted
        now = time.clock_gettime_ns(AWAKE)
        if self._doubt is None or abs(read - self._doubt.offset) > _TOLERANCE:
            self._doubt = Doubt(read, now)
            seconds = (read - counted) / _NANO
            _log.warning(
                "this machine's clock was set by %+.0f seconds; remit goes on by the time before, until a database's "
                "server says the same or it has stayed so for %.0f minutes",
                *(seconds, self._patience / _NANO / 60),
            )
        elif now - self._doubt.since >= self._patience:
            self._offset = read
            self.trust()

    @property
    def in_doubt(self) -> bool:
        """Whether the machine's clock jumped, without a confirmation."""
        return self._doubt is not None

    def compare(self, other: int) -> None:
        """Accept a jump of the machine's clock if another clock confirms it. `other` is the time of the other clock in
        microseconds."""
        if self._doubt is None:
            return
        counted, self._offset = self._offset, self._doubt.offset
        if abs(self.now() - other) > TOLERANCE:
            self._offset = counted
        else:
            self.trust()

    def trust(self) -> None:
        """Accept the present time as correct."""
        self._trusted, self._doubt = self._offset, None

    def now(self) -> int:
        return (time.clock_gettime_ns(ALWAYS) + self._offset) // 1_000

    ticks = USABLE.ticks  # without a call in between: every verb asks

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        loop = asyncio.get_running_loop()
        timers = self._timers
        if timers is None or timers.loop is not loop:  # timers of an earlier loop, or of another thread
            timers = self._timers = Timers(loop, _usable)
        return timers.call_later(seconds, call)

    def call_later_asleep_too(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call a function after this many seconds. Unlike for `call_later`, sleep of the machine and stops of the
        process count, so this is for deadlines."""
        loop = asyncio.get_running_loop()
        timers = self._deadlines
        if timers is None or timers.loop is not loop:
            timers = self._deadlines = Timers(loop, _always)
            USABLE.tell(timers)  # the loop does not notice that the machine slept
        return timers.call_later(seconds, call)


def _usable() -> float:
    return USABLE.ticks() / SECOND


def _always() -> float:
    return time.clock_gettime_ns(ALWAYS) / _NANO


_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_SORTED: Final = sorted(_LETTERS)  # digits before letters, so that ids sort as text by creation time
_PAIRS: Final = [a + b for a in _SORTED for b in _SORTED]
_RANDOM: Final = "".join(_SORTED[byte & 31] for byte in range(256)).encode()  # a random byte as a letter


class TimedIds:
    """Ids of sixteen characters: 45 bits of time, so that new rows go to the end of an index, and 35 random bits."""

    def __init__(self) -> None:
        self._begins = 0, ""  # the time in units of 32 s, and the letters that ids begin with meanwhile

    def chance(self) -> float:
        return int.from_bytes(os.urandom(4)) / 2**32

    def new(self) -> str:
        now = time.time_ns() // 1_000_000
        at, letters = self._begins
        if at != now >> 15:
            at = now >> 15
            letters = "".join([_PAIRS[at >> shift & 1023] for shift in (20, 10, 0)])
            self._begins = at, letters
        return letters + _PAIRS[now >> 5 & 1023] + _SORTED[now & 31] + os.urandom(7).translate(_RANDOM).decode()
