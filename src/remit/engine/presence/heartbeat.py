"""Heartbeats. Each process writes one every few seconds; when they stop, other processes take over its tasks.

With the first one of a worker, the cards of its agents are published.
"""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from remit.core.kinds import cards_published
from remit.engine.ground import Ground
from remit.engine.presence.peers import process_address
from remit.engine.timing import While
from remit.errors import StoreError
from remit.ports import Beat, Decision, Timer, View

BEATS: Final = 3  # in the time that a process may be silent

_log = logging.getLogger("remit")


class Heartbeat:
    """This process, as others see it. `lasting` is False where nobody else could see it."""

    def __init__(self, ground: Ground, *, lasting: bool, silence: float) -> None:
        self.worker = ground.ids.new()
        self.hands = 0
        self.silence = silence
        self._ground = ground
        self._lasting = lasting
        self._count = 0
        self._users = 0
        self._timer: Timer | None = None
        self._writing: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._working = While(self._enter, self._leave)

    def first_beat(self) -> Beat | None:
        """Give the first heartbeat, to go along with the first thing this process writes; None once it was written."""
        return Beat(self.worker, process_address(), 1, self.hands) if self._lasting and not self._count else None

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
        if self._timer is None and self._lasting:
            self._timer = self._ground.clock.call_later(self.silence / BEATS, self._beat)

    def _leave(self) -> None:
        self._users -= 1
        if not self._users and self._timer is not None:
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
        if self._lasting:
            self._count += 1
            await self._write(Beat(self.worker, process_address(), self._count, self.hands))

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
        """Say that there is nothing here to take over."""
        if self._lasting and self._count:
            # Whoever says so while another does waits for it too: it must be written before the store is closed.
            await self._write(Beat(self.worker, process_address(), 0))
            self._count = 0

    async def _write(self, beat: Beat) -> None:
        await self._ground.store.tx(self._ground.ids.new(), lambda _view: Decision(None, (), beat))

    def _beat(self) -> None:
        assert self._loop is not None
        self._timer = self._ground.clock.call_later(self.silence / BEATS, self._beat)
        self._writing = self._loop.create_task(self._write_next())

    async def _write_next(self) -> None:
        try:
            await self.beat_now()
        except StoreError as error:  # the work itself will be told; the next heartbeat is tried again
            _log.warning("could not write a heartbeat: %s", error)
