"""Addresses from outside: only those of the public internet are reached, whatever form they have."""

import ssl
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import anyio
import httpcore
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from adapters.standin import Got, Says, StandIn, stand_in
from remit.adapters.vetted import ANSWER_LIMIT, Vetted, VettedAnswer, checked_form, is_public, networks
from remit.core.times import aware
from remit.engine.system import SystemClock
from remit.errors import BadInput
from remit.ports.services import Down, Undeliverable

pytestmark = pytest.mark.anyio

LOOPBACK = networks("127.0.0.0/8")

WRONG_FORMS = [
    "",
    "example.com/hook",
    "http://example.com/hook",
    "ftp://example.com/hook",
    "file:///etc/passwd",
    "gopher://example.com/",
    "https:/example.com",
    "https:example.com",
    "//example.com",
    "https://",
    "https:///hook",
    "https://localhost/hook",
    "https://intranet/hook",
    "https://example.com./hook",
    "https://.example.com/",
    "https://exa..mple.com/",
    "https://example.com:80/",
    "https://example.com:8443/",
    "https://example.com:/",
    "https://example.com:0443x/",
    "https://example.com:99999/",
    "https://user@example.com/",
    "https://user:word@example.com/",
    "https://example.com@127.0.0.1/",
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://127.0.0.0x1/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[fe80::1%25eth0]/",
    "https://169.254.169.254/latest/meta-data",
    "https://example.com\\@127.0.0.1/",
    "https://example.com#@127.0.0.1/",
    "https://exam ple.com/",
    "https://example.com/a b",
    "https://example.com/\r\nhost: localhost",
    "https://example.com/\0",
    "https://ex\u00e4mple.com/",
    "https://example\u3002com/",
    "https://\u2460\u2461\u2466.0.0.1/",
    "https://-example.com/",
    "https://example-.com/",
    "https://exa_mple.com/",
    "https://exa%6dple.com/",
    f"https://{'a' * 64}.com/",
    f"https://{'a.' * 127}com/",
    f"https://example.com/{'a' * 2_000}",
    " https://example.com/",
    "https://example.com?x#y",
    None,
    b"https://example.com/",
]
NOT_PUBLIC = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254"),
    *("168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1"),
    *("192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1"),
    *("239.255.255.250", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1"),
    *("2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1"),
    *("fe80::1%eth0", "fec0::1", "ff02::1", "2606:4700::1%eth0"),
]
PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.0.1", "172.32.0.1", "2606:4700:4700::1111", "2a00:1450::1"]


