"""Keys of the store at the door of the server: who gets in, as whom, and for how long."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any, cast

import anyio
import httpx
import pytest

from remit import Bounds, Runtime, Workspace
from remit.core.access import SCOPES, included, key_of, parse_key
from remit.errors import Unauthorised
from remit.ports import Database, Store
from remit.runtime.workspace import opening_of
from remit.server.app import ServerSettings, create_app
from remit.server.auth import StoreDoorkeeper, has_access
from remit.server.callers import TokenDoorkeeper
from remit.server.calls import Row
from remit.server.feed import Feeds
from remit.server.routes import ROWS
from remit.server.tenants import Tenants
from remit.settings import Serving
from remit.stores.opening import database_at
from remit.testing import FakeClock
from server.serving import ADDRESS
from teams import echo, team

pytestmark = pytest.mark.anyio
PATIENCE = 30
PAGE = "https://remit.example.com"
SETTINGS = ServerSettings(frozenset(("remit.test",)), frozenset((PAGE,)))


@pytest.fixture
def rt(clock: FakeClock) -> Iterator[Runtime]:
    with team(clock=clock) as runtime:
        runtime.agent("echo")(echo)
        yield runtime


def database_of(rt: Runtime) -> Database:
    return opening_of(rt.workspace).database


@asynccontextmanager
async def clients(rt: Runtime, clock: FakeClock) -> AsyncIterator[httpx.AsyncClient]:
    database = database_of(rt)
    doorkeeper = StoreDoorkeeper(database, clock)
    app = create_app(Tenants(database, (rt.workspace,)), doorkeeper, SETTINGS)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as http:
        yield http
    await doorkeeper.close()


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def changed(key: str, at: int) -> str:
    return key[:at] + ("b" if key[at] != "b" else "c") + key[at + 1 :]


def at(row: Row, value: str) -> str:
    """The path of a row with the same value in all its places."""
    return "/".join(value if part.startswith("{") else part for part in row.path.split("/"))


async def made(workspace: Workspace, scope: str = "admin") -> str:
    return (await workspace.access.make(scope, scopes=scope)).key.reveal()


async def wrong_keys(rt: Runtime, clock: FakeClock) -> dict[str, str]:
    """Keys that open nothing, by what is wrong with them."""
    good = await made(rt.workspace)
    revoked = await rt.workspace.access.make("revoked", scopes="admin")
    await rt.workspace.access.revoke(revoked.id)
    expired = await rt.workspace.access.make("expired", scopes="admin", expires=timedelta(hours=1))
    clock.advance(3_600)
    known = parse_key(good)
    assert known is not None
    forged = key_of(bytes(10), bytes(32))[1].reveal()
    body = good[:21] + forged[21:64]
    return {
        "none": "",
        "expired": expired.key.reveal(),
        "revoked": revoked.key.reveal(),
        "forged": forged,
        "forged for a known id": f"{body}_{zlib.crc32(body.encode()):08x}",
        "typo": good[:-1] + ("0" if good[-1] != "0" else "1"),
        "short": good[:-1],
        "the id alone": known.id,
        "the digest": known.digest,
        "twice": good * 2,
        **{f"another character {place}": changed(good, place) for place in (0, 4, 19, 21, 40, 63, 65, 72)},
    }


@pytest.mark.rule("http.access", "http.key")
async def test_no_route_opens_to_a_wrong_key_a_small_scope_another_host_or_another_page(rt: Runtime, clock: FakeClock):
    wrong = await wrong_keys(rt, clock)
    keys = {scope: await made(rt.workspace, scope) for scope in SCOPES}
    places = [{"host": "evil.test"}, {"host": "remit.test:1"}, {"origin": "null"}, {"origin": "http://remit.test"}]
    places += [{"origin": "https://evil.example.com"}]
    cases = 0
    async with clients(rt, clock) as http:
        for row in ROWS:
            path = at(row, "nothing")
            for (what, key), kind in product(wrong.items(), ("Bearer", "bearer")):
                got = await http.request(row.method, path, headers={"authorization": f"{kind} {key}"} if key else {})
                assert (got.status_code == 401) is bool(row.scope), (row.name, what)
                assert not row.scope or got.headers["www-authenticate"] == "Bearer"
                cases += 1
            for scope, key in keys.items():
                got = await http.request(row.method, path, headers=bearer(key))
                small = row.scope not in ("", *included([scope]))
                assert (got.status_code == 403) is small, (row.name, scope, got.text)
                assert got.status_code != 401
                cases += 1
            for place in places:
                got = await http.request(row.method, path, headers=bearer(keys["admin"]) | place)
                assert got.status_code == 403, (row.name, place)
                cases += 1
    assert cases == len(ROWS) * (2 * len(wrong) + len(SCOPES) + len(places))


@pytest.mark.rule("http.access", "http.alike")
async def test_what_another_workspace_has_looks_on_every_route_like_what_nobody_has(rt: Runtime, clock: FakeClock):
    other = Runtime(database_of(rt), workspace="other", serving=Serving(concurrency=0))
    other.agent("echo")(echo)
    task = await other.submit("echo", "x")
    access = await other.workspace.access.make("theirs", scopes="admin")
    await other.workspace.context().set("theirs", "theirs", 1)
    key = await made(rt.workspace)
    async with clients(rt, clock) as http:
        for row in ROWS:
            if "{" not in row.path:
                continue
            there, nobody = [
                [
                    (await http.request(row.method, at(row, one), headers=bearer(key), json=body)).content
                    for one in names
                    for body in (None, {})
                ]
                for names in ((task.id, access.id, "theirs"), ("a" * 16, "b" * 16, "nobody"))
            ]
            assert there == nobody, row.name
    assert [one.state for one in await other.workspace.access.list()] == ["active"]
    assert (await task.status()).state == "pending"


@pytest.mark.rule("http.access")
async def test_a_caller_is_what_its_row_says(rt: Runtime, clock: FakeClock):
    doorkeeper = StoreDoorkeeper(database_of(rt), clock, TokenDoorkeeper("the-token", "default"))
    made = await rt.workspace.access.make("ci", scopes="run", agent="echo", bounds=Bounds(depth=1))
    caller = await doorkeeper.caller(made.key.reveal())
    assert caller == (made.id, rt.workspace.name, {"read", "run"}, "echo", Bounds(depth=1), f"access:{made.id}")
    assert (await doorkeeper.caller("the-token")).by == "token"
    for wrong in ("", "the-tokem", "rmt_", changed(made.key.reveal(), 30)):
        with pytest.raises(Unauthorised):
            await doorkeeper.caller(wrong)
    await doorkeeper.close()


@pytest.mark.rule("access.revoked")
async def test_a_key_is_refused_at_once_where_it_is_revoked_and_its_streams_end(rt: Runtime, clock: FakeClock):
    doorkeeper, feeds = StoreDoorkeeper(database_of(rt), clock), Feeds()
    made = await rt.workspace.access.make("ci")
    await doorkeeper.caller(made.key.reveal())
    async with feeds.reader(rt.workspace, access=made.id) as reader:
        assert not reader.is_revoked
        await rt.workspace.access.revoke(made.id)
        with pytest.raises(Unauthorised):
            await doorkeeper.caller(made.key.reveal())
        async with asyncio.timeout(30):
            while not reader.is_revoked:
                reader.changed.clear()
                await reader.page()
                await reader.changed.wait()
    await doorkeeper.close()


@pytest.mark.rule("access.revoked")
@pytest.mark.parametrize("kind", ["file", "postgres"])
async def test_a_key_that_another_process_revokes_is_refused_after_half_a_second(
    kind: str, tmp_path: Path, clock: FakeClock, request: pytest.FixtureRequest
):
    """Two databases on one store, as two processes have them."""
    where = str(tmp_path / "team.db") if kind == "file" else request.getfixturevalue("address")
    with closing(database_at(where)) as here, closing(database_at(where)) as there:
        owner = Workspace(there, "one")
        made = await owner.access.make("ci")
        doorkeeper = StoreDoorkeeper(here, clock)
        assert (await doorkeeper.caller(made.key.reveal())).workspace == "one"
        await owner.access.revoke(made.id)
        clock.advance(0.5)
        with pytest.raises(Unauthorised):
            await doorkeeper.caller(made.key.reveal())
        await doorkeeper.close()


@pytest.mark.rule("access.revoked")
async def test_requests_at_once_with_one_key_are_one_read_and_none_after_a_revocation_gets_an_earlier_one(
    rt: Runtime, clock: FakeClock
):
    access = await rt.workspace.access.make("two", scopes="read")
    key, gate = access.key.reveal(), asyncio.Event()
    reads = asyncio.Queue[str]()

    class SlowStore:
        def __init__(self, store: Store) -> None:
            self._store = store

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

        async def read(self, look: Any) -> Any:
            found = await self._store.read(look)
            reads.put_nowait("read")
            await gate.wait()
            return found

    class SlowDatabase:
        def __getattr__(self, name: str) -> Any:
            return getattr(database_of(rt), name)

        def store(self, workspace: str) -> Store:
            return cast("Store", SlowStore(database_of(rt).store(workspace)))

    doorkeeper = StoreDoorkeeper(cast("Database", SlowDatabase()), clock)
    with anyio.fail_after(PATIENCE):
        before = [asyncio.create_task(doorkeeper.caller(key)) for _ in range(8)]
        await reads.get()
        await rt.workspace.access.revoke(access.id)
        after = asyncio.create_task(doorkeeper.caller(key))
        await reads.get()
        gate.set()
        assert {one.access for one in await asyncio.gather(*before)} == {access.id}
        assert reads.empty()
        for late in (after, asyncio.create_task(doorkeeper.caller(key))):
            with pytest.raises(Unauthorised):
                await late
        await doorkeeper.close()


@pytest.mark.rule("access.used")
async def test_the_last_use_is_written_once_a_minute_without_an_event(rt: Runtime, clock: FakeClock):
    doorkeeper = StoreDoorkeeper(database_of(rt), clock)
    made = await rt.workspace.access.make("ci")
    began, used = clock.now(), list[int]()
    events = len(await rt.workspace.journal.history())
    for _ in range(7):
        await doorkeeper.caller(made.key.reveal())
        await doorkeeper.close()
        (one,) = await rt.workspace.access.list()
        used.append(((one.used_at or 0) - began) // 1_000_000)
        clock.advance(20)
    assert used == [0, 0, 0, 60, 60, 60, 120]
    assert len(await rt.workspace.journal.history()) == events


async def test_the_last_use_that_cannot_be_written_fails_no_request(tmp_path: Path, clock: FakeClock, caplog):
    database = database_at(tmp_path / "team.db")
    doorkeeper = StoreDoorkeeper(database, clock)
    made = await Workspace(database, "one").access.make("ci")
    await doorkeeper.caller(made.key.reveal())
    database.close()
    await doorkeeper.close()
    assert f"the use of access {made.id} was not written" in caplog.text


@pytest.mark.rule("http.access")
async def test_an_admin_makes_lists_and_revokes_access(rt: Runtime, clock: FakeClock):
    admin = await made(rt.workspace)
    async with clients(rt, clock) as http:
        body = {"name": "ci", "scopes": ["run"], "seconds": 90, "agent": "Echo", "bounds": {"depth": 1}}
        again = {"Idempotency-Key": "once"}
        new = await http.post("/v1/access", json=body, headers=bearer(admin) | again)
        assert (new.status_code, new.json()["agent"], new.json()["bounds"]) == (201, "echo", {"depth": 1})
        assert new.headers["cache-control"] == "no-store"
        repeated = await http.post("/v1/access", json=body, headers=bearer(admin) | again)
        assert (repeated.status_code, "rmt_" in repeated.text) == (409, False)
        key = new.json()["key"]
        assert (await http.get("/v1/tasks", headers=bearer(key))).status_code == 200
        listed = await http.get("/v1/access", headers=bearer(admin))
        assert {one["name"] for one in listed.json()["access"]} == {"admin", "ci"}
        assert "rmt_" not in listed.text
        assert "digest" not in listed.text
        for _ in "12":
            gone = await http.delete(f"/v1/access/{new.json()['id']}", headers=bearer(admin))
            assert (gone.status_code, gone.content) == (204, b"")
        assert (await http.get("/v1/tasks", headers=bearer(key))).status_code == 401


@pytest.mark.rule("access.within")
async def test_an_access_makes_none_that_is_wider_than_itself(rt: Runtime, clock: FakeClock):
    bounds = Bounds(depth=1, tokens=50)
    own = await rt.workspace.access.make("narrow", scopes="admin", bounds=bounds, expires=timedelta(hours=1))
    until = own.access.expires_at
    async with clients(rt, clock) as http:
        headers = bearer(own.key.reveal())

        async def make(**more: object) -> httpx.Response:
            return await http.post("/v1/access", json={"name": "x", "scopes": ["admin"], **more}, headers=headers)

        for more in ({}, {"bounds": {"depth": 5, "tokens": 9_000}}, {"seconds": 7_200}):
            got = (await make(**more)).json()
            assert (got["bounds"], got["expires_at"]) == ({"depth": 1, "tokens": 50}, until)
        assert (await make(seconds=60)).json()["expires_at"] == clock.now() + 60_000_000
        acting = (await rt.workspace.access.make("agent", scopes="admin", agent="echo")).key.reveal()
        assert (await http.get("/v1/access", headers=bearer(acting))).status_code == 403


async def test_a_store_has_access_if_any_workspace_has_one_that_is_active(rt: Runtime, clock: FakeClock):
    database, other = database_of(rt), Workspace(database_of(rt), "other")
    await rt.workspace.context().set("notes", "k", 1)
    assert not await has_access(database, "default", clock.now())
    one = await other.access.make("ci")
    assert await has_access(database, "default", clock.now())
    assert await has_access(database, "other", clock.now())
    await other.access.revoke(one.id)
    assert not await has_access(database, "default", clock.now())
