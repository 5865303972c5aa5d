"""The calls of `remit.Client` over HTTP. They need `remit[server]` or `remit[channels]`."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, cast

import httpx

from remit.core.secret import Secret
from remit.core.values import Json, shown
from remit.errors import BadInput, NoServer, RemitError, StoreError
from remit.ports.contents import PART
from remit.runtime.calls import CALLS, error_restored
from remit.runtime.client import SentFile

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_PATH: Final = "/v1/calls/"
_FILES: Final = "/v1/artifacts"
_SECONDS: Final = httpx.Timeout(30.0, connect=5.0)  # longer than a server waits for an event
_PAUSES: Final = (0.1, 0.4)  # seconds before a call whose answer was lost is made again
_FOUND: Final = 200
_TOO_MANY: Final = 429
_LONGEST: Final = 5.0
_SUBMITS: Final = ("submit", "submit_plan", "submit_team")
_LOOPBACK: Final = "localhost"


class HttpWire:
    """Calls over HTTP. A call whose answer was lost is made again; every change has an operation id or a key, so that
    it is done once."""

    def __init__(self, address: str, key: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.where = _checked(address)
        self._key = Secret(key) if key else None
        self._transport = transport
        self._kept: httpx.AsyncClient | None = None
        self.sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    @property
    def is_private(self) -> bool:
        """Whether the connection is encrypted, or does not leave this machine."""
        return self.where.startswith("https:") or _is_loopback(self.where)

    async def call(self, name: str, given: dict[str, Json]) -> Json:
        given = _once(name, given)
        answer = await self._patiently(lambda client: client.post(_PATH + name, json=given), given)
        if "answer" not in answer:
            raise _strange(200, self.where)
        return cast("Json", answer["answer"])

    async def save_file(self, parts: Callable[[], AsyncIterator[bytes]], file: SentFile) -> Json:
        query = {"name": file.name, "trust": file.trust, **({"by": file.by} if file.by else {})}
        headers = {"Content-Type": file.media_type, "Idempotency-Key": file.op or secrets.token_urlsafe(18)}

        def send(client: httpx.AsyncClient) -> Awaitable[httpx.Response]:
            return client.post(_FILES, params=query, headers=headers, content=parts())

        return await self._patiently(send, {}, _PAUSES if file.again else ())

    async def fetch_file(self, digest: str) -> AsyncGenerator[bytes]:
        try:
            async with self._client() as client, client.stream("GET", f"{_FILES}/{digest}") as response:
                if response.status_code != _FOUND:
                    await response.aread()
                    _data(response, self.where, {})
                    raise _strange(response.status_code, self.where)
                async for part in response.aiter_bytes(PART):
                    yield part
        except httpx.TransportError as error:
            raise self._no_server(error) from error

    async def _patiently(
        self,
        send: Callable[[httpx.AsyncClient], Awaitable[httpx.Response]],
        given: dict[str, Json],
        pauses: tuple[float, ...] = _PAUSES,
    ) -> dict[str, Any]:
        """Send a request and return the JSON of its answer. If no answer came or the server is busy, send it again
        after each of `pauses`, in seconds, or after the pause that the server asks for. `given` are the arguments of
        the call, for its errors. Raise `NoServer` if the last request got no answer."""
        for pause in pauses:
            with suppress(httpx.TransportError):
                async with self._client() as client:
                    response = await send(client)
                if response.status_code != _TOO_MANY:
                    return _data(response, self.where, given)
                pause = _patience(response)  # noqa: PLW2901 - the server knows better
            await self.sleep(pause)
        try:
            async with self._client() as client:
                return _data(await send(client), self.where, given)
        except httpx.TransportError as error:
            raise self._no_server(error) from error

    def _no_server(self, error: httpx.TransportError) -> NoServer:
        what = str(error) or type(error).__name__
        return NoServer(f"no server answers at {self.where} ({what}); `remit serve` starts one")

    async def open(self) -> None:
        """Keep connections open from now on, in this event loop."""
        self._kept = self._new_client(kept=10)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._kept is not None:
            await self._kept.aclose()
        self._kept = None

    def close(self) -> None:
        """Do nothing: without `open` no connection stays open, and after it `aclose` closes them."""

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[httpx.AsyncClient]:
        """Yield the client that `open` has made. Without `open`, yield a new client and close it after the body: a
        connection belongs to one event loop, and a program may use several loops, one after another."""
        if self._kept is not None:
            yield self._kept
            return
        async with self._new_client(kept=0) as client:
            yield client

    def _new_client(self, kept: int) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.where,
            headers={"Authorization": f"Bearer {self._key.reveal()}"} if self._key is not None else {},
            timeout=_SECONDS,
            limits=httpx.Limits(max_keepalive_connections=kept),
            transport=self._transport,
            verify=self.where.startswith("https:"),  # loading certificates takes long
            trust_env=not _is_loopback(self.where),
            follow_redirects=False,  # the key is for this server
        )


def _once(name: str, given: dict[str, Json]) -> dict[str, Json]:
    """Return the arguments of a call with a new idempotency key or operation id if they have none, so that a repeated
    call is done once. Return the arguments of a call that changes nothing as they are."""
    if name in _SUBMITS and not given.get("key") and not given.get("same_within"):
        return {**given, "key": secrets.token_urlsafe(18)}
    if CALLS[name].acts and not given.get("op"):
        return {**given, "op": secrets.token_urlsafe(18)}
    return given


def _patience(response: httpx.Response) -> float:
    """Return the seconds to wait that a server states in Retry-After, at most 5; 1 if it states none."""
    given = response.headers.get("retry-after", "")
    return min(float(given), _LONGEST) if given.isascii() and given.isdigit() else 1.0


def _data(response: httpx.Response, where: str, given: dict[str, Json]) -> dict[str, Any]:
    """Return the JSON of an answer. If the server reports an error, raise it; `given` are the arguments of the call
    that it is about. Raise `StoreError` if the answer is not one of remit."""
    try:
        data: Any = response.json()
    except ValueError:
        data = None
    if response.status_code < 300 and isinstance(data, dict):
        return cast("dict[str, Any]", data)
    if isinstance(data, dict) and isinstance(data.get("code"), str):  # pyright: ignore[reportUnknownMemberType]
        raise error_restored(cast("dict[str, Any]", data), given)
    raise _strange(response.status_code, where)


def _strange(status: int, where: str) -> RemitError:
    return StoreError(f"{where} answered with status {status} and nothing that remit understands; is it `remit serve`?")


def _checked(address: str) -> str:
    """Return the address of a server. Raise `BadInput` unless it is http or https with a host, and without a path, a
    query, a user and a password. The error does not show an address that may contain a password."""
    try:
        url = httpx.URL(address)
    except (TypeError, httpx.InvalidURL):
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.path not in ("", "/") or url.query or url.userinfo:
        given = "" if "@" in str(address) else f", not {shown(address)}"
        raise BadInput(f"a server is an address such as http://127.0.0.1:8377{given}; the key goes into REMIT_KEY")
    return str(url).rstrip("/")


def local_port(address: str) -> int:
    """Return the port of a server on this machine, or 0 for another server."""
    where = _checked(address)
    url = httpx.URL(where)
    return (url.port or (443 if url.scheme == "https" else 80)) if _is_loopback(where) else 0


def _is_loopback(address: str) -> bool:
    host = httpx.URL(address).host
    try:
        return host == _LOOPBACK or ip_address(host).is_loopback
    except ValueError:
        return False
