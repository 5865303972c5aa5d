"""Heartbeats. Each process writes one every few seconds; when they stop, other processes take over its tasks.

With the first heartbeat of a worker, the cards of its agents are published.

With the real clock, a thread writes them, even while the event loop is blocked. With a given clock, as in tests, timers
on the loop write them: a thread could not wait for such a clock.
"""

import asyncio
import gc
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import Context
from typing import Final

from remit.core.kinds.workspace import cards_published
from remit.core.times import SECOND
from remit.core.values import encode
from remit.engine.ground import Ground
from remit.engine.system import USABLE, SystemClock
from remit.engine.timing import While
from remit.engine.traces import libraries
from remit.errors import StoreError
from remit.ports import Beat, Clock, Decision, Pulse, Timer, View
from remit.ports.turn import CURRENT_TURN

BEATS: Final = 3  # heartbeats per heartbeat timeout
BLOCKS: Final = 5.0  # seconds until remit names the agent that blocks an event loop
_TICK: Final = 1.0  # seconds between two checks of an event loop, or less with a short heartbeat timeout

_log = logging.getLogger("remit")


class BeatThread:
    """A thread that writes heartbeats, from `begin` until `pause` or `stop`. After its end, `begin` starts a new
    thread. `next_beat` returns the heartbeat to write."""

    def __init__(self, pulse: Pulse, clock: Clock, silence: float, next_beat: Callable[[], Beat]) -> None:
        self._pulse = pulse
        self._clock = clock
        self._silence = silence
        self._next_beat = next_beat
        self._lock = threading.Lock()
        self._wanted = False
        self._beating: _Beating | None = None

    def begin(self) -> None:
        """Start to write heartbeats for the running event loop."""
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
        """Stop writing heartbeats. The thread and its connection stay until its next check, so that `begin` can use
        them again."""
        self._wanted = False

    def stop(self) -> threading.Thread | None:
        """Stop writing at once. Return the thread if it is still running."""
        with self._lock:
            self._wanted = False
            beating, self._beating = self._beating, None
        if beating is None:
            return None
        beating.stopping.set()
        return beating.thread

    # -- the thread -----------------------------------------------------------------------------------

    def _run(self, beating: "_Beating") -> None:
        ticks = max(1, round(self._silence / BEATS / _TICK))  # checks of the loop per heartbeat
        count = 0
        try:
            while not beating.stopping.wait(self._silence / BEATS / ticks) and not self._ends(beating):
                count += 1
                self._write_if_alive(beating.watch, due=count % ticks == 0)
        finally:
            self._pulse.close()

    def _ends(self, beating: "_Beating") -> bool:
        """Whether the thread must end: it is no longer wanted, or its event loop is closed."""
        with self._lock:
            ends = not self._wanted or beating.watch.loop.is_closed()
            if ends and self._beating is beating:
                self._beating = None
            return ends

    def _write_if_alive(self, watch: "LoopWatch", *, due: bool) -> None:
        try:
            if watch.alive() and due:
                self._pulse.write(self._next_beat())
        except StoreError as error:  # the work itself gets the error; the next heartbeat is tried again
            _log.warning("could not write a heartbeat: %s", error)
        except Exception as error:  # noqa: BLE001 - if the thread died, other processes would take over
            _log.error("writing a heartbeat failed: %r", error, exc_info=error)


class _Beating:
    """One run of the heartbeat thread."""

    def __init__(self, watch: "LoopWatch", run: "Callable[[_Beating], None]") -> None:
        self.watch = watch
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=run, args=(self,), name="remit-beat", daemon=True)
        self.thread.start()

    def is_of_running_loop(self) -> bool:
        return self.watch.loop is asyncio.get_running_loop()


