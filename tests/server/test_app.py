"""The first rows of the table: keys, hosts, tasks and events over HTTP."""

import pytest

from remit import Runtime, Turn
from remit.core.bounds import Bounds
from remit.errors import BadInput
from remit.runtime.workspace import opening_of
from remit.server.app import ServerSettings
from remit.server.callers import APPROVE, READ, RUN, TokenDoorkeeper
from remit.server.routes import ROWS
from remit.server.serve import listening, may_bind, own_origins
from remit.settings import Serving
from server.serving import app_of, caller, client
from teams import echo, team

pytestmark = pytest.mark.anyio

X = {"agent": "echo", "task": "x"}


@pytest.mark.rule("http.key")
async def test_a_task_is_submitted_waited_for_and_shown():
    with team() as rt:
        rt.agent("echo")(echo)
        async with rt.serving(), client(app_of(rt)) as http:
            made = await http.post("/v1/tasks", json={"agent": "echo", "task": "hello", "tags": ["a"]})
            assert made.status_code == 202
            place = made.headers["location"]
            done = await http.get(f"{place}/wait")
            assert done.json()["outcome"]["value"] == "hello"
            shown = await http.get(place)
            assert shown.json()["by"] == "access:ann"
            same = await http.get(place, headers={"If-None-Match": shown.headers["etag"]})
            assert (same.status_code, same.content) == (304, b"")
            listed = (await http.get("/v1/tasks?tag=a&limit=1")).json()
            assert [one["id"] for one in listed["tasks"]] == [made.json()["id"]]
            rest = (await http.get(f"/v1/tasks?limit=1&cursor={listed['next']}")).json()
            assert rest == {"tasks": [], "next": None}
            events = (await http.get("/v1/events?kind=task.started,task.completed")).json()["events"]
            assert [one["kind"] for one in events] == ["task.started", "task.completed"]
            one = await http.get(f"/v1/events/{events[0]['seq']}")
            assert one.json() == events[0]


@pytest.mark.rule("http.repeat")
async def test_a_repeated_submission_is_one_task_and_gets_the_same_bytes():
    with team() as rt:
        rt.agent("echo")(echo)
        async with client(app_of(rt, caller(), caller("bob"))) as http, client(app_of(rt, caller("bob")), "bob") as bob:
            again = {"Idempotency-Key": "k" * 200}
            first, second = [
                await http.post("/v1/tasks", json={"agent": "echo"} | {"task": "x"}, headers=again) for _ in "12"
            ]
            assert (first.status_code, first.content) == (second.status_code, second.content)
            other = await http.post("/v1/tasks", json={"agent": "echo", "task": "y"}, headers=again)
            assert (other.status_code, other.json()["code"]) == (409, "conflict")
            assert (
                await bob.post("/v1/tasks", json={"agent": "echo", "task": "x"}, headers=again)
            ).content != first.content
            alone = [await http.post("/v1/tasks", json={"agent": "echo", "task": "x"}) for _ in "12"]
            assert alone[0].content != alone[1].content


@pytest.mark.rule("http.alike")
async def test_what_is_in_another_workspace_looks_like_what_is_not_there():
    with team() as rt:
        rt.agent("echo")(echo)
        other = Runtime(opening_of(rt.workspace).database, workspace="other", serving=Serving(concurrency=0))
        other.agent("echo")(echo)
        elsewhere = await other.submit("echo", "x")
        async with client(app_of(rt)) as http:
            for ending in ("", "/wait"):
                found = [
                    (await http.get(f"/v1/tasks/{one}{ending}")).content
                    for one in (elsewhere.id, "nothing", "x" * 5_000, "%00", "%ff", "a%0Ab", "ä")
                ]
                assert len(set(found)) == 1, found


@pytest.mark.rule("http.key")
async def test_without_a_valid_key_nothing_is_told():
    with team() as rt:
        app = app_of(rt, caller("ann", READ), caller("run", RUN), caller("yes", APPROVE))
        for row in ROWS:
            async with client(app, "") as http:
                for headers in ({}, {"authorization": "Bearer nope"}, {"authorization": "Basic key-ann"}):
                    got = await http.request(row.method, row.path, headers=headers)
                    assert got.status_code == (401 if row.scope else 200), row.name
            async with client(app, "ann") as http:
                got = await http.request(row.method, row.path)
                assert (got.status_code == 403) is (row.scope not in ("", READ)), row.name


