"""Listening to what other processes write: PostgreSQL's notifications, on a thread that waits for them."""

import asyncio
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

import psycopg

from remit.stores import forks
from remit.stores.postgres.address import STATEMENTS, Address, Connection, digest

_PAUSE: Final = 0.5  # before the server is tried again
_CALM: Final = 0.02  # after something was heard


class _Listener(NamedTuple):
    workspace: str
    loop: asyncio.AbstractEventLoop
    ring: Callable[[], None]


class Notices:
    """Rings when another process has written, and every `poll` seconds in case a notification was missed.

    `own` tells which backend is our writer's: what it writes is known here already.
    """

    def __init__(self, address: Address, own: Callable[[], int], poll: float) -> None:
        self._address = address
        self._own = own
        self._poll = poll
        self._listeners: dict[int, _Listener] = {}
        self._count = 0
        self._ear: _Ear | None = None

    def add(self, workspace: str, ring: Callable[[], None]) -> Callable[[], None]:
        self._count += 1
        number = self._count
        self._listeners[number] = _Listener(digest(workspace), asyncio.get_running_loop(), ring)
        if self._ear is None:
            self._ear = _Ear(self._address, self._heard, self._poll)

        def stop() -> None:
            self._listeners.pop(number, None)
            if not self._listeners:
                self.close()

        return stop

    def close(self) -> None:
        self._listeners.clear()
        if self._ear is not None:
            self._ear.stop()  # its thread ends by itself: it may be in the middle of connecting
            self._ear = None

    def leave(self) -> None:
        """Forget who listens, in a child process: the thread and the connection are the parent's."""
        forks.keep(self._ear)
        self._listeners.clear()
        self._ear = None

    def _heard(self, workspace: str | None, backend: int) -> bool:
        """Ring the listeners of a workspace, of any if it is None; tell whether it was news."""
        if workspace is not None and backend == self._own():
            return False
        for listener in tuple(self._listeners.values()):
            if workspace in (None, listener.workspace):
                with suppress(RuntimeError):  # its loop has closed: nobody is there to hear it
                    listener.loop.call_soon_threadsafe(listener.ring)
        return True


class _Ear:
    """Listens on a thread and a connection of its own, until it is stopped."""

    def __init__(self, address: Address, heard: Callable[[str | None, int], bool], poll: float) -> None:
        self._address = address
        self._heard = heard
        self._poll = poll
        self._stopping = threading.Event()
        self._woken, self._wake = socket.socketpair()
        self._thread = threading.Thread(target=self._listen, name="remit-listen", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.close()

    def _listen(self) -> None:
        with self._woken:
            while not self._stopping.is_set():
                try:
                    self._while_connected()
                except (psycopg.Error, OSError):  # whoever writes or reads is told; listening goes on
                    self._stopping.wait(_PAUSE)

    def _while_connected(self) -> None:
        with self._address.connect() as connection, selectors.DefaultSelector() as waiting:
            connection.execute(STATEMENTS["listen"])
            waiting.register(connection.fileno(), selectors.EVENT_READ)
            waiting.register(self._woken, selectors.EVENT_READ)
            self._heard(None, 0)  # what was written while nobody listened
            while not self._stopping.is_set():
                if waiting.select(self._poll):
                    self._take(connection)
                else:
                    self._heard(None, 0)

    def _take(self, connection: Connection) -> None:
        """Ring for each workspace once, however much was written; then pause, because every listener that is woken
        reads from the database."""
        connection.pgconn.consume_input()
        heard: dict[tuple[str, int], None] = {}
        while (notice := connection.pgconn.notifies()) is not None:
            heard[notice.extra.decode(), notice.be_pid] = None
        news = [self._heard(workspace, backend) for workspace, backend in heard]  # all of them, before anyone waits
        if any(news):
            self._stopping.wait(_CALM)
