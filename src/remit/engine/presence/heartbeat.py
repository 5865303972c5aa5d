"""Heartbeats. Each process writes one every few seconds; when they stop, other processes take over its tasks.

With the first one of a worker, the cards of its agents are published.

By the real clock a thread writes them, whatever the loop is busy with. A clock that was given, as in tests, writes them
with its timers on the loop: time passes as that clock says, and a thread could not wait for it.
"""

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from remit.core.kinds import cards_published
from remit.engine.ground import Ground
from remit.engine.presence.beating import BEATS, BeatThread
from remit.engine.presence.processes import process_address
from remit.engine.system import USABLE, SystemClock
from remit.engine.timing import While
from remit.errors import StoreError
from remit.ports import Beat, Decision, Pulse, Timer, View

_LAST: Final = 1.0  # seconds that a heartbeat may take which is being written when the store is closed

_log = logging.getLogger("remit")


class Heartbeat:
    """This process, as others see it. `lasting` is False where nobody else could see it; `pulse` is what a thread
    writes heartbeats with, `server_time` what the database's server says that the time is."""

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
        self._counting = False  # whether stops of this process are counted out on our behalf
        self._server_time = server_time
        self._thread: BeatThread | None = None
        if self._clock is not None and pulse is not None:
            self._thread = BeatThread(pulse, self._clock, silence, self._next)

    def first_beat(self) -> Beat | None:
        """Give the first heartbeat, to go along with the first thing this process writes; None once it was written."""
        return Beat(self.worker, process_address(), 1, self.hands) if self.lasting and not self._count else None

    def beat_written(self) -> None:
        """Note that what the first heartbeat went along with is written."""
        self._count = self._count or 1

    def while_working(self) -> While:
        """Write heartbeats while the body runs: there is work here."""
        return self._working

    def _enter(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # what beat in an earlier loop ended with it
            self._loop, self._users, self._timer = loop, 0, None
        self._users += 1
        if self._users == 1:
            self._begin()

    async def set_clock(self, *, idle: bool) -> None:
        """Read the machine's clock again while nothing runs here: it may have been set right since we began. If it
        jumped, the server's clock is asked."""
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
        """Do the same, and tell others how many tasks from the queue are run here."""
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
        """Publish the cards of this process's agents that the store does not have, or has otherwise."""
        ground = self._ground
        cards = ground.directory.cards()

        def decide(view: View) -> Decision[None]:
            fresh = [card for card in cards if view.card(card.name) != card]
            return Decision(None, (cards_published(fresh, ground.clock.now()),) if fresh else ())

        if cards and await ground.store.read(lambda view: any(view.card(card.name) != card for card in cards)):
            await ground.store.tx(ground.ids.new(), decide)

    async def leave(self) -> None:
        """Remove this process from the list of workers, unless it still holds tasks. A store that cannot be reached is
        only logged: the others will notice the silence."""
        if not self.lasting or not self._count:
            return
        thread = self._thread.stop() if self._thread is not None else None
        if thread is not None:  # what it is writing comes before what we say
            await asyncio.to_thread(thread.join)
        try:
            # Whoever says so while another does waits for it too: it must be written before the store is closed.
            if await self._ground.store.tx(self._ground.ids.new(), self._left):
                self._count = 0
        except StoreError as error:
            _log.warning("could not say that this process has left: %s", error)
        if self._thread is not None and self._users:  # someone has begun something meanwhile
            self._thread.begin()

    def close(self) -> None:
        """Beat no more: the store is about to be closed."""
        self._end()
        thread = self._thread.stop() if self._thread is not None else None
        if thread is not None:
            thread.join(_LAST)

    def _left(self, view: View) -> Decision[bool]:
        if view.held(self.worker):
            return Decision(False)
        return Decision(True, (), Beat(self.worker, process_address(), 0))

    def _next(self) -> Beat:
        self._count += 1
        return Beat(self.worker, process_address(), self._count, self.hands)

    def _beat(self) -> None:
        assert self._loop is not None
        self._timer = self._ground.clock.call_later(self.silence / BEATS, self._beat)
        self._writing = self._loop.create_task(self._write_next())

    async def _write_next(self) -> None:
        try:
            await self.beat_now()
        except StoreError as error:  # the work itself will be told; the next heartbeat is tried again
            _log.warning("could not write a heartbeat: %s", error)
