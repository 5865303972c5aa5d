"""HTTP requests to addresses that people outside give: hooks, agent cards, push notifications.

An address from outside must not reach what only this machine or its network can reach. Its form is checked first. When
it is used, its name is resolved once, every address that comes back must be public, and the connection goes to one of
exactly these addresses, with TLS for the name. No redirect is followed, and no proxy of the environment is used. An
operator may permit networks of their own; nothing in a request can.
"""

import re
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from importlib import import_module
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from socket import SOCK_STREAM, getaddrinfo
from typing import Any, Final, NamedTuple, TypeAlias

import anyio
from anyio.to_thread import run_sync

from remit.errors import BadInput
from remit.ports.services import Down, Undeliverable

SECONDS: Final = 15.0  # for a whole request
ANSWER_LIMIT: Final = 65_536  # bytes of an answer that are read
NETWORKS_VARIABLE: Final = "REMIT_HOOK_NETWORKS"

_URL_LIMIT: Final = 2_000
_CONNECT: Final = 5.0
_TRIED: Final = 4  # addresses of a name
_LOOKUPS: Final = 32  # names that are looked up at once; a name server that hangs holds a thread
_FORM: Final = "an address is https://, a name with a dot, and a path, such as https://example.com/hook"
_URL: Final = re.compile(r"(https?)://([^/?]*)([/?].*)?", re.IGNORECASE | re.ASCII)
_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
Resolve: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]

# Addresses that `is_global` of some Python version permits, or that lead back into a network by translation.
_NEVER: Final = tuple(
    ip_network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        *("::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32"),
        *("2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
    )
)


