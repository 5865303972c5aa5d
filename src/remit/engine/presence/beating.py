"""The thread that writes heartbeats, and notices a loop that does not answer.

It has a connection of its own, so an agent that holds up the loop, with a client that is not async or a long
computation, holds up no heartbeat: the process is busy, not gone. One that hangs for good is not alive for ever: a loop
that does not answer for far too long is told of no more.
"""

import asyncio
import logging
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable
from typing import Final

from remit.core.times import SECOND
from remit.engine.presence.peers import PATIENCE
from remit.errors import StoreError
from remit.ports import Beat, Clock, Pulse

BEATS: Final = 3  # in the time that a process may be silent

_LIBRARIES: Final = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))

_log = logging.getLogger("remit")


class BeatThread:
    """Writes heartbeats while it is wanted; started anew when that is so again. `next_beat` gives what to write."""

    def __init__(self, pulse: Pulse, clock: Clock, silence: float, next_beat: Callable[[], Beat]) -> None:
        self._pulse = pulse
        self._clock = clock
        self._silence = silence
        self._next_beat = next_beat
        self._lock = threading.Lock()
        self._wanted = False
        self._beating: _Beating | None = None

    def begin(self) -> None:
        """Start to beat for the running event loop."""
        with self._lock:
            self._wanted = True
            beating = self._beating
            if beating is not None and not beating.is_of_running_loop():
                beating.stopping.set()
                beating = None
            if beating is None:
                watch = LoopWatch(asyncio.get_running_loop(), self._clock, self._silence)
                self._beating = _Beating(watch, self._run)

    def pause(self) -> None:
        """Stop beating. The thread and its connection stay for a moment, in case it begins again."""
        self._wanted = False

    def stop(self) -> threading.Thread | None:
        """Stop beating at once; return the thread if it is still running."""
        with self._lock:
            self._wanted = False
            beating, self._beating = self._beating, None
        if beating is None:
            return None
        beating.stopping.set()
        return beating.thread

    # -- the thread -----------------------------------------------------------------------------------

    def _run(self, beating: "_Beating") -> None:
        try:
            while not beating.stopping.wait(self._silence / BEATS) and not self._ends(beating):
                self._write_if_alive(beating.watch)
        finally:
            self._pulse.close()

    def _ends(self, beating: "_Beating") -> bool:
        """Whether nobody wants it any more."""
        with self._lock:
            ends = not self._wanted or beating.watch.loop.is_closed()
            if ends and self._beating is beating:
                self._beating = None
            return ends

    def _write_if_alive(self, watch: "LoopWatch") -> None:
        try:
            if watch.alive():
                self._pulse.write(self._next_beat())
        except StoreError as error:  # the work itself will be told; the next heartbeat is tried again
            _log.warning("could not write a heartbeat: %s", error)
        except Exception as error:  # noqa: BLE001 - without the thread the process would be taken for gone
            _log.error("writing a heartbeat failed: %r", error, exc_info=error)


class _Beating:
    """One run of the beating thread."""

    def __init__(self, watch: "LoopWatch", run: "Callable[[_Beating], None]") -> None:
        self.watch = watch
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=run, args=(self,), name="remit-beat", daemon=True)
        self.thread.start()

    def is_of_running_loop(self) -> bool:
        return self.watch.loop is asyncio.get_running_loop()


class LoopWatch:
    """Asks a loop for an answer, again and again, and says once if there is none for longer than `silence`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, silence: float) -> None:
        self.loop = loop
        self._clock = clock
        self._silence = round(silence * SECOND)
        self._thread = threading.get_ident()  # that the loop runs in
        self._asked: int | None = None
        self._told = False

    def alive(self) -> bool:
        """Ask, and tell whether the loop is at work, or was until not too long ago."""
        if not self.loop.is_running():  # whoever runs it now and then does nothing in between
            return False
        now = self._clock.ticks()
        asked = self._asked
        if asked is None:  # it has answered, and may answer again before the next line
            self._asked, self._told = now, False
            try:
                self.loop.call_soon_threadsafe(self._answer)
            except RuntimeError:  # it has closed just now
                return False
            return True
        blocked = now - asked
        if blocked >= self._silence and not self._told:
            self._told = True
            seconds = blocked / SECOND
            _log.warning(
                "an agent blocks this process's event loop since %.0f s: %s; nothing else runs here meanwhile, "
                "run it in a thread (await asyncio.to_thread(...))",
                seconds,
                _place(self._thread),
            )
        return blocked < self._silence * PATIENCE

    def _answer(self) -> None:
        self._asked = None


def _place(thread: int) -> str:
    """Say where a thread is, in code that is neither Python's own nor an installed package's if there is any."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - documented so
    places = traceback.extract_stack(frame)
    own = [place for place in places if not place.filename.startswith((*_LIBRARIES, "<"))]
    place = (own or places)[-1]
    return f"{place.name}, {place.filename}:{place.lineno}"
