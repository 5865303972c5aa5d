"""`remit.Client` against the server in this process: the same values and errors, and nothing lost with an answer."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from remit import Bounds, Client, Plan, Runtime, Secret, Step, Turn
from remit.adapters.http_wire import HttpWire, local_port
from remit.adapters.vault import fresh_master
from remit.core.access import parse_key
from remit.errors import BadInput, Conflict, Forbidden, NoServer, NotFound, Refused, StoreError, Unauthorised
from remit.runtime.calls import CALLS
from remit.runtime.workspace import opening_of
from remit.server.app import Server
from remit.server.callers import PERMITS, READ
from remit.server.handlers.remote import REMOTE_ROWS
from remit.settings import Policy, Serving
from server.serving import ADDRESS, app_of, caller, client
from teams import echo, team

pytestmark = pytest.mark.anyio


def client_of(app: Server, access: str = "ann", transport: httpx.AsyncBaseTransport | None = None) -> Client:
    transport = transport or httpx.ASGITransport(app, raise_app_exceptions=False)
    return Client(ADDRESS, key=f"key-{access}", transport=transport)


class Losing(httpx.AsyncBaseTransport):
    """A connection that breaks after the server has done what was asked: the first answer of each path is lost."""

    def __init__(self, app: Server) -> None:
        self.inner = httpx.ASGITransport(app, raise_app_exceptions=False)
        self.lost: set[str] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await self.inner.handle_async_request(request)
        if request.url.path in self.lost:
            return answer
        self.lost.add(request.url.path)
        raise httpx.ReadError("the connection broke", request=request)


class Spoiling(httpx.AsyncBaseTransport):
    """A way on which the content of a file is changed."""

    def __init__(self, app: Server) -> None:
        self.inner = httpx.ASGITransport(app, raise_app_exceptions=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await self.inner.handle_async_request(request)
        return httpx.Response(200, content=b"9876543210") if request.method == "GET" else answer


def transport_of(rt: Runtime) -> httpx.ASGITransport:
    return httpx.ASGITransport(app_of(rt), raise_app_exceptions=False)


def agents(rt: Runtime) -> None:
    rt.agent("echo")(echo)

    @rt.agent(asks=["echo"], reads=["notes"])
    async def outsider(turn: Turn) -> str:
        return ""


@pytest.mark.rule("client.secrets")
async def test_an_admin_makes_keys_and_hooks_and_sets_keys_of_providers_over_a_server(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("REMIT_MASTER_KEY", fresh_master().reveal())
    with team() as rt:
        agents(rt)
        async with Client("https://remit.test", key="key-ann", transport=httpx.ASGITransport(app_of(rt))) as client:
            expires = datetime(2100, 1, 1, tzinfo=UTC)
            made = await client.access.make("ci", scopes="run", bounds=Bounds(depth=2), expires=expires)
            assert (made.access.name, made.access.bounds.depth, made.access.scopes) == ("ci", 2, ("run",))
            assert made.access.expires_at == round(expires.timestamp() * 1e6)
            assert parse_key(made.key.reveal()) is not None
            assert [one.id for one in await rt.workspace.access.list()] == [made.id]
            soon = await client.access.make("soon", expires=60)
            assert soon.access.expires_at - soon.access.made_at == 60_000_000
            hook = await client.hooks.add("https://example.com/hook", ["task.completed"])
            again = await client.hooks.rotate(hook.id)
            assert again.id == hook.id
            assert again.secret.reveal() != hook.secret.reveal()
            assert (await client.keys.set("openai", Secret("sk-123"))).name == "openai"
            assert [one.name for one in await rt.workspace.keys.names()] == ["openai"]
            assert await client.keys.rotate() == 0
            assert await client.keys.remove("openai") is True
            with pytest.raises(BadInput, match="Secret"):
                await client.keys.set("openai", cast("Secret", "sk-123"))
        async with client_of(app_of(rt)) as plain:
            with pytest.raises(BadInput, match="not sent over plain HTTP to another machine"):
                await plain.keys.set("openai", Secret("sk-123"))
    assert "sk-123" not in str([event.text for event in await rt.workspace.journal.history()])


@pytest.mark.rule("client.secrets")
async def test_an_access_made_over_a_server_has_the_bounds_and_the_expiry_of_its_maker():
    with team() as rt:
        first = await rt.workspace.access.make("first", scopes="admin", expires=60, bounds=Bounds(depth=1))
        maker = caller(first.id, bounds=Bounds(depth=1))
        async with client_of(app_of(rt, maker), first.id) as client:
            for wanted in (None, 3_600, datetime(2100, 1, 1, tzinfo=UTC)):
                made = await client.access.make("second", expires=wanted, bounds=Bounds(depth=3))
                assert (made.access.expires_at, made.access.bounds.depth) == (first.access.expires_at, 1)
            short = await client.access.make("third", expires=1)
            assert short.access.expires_at < first.access.expires_at


@pytest.mark.rule("client.same")
async def test_the_outcome_of_a_plan_is_the_same_over_a_server():
    with team() as rt:
        agents(rt)
        async with rt.serving(), client_of(app_of(rt)) as client:
            task = await client.submit_plan(
                Plan([Step("one", "First", agent="echo"), Step("two", "Next", agent="echo")])
            )
            assert await task.plan_outcome(10) == await rt.workspace.tasks.get(task.id).plan_outcome(10)
            single = await client.submit("echo", "x")
            with pytest.raises(Conflict, match="no plan and no team"):
                await single.plan_outcome(10)


@pytest.mark.rule("client.same")
async def test_a_client_does_what_a_workspace_does():
    with team() as rt:
        agents(rt)
        async with rt.serving(), client_of(app_of(rt)) as client:
            task = await client.submit("echo", "hello")
            assert (await task.wait(10)).value == "hello"
            assert (await client.looks.detail("last")).record == (await rt.workspace.looks.detail("last")).record
            async for events in client.journal.follow(after=0):
                assert events == await rt.workspace.journal.history(limit=len(events))
                break
            with pytest.raises(NotFound, match="there is no run or task 'nothing' in this workspace"):
                await client.looks.detail("nothing")
            with pytest.raises(BadInput, match="state"):
                await client.tasks.list(state="odd")
            assert client.where == ADDRESS


@pytest.mark.rule("client.files")
async def test_files_go_to_a_server_and_come_back(tmp_path: Path):
    with team() as rt:
        (tmp_path / "order.txt").write_bytes(b"two chairs" * 300_000)
        async with client_of(app_of(rt)) as client:
            saved = await client.artifacts.save(tmp_path / "order.txt", by="boss")
            assert (saved.size, saved.name, saved.media_type) == (3_000_000, "order.txt", "text/plain")
            outside = await client.artifacts.save(iter([b"a", b"b"]), "note", trust="untrusted")
            listed = await rt.workspace.artifacts.list()
            assert [(one.artifact, one.trust) for one in listed] == [(outside, "untrusted"), (saved, "trusted")]
            events = await rt.workspace.journal.history(kinds=["artifact.saved"])
            assert [event.data["by"] for event in events] == ["access:ann"] * 2  # as its key says
            opened = await client.artifacts.open(saved.digest)
            assert (await opened.read(), opened.trust) == (b"two chairs" * 300_000, "trusted")
            copy = await (await client.artifacts.open(outside)).save_to(tmp_path / "copy")
            assert copy.read_bytes() == b"ab"
            for source, name in ((b"x", "a/b"), ("text", "name"), (b"x", ""), (tmp_path / "nowhere", "x")):
                with pytest.raises(BadInput) as here:
                    await rt.workspace.artifacts.save(cast("Any", source), name)
                with pytest.raises(BadInput) as there:
                    await client.artifacts.save(cast("Any", source), name)
                assert str(here.value) == str(there.value)
            with pytest.raises(NotFound, match="there is no artifact sha256:000"):
                await client.artifacts.open(f"sha256:{'0' * 64}")
            with pytest.raises(NotFound):
                _ = [part async for part in HttpWire(ADDRESS, "key-ann", transport_of(rt)).fetch_file("odd")]


@pytest.mark.rule("client.files")
async def test_a_file_that_is_too_large_or_damaged_on_the_way_is_not_taken_for_whole():
    with Runtime(":memory:", policy=Policy(artifact_bytes=10)) as rt:
        async with client_of(app_of(rt)) as client:
            with pytest.raises(Refused, match="artifact_bytes") as refused:
                await client.artifacts.save(b"x" * 11, "x")
            assert refused.value.rule == "artifact-bytes"
            saved = await client.artifacts.save(b"0123456789", "x")
        async with client_of(app_of(rt), transport=Spoiling(app_of(rt))) as client:
            with pytest.raises(StoreError, match="damaged"):
                await (await client.artifacts.open(saved)).read()
        async with client_of(app_of(rt), transport=Losing(app_of(rt))) as client:
            opened = await client.artifacts.open(saved)
            with pytest.raises(NoServer, match="the connection broke"):
                await opened.read()


@pytest.mark.rule("client.files")
async def test_a_file_whose_answer_was_lost_is_sent_again_and_saved_once():
    with team() as rt:
        async with client_of(app_of(rt), transport=Losing(app_of(rt))) as client:
            assert (await client.artifacts.save(b"one", "one.txt")).size == 3
        async with client_of(app_of(rt), transport=Losing(app_of(rt))) as client:
            with pytest.raises(NoServer):  # an iterator cannot be read again
                await client.artifacts.save(iter([b"two"]), "two.txt")
        events = await rt.workspace.journal.history(kinds=["artifact.saved"])
        assert [event.text.count("one.txt") for event in events] == [1, 0]


@pytest.mark.rule("http.no-echo", "http.alike")
async def test_an_error_of_a_call_repeats_nothing_and_a_client_puts_its_words_back():
    with team() as rt:
        agents(rt)
        other = Runtime(opening_of(rt.workspace).database, workspace="other", serving=Serving(concurrency=0))
        agents(other)
        elsewhere = await other.submit("echo", "x")
        app = app_of(rt)
        async with client(app) as http:
            found = [
                (await http.post("/v1/calls/looks.detail", json={"part": part})).content
                for part in (elsewhere.id, "nothing", "no\nid", "<script>", "ä" * 300)
            ]
            assert len({*found}) == 1, found
            for name, given in ECHOES.items():
                got = await http.post(f"/v1/calls/{name}", json=given)
                assert (400 <= got.status_code < 500, CANARY in got.text) == (True, False), got.text
        remote, here = client_of(app), rt.workspace
        for look in (remote.looks.detail, here.looks.detail):
            with pytest.raises(NotFound, match="there is no run or task '<script>' in this workspace"):
                await look("<script>")


CANARY = "canary-in-a-request"
ECHOES: dict[str, dict[str, Any]] = {
    "looks.has_ended": {"task": CANARY},
    "looks.records": {"tasks": [CANARY, 7]},
    "tasks.list": {"state": CANARY},
    "tasks.cancel": {"task": CANARY},
    "agents.trip": {"agent": CANARY, "why": 7},
    "journal.history": {"kinds": [CANARY]},
    "questions.answer": {"question": CANARY, "value": "x"},
    "money.grant": {"amount": CANARY},
    "context.get": {"namespace": CANARY, CANARY: 1},
    "submit": {"agent": CANARY, "task": "x"},
    "looks.head": {CANARY: 1},
}


@pytest.mark.rule("client.once")
async def test_a_change_whose_answer_is_lost_is_made_once():
    with team() as rt:
        agents(rt)
        app = app_of(rt)
        client = client_of(app, transport=Losing(app))
        task = await client.submit("echo", "hello")
        assert [one.id for one in await rt.workspace.tasks.list()] == [task.id]
        await client.money.grant("$5")
        account = (await rt.workspace.money.account()).credits
        assert account is not None
        assert account.granted == 5_000_000
        assert await client.agents.trip("echo", "broken") is True


@pytest.mark.rule("client.name")
async def test_a_client_acts_as_its_key_says():
    with team() as rt:
        agents(rt)
        everyone = caller(), caller("reader", READ), caller("out", agent="outsider", bounds=Bounds(depth=3))
        app = app_of(rt, *everyone)
        await rt.workspace.context().set("notes", "k", "for all")
        await rt.workspace.context().set("plans", "k", "secret")
        out = client_of(app, "out")
        made = await (await out.submit("echo", "x", by="boss")).status()
        assert (made.asker, made.by) == ("outsider", "access:out")
        assert [one.value for one in await out.looks.entries("notes")] == ["for all"]
        with pytest.raises(Refused):
            await out.looks.entry("plans", "k")
        with pytest.raises(Refused):
            await out.submit("outsider", "x")
        for closed in (out.money.account, out.looks.head, out.journal.history):
            with pytest.raises(Forbidden, match="acts as an agent"):
                await closed()
        other = await rt.submit("echo", "not of this access")
        with pytest.raises(NotFound, match="no such task"):
            await out.tasks.get(other.id).status()
        with pytest.raises(Forbidden):
            await client_of(app, "reader").submit("echo", "x")
        with pytest.raises(Unauthorised):
            await client_of(app, "nobody").looks.head()


@pytest.mark.rule("client.name")
async def test_every_call_needs_a_key_with_its_scope():
    assert {row.path: row.scope for row in REMOTE_ROWS} == {
        f"/v1/calls/{name}": one.scope for name, one in CALLS.items()
    }
    with team() as rt:
        agents(rt)
        keys = [caller(one, one) for one in PERMITS]
        async with client(app_of(rt, *keys, caller("out", agent="outsider")), "") as http:
            for row in REMOTE_ROWS:
                for access in ("", "forged"):
                    got = await http.post(row.path, json={}, headers={"authorization": f"Bearer key-{access}"})
                    assert (got.status_code, got.json()["code"]) == (401, "unauthorised"), row.path
                for key in keys:
                    got = await http.post(
                        row.path, json={"odd": 1}, headers={"authorization": f"Bearer key-{key.access}"}
                    )
                    assert (got.status_code == 403) == (not key.may(row.scope)), (row.path, key.access, got.text)
                    assert got.status_code < 500, (row.path, got.text)
                got = await http.post(row.path, json={"odd": 1}, headers={"authorization": "Bearer key-out"})
                assert row.agents or got.status_code == 403, (row.path, got.text)


@pytest.mark.rule("client.once")
async def test_a_client_waits_when_a_server_wants_it_to():
    class Busy(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if not waited:
                return httpx.Response(429, json={"code": "too-many"}, headers={"retry-after": "3"})
            return httpx.Response(200, json={"answer": 7})

    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    wire = HttpWire(ADDRESS, "", Busy())
    wire.sleep = sleep
    assert (await wire.call("looks.head", {}), waited) == (7, [3.0])


@pytest.mark.rule("client.unreachable")
async def test_a_server_that_does_not_answer_is_told_by_its_address():
    class Down(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            raise httpx.ConnectError("connection refused", request=request)

    class Stranger(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            return httpx.Response(502, text="<html>bad gateway</html>")

    with pytest.raises(NoServer, match=r"no server answers at http://remit\.test"):
        await Client(ADDRESS, transport=Down()).looks.head()
    with pytest.raises(StoreError, match="answered with status 502"):
        await Client(ADDRESS, transport=Stranger()).looks.head()
    for address in ("team.db", "ftp://x", "http://", "http://x/y", "http://a:b@x", 7):
        with pytest.raises(BadInput, match="a server is an address such as"):
            Client(address)  # pyright: ignore[reportArgumentType] - what is wrong is the test


@pytest.mark.rule("http.key")
async def test_a_key_with_bounds_goes_on_from_its_own_runs_only_and_bounds_its_schedules():
    bounds = Bounds(depth=3, credits="$5")
    with team() as rt:
        agents(rt)
        async with rt.serving(), client_of(app_of(rt, caller(), caller("cut", bounds=bounds)), "cut") as client:
            theirs = await rt.workspace.submit("echo", "theirs")
            await theirs.wait(10)
            for go_on in (client.fork, client.tasks.retry):
                with pytest.raises(Forbidden, match="only what it has started itself"):
                    await go_on(theirs.id)
            mine = await client.submit("echo", "mine")
            await mine.wait(10)
            forked = await client.fork(mine.id)
            assert (await forked.wait(10)).value == "mine"
            made = await client.schedules.add("s", "0 9 * * *", "echo", "x", within=Bounds(depth=9, credits="$9"))
    assert made.keywords["within"] == bounds.data


@pytest.mark.parametrize(
    ("address", "port"),
    [
        ("http://127.0.0.1:8321", 8321),
        ("http://localhost", 80),
        ("https://localhost", 443),
        ("https://[::1]", 443),
        ("https://example.com", 0),
    ],
)
def test_the_stored_token_of_a_server_on_this_machine_is_found_by_its_port(address: str, port: int):
    assert local_port(address) == port
