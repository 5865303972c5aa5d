"""A connection pooler as far as a client can tell: what pgbouncer does when one connects, and between transactions."""

import socket
import struct
import threading
from contextlib import suppress
from typing import Literal

from postgres import Between

Mode = Literal["session", "transaction"]
_ASKS_FOR_ENCRYPTION = (80877103, 80877104)  # SSLRequest, GSSENCRequest
_ENDS_A_QUESTION = (b"Q", b"S")  # a query, or the Sync after its parts: the server answers with ReadyForQuery


class Pooler(Between):
    """Takes connections as a pooler does. `options` at the start are refused, or dropped if that is wanted.

    In the mode `transaction` all clients share one session of the server, and get it for one transaction at a time.
    """

    def __init__(self, address: str, mode: Mode, *, drops_options: bool = False) -> None:
        self._mode = mode
        self._drops = drops_options
        self._turn = threading.Lock()
        self._shared: tuple[socket.socket, bytes] | None = None
        super().__init__(address)

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, EOFError), client:
            wishes = _start(client)
            if "options" in wishes and not self._drops:
                client.sendall(_error("unsupported startup parameter: options"))
                return
            wishes.pop("options", None)
            if self._mode == "session":
                server, greeting = self._connected(wishes)
                client.sendall(greeting)
                self._run(_pass_on, server, client)
                _pass_on(client, server)
            else:
                with self._turn:
                    self._shared = self._shared or self._connected(wishes)
                client.sendall(self._shared[1])
                self._take_turns(client, self._shared[0])

    def _connected(self, wishes: dict[str, str]) -> tuple[socket.socket, bytes]:
        """A session of the server, and what is told to whoever gets it: the number of its process is made up."""
        server = self._reach()
        words = b"".join(f"{name}\0{value}\0".encode() for name, value in wishes.items()) + b"\0"
        server.sendall(struct.pack("!ii", 8 + len(words), 196608) + words)
        greeting = b""
        while not greeting.endswith(b"Z\0\0\0\5I"):
            kind, body = _message(server)
            body = struct.pack("!i", 1_000_000_000) + body[4:] if kind == b"K" else body
            greeting += _packed(kind, body)
        return server, greeting

    def _take_turns(self, client: socket.socket, server: socket.socket) -> None:
        """Gets the session with the first word of a transaction, and gives it back with the last one."""
        has_it = False
        try:
            while True:
                kind, body = _message(client)
                if kind == b"X":
                    return
                if not has_it:
                    has_it = self._turn.acquire()
                server.sendall(_packed(kind, body))
                if kind in _ENDS_A_QUESTION:
                    answer, status = _message(server)
                    client.sendall(_packed(answer, status))
                    while answer != b"Z":
                        answer, status = _message(server)
                        client.sendall(_packed(answer, status))
                    if status == b"I":
                        has_it = False
                        self._turn.release()
        finally:
            if has_it:
                self._turn.release()


def _start(client: socket.socket) -> dict[str, str]:
    """What a client wishes for when it connects; encryption it does not get."""
    while True:
        size, what = struct.unpack("!ii", _exactly(client, 8))
        words = _exactly(client, size - 8)
        if what not in _ASKS_FOR_ENCRYPTION:
            break
        client.sendall(b"N")
    parts = words.decode().split("\0")
    return {name: value for name, value in zip(parts[::2], parts[1::2], strict=False) if name}


def _message(one: socket.socket) -> tuple[bytes, bytes]:
    kind, size = struct.unpack("!ci", _exactly(one, 5))
    return kind, _exactly(one, size - 4)


def _packed(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _error(sentence: str) -> bytes:
    return _packed(b"E", f"SFATAL\0VFATAL\0C08P01\0M{sentence}\0\0".encode())


def _exactly(one: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = one.recv(size - len(found))
        if not more:
            raise EOFError
        found += more
    return found


def _pass_on(here: socket.socket, there: socket.socket) -> None:
    with suppress(OSError):
        while data := here.recv(65_536):
            there.sendall(data)
    for one in (here, there):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