class Ported:
    """Connects to the port of a test's server in place of 443, and keeps a list of the connections."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.real: Any = httpcore.AnyIOBackend()
        self.reached: list[str] = []

    async def connect_tcp(self, host: str, port: int, **how: Any) -> httpcore.AsyncNetworkStream:
        self.reached.append(f"{host}:{port}")
        return await self.real.connect_tcp(host, self.port, **how)


def answering(*lists: Sequence[str]) -> Callable[[str], Awaitable[Sequence[str]]]:
    """Return a name server that gives one list after the other, and then the last one."""
    left = list(lists)

    async def resolve(_: str) -> Sequence[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    return resolve


def certified(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS of a server with a certificate of this name, and of a client that trusts its maker."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = aware(SystemClock().now())
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{name}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cadata=made.public_bytes(serialization.Encoding.PEM).decode())


async def sent(server: StandIn, vetted: Vetted) -> VettedAnswer:
    return await vetted.post(f"{server.url}/hook", b"{}", {})


@pytest.mark.rule("vetted.form")
def test_an_address_of_another_form_is_refused_without_being_shown():
    for url in WRONG_FORMS:
        with pytest.raises(BadInput) as refused:
            checked_form(url)
        assert "127.0.0" not in str(refused.value), url
        assert "passwd" not in str(refused.value), url


@pytest.mark.rule("vetted.form")
def test_an_address_of_the_right_form_is_taken_apart():
    assert checked_form("HTTPS://Hooks.Example.com/a?b=c") == ("https", "hooks.example.com", 443, "/a?b=c")
    assert checked_form("https://xn--exmple-cua.com:443") == ("https", "xn--exmple-cua.com", 443, "/")
    assert checked_form("https://example.com?b=c").path == "/?b=c"


@pytest.mark.rule("vetted.public")
def test_only_public_addresses_are_public():
    assert [one for one in NOT_PUBLIC if is_public(ip_address(one))] == []
    assert [one for one in PUBLIC if not is_public(ip_address(one))] == []


@pytest.mark.rule("vetted.public")
async def test_nothing_is_sent_if_one_address_of_a_name_is_not_public():
    network, tls = Ported(9), ssl.create_default_context()  # which reads all certificates there are
    for found in (*([one] for one in NOT_PUBLIC), ["1.1.1.1", "10.0.0.1"], ["::1", "1.1.1.1"]):
        vetted = Vetted(resolve=answering(found), network=network, tls=tls)
        with pytest.raises(Undeliverable, match="not a public one"):
            await vetted.post("https://hooks.example.com/", b"{}", {})
    assert network.reached == []


@pytest.mark.rule("vetted.once")
async def test_a_name_that_changes_its_address_is_resolved_once_and_checked_every_time(tmp_path: Path):
    server_tls, trust = certified(tmp_path, "hooks.example.com")
    async with stand_in(server_tls) as server:
        network = Ported(server.port)
        resolve = answering(["127.0.0.1"], ["10.0.0.1"])
        vetted = Vetted(LOOPBACK, resolve=resolve, network=network, tls=trust)
        answer = await vetted.post("https://hooks.example.com/hook?a=b", b"{}", {"x-own": "1"})
        assert answer.status == 200
        assert network.reached == ["127.0.0.1:443"]
        assert (server.got[0].path, server.got[0].headers["host"]) == ("/hook?a=b", "hooks.example.com")
        with pytest.raises(Undeliverable):
            await vetted.post("https://hooks.example.com/hook", b"{}", {})
    assert (len(network.reached), len(server.got)) == (1, 1)


@pytest.mark.rule("vetted.tls")
async def test_a_certificate_of_another_name_or_maker_ends_the_request(tmp_path: Path):
    other_tls, trust = certified(tmp_path, "other.example.com")
    own_tls, _ = certified(tmp_path, "hooks.example.com")
    for tls in (other_tls, own_tls):
        async with stand_in(tls) as server:
            vetted = Vetted(LOOPBACK, resolve=answering(["127.0.0.1"]), network=Ported(server.port), tls=trust)
            with pytest.raises(Down, match="cannot be reached") as down:
                await vetted.post("https://hooks.example.com/secret", b"{}", {})
            assert server.got == []
            assert "example.com" not in str(down.value)
            assert down.value.__context__ is None


@pytest.mark.rule("vetted.bounded")
async def test_redirects_are_not_followed_and_long_answers_are_cut(monkeypatch: pytest.MonkeyPatch):
    async with stand_in() as server, stand_in() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        vetted = Vetted(LOOPBACK)
        server.answers = lambda _: Says(302, headers=(("location", f"{server.url}/inside"),))
        assert (await sent(server, vetted)).status == 302
        server.answers = lambda _: Says(200, "x" * (ANSWER_LIMIT * 40))
        answer = await sent(server, vetted)
        assert (answer.status, len(answer.body), answer.is_cut) == (200, ANSWER_LIMIT, True)
        server.answers = lambda _: Says(200, "whole", (("X-Own", "1"),))
        answer = await vetted.get(f"{server.url}/card")
        assert (answer.body, answer.is_cut, answer.headers["x-own"]) == (b"whole", False, "1")
        assert [got.path for got in server.got] == ["/hook", "/hook", "/card"]
        assert proxy.got == []


@pytest.mark.rule("vetted.bounded")
async def test_a_server_or_a_name_server_that_hangs_is_given_up():
    async def never(_: object) -> Any:
        await anyio.sleep_forever()

    async def hangs(_: Got) -> Says:
        await anyio.sleep_forever()
        raise AssertionError

    async with stand_in() as server:
        server.answers = hangs
        with pytest.raises(Down, match=r"no answer within 0\.2 s"):
            await sent(server, Vetted(LOOPBACK, seconds=0.2))
    with pytest.raises(Down, match="no answer within"):
        await Vetted(resolve=never, seconds=0.01).post("https://hooks.example.com/", b"{}", {})
    with pytest.raises(Down, match="no address|cannot be reached"):
        await Vetted(resolve=answering([])).post("https://hooks.example.com/", b"{}", {})


@pytest.mark.rule("vetted.operator")
async def test_a_network_of_the_operator_may_be_reached_and_no_other():
    async with stand_in() as server:
        assert (await sent(server, Vetted(LOOPBACK))).status == 200
        for vetted in (Vetted(), Vetted(networks("10.0.0.0/8, ::1/128"))):
            with pytest.raises(BadInput):
                await sent(server, vetted)
        assert checked_form(f"http://localhost:{server.port}/", LOOPBACK).host == "localhost"
        assert checked_form("http://[::1]:8080/x", networks("::1/128")) == ("http", "::1", 8080, "/x")
        with pytest.raises(BadInput):
            checked_form("http://hooks.example.com/", LOOPBACK)
    with pytest.raises(BadInput, match="lists networks"):
        networks("127.0.0.1/8")
    assert networks("10.0.0.0/8,") == (ip_network("10.0.0.0/8"),)


@pytest.mark.rule("vetted.once")
async def test_the_next_address_is_tried_if_one_does_not_answer():
    class Half(Ported):
        async def connect_tcp(self, host: str, port: int, **how: Any) -> httpcore.AsyncNetworkStream:
            if host == "127.0.0.2":
                self.reached.append(f"{host}:{port}")
                raise httpcore.ConnectError
            return await super().connect_tcp(host, port, **how)

    async with stand_in() as server:
        network = Half(server.port)
        vetted = Vetted(LOOPBACK, resolve=answering(["127.0.0.2", "127.0.0.1"]), network=network)
        assert (await vetted.get("http://localhost/")).status == 200
        assert network.reached == ["127.0.0.2:80", "127.0.0.1:80"]
        vetted = Vetted(LOOPBACK, resolve=answering(["127.0.0.2"]), network=network)
        with pytest.raises(Down, match="ConnectError"):
            await vetted.get("http://localhost/")


async def test_names_are_looked_up_in_a_thread():
    async with stand_in() as server:
        assert (await Vetted(LOOPBACK + networks("::1/128")).get(f"http://localhost:{server.port}/")).status == 200