class VettedAnswer(NamedTuple):
    """The answer of an outside server. `is_cut` says that it has more than the bytes that are read."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_cut: bool


class Target(NamedTuple):
    """An address of the right form, in parts."""

    scheme: str
    host: str
    port: int
    path: str


def is_public(address: Address) -> bool:
    """Whether an address belongs to the public internet. Everything that is not certain is not public."""
    if isinstance(address, IPv6Address) and (address.scope_id is not None or address not in _UNICAST):
        return False
    is_special = address.is_multicast or address.is_reserved or address.is_unspecified
    return address.is_global and not is_special and not any(address in network for network in _NEVER)


_UNICAST: Final = IPv6Network("2000::/3")


def networks(given: str, called: str = NETWORKS_VARIABLE) -> tuple[Network, ...]:
    """Return the networks that an operator permits, from text such as `127.0.0.0/8, 10.1.0.0/16`; `called` is the name
    of the setting for an error."""
    parts = [part.strip() for part in given.split(",") if part.strip()]
    try:
        return tuple(ip_network(part) for part in parts)
    except ValueError as error:
        raise BadInput(f"{called} lists networks, such as 127.0.0.0/8, 10.1.0.0/16: {error}") from None


async def looked_up(host: str) -> list[str]:
    """Return all addresses of a name. A thread asks the name server; if the caller is cancelled, it is abandoned."""
    found = await run_sync(
        lambda: getaddrinfo(host, None, type=SOCK_STREAM), abandon_on_cancel=True, limiter=_limiter()
    )
    return list(dict.fromkeys(str(one[4][0]) for one in found))


_LIMITER: Final = anyio.lowlevel.RunVar[anyio.CapacityLimiter]("remit lookups")


def _limiter() -> anyio.CapacityLimiter:
    limiter = _LIMITER.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(_LOOKUPS)
        _LIMITER.set(limiter)
    return limiter


class Vetted:
    """Sends requests to addresses from outside.

    `permits` are networks of the operator that may be reached although they are not public; an address that names a
    machine in one of them by number may use http and any port. `resolve` and `network` are for tests: how names are
    looked up, and what connects to an address.
    """

    def __init__(
        self,
        permits: Iterable[Network] = (),
        *,
        resolve: Resolve = looked_up,
        network: Any = None,
        tls: ssl.SSLContext | None = None,
        seconds: float = SECONDS,
    ) -> None:
        self._httpcore = _client()
        self._permits = tuple(permits)
        self._resolve = resolve
        self._network = self._httpcore.AnyIOBackend() if network is None else network
        self._tls = tls
        self._seconds = seconds

    def check(self, url: object) -> Target:
        """Return the parts of an address. Raise `BadInput`, without showing the address, if its form is not
        permitted."""
        return checked_form(url, self._permits)

    async def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> VettedAnswer:
        """Send a POST request, and return the answer whatever its status is. Raise `Down` if none came, and
        `Undeliverable` if the address must not be reached."""
        return await self.request("POST", url, content, headers)

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> VettedAnswer:
        """Send a GET request. See `post`."""
        return await self.request("GET", url, None, headers or {})

    async def request(self, method: str, url: str, content: bytes | None, headers: Mapping[str, str]) -> VettedAnswer:
        target = self.check(url)
        answer, why = None, f"no answer within {self._seconds:g} s"
        with anyio.move_on_after(self._seconds):
            try:
                answer = await self._request(method, target, content, headers)
            except Undeliverable:
                raise
            except Exception as error:  # noqa: BLE001 - any client error may have the address in its text
                why = type(error).__name__
        if answer is None:  # raised here, so that it does not carry the client's error
            raise Down(why=f"it cannot be reached ({why})")
        return answer

    async def _request(
        self, method: str, target: Target, content: bytes | None, headers: Mapping[str, str]
    ) -> VettedAnswer:
        httpcore = self._httpcore
        if self._tls is None and target.scheme == "https":
            self._tls = httpcore.default_ssl_context()  # loading certificates takes a while, so only once
        sent = {"host": _authority(target), "accept-encoding": "identity", "user-agent": "remit", **headers}
        if content is not None:
            sent["content-length"] = str(len(content))
        url = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        waits = dict.fromkeys(("connect", "read", "write", "pool"), self._seconds)
        async with (
            httpcore.AsyncConnectionPool(ssl_context=self._tls, network_backend=self.backend()) as pool,
            pool.stream(method, url, headers=sent, content=content, extensions={"timeout": waits}) as got,
        ):
            body, is_cut = await _start_of(got.aiter_stream())
            said = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in got.headers}
            return VettedAnswer(got.status, said, body, is_cut)

    def backend(self) -> Any:
        """Return the network of a client of `httpcore`: it connects to vetted addresses only."""
        return _Vetting(self)

    async def connect(self, host: str, port: int, options: Any) -> Any:
        """Return a connection to one of the first four addresses of this host. Raise `Undeliverable` if any of its
        addresses must not be reached, and `Down` if it has none."""
        addresses = await self._addresses(host)
        for place, address in enumerate(addresses[:_TRIED], 1):
            try:
                return await self._network.connect_tcp(str(address), port, timeout=_CONNECT, socket_options=options)
            except (self._httpcore.ConnectError, self._httpcore.ConnectTimeout):
                if place == min(len(addresses), _TRIED):
                    raise
        raise Down(why="its name has no address")

    async def _addresses(self, host: str) -> list[Address]:
        """Return the addresses of a host. Raise `Undeliverable` if any of them must not be reached: a name with both
        public and private addresses is probably an attack."""
        literal = _literal(host)
        found = [literal] if literal is not None else [ip_address(one) for one in await self._resolve(host)]
        if not all(is_public(one) or _within(one, self._permits) for one in found):
            raise Undeliverable("its address is not a public one, so nothing is sent there")
        return found


class _Vetting:
    """The network of one request: `httpcore` asks it for a connection to a name."""

    def __init__(self, vetted: Vetted) -> None:
        self._vetted = vetted

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of httpcore
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> Any:
        del timeout, local_address
        return await self._vetted.connect(host, port, socket_options)

    async def connect_unix_socket(self, *_given: Any, **_more: Any) -> Any:
        raise Undeliverable("an address from outside is no socket of this machine")

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


def checked_form(url: object, permits: Sequence[Network] = ()) -> Target:
    """Return the parts of an address. Raise `BadInput`, without showing the address, if its form is not permitted."""
    if not isinstance(url, str):
        raise BadInput(f"{_FORM}, not a value of type {type(url).__name__}")
    if len(url) > _URL_LIMIT or not all("!" <= one <= "~" for one in url) or any(one in url for one in '\\#"<>^`{|}'):
        raise BadInput(f"{_FORM}: up to {_URL_LIMIT:,} printable ASCII characters, without spaces, #, quotes or \\")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise BadInput(_FORM)
    scheme, authority, path = parts[1].lower(), parts[2].lower(), parts[3] or "/"
    host, port = _host_and_port(authority, 443 if scheme == "https" else 80)
    path = path if path.startswith("/") else f"/{path}"
    if _is_permitted(host, permits):
        return Target(scheme, host.strip("[]"), port, path)
    if scheme != "https" or port != 443:
        raise BadInput(f"{_FORM}; the port is 443")
    labels = host.split(".")
    if len(host) > 253 or len(labels) < 2 or not all(_LABEL.fullmatch(one) for one in labels):
        raise BadInput(f"{_FORM}; numbers, users and passwords are not permitted in place of the name")
    if _looks_like_number(labels[-1]):
        raise BadInput(f"{_FORM}; a number is no name")
    return Target(scheme, host, port, path)


def _host_and_port(authority: str, usual: int) -> tuple[str, int]:
    host, mark, port = authority.rpartition(":") if not authority.endswith("]") else (authority, "", "")
    if not mark:
        return authority, usual
    if not port.isdigit() or len(port) > 5 or not 0 < int(port) < 65_536:
        raise BadInput(f"{_FORM}; the port is 443")
    return host, int(port)


def _is_permitted(host: str, permits: Sequence[Network]) -> bool:
    """Whether a host names a machine in a network of the operator, by number or as localhost."""
    address = _literal("127.0.0.1" if host == "localhost" else host.strip("[]"))
    return address is not None and _within(address, permits)


def _within(address: Address, permits: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in permits)


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _looks_like_number(label: str) -> bool:
    """Whether a last label is read as a part of an IPv4 address by some parser: 127.1, 0x7f.1, 0177.0.0.1."""
    return label[0].isdigit() and (label.isdigit() or label.startswith("0x"))


def _authority(target: Target) -> str:
    host = f"[{target.host}]" if ":" in target.host else target.host
    usual = 443 if target.scheme == "https" else 80
    return host if target.port == usual else f"{host}:{target.port}"


async def _start_of(chunks: Any) -> tuple[bytes, bool]:
    """Return the start of an answer, and whether it has more."""
    body = b""
    async for chunk in chunks:
        body += chunk
        if len(body) > ANSWER_LIMIT:
            return body[:ANSWER_LIMIT], True
    return body, False


def _client() -> Any:
    try:
        return import_module("httpcore")
    except ImportError as error:
        raise BadInput("hooks need the httpx package: pip install 'remit[channels]'") from error


def of_operator(value: str) -> Vetted:
    """Return a client that reaches public addresses, and the networks in this text of the operator."""
    return Vetted(networks(value))
