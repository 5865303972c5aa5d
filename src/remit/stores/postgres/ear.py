"""A connection that listens, on a thread that waits for it. What wakes workers asks its questions on it too, so that a
process needs no further connection for them."""

import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeVar

import psycopg
from psycopg import sql
from psycopg.types.numeric import IntDumper

from remit.stores.postgres.address import Address, Connection, lost
from remit.stores.switching import quick_switching

T = TypeVar("T")
Call = Callable[[str, int], bool]  # a notification's text and the backend that sent it; tells whether it was news

_PAUSE: Final = 0.5  # before the server is tried again
_PATIENCE: Final = 30.0  # for one answer of the server; then the connection is given up
_CALM: Final = 0.02  # after something was heard: every listener that is woken reads from the database


class Ear:
    """Calls whoever wants to hear a channel, on its own thread; a lost connection is made anew.

    `look` is called with the connection in case a notification was missed: after connecting, and every `poll` seconds.
    """

    def __init__(self, address: Address, look: Callable[[Connection], None], poll: float) -> None:
        self._address = address
        self._look = look
        self._poll = poll
        self._calls: dict[str, Call] = {}
        self._heard: dict[tuple[str, str, int], None] = {}  # and not told yet; each once
        self._questions: deque[tuple[Callable[[Connection], Any], Future[Any]]] = deque()
        self._stopping = threading.Event()
        self._woken, self._wake = socket.socketpair()
        self._thread = threading.Thread(target=self._listen, name="remit-listen", daemon=True)
        self._started = False

    def hear(self, channel: str, call: Call) -> None:
        """Call for every notification on this channel from now on."""
        self._calls[channel] = call
        if self._started:
            self.ask(lambda connection: _listen_to(connection, channel))
        else:
            self._started = True
            self._thread.start()

    def hear_no_more(self, channel: str) -> None:
        """Stop calling for this channel."""
        self._calls.pop(channel, None)

    def ask(self, use: Callable[[Connection], T]) -> "Future[T]":
        """Run a function with the connection, on the listening thread; the future fails if the server is away."""
        answer: Future[T] = Future()
        self._questions.append((use, answer))
        with suppress(OSError):  # stopped meanwhile: then nobody is left who would answer
            self._wake.send(b"?")
        if self._stopping.is_set():
            self._refuse(psycopg.OperationalError("the store was closed"))
        return answer

    def stop(self) -> None:
        """Stop listening. The thread ends by itself: it may be in the middle of connecting."""
        self._stopping.set()
        self._wake.close()
        self._refuse(psycopg.OperationalError("the store was closed"))

    # -- the thread -----------------------------------------------------------------------------------

    def _listen(self) -> None:
        with self._woken:
            while not self._stopping.is_set():
                try:
                    self._while_connected()
                except (psycopg.Error, OSError) as error:  # whoever asks is told; listening goes on
                    self._refuse(error)
                    self._stopping.wait(_PAUSE)

    def _while_connected(self) -> None:
        # What is asked here is about waking only: if the server forgets it, someone is woken once more, which does no
        # harm. So it need not wait for its disk.
        with (
            self._address.connect(_PATIENCE, synchronous_commit="off") as connection,
            selectors.DefaultSelector() as waiting,
        ):
            connection.adapters.register_dumper(int, IntDumper)  # procrastinate's functions take numbers of any size
            connection.add_notify_handler(self._note)
            for channel in tuple(self._calls):
                _listen_to(connection, channel)
            waiting.register(connection.fileno(), selectors.EVENT_READ)
            waiting.register(self._woken, selectors.EVENT_READ)
            self._look(connection)
            self._attend(connection, waiting)

    def _attend(self, connection: Connection, waiting: selectors.BaseSelector) -> None:
        calm, due = 0.0, time.monotonic() + self._poll
        while not self._stopping.is_set():
            now = time.monotonic()
            if self._heard and now >= calm:
                calm = now + _CALM if self._tell() else now
            if now >= due:
                self._look(connection)
                due = now + self._poll
            until = min(calm, due) if self._heard else due
            for key, _ in waiting.select(max(0.0, until - now)):
                if key.fileobj is self._woken:
                    self._woken.recv(4096)
                else:
                    connection.pgconn.consume_input()
            self._answer(connection)
            while (notice := connection.pgconn.notifies()) is not None:
                self._heard[notice.relname.decode(), notice.extra.decode(), notice.be_pid] = None

    def _note(self, notice: psycopg.Notify) -> None:
        """Keep what came along with the answer to a question."""
        self._heard[notice.channel, notice.payload, notice.pid] = None

    def _tell(self) -> bool:
        """Pass on what was heard, each notification once; return whether any of it was news."""
        heard, self._heard = self._heard, {}
        calls = [(self._calls.get(channel), text, backend) for channel, text, backend in heard]
        news = [call(text, backend) for call, text, backend in calls if call is not None]  # all, before anyone waits
        return any(news)

    def _answer(self, connection: Connection) -> None:
        while self._questions:
            use, answer = self._questions.popleft()
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                with quick_switching():
                    found = use(connection)
            except Exception as error:
                answer.set_exception(error)
                if isinstance(error, psycopg.Error) and lost(error, connection):
                    raise
            else:
                answer.set_result(found)

    def _refuse(self, error: Exception) -> None:
        """Fail all questions that are not answered yet."""
        with suppress(IndexError):
            while True:
                _, answer = self._questions.popleft()
                if answer.set_running_or_notify_cancel():
                    answer.set_exception(error)


def _listen_to(connection: Connection, channel: str) -> None:
    connection.execute(sql.Composed([sql.SQL("LISTEN "), sql.Identifier(channel)]), prepare=False)