class LoopWatch:
    """Checks whether an event loop responds, and reports once which agent blocks it: after 5 seconds, or after the
    heartbeat timeout if that is shorter."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, silence: float) -> None:
        self.loop = loop
        self._clock = clock
        self._silence = round(silence * SECOND)
        self._blocks = round(min(silence, BLOCKS) * SECOND)
        self._thread = threading.get_ident()  # the loop's thread
        self._asked: int | None = None
        self._told = False

    def alive(self) -> bool:
        """Check whether the event loop responds, and log a warning if an agent blocks it. Return False if the loop does
        not run, or has not responded for much longer than the heartbeat timeout."""
        if not self.loop.is_running():  # a loop that is run from time to time is idle in between
            return False
        now = self._clock.ticks()
        asked = self._asked
        if asked is None:  # it has responded, and may respond again before the next line
            self._asked, self._told = now, False
            try:
                self.loop.call_soon_threadsafe(self._answer)
            except RuntimeError:  # the loop has just been closed
                return False
            return True
        blocked = now - asked
        if blocked >= self._blocks and not self._told:
            self._told = True
            _log.warning(
                "%s blocks the event loop since %.0f s: %s; nothing else runs in this process meanwhile; "
                "run it in a thread (await asyncio.to_thread(...))",
                _agent_on(self.loop),
                blocked / SECOND,
                _place(self._thread),
            )
        from remit.engine.presence.peers import PATIENCE

        return blocked < self._silence * PATIENCE

    def _answer(self) -> None:
        self._asked = None


@contextmanager
def loop_watched() -> Generator[None]:
    """Report the agent that blocks the running event loop, while the body runs: for a process without heartbeats."""
    watch = LoopWatch(asyncio.get_running_loop(), SystemClock(), BLOCKS)
    stopping = threading.Event()

    def check() -> None:
        while not stopping.wait(_TICK):
            watch.alive()

    threading.Thread(target=check, name="remit-loop", daemon=True).start()
    try:
        yield
    finally:
        stopping.set()


def _agent_on(loop: asyncio.AbstractEventLoop) -> str:
    """Return the agent whose code runs on an event loop now, in quotes, or "an agent". Called from another thread."""
    # Tasks have get_context() since Python 3.12; in 3.11 only the garbage collector finds the context.
    contexts = (one for one in gc.get_referents(asyncio.current_task(loop)) if isinstance(one, Context))
    turns = (context.get(CURRENT_TURN) for context in contexts)
    turn = next((turn for turn in turns if turn is not None), None)
    return "an agent" if turn is None else f"'{turn.agent}'"


def _place(thread: int) -> str:
    """Return the place in the code where a thread is: the last frame outside of Python and installed packages, if there
    is one."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - documented so
    places = traceback.extract_stack(frame)
    own = [place for place in places if not place.filename.startswith((*libraries(), "<"))]
    place = (own or places)[-1]
    return f"{place.name}, {place.filename}:{place.lineno}"


_LAST: Final = 1.0  # seconds to wait for a heartbeat in progress when the store is closed


def _address() -> str:
    """Return the address of this process."""
    from remit.engine.presence.peers import process_address

    return process_address()


