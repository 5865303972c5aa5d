"""Listening to the writes of other processes: PostgreSQL's notifications, on a connection with its own thread."""

import asyncio
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from os import urandom
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from weakref import ref

import psycopg
from psycopg import sql
from psycopg.types.numeric import IntDumper

from remit.stores import forks
from remit.stores.postgres.address import Address, Connection, digest, is_connection_lost
from remit.stores.threads import quick_switching

if TYPE_CHECKING:
    from remit.ports.models import Listeners, TextChunk
    from remit.stores.postgres.words import Courier

T = TypeVar("T")
Call = Callable[[str, int], bool]  # (text, backend) -> whether it was news

_PAUSE: Final = 0.5  # pause before a reconnect
_PATIENCE: Final = 30.0  # timeout of one answer; then the connection is dropped
_CALM: Final = 0.02  # pause after a notification: every woken listener reads from the database


class Ear:
    """Calls the listeners of a channel, on its own thread; a lost connection is reopened.

    `look` is called with the connection in case a notification was missed: after connecting, and every `poll` seconds.
    """

    def __init__(self, address: Address, look: Callable[[Connection], None], poll: float) -> None:
        self._address = address
        self._look = look
        self._poll = poll
        self._calls: dict[str, Call] = {}
        self._heard: dict[tuple[str, str, int], None] = {}  # notifications to pass on, each once
        self._questions: deque[tuple[Callable[[Connection], Any], Future[Any]]] = deque()
        self._stopping = threading.Event()
        self._woken, self._wake = socket.socketpair()
        self._thread = threading.Thread(target=self._listen, name="remit-listen", daemon=True)
        self._started = False

    def hear(self, channel: str, call: Call) -> None:
        """Call this function for every notification on this channel from now on."""
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
        """Run a function with the connection, on the listening thread; the future fails if the server is
        unreachable."""
        answer: Future[T] = Future()
        self._questions.append((use, answer))
        with suppress(OSError):  # stopped meanwhile: no thread is left to answer
            self._wake.send(b"?")
        if self._stopping.is_set():
            self._refuse(psycopg.OperationalError("the store was closed"))
        return answer

    def stop(self) -> None:
        """Stop listening. The thread ends by itself: it may be connecting."""
        self._stopping.set()
        self._wake.close()
        self._refuse(psycopg.OperationalError("the store was closed"))

    # -- the thread -----------------------------------------------------------------------------------

    def _listen(self) -> None:
        with self._woken:
            while not self._stopping.is_set():
                try:
                    self._while_connected()
                except (psycopg.Error, OSError) as error:  # callers get the error; listening continues
                    self._refuse(error)
                    self._stopping.wait(_PAUSE)

    def _while_connected(self) -> None:
        # These statements only concern wake-ups: if the server loses one, a worker is woken again, which is
        # harmless. So do not wait for its disk.
        with (
            self._address.connect(_PATIENCE, synchronous_commit="off") as connection,
            selectors.DefaultSelector() as waiting,
        ):
            connection.adapters.register_dumper(int, IntDumper)  # procrastinate's functions accept any integer type
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
        """Keep a notification that came with the answer to a query."""
        self._heard[notice.channel, notice.payload, notice.pid] = None

    def _tell(self) -> bool:
        """Pass notifications on, each once. Return whether any was new."""
        heard, self._heard = self._heard, {}
        calls = [(self._calls.get(channel), text, backend) for channel, text, backend in heard]
        # A list: `any` stops at the first True, and the other functions would not be called.
        news = [call(text, backend) for call, text, backend in calls if call is not None]
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
                if isinstance(error, psycopg.Error) and is_connection_lost(error, connection):
                    raise
            else:
                answer.set_result(found)

    def _refuse(self, error: Exception) -> None:
        """Fail all unanswered queries."""
        with suppress(IndexError):
            while True:
                _, answer = self._questions.popleft()
                if answer.set_running_or_notify_cancel():
                    answer.set_exception(error)


def _unlisten(connection: Connection, channel: str) -> None:
    connection.execute(sql.Composed([sql.SQL("UNLISTEN "), sql.Identifier(channel)]), prepare=False)


def _listen_to(connection: Connection, channel: str) -> None:
    connection.execute(sql.Composed([sql.SQL("LISTEN "), sql.Identifier(channel)]), prepare=False)


_CHANNEL: Final = "remit"  # the channel that `notify` uses
_WORDS: Final = "words "  # begins the announcement of a listener to the words of models


class _Listener(NamedTuple):
    workspace: str
    loop: asyncio.AbstractEventLoop
    ring: Callable[[], None]


