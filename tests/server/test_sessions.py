"""Sessions of a browser: a cookie opens what its key opened, and no other page can use it."""

from collections.abc import Iterator
from itertools import product

import httpx
import pytest

from remit import Runtime
from remit.errors import Unauthorised
from remit.runtime.workspace import opening_of
from remit.server.app import ServerSettings, create_app
from remit.server.auth import StoreDoorkeeper
from remit.server.callers import TokenDoorkeeper
from remit.server.sessions import Sessions
from remit.server.tenants import Tenants
from remit.testing import FakeClock
from server.serving import ADDRESS
from teams import team

pytestmark = pytest.mark.anyio

OTHER = "https://evil.example.com"
ORIGINS = ("", ADDRESS, OTHER, "null", "https://remit.test", f"{ADDRESS}:1", ADDRESS.upper())
SITES = ("", "same-origin", "same-site", "cross-site", "none")


@pytest.fixture
def rt(clock: FakeClock) -> Iterator[Runtime]:
    with team(clock=clock) as runtime:
        yield runtime


@pytest.fixture
def doorkeeper(rt: Runtime, clock: FakeClock) -> StoreDoorkeeper:
    return StoreDoorkeeper(opening_of(rt.workspace).database, clock, TokenDoorkeeper("the-token", rt.workspace.name))


def client(rt: Runtime, doorkeeper: StoreDoorkeeper, sessions: Sessions) -> httpx.AsyncClient:
    # All pages are listed here: the session must refuse them by itself.
    settings = ServerSettings(origins=frozenset(one.lower() for one in ORIGINS))
    tenants = Tenants(opening_of(rt.workspace).database, (rt.workspace,))
    app = create_app(tenants, doorkeeper, settings, sessions)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url=ADDRESS)


def value_of(headers: dict[str, str]) -> str:
    return headers["Set-Cookie"].partition(";")[0]


def forged(cookie: str, at: int) -> str:
    return cookie[:at] + ("0" if cookie[at] != "0" else "1") + cookie[at + 1 :]


@pytest.mark.rule("http.session")
async def test_only_our_own_page_uses_a_session_and_only_with_its_own_text(
    rt: Runtime, clock: FakeClock, doorkeeper: StoreDoorkeeper
):
    sessions = Sessions(doorkeeper, clock)
    made = await rt.workspace.access.make("page", scopes="admin")
    headers, csrf = sessions.begin(await doorkeeper.caller(made.key.reveal()))
    other, other_csrf = sessions.begin(await doorkeeper.caller("the-token"))
    cookie = value_of(headers)
    cookies = {
        "ours": cookie,
        "none": "",
        "two": f"{cookie}; {value_of(other)}",
        "of another server": value_of(Sessions(doorkeeper, clock).begin(await doorkeeper.caller("the-token"))[0]),
        **{f"changed at {at}": forged(cookie, at) for at in (15, len(cookie) - 1)},
        "unsigned": cookie.rpartition(".")[0],
    }
    texts = {"ours": csrf, "none": "", "of another session": other_csrf, "changed": csrf[:-1] + "x"}
    cases = wrong = 0
    async with client(rt, doorkeeper, sessions) as http:
        every = product(cookies.items(), texts.items(), ORIGINS, SITES, ("GET", "POST"))
        for (which, sent), (whose, text), origin, site, method in every:
            given = {"cookie": sent, "x-remit-csrf": text, "origin": origin, "sec-fetch-site": site}
            path = "/v1/tasks" if method == "GET" else "/v1/access"
            got = await http.request(method, path, headers={name: value for name, value in given.items() if value})
            ours = site in ("", "same-origin", "none")
            if method == "POST":
                same = origin == ADDRESS if origin else site == "same-origin"
                ours = ours and same and whose == "ours"
            right = which == "ours" and ours
            cases += 1
            wrong += (got.status_code in (401, 403)) is right
    assert (cases, wrong) == (len(cookies) * len(texts) * len(ORIGINS) * len(SITES) * 2, 0)


@pytest.mark.rule("http.session")
async def test_a_session_ends_with_its_time_its_access_and_its_key_goes_first(
    rt: Runtime, clock: FakeClock, doorkeeper: StoreDoorkeeper
):
    sessions = Sessions(doorkeeper, clock)
    made = await rt.workspace.access.make("page", scopes="read")
    own = {"cookie": value_of(sessions.begin(await doorkeeper.caller(made.key.reveal()))[0])}
    token = {"cookie": value_of(sessions.begin(await doorkeeper.caller("the-token"))[0])}
    async with client(rt, doorkeeper, sessions) as http:

        async def status(headers: dict[str, str], path: str = "/v1/tasks") -> int:
            return (await http.get(path, headers=headers)).status_code

        assert (await status(own), await status(token), await status({})) == (200, 200, 401)
        assert await status(own, "/v1/access") == 403
        assert await status(own | {"authorization": "Bearer wrong"}) == 401
        await rt.workspace.access.revoke(made.id)
        assert (await status(own), await status(token)) == (401, 200)
        clock.advance(12 * 3_600)
        assert await status(token) == 401
    with pytest.raises(Unauthorised):
        await StoreDoorkeeper(opening_of(rt.workspace).database, clock).again("")


@pytest.mark.rule("http.session")
async def test_a_cookie_is_out_of_reach_of_scripts_and_other_pages(clock: FakeClock, doorkeeper: StoreDoorkeeper):
    caller = await doorkeeper.caller("the-token")
    plain, _ = Sessions(doorkeeper, clock).begin(caller)
    assert plain["Set-Cookie"].endswith("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict")
    assert plain["Cache-Control"] == "no-store"
    tls = Sessions(doorkeeper, clock, tls=True)
    assert tls.begin(caller)[0]["Set-Cookie"].startswith("__Host-remit_session=token.")
    assert tls.begin(caller)[0]["Set-Cookie"].endswith("; HttpOnly; SameSite=Strict; Secure")
    assert tls.end()["Set-Cookie"].startswith("__Host-remit_session=; Path=/; Max-Age=0;")
