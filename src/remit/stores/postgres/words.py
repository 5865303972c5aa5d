"""Streaming of models' answers between processes: PostgreSQL's notifications, sent only while another process listens.

A process that listens announces itself every few seconds. A process in which models answer sends their text as long as
the last announcement is recent. The text is not stored: a listener that misses a piece gets it with the whole answer,
which follows as an event.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, Final, NamedTuple, Protocol, cast

import psycopg

from remit.ports.models import TextChunk
from remit.stores.postgres.address import STATEMENTS, Connection

Heard = Callable[[TextChunk], None]


class SharedWords(Protocol):
    """The text that models of one workspace stream in this process. `name` identifies the process."""

    workspace: str
    name: str

    @property
    def announcement(self) -> str: ...
    def connect(self, hear: Heard, *, again: bool = False) -> None: ...
    def disconnect(self, hear: Heard) -> None: ...


class AsksConnection(Protocol):
    """A connection that functions can use, on its own thread."""

    def ask(self, use: Callable[[Connection], Any]) -> Future[Any]: ...


_log = logging.getLogger("remit")

CHANNEL: Final = "remit_words"
MOST: Final = 7_000  # bytes of a message; PostgreSQL takes 7,999
_PIECE: Final = 1_000  # characters of a message: one takes six bytes at most
_LISTENERS: Final = 100  # that are known at a time: anyone who may connect to the database can announce anything
_KEPT: Final = 65_536  # characters of an answer that wait to be sent
_PATIENCE: Final = 5.0  # timeout of one statement
_AGAIN: Final = 1.0  # pause after an announcement that failed


class WordsPace(NamedTuple):
    """Seconds: between two messages of a task, between two announcements of a listener, and from an announcement until
    text is no longer sent."""

    every: float = 0.1
    announced: float = 10.0
    wanted: float = 30.0


class WordsSender:
    """The text that models of one workspace stream in this process, collected for processes that listen."""

    def __init__(self, line: SharedWords, wake: Callable[[], None]) -> None:
        self.until = 0.0  # when they are no longer wanted, in monotonic time
        self.listeners = set[str]()  # the names of the lines that have announced themselves
        self._line = line
        self._wake = wake
        self._lock = threading.Lock()
        self._pieces: dict[str, TextChunk] = {}  # by task
        self._count = 0

    def hear(self, chunk: TextChunk) -> None:
        """Add a piece of an answer, on any thread."""
        if time.monotonic() >= self.until:
            return
        with self._lock:
            before = self._pieces.get(chunk.task)
            if before is not None and not chunk.begins:
                chunk = before._replace(text=(before.text + chunk.text)[-_KEPT:])
            self._pieces[chunk.task] = chunk
        self._wake()

    def is_new(self, by: str) -> bool:
        """Record a listener. Return whether it is new and not the first: the first one hears everything from the
        beginning anyway."""
        known = self.listeners
        is_new = bool(known) and by not in known
        if len(known) >= _LISTENERS:
            known.clear()
        known.add(by)
        return is_new

    def leave(self) -> None:
        """Accept no more text."""
        self.until = 0.0
        self._line.disconnect(self.hear)

    def take(self) -> list[str]:
        """Return one message of each task, and keep the rest for the next time."""
        with self._lock:
            pieces, self._pieces = self._pieces, {}
            for task, chunk in pieces.items():
                if rest := chunk.text[_PIECE:]:
                    self._pieces[task] = chunk._replace(text=rest, begins=False)
        messages = [self._message(chunk) for chunk in pieces.values()]
        return [one for one in messages if len(one.encode()) <= MOST]

    def _message(self, chunk: TextChunk) -> str:
        self._count += 1  # makes each message unique: PostgreSQL and we deliver equal ones once
        told = {"workspace": self._line.workspace, "by": self._line.name, "n": self._count}
        message = json.dumps({**told, **chunk._asdict(), "text": chunk.text[:_PIECE]}, ensure_ascii=False)
        return message.encode(errors="replace").decode()


class _Hearer(NamedTuple):
    line: SharedWords
    hear: Heard


class Courier:
    """Sends words and announcements from its own thread, which runs while there is something to send or to hear."""

    def __init__(self, ear: Callable[[], AsksConnection | None], pace: WordsPace = WordsPace()) -> None:  # noqa: B008 - it cannot be changed
        self._ear = ear
        self._pace = pace
        self._senders: dict[str, WordsSender] = {}  # by the name of the line
        self._hearers: dict[int, _Hearer] = {}
        self._count = 0
        self._due = 0.0  # the next announcement, in monotonic time
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def hear(self, line: SharedWords, hear: Heard) -> Callable[[], None]:
        """Pass on words of other processes, and announce that. Return a function that stops it."""
        self._count += 1
        number = self._count
        self._hearers[number] = _Hearer(line, hear)
        self._due = 0.0
        self._go()

        def stop() -> None:
            self._hearers.pop(number, None)
            self._news.set()

        return stop

    @property
    def is_deaf(self) -> bool:
        return not self._hearers

    def start_sending(self, lines: Iterable[SharedWords], by: str = "") -> None:
        """Send the text that models stream in these lines to other processes, for `WordsPace.wanted` seconds from now.
        `by` is the process that has announced that it listens. If `by` is new, each answer in progress is sent from its
        beginning."""
        with self._lock:
            for line in lines:
                sender = self._senders.get(line.name)
                if sender is None:
                    sender = self._senders[line.name] = WordsSender(line, self._news.set)
                sender.until = time.monotonic() + self._pace.wanted
                line.connect(sender.hear, again=sender.is_new(by))
        self._go()

    def forget(self, line: SharedWords) -> None:
        """Stop sending the words of this line."""
        if (sender := self._senders.pop(line.name, None)) is not None:
            sender.leave()

    def arrived(self, text: str, _backend: int) -> bool:
        """Pass a message on to the listeners of its workspace, and ignore any other text. Return False: a message
        changes nothing in the store."""
        message = _read(text)
        if message is not None:
            workspace, by, chunk = message
            for line, hear in tuple(self._hearers.values()):
                if line.workspace == workspace and line.name != by:
                    _pass_on(hear, chunk)
        return False  # nothing in the store has changed

    def stop(self) -> None:
        self._stopping.set()
        self._news.set()
        for sender in tuple(self._senders.values()):
            sender.leave()
        self._hearers.clear()

    # -- the thread -----------------------------------------------------------------------------------

    def _go(self) -> None:
        with self._lock:
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._work, name="remit-words", daemon=True)
                self._thread.start()
        self._news.set()

    def _work(self) -> None:
        while (pause := self._pause()) is not None:
            self._news.wait(pause)
            self._news.clear()
            if self._hearers and time.monotonic() >= self._due:
                self._announce()
            if messages := [one for sender in tuple(self._senders.values()) for one in sender.take()]:
                self._send("notify_words", (messages,))
                self._stopping.wait(self._pace.every)
                self._news.set()  # the rest of a long piece

    def _pause(self) -> float | None:
        """Return the seconds until the thread has work again, unless news arrives; None if the thread is not needed any
        more."""
        with self._lock:
            now = time.monotonic()
            for name, sender in tuple(self._senders.items()):
                if sender.until <= now:
                    self._senders.pop(name, None)
                    sender.leave()
            times = [sender.until for sender in tuple(self._senders.values())]
            if self._hearers:
                times.append(self._due)
            if times and not self._stopping.is_set():
                return max(0.0, min(times) - now)
            self._thread = None
            return None

    def _announce(self) -> None:
        lines = {one.line.name: one.line for one in tuple(self._hearers.values())}
        sent = [self._send("notify", (line.announcement,)) for line in lines.values()]
        self._due = time.monotonic() + (self._pace.announced if all(sent) else _AGAIN)

    def _send(self, name: str, arguments: tuple[Any, ...]) -> bool:
        """Send on the listening connection. Return whether that succeeded: while the server is unreachable, text is
        lost."""
        if (ear := self._ear()) is None:
            return False

        def use(connection: Connection) -> None:
            connection.execute(STATEMENTS[name], arguments)

        try:
            ear.ask(use).result(_PATIENCE)
        except (psycopg.Error, OSError) as error:
            _log.debug("words of models could not be sent: %s", type(error).__name__)
            return False
        return True


def _read(text: str) -> tuple[str, str, TextChunk] | None:
    """Return the workspace, the sender and the piece of a message; None if it is none: anyone who may connect to the
    database can send anything."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    given = cast("dict[str, object]", found)
    names = ("workspace", "by", "agent", "task", "text", "run", "session")
    values = [value for name in names if isinstance(value := given.get(name), str) and _is_plain(value)]
    begins, began = given.get("begins"), given.get("began", 0)
    if len(values) != len(names) or not isinstance(begins, bool) or type(began) is not int:
        return None
    workspace, by, agent, task, said, run, session = values
    return workspace, by, TextChunk(agent, task, said, begins, run, session, began)


def _is_plain(text: str) -> bool:
    """Whether a text can be sent on: half of a character cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _pass_on(hear: Heard, chunk: TextChunk) -> None:
    try:
        hear(chunk)
    except Exception as error:  # noqa: BLE001 - a listener's mistake must not end the listening of others
        _log.warning("a listener to the words of models failed: %s: %s", type(error).__name__, error)
