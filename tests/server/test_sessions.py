"""Sessions of a browser: a cookie opens what its key opened, and no other page can use it."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import httpx
import pytest
from starlette.types import Scope

from remit import Runtime
from remit.config.tokens import session_secret
from remit.errors import Forbidden, Unauthorised
from remit.runtime.workspace import opening_of
from remit.server.app import ServerSettings, create_app
from remit.server.auth import StoreDoorkeeper
from remit.server.callers import TokenDoorkeeper
from remit.server.sessions import BegunSession, Sessions
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


def asked(host: str = "remit.test", scheme: str = "http", **more: str) -> Scope:
    """A request of the server's own page."""
    given = {"host": host, "origin": f"{scheme}://{host}", **more}
    return {"method": "POST", "headers": [(name.encode(), value.encode()) for name, value in given.items()]}


def value_of(begun: BegunSession) -> str:
    return begun.headers["Set-Cookie"].partition(";")[0]


def forged(cookie: str, at: int) -> str:
    return cookie[:at] + ("0" if cookie[at] != "0" else "1") + cookie[at + 1 :]


@pytest.mark.rule("http.session")
async def test_only_our_own_page_uses_a_session_and_only_with_its_own_text(
    rt: Runtime, clock: FakeClock, doorkeeper: StoreDoorkeeper
):
    sessions = Sessions(doorkeeper, clock)
    made = await rt.workspace.access.make("page", scopes="admin")
    ours = sessions.begin(await doorkeeper.caller(made.key.reveal()), asked())
    other = sessions.begin(await doorkeeper.caller("the-token"), asked())
    elsewhere = Sessions(doorkeeper, clock).begin(await doorkeeper.caller("the-token"), asked())
    cookie, csrf = value_of(ours), ours.csrf
    cookies = {
        "ours": cookie,
        "none": "",
        "two": f"{cookie}; {value_of(other)}",
        "of another server": value_of(elsewhere),
        **{f"changed at {at}": forged(cookie, at) for at in (15, len(cookie) - 1)},
        "unsigned": cookie.rpartition(".")[0],
    }
    texts = {"ours": csrf, "none": "", "of another session": other.csrf, "changed": csrf[:-1] + "x"}
    cases = wrong = 0
    async with client(rt, doorkeeper, sessions) as http:
        every = product(cookies.items(), texts.items(), ORIGINS, SITES, ("GET", "POST"))
        for (which, sent), (whose, text), origin, site, method in every:
            given = {"cookie": sent, "x-remit-csrf": text, "origin": origin, "sec-fetch-site": site}
            path = "/v1/tasks" if method == "GET" else "/v1/access"
            got = await http.request(method, path, headers={name: value for name, value in given.items() if value})
            own = site in ("", "same-origin", "none")
            if method == "POST":
                same = origin == ADDRESS if origin else site == "same-origin"
                own = own and same and whose == "ours"
            right = which == "ours" and own
            cases += 1
            wrong += (got.status_code in (401, 403)) is right
    assert (cases, wrong) == (len(cookies) * len(texts) * len(ORIGINS) * len(SITES) * 2, 0)


@pytest.mark.rule("http.session")
async def test_a_session_ends_with_its_time_its_access_and_its_key_goes_first(
    rt: Runtime, clock: FakeClock, doorkeeper: StoreDoorkeeper
):
    sessions = Sessions(doorkeeper, clock)
    made = await rt.workspace.access.make("page", scopes="read")
    own = {"cookie": value_of(sessions.begin(await doorkeeper.caller(made.key.reveal()), asked()))}
    token = {"cookie": value_of(sessions.begin(await doorkeeper.caller("the-token"), asked()))}
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
    plain = Sessions(doorkeeper, clock, https=frozenset(("remit.example.com",)))
    set_ = plain.begin(caller, asked("127.0.0.1:8377")).headers
    assert set_["Set-Cookie"].startswith("remit_session_8377=token.")  # a browser sends it to all ports
    assert set_["Set-Cookie"].endswith("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict")
    assert set_["Cache-Control"] == "no-store"
    over_tls = asked("remit.example.com", "https")
    assert plain.begin(caller, over_tls).headers["Set-Cookie"].startswith("__Host-remit_session=token.")
    assert plain.begin(caller, over_tls).headers["Set-Cookie"].endswith("; HttpOnly; SameSite=Strict; Secure")
    assert plain.end(over_tls)["Set-Cookie"].startswith("__Host-remit_session=; Path=/; Max-Age=0;")
    for wrong in (asked("remit.example.com"), asked(origin=OTHER), asked(**{"sec-fetch-site": "same-site"})):
        with pytest.raises(Forbidden, match="own page"):
            plain.begin(caller, wrong)


@pytest.mark.rule("http.session")
async def test_a_page_trades_a_key_for_a_session_looks_at_it_and_ends_it(
    rt: Runtime, clock: FakeClock, doorkeeper: StoreDoorkeeper
):
    made = await rt.workspace.access.make("page", scopes=["run", "approve"], agent="echo")
    page = {"origin": ADDRESS, "sec-fetch-site": "same-origin"}
    async with client(rt, doorkeeper, Sessions(doorkeeper, clock)) as http:
        wrong = await http.post("/v1/session", json={"key": "wrong"}, headers=page)
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
        assert (await http.post("/v1/session", json={"key": made.key.reveal()})).status_code == 403
        assert (await http.get("/v1/session", headers=page)).status_code == 401
        begun = await http.post("/v1/session", json={"key": made.key.reveal()}, headers=page)
        told = begun.json()
        assert {name: told[name] for name in ("workspace", "scopes", "agent", "by")} == {
            "workspace": "default",
            "scopes": ["read", "run", "approve"],
            "agent": "echo",
            "by": f"access:{made.id}",
        }
        assert made.key.reveal() not in begun.text + begun.headers["set-cookie"]
        again = await http.get("/v1/session", headers=page)
        assert (again.json(), again.headers["cache-control"]) == (told, "no-store")
        with_key = await http.get("/v1/session", headers={"authorization": f"Bearer {made.key.reveal()}"})
        assert with_key.status_code == 403
        assert (await http.delete("/v1/session", headers=page)).status_code == 403
        ended = await http.delete("/v1/session", headers=page | {"x-remit-csrf": told["csrf"]})
        assert ended.status_code == 204
        assert (await http.get("/v1/session", headers=page)).status_code == 401


@pytest.mark.rule("http.session")
async def test_a_session_outlives_a_restart_with_the_secret_of_its_user_and_store(
    clock: FakeClock, doorkeeper: StoreDoorkeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    first, second, other = session_secret("a"), session_secret("a"), session_secret("b")
    assert first == second
    assert first not in (None, other)
    file = tmp_path / "remit" / "sessions.secret"
    assert file.stat().st_mode & 0o777 == 0o600
    cookie = value_of(Sessions(doorkeeper, clock, secret=first).begin(await doorkeeper.caller("the-token"), asked()))
    looked: Scope = {"method": "GET", "headers": [(b"host", b"remit.test"), (b"cookie", cookie.encode())]}
    assert (await Sessions(doorkeeper, clock, secret=second).caller(looked)).by == "token"
    with pytest.raises(Unauthorised):
        await Sessions(doorkeeper, clock, secret=other).caller(looked)
    file.chmod(0o644)  # somebody may have read it
    assert session_secret("a") != first
    monkeypatch.setenv("XDG_STATE_HOME", str(file))
    assert session_secret("a") is None