class PostgresWords:
    """The words of models of one workspace, to and from other processes."""

    def __init__(self, notices: "Notices", workspace: str) -> None:
        self.workspace = digest(workspace)
        self.name = urandom(8).hex()
        self._notices = notices
        self._ears: Listeners | None = None  # the listeners in this process

    def carry(self, ears: "Listeners") -> Callable[[], None]:
        self._ears = ears
        self._notices.offer(self)
        return lambda: self._notices.retract(self)

    def hear(self, hear: "Callable[[TextChunk], None]") -> Callable[[], None]:
        return self._notices.hear_words(self, hear)

    @property
    def announcement(self) -> str:
        return f"{_WORDS}{self.workspace} {self.name}"

    def connect(self, hear: "Callable[[TextChunk], None]", *, again: bool = False) -> None:
        """Pass the text that models of this process stream to `hear`. With `again`, repeat the answers in progress from
        their beginning."""
        if self._ears is not None:
            self._ears.add(hear)
            if again:
                self._ears.repeat(hear)

    def disconnect(self, hear: "Callable[[TextChunk], None]") -> None:
        if self._ears is not None:
            self._ears.remove(hear)


class Notices:
    """Notifies listeners when another process has written, and every `poll` seconds in case a notification was missed.

    `own` returns our writer's backend id: its writes are known here already. `look` is called with the connection each
    time all listeners are notified.
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
        self._lines: dict[str, ref[PostgresWords]] = {}  # weak: a process may open many workspaces and close none
        self._courier: Courier | None = None

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
        """Use the listening connection while the body runs."""
        self._users += 1
        try:
            yield self._listening()
        finally:
            self._users -= 1
            self._rest()

    def offer(self, line: PostgresWords) -> None:
        """Send the streamed text of this line's models while other processes listen."""
        name = line.name
        self._lines[name] = ref(line, lambda _: self._lines.pop(name, None) and None)

    def retract(self, line: PostgresWords) -> None:
        self._lines.pop(line.name, None)
        if self._courier is not None:
            self._courier.forget(line)

    def hear_words(self, line: PostgresWords, hear: "Callable[[TextChunk], None]") -> Callable[[], None]:
        """Pass on the words of models in other processes. Return a function that stops it."""
        from remit.stores.postgres.words import CHANNEL  # noqa: PLC0415 - few programs listen to words

        courier, ear = self._sending(), self._listening()
        if courier.is_deaf:
            ear.hear(CHANNEL, courier.arrived)
        self._users += 1
        unheard = courier.hear(line, hear)

        def stop() -> None:
            unheard()
            if courier.is_deaf:
                ear.hear_no_more(CHANNEL)
                ear.ask(lambda connection: _unlisten(connection, CHANNEL))
            self._users -= 1
            self._rest()

        return stop

    def close(self) -> None:
        self._listeners.clear()
        if self._courier is not None:
            self._courier.stop()
            self._courier = None
        if self._ear is not None:
            self._ear.stop()
            self._ear = None

    def leave(self) -> None:
        """In a child process, drop the listeners: the thread and the connection belong to the parent."""
        forks.keep(self._ear)
        self._listeners.clear()
        self._users = 0
        self._ear = self._courier = None

    def _listening(self) -> Ear:
        if self._ear is None:
            self._ear = Ear(self.address, self._look_and_ring, self._poll)
            self._ear.hear(_CHANNEL, self._notify_listeners)
        return self._ear

    def _rest(self) -> None:
        if not self._listeners and not self._users:
            self.close()

    def _notify_listeners(self, workspace: str, backend: int) -> bool:
        """Notify the listeners of a workspace. Return whether it was news."""
        if backend == self._own():
            return False
        if workspace.startswith(_WORDS):
            self._announced(workspace.removeprefix(_WORDS))
            return False
        self._ring(workspace)
        return True

    def _announced(self, text: str) -> None:
        """Send words to the process that has announced that it listens, if there is a line for it."""
        workspace, _, by = text.partition(" ")
        lines = [line for one in tuple(self._lines.values()) if (line := one()) is not None]
        if wanted := [line for line in lines if line.workspace == workspace and line.name != by]:
            self._sending().start_sending(wanted, by)

    def _sending(self) -> "Courier":
        from remit.stores.postgres.words import Courier  # noqa: PLC0415 - few programs listen to words

        if self._courier is None:
            self._courier = Courier(lambda: self._ear)
        return self._courier

    def _look_and_ring(self, connection: Connection) -> None:
        self._look(connection)
        self._ring(None)

    def _ring(self, workspace: str | None) -> None:
        """Notify the listeners of a workspace, or all if it is None."""
        for number, listener in tuple(self._listeners.items()):
            if workspace in (None, listener.workspace):
                with suppress(RuntimeError):  # its loop has closed
                    listener.loop.call_soon_threadsafe(self._ring_one, number)

    def _ring_one(self, number: int) -> None:
        """Notify a listener in its own loop, unless it has stopped listening since our thread decided that."""
        if (listener := self._listeners.get(number)) is not None:
            listener.ring()
