"""HTTP requests of channels.

Errors are reported by their kind only: the client's own message contains the address, which may contain a token. Our
exceptions are raised outside the handler of the client's error, so that they do not carry it as their context.
"""

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import anyio

from remit.adapters.asking.secrecy import Hidden
from remit.core.secret import REDACTED
from remit.core.values import plain
from remit.errors import BadInput
from remit.ports.services import Down, Undeliverable

SECONDS: Final = 20.0  # for a whole request
_CONNECT: Final = 10.0
_MOST: Final = 1_048_576  # bytes of an answer
_ADDRESS: Final = 2_000
_AGAIN: Final = frozenset((408, 409, 425, 429))  # and everything from 500 on


class Answered(NamedTuple):
    """The response of a server."""

    status: int
    retry_after: str
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def judge(self, why: str = "", retry_after: float | None = None) -> None:
        """Raise `Down` if a retry may help, and `Undeliverable` if it cannot. Return for a success. `why` is added to
        the error; `retry_after`, in seconds, replaces the pause in the header."""
        if self.ok:
            return
        said = f"it answered {self.status}{f': {why}' if why else ''}"
        if self.status in _AGAIN or self.status >= 500:
            raise Down(_seconds(self.retry_after) if retry_after is None else retry_after, said)
        if 300 <= self.status < 400:
            said += ", a redirect, and those are not followed; give the address that it leads to"
        raise Undeliverable(said)


class Http:
    """Sends requests. It keeps `hidden` alive, so that the hidden texts stay out of the client's logs."""

    def __init__(self, hidden: Hidden) -> None:
        self._httpx = _client()
        self._hidden = hidden
        self._tls: ssl.SSLContext | None = None

    async def post(
        self, address: Callable[[], str], content: bytes, headers: Mapping[str, str], seconds: float = SECONDS
    ) -> Answered:
        """Send a POST request. Raise `Down` if no response came."""
        answered, why = None, f"no answer within {seconds:g} s"
        with anyio.move_on_after(seconds):
            try:
                answered = await self._post(address, content, headers, seconds)
            except Exception as error:  # noqa: BLE001 - any client error may contain the address
                why = type(error).__name__
        if answered is None:
            raise Down(why=f"it cannot be reached ({why})")
        return answered

    async def _post(
        self, address: Callable[[], str], content: bytes, headers: Mapping[str, str], seconds: float
    ) -> Answered:
        httpx = self._httpx
        if self._tls is None:
            self._tls = httpx.create_ssl_context()  # loading certificates takes a while, so only once
        patience = httpx.Timeout(seconds, connect=min(seconds, _CONNECT))
        async with (
            httpx.AsyncClient(verify=self._tls, timeout=patience, follow_redirects=False) as client,
            client.stream(
                "POST", address(), content=content, headers={"accept-encoding": "identity", **headers}
            ) as got,
        ):
            body = await _body(got.aiter_raw())
            return Answered(got.status_code, got.headers.get("retry-after", ""), body)


async def _body(chunks: AsyncIterator[bytes]) -> bytes:
    body = b""
    async for chunk in chunks:
        body += chunk
        if len(body) > _MOST:
            return b""  # too long for an honest server
    return body


def _seconds(said: str) -> float | None:
    return float(said) if said.isascii() and said.isdigit() else None


def _client() -> Any:
    try:
        return import_module("httpx")
    except ImportError as error:
        raise BadInput("telling people over the network needs the httpx package; install remit[channels]") from error


def address(url: object, what: str) -> str:
    """Return a web address if it is valid. Raise `BadInput` otherwise, without showing the address."""
    text = plain(url, what, _ADDRESS)
    try:
        parts = urlsplit(text)
        host = parts.hostname
        _port = parts.port
    except ValueError:
        host = None
    else:
        if parts.username is not None or parts.password is not None:
            raise BadInput(f"{what} has a user name or a password in it; leave it out")
        if parts.scheme not in ("http", "https"):
            host = None
    if not host or not text.isascii() or not text.isprintable() or " " in text:
        raise BadInput(f"{what} is an address such as https://example.com/hook; what was given is not shown here")
    return text


def address_hidden(reveal: Callable[[], str]) -> Hidden:
    """Hide the part of an address after the host from the logs, as long as the result is referenced: some addresses are
    secrets."""

    def texts() -> list[tuple[str, str]]:
        parts = urlsplit(reveal())
        seen = _client().URL(reveal())
        rests = {parts._replace(scheme="", netloc="", fragment="").geturl(), seen.raw_path.decode()}
        hosts = {parts.netloc, seen.netloc.decode()}
        return [(f"{host}{rest}", f"{host}/{REDACTED}") for host in hosts for rest in rests if len(rest) > 1]

    return Hidden(texts)
