"""Time that this process could use. A machine that sleeps and a process that is stopped use none.

The system leaves out sleep by itself. That the process was stopped, by a signal or with the virtual machine around it,
is noticed by a thread which does nothing but look at the clock each second: nothing else in a process can tell a stop
from a wait, or from an agent that holds up the loop, whose time that is.
"""

import os
import threading
import time
import weakref
from typing import Final, Protocol

AWAKE: Final = getattr(time, "CLOCK_UPTIME_RAW", time.CLOCK_MONOTONIC)  # does not run while the machine sleeps
ALWAYS: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # does, where there is one that does
_SECOND: Final = 1_000_000_000
_GAP: Final = 5 * _SECOND  # so long without a sign of life is no busy machine, but a stop
_IDLE: Final = 10  # pulses after which the thread ends if nobody needs it


class Source(Protocol):
    """The system's clocks, as the module `time` has them."""

    def clock_gettime_ns(self, clk_id: int, /) -> int: ...
    def process_time_ns(self) -> int: ...
    def sleep(self, seconds: float, /) -> None: ...


class Woken(Protocol):
    """Someone who wants to know that the machine slept."""

    def relook(self) -> None:
        """Look at the time again; called on a thread of its own."""
        ...


class UsableTime:
    """Counts the nanoseconds that this process could use; there is one for a process. It counts stops out while
    someone is between `enter` and `leave`."""

    def __init__(self, source: Source = time) -> None:
        self._source = source
        self.begin_anew()
        self._stopped = 0

    def begin_anew(self) -> None:
        """Forget the thread and whoever it was there for: in a forked process they are the parent's."""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._users = 0
        self._alive_at = 0  # the last sign of life
        self._spent = 0  # processor time at the last pulse
        self._woken: weakref.WeakSet[Woken] = weakref.WeakSet()

    def count(self) -> int:
        """Return the usable time in nanoseconds; it never goes back."""
        now = self._source.clock_gettime_ns(AWAKE)
        if now - self._alive_at > _GAP and self._thread is not None:
            self._leave_out(now)
        self._alive_at = now
        return now - self._stopped

    def enter(self) -> None:
        """Start to leave out the time in which the process is stopped."""
        with self._lock:
            self._users += 1
            if self._thread is None:
                source = self._source
                self._alive_at, self._spent = source.clock_gettime_ns(AWAKE), source.process_time_ns()
                self._thread = threading.Thread(target=self._pulse, name="remit-pulse", daemon=True)
                self._thread.start()

    def leave(self) -> None:
        """Note that one user less needs this; without users the thread ends after a while."""
        with self._lock:
            self._users = max(0, self._users - 1)

    def tell(self, who: Woken) -> None:
        """Notify them when the machine has slept, for as long as they live."""
        with self._lock:
            self._woken.add(who)

    def _leave_out(self, now: int) -> None:
        """Leave out the time since the last sign of life, but for a second of waiting and what was computed: whoever
        holds the interpreter for long gives no sign of life either."""
        with self._lock:
            used = _SECOND + self._source.process_time_ns() - self._spent
            if now - self._alive_at > _GAP:  # of two who notice the first has done it
                self._stopped += max(0, now - self._alive_at - used)
                self._alive_at = now

    # -- the thread -----------------------------------------------------------------------------------

    def _pulse(self) -> None:
        idle, asleep = 0, self._asleep()
        while idle < _IDLE or not self._ends():
            self._source.sleep(1.0)
            self.count()
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
        """Tell for how long the machine has slept since it was started."""
        return self._source.clock_gettime_ns(ALWAYS) - self._source.clock_gettime_ns(AWAKE)


USABLE: Final = UsableTime()

if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has no forks
    os.register_at_fork(after_in_child=USABLE.begin_anew)