@pytest.mark.rule("http.host")
async def test_other_hosts_and_other_pages_are_refused():
    with team() as rt:
        hosts = frozenset(("remit.test",))
        settings = ServerSettings(hosts, own_origins(hosts) | {"https://remit.example.com"})
        async with client(app_of(rt, settings=settings)) as http:
            cases = [
                ({}, 200),
                ({"origin": "https://remit.example.com"}, 200),
                ({"origin": "null"}, 403),
                ({"origin": "http://remit.test"}, 200),
                ({"origin": "http://remit.test:8377"}, 403),
                ({"origin": "http://evil.test"}, 403),
                ({"host": "evil.test"}, 403),
                ({"host": "remit.test:8377"}, 403),
            ]
            for headers, status in cases:
                assert (await http.get("/v1/tasks", headers=headers)).status_code == status, headers


@pytest.mark.rule("http.no-echo")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/tasks", {"agent": "echo", "s3cr3t": 1}),
        ("POST", "/v1/tasks", {"agent": "echo", "task": "x", "session": "s3cr3t\n"}),
        ("POST", "/v1/tasks", {"agent": "echo", "task": "x", "meta": {"s3cr3t": None}}),
        ("POST", "/v1/tasks", {"agent": "echo", "task": "x", "within": {"credits": "s3cr3t"}}),
        ("POST", "/v1/tasks", {"agent": "echo", "task": "x", "tools": ["group:s3cr3t"]}),
        ("POST", "/v1/tasks", ["s3cr3t"]),
        ("GET", "/v1/tasks?limit=s3cr3t", None),
        ("GET", "/v1/tasks?s3cr3t=1", None),
        ("GET", "/v1/tasks?limit=1&limit=2", None),
        ("GET", "/v1/events?kind=s3cr3t", None),
        ("GET", "/v1/events?after=1.0", None),
    ],
)
async def test_an_error_names_the_field_and_repeats_nothing(method: str, path: str, body: object):
    with team() as rt:
        rt.agent("echo")(echo)
        async with client(app_of(rt)) as http:
            got = await http.request(method, path, json=body)
            assert got.status_code == 422, got.text
            assert got.headers["content-type"] == "application/problem+json"
            assert "s3cr3t" not in got.text


@pytest.mark.rule("http.key")
async def test_a_key_with_bounds_starts_nothing_beyond_them():
    async def asks(turn: Turn) -> object:
        return await turn.delegate("echo", turn.task)

    with team() as rt:
        rt.agent("echo")(echo)
        rt.agent("asks", asks=["echo"])(asks)
        app = app_of(rt, caller(bounds=Bounds(agents=["asks"])))
        async with rt.serving(), client(app) as http:
            made = await http.post(
                "/v1/tasks", json={"agent": "asks", "task": "x", "within": {"agents": ["asks", "echo"]}}
            )
            done = await http.get(f"{made.headers['location']}/wait")
            assert done.json()["outcome"]["state"] == "failed"
            assert (await http.post("/v1/tasks", json={"agent": "echo", "task": "x"})).status_code == 403


async def test_paths_methods_and_the_token():
    with team() as rt:
        async with client(app_of(rt)) as http:
            assert (await http.get("/v1/nothing")).json()["code"] == "no-such-path"
            wrong = await http.delete("/v1/tasks")
            assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, POST")
        door = TokenDoorkeeper("token", "default")
        assert (await door.caller("token")).workspace == "default"


@pytest.mark.rule("http.bind")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.com", ""])
def test_without_keys_only_this_machine_is_served(host: str):
    with pytest.raises(BadInput, match="needs keys first"):
        may_bind(host, has_access=False)
    may_bind(host, has_access=True)
    may_bind("127.0.0.1", has_access=False)


def test_a_port_in_use_and_a_host_of_others_are_told():
    with listening("127.0.0.1", 0) as socket, pytest.raises(BadInput, match="is in use"):
        listening("127.0.0.1", socket.getsockname()[1])
    with pytest.raises(BadInput, match="no address of this machine"):
        listening("192.0.2.1", 0)


@pytest.mark.rule("otel.incoming")
async def test_a_run_belongs_to_the_trace_of_the_request_that_started_it():
    trace = f"00-{'4b' * 16}-{'f0' * 8}-01"
    with team() as rt:
        rt.agent("echo")(echo)
        async with client(app_of(rt)) as http:
            for number, sent in enumerate((trace, "nonsense", f"00-{'0' * 32}-{'f0' * 8}-01")):
                key = {"Idempotency-Key": str(number), "traceparent": sent}
                assert (await http.post("/v1/tasks", json=X, headers=key)).status_code == 202
            again = {"Idempotency-Key": "0", "traceparent": trace.replace("4b", "5c")}
            assert (await http.post("/v1/tasks", json=X, headers=again)).status_code == 202
            first = (await http.get("/v1/events?kind=task.submitted,task.started")).json()["events"]
        assert [one["data"].get("trace") for one in first] == [trace, None, None]
