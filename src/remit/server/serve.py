"""Serving on a port: the listening socket, uvicorn around the application, and an end that waits for open requests."""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Coroutine, Generator, Iterable
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar, cast

import uvicorn

from remit.adapters.guard import SECONDS, GuardedProtocol
from remit.errors import BadInput
from remit.runtime.runtime import run_main
from remit.server.app import Server
from remit.server.garbage import short_collections

T = TypeVar("T")
PORT: Final = 8377
GRACE: Final = 2  # seconds that open streams are given at the end
_BACKLOG: Final = 2_048
_SEND_BUFFER: Final = 65_536  # bytes that a reader which does not read takes of our memory


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def own_origins(hosts: Iterable[str]) -> frozenset[str]:
    """Return the origins of the server's own pages: they may call it, as no page of another server may."""
    return frozenset(f"{scheme}://{host}" for host in hosts for scheme in ("http", "https"))


def may_bind(host: str, *, has_access: bool) -> None:
    """Raise `BadInput` if other machines can reach the address and the store has no access key. There is no option to
    allow it."""
    if not is_loopback(host) and not has_access:
        raise BadInput(
            f"other machines reach {host!r}, so the server needs keys first: `remit access make` makes one; "
            "without keys, serve on 127.0.0.1"
        )


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens on this address. Raise `BadInput` that says why it cannot."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        raise BadInput(
            f"{host!r} is no address of this machine; pass --host 127.0.0.1, or the address to serve on"
        ) from None
    family, kind, _, _, address = found[0]
    # Without its protocol, asyncio does not turn off Nagle's algorithm, and every answer waits for 40 ms.
    made = socket.socket(family, kind, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        made.bind(address)
        made.listen(_BACKLOG)
        made.setblocking(False)
    except OSError as error:
        made.close()
        raise BadInput(_why_not(error, host, port)) from None
    return made


def _why_not(error: OSError, host: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"port {port} is in use, perhaps by another server; pass --port with another one, or 0 for any"
        case errno.EACCES:
            return f"port {port} is not allowed for this user; pass --port with one above 1023"
        case errno.EADDRNOTAVAIL:
            return f"{host!r} is no address of this machine; pass --host 127.0.0.1, or the address to serve on"
        case _:
            return f"{host!r}, port {port}, cannot be served on: {error.strerror}"


class PortServer(uvicorn.Server):
    """uvicorn without its own handling of signals: its caller ends it, with `end`."""

    def __init__(self, app: Server, *, grace: int = GRACE, head_seconds: float = SECONDS) -> None:
        self._app = app
        config = uvicorn.Config(
            app,
            http=cast("type[GuardedProtocol]", partial(GuardedProtocol, seconds=head_seconds)),
            ws="none",
            lifespan="on",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=grace,
        )
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signals to the caller."""
        yield

    async def main_loop(self) -> None:
        """Serve until `end` is called. uvicorn calls this when everything has started."""
        with short_collections():
            await super().main_loop()

    def end(self) -> None:
        """Accept nothing more, finish the open requests, and return from `serve`."""
        self._app.end_streams()
        self.should_exit = True


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, on uvloop where it is installed."""
    factory = None
    with suppress(ImportError):
        import uvloop  # noqa: PLC0415 - not installed everywhere

        factory = uvloop.new_event_loop
    return run_main(main, factory)
