"""A stand-in for the servers that channels speak to: real HTTP on loopback, answering as the test says."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anyio

PATIENCE = 30


class Got(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Says(NamedTuple):
    """What is answered."""

    status: int = 200
    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()


class StandIn:
    """`answers` says what is answered to each request; all that came is in `got`."""

    def __init__(self) -> None:
        self.got: list[Got] = []
        self.answers: Callable[[Got], Says | Awaitable[Says]] = lambda _: Says()
        self.port = 0
        self._news = anyio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def until(self, true: Callable[[], object]) -> None:
        """Wait until something is so that requests bring about."""
        with anyio.fail_after(PATIENCE):
            while not true():
                self._news = anyio.Event()
                await self._news.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            method, path, _ = first.split(" ")
            got = Got(method, path, headers, body)
            self.got.append(got)
            self._news.set()
            says = self.answers(got)
            status, said, more = says if isinstance(says, Says) else await says
            text = said.encode() if isinstance(said, str) else json.dumps(said).encode()
            told = "".join(f"{name}: {value}\r\n" for name, value in more)
            writer.write(
                f"HTTP/1.1 {status} x\r\ncontent-length: {len(text)}\r\nconnection: close\r\n{told}\r\n".encode()
            )
            writer.write(text)
            await writer.drain()
        except (EOFError, OSError):
            pass
        finally:
            writer.close()
            self._news.set()


@asynccontextmanager
async def stand_in(tls: ssl.SSLContext | None = None) -> AsyncIterator[StandIn]:
    standin = StandIn()
    tasks: set[Any] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        await standin.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    standin.port = server.sockets[0].getsockname()[1]
    try:
        yield standin
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def request(url: str, method: str = "GET", body: bytes = b"", **headers: str) -> tuple[int, dict[str, str], str]:
    """Send a request as a browser would; gives back the status, the headers and the text."""
    rest = url.removeprefix("http://")
    host, _, path = rest.partition("/")
    name, _, port = host.partition(":")
    return await raw(name, int(port), _spelled(method, f"/{path}", host, body, headers))


def _spelled(method: str, path: str, host: str, body: bytes, headers: dict[str, str]) -> bytes:
    lines = {"host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    if method == "POST":
        lines = {"content-length": str(len(body)), "content-type": "application/x-www-form-urlencoded", **lines}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


async def raw(host: str, port: int, sent: bytes) -> tuple[int, dict[str, str], str]:
    """Send exactly this."""
    with anyio.fail_after(PATIENCE):
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(sent)
            await writer.drain()
            answer = await reader.read()
        finally:
            writer.close()
    if not answer:
        return 0, {}, ""
    head, _, text = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split(" ")[1]), headers, text.decode()