class Heartbeat:
    """The heartbeat of this process. `lasting` is False for a store in memory, which no other process can see; `pulse`
    lets a thread write the heartbeat; `server_time` returns the database server's time."""

    def __init__(
        self,
        ground: Ground,
        *,
        lasting: bool,
        silence: float,
        pulse: Pulse | None = None,
        server_time: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.worker = ground.ids.new()
        self.hands = 0
        self.silence = silence
        self._ground = ground
        self.lasting = lasting
        self._count = 0
        self._users = 0
        self._timer: Timer | None = None
        self._writing: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._working = While(self._enter, self._leave)
        self._clock = ground.clock if isinstance(ground.clock, SystemClock) else None
        self._counting = False  # whether we have entered USABLE
        self._server_time = server_time
        self.progress: Callable[[], str] = str  # what the tasks of this process have reported, as JSON; "" for nothing
        self._thread: BeatThread | None = None
        if self._clock is not None and pulse is not None:
            self._thread = BeatThread(pulse, self._clock, silence, self._next)

    def first_beat(self) -> Beat | None:
        """Return the first heartbeat, to be written with this process's first transaction; None once it was written."""
        if not self.lasting or self._count:
            return None
        return Beat(self.worker, _address(), 1, self.hands, "", self._ground.clock.now(), self._served())

    def beat_written(self) -> None:
        """Record that the first heartbeat has been written."""
        self._count = self._count or 1

    def while_working(self) -> While:
        """Return a context manager that writes heartbeats while its body runs, for a process that works on tasks."""
        return self._working

    def _enter(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # heartbeats of an earlier loop ended with it
            self._loop, self._users, self._timer = loop, 0, None
        self._users += 1
        if self._users == 1:
            self._begin()

    async def set_clock(self, *, idle: bool) -> None:
        """If this process is `idle`, read the machine's clock again, because it may have been corrected. If the clock
        jumped, compare it with the database server's clock."""
        clock = self._clock
        if not idle or clock is None:
            return
        clock.follow()
        if clock.in_doubt and (server := await asyncio.to_thread(self._server_time)) is not None:
            clock.compare(server)

    def _begin(self) -> None:
        if self._clock is not None:
            self._clock.follow()
            if not self._counting:
                self._counting = True
                USABLE.enter()
        if self._thread is not None:
            self._thread.begin()
        elif self._timer is None and self.lasting:
            self._timer = self._ground.clock.call_later(self.silence / BEATS, self._beat)

    def _leave(self) -> None:
        self._users -= 1
        if not self._users:
            self._end()

    def _end(self) -> None:
        if self._counting:
            self._counting = False
            USABLE.leave()
        if self._thread is not None:
            self._thread.pause()
        elif self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @contextmanager
    def while_serving(self, hands: int) -> Generator[None]:
        """Write heartbeats while the body runs, with the number of queued tasks that this process runs at once."""
        self.hands = hands
        try:
            with self.while_working():
                yield
        finally:
            self.hands = 0

    async def beat_now(self) -> None:
        """Write a heartbeat right away."""
        if self.lasting:
            beat = self._next()
            await self._ground.store.tx(self._ground.ids.new(), lambda _view: Decision(None, (), beat))

    async def publish(self) -> None:
        """Publish the cards of this process's agents that are missing in the store or have changed."""
        ground = self._ground
        cards = ground.directory.cards()

        def decide(view: View) -> Decision[None]:
            fresh = [card for card in cards if view.card(card.name) != card]
            return Decision(None, (cards_published(fresh, ground.clock.now()),) if fresh else ())

        if cards and await ground.store.read(lambda view: any(view.card(card.name) != card for card in cards)):
            await ground.store.tx(ground.ids.new(), decide)

    async def leave(self) -> None:
        """Remove this process from the list of workers, unless it still holds tasks. If the store cannot be reached,
        only log it: the others notice the missing heartbeat."""
        if not self.lasting or not self._count:
            return
        thread = self._thread.stop() if self._thread is not None else None
        if thread is not None:  # wait for its last write before we write
            await asyncio.to_thread(thread.join)
        try:
            # A second caller also waits: the heartbeat must be written before the store is closed.
            if (await self._ground.store.tx(self._ground.ids.new(), self._decide_leaving)).answer:
                self._count = 0
        except StoreError as error:
            _log.warning("could not say that this process has left: %s", error)
        if self._thread is not None and self._users:  # work has started meanwhile
            self._thread.begin()

    def close(self) -> None:
        """Write no more heartbeats: the store is about to be closed."""
        self._end()
        thread = self._thread.stop() if self._thread is not None else None
        if thread is not None:
            thread.join(_LAST)

    def _decide_leaving(self, view: View) -> Decision[bool]:
        if view.tasks_of_worker(self.worker):
            return Decision(False)
        return Decision(True, (), Beat(self.worker, _address(), 0))

    def _next(self) -> Beat:
        self._count += 1
        now = self._ground.clock.now()
        return Beat(self.worker, _address(), self._count, self.hands, self.progress(), now, self._served())

    def _served(self) -> str:
        """Return the agents whose queued tasks this process runs, as JSON; "" if it runs none."""
        return encode([*self._ground.directory.names()]) if self.hands else ""

    def _beat(self) -> None:
        assert self._loop is not None
        self._timer = self._ground.clock.call_later(self.silence / BEATS, self._beat)
        self._writing = self._loop.create_task(self._write_next())

    async def _write_next(self) -> None:
        try:
            await self.beat_now()
        except StoreError as error:  # the work itself gets the error; the next heartbeat is tried again
            _log.warning("could not write a heartbeat: %s", error)
