"""Listening to what other processes write: PostgreSQL's notifications."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from remit.stores import forks
from remit.stores.postgres.address import Address, Connection, digest
from remit.stores.postgres.ear import Ear

_CHANNEL: Final = "remit"  # as `notify` names it


class _Listener(NamedTuple):
    workspace: str
    loop: asyncio.AbstractEventLoop
    ring: Callable[[], None]


class Notices:
    """Rings when another process has written, and every `poll` seconds in case a notification was missed.

    `own` tells which backend is our writer's: what it writes is known here already. `look` is called with the
    connection each time it rings for everyone.
    """

    def __init__(
        self, address: Address, own: Callable[[], int], poll: float, look: Callable[[Connection], None]
    ) -> None:
        self.address = address
        self._own = own
        self._poll = poll
        self._look = look
        self._listeners: dict[int, _Listener] = {}
        self._count = 0
        self._users = 0
        self._ear: Ear | None = None

    def add(self, workspace: str, ring: Callable[[], None]) -> Callable[[], None]:
        self._count += 1
        number = self._count
        self._listeners[number] = _Listener(digest(workspace), asyncio.get_running_loop(), ring)
        self._listening()

        def stop() -> None:
            self._listeners.pop(number, None)
            self._rest()

        return stop

    @contextmanager
    def ear(self) -> Generator[Ear]:
        """Use the connection that listens, while the body runs."""
        self._users += 1
        try:
            yield self._listening()
        finally:
            self._users -= 1
            self._rest()

    def close(self) -> None:
        self._listeners.clear()
        if self._ear is not None:
            self._ear.stop()
            self._ear = None

    def leave(self) -> None:
        """Forget who listens, in a child process: the thread and the connection are the parent's."""
        forks.keep(self._ear)
        self._listeners.clear()
        self._users = 0
        self._ear = None

    def _listening(self) -> Ear:
        if self._ear is None:
            self._ear = Ear(self.address, self._look_and_ring, self._poll)
            self._ear.hear(_CHANNEL, self._heard)
        return self._ear

    def _rest(self) -> None:
        if not self._listeners and not self._users:
            self.close()

    def _heard(self, workspace: str, backend: int) -> bool:
        """Ring the listeners of a workspace; tell whether it was news."""
        if backend == self._own():
            return False
        self._ring(workspace)
        return True

    def _look_and_ring(self, connection: Connection) -> None:
        self._look(connection)
        self._ring(None)

    def _ring(self, workspace: str | None) -> None:
        """Ring the listeners of a workspace, all of them if it is None."""
        for number, listener in tuple(self._listeners.items()):
            if workspace in (None, listener.workspace):
                with suppress(RuntimeError):  # its loop has closed: nobody is there to hear it
                    listener.loop.call_soon_threadsafe(self._ring_one, number)

    def _ring_one(self, number: int) -> None:
        """Ring a listener in its own loop, unless it has stopped listening since that was decided in our thread."""
        if (listener := self._listeners.get(number)) is not None:
            listener.ring()
