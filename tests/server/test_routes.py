"""Every route of the table: what it answers, and that an unsafe one happens once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from remit.server.callers import ADMIN, RUN
from remit.server.openapi import RouteRows, describe
from remit.server.routes import ROWS
from remit.testing import FakeClock
from server.examples import EXAMPLES, STEP, example
from server.mutants import tried
from server.serving import app_of, caller, client
from server.strangers import Strangers
from server.worlds import world
from teams import echo, team

pytestmark = pytest.mark.anyio

UNSAFE = [row for row in ROWS if row.method != "GET"]
IDS = {"/v1/tasks/{id}": "task", "/v1/runs/{id}": "run", "/v1/approvals/{id}": "question", "/v1/hooks/{id}": "hook"}
SHOWN_ONCE = {"POST /v1/access"}  # its answer is kept nowhere, so it cannot be repeated


@pytest.mark.rule("http.repeat")
async def test_every_unsafe_route_happens_once_under_its_key_and_answers_the_same():
    assert {row.name for row in UNSAFE} == EXAMPLES.keys(), "give the new route an example"
    async with world() as at, client(at.app) as http:
        for number, row in enumerate(sorted(UNSAFE, key=lambda row: [*EXAMPLES].index(row.name))):
            asked, key = example(row, at), {"Idempotency-Key": f"key {number}"}
            first = await asked.send(http, row, at, **key)
            assert first.status_code in row.answers, (row.name, first.text)
            before = await at.rt.workspace.journal.history()
            again = await asked.send(http, row, at, **key)
            if row.name in SHOWN_ONCE:
                assert (again.status_code, "rmt_" in again.text) == (409, False), row.name
            else:
                assert (again.status_code, again.content) == (first.status_code, first.content), row.name
            other = await asked.send(http, row, at, other=True, **key)
            assert (other.status_code, other.json()["code"]) == (409, "conflict"), (row.name, other.text)
            kinds = [one.kind for one in (await at.rt.workspace.journal.history())[len(before) :]]
            assert not {"task.submitted", "entry.set", "credits.granted", "owner.acted"} & {*kinds}, row.name


@pytest.mark.rule("http.alike")
async def test_every_route_answers_as_the_table_says_and_knows_nothing_of_other_ids():
    queries = {"/v1/agents/find": "?q=repeat", "/v1/tasks/{id}/wait": "?timeout=0", "/v1/prune": "?days=7"}
    async with world() as at, client(at.app) as http:
        for row in [row for row in ROWS if row.method == "GET"]:
            found = next((name for path, name in IDS.items() if row.path.startswith(path)), "")
            names = {"id": at.names[found]} if found else {}
            got = await http.get(at.path(row.path, **names) + queries.get(row.path, ""))
            assert got.status_code in row.answers, (row.name, got.text)
            assert "/" not in row.path[1:] or got.headers["cache-control"] == "private, no-cache"
            strange = await http.get(f"{at.path(row.path, **names)}?strange=1")
            assert strange.status_code == 422, row.name
        for row in ROWS:
            if not {"{id}", "{name}", "{digest}", "{seq}"} & {*row.path.split("/")}:
                continue
            body: Any = EXAMPLES[row.name].body if row.name in EXAMPLES else None
            if row.path.startswith("/v1/approvals/") and body is not None:
                body = {**body, "digest": "0" * 64}
            if row.method == "PUT":
                continue  # it makes what is not there
            answers = {
                (got.status_code, got.content)
                for one in ("nothing", "x" * 300, "%00", "%ff", "sha256:%20")
                for path in [row.path]
                for got in [
                    await http.request(row.method, at.path(path, id=one, name=one, digest=one, seq=one), json=body)
                ]
            }
            assert [status for status, _ in answers] == [404], (row.name, answers)


async def test_a_plan_a_team_and_a_fork_are_carried_out():
    async with world() as at, client(at.app) as http:
        plan = {"steps": [STEP, {"id": "b", "title": "again", "agent": "echo", "after": ["a"]}], "goal": "twice"}
        made = (await http.post("/v1/plans", json=plan)).json()["id"]
        done = (await http.get(f"/v1/tasks/{made}/wait?timeout=60")).json()
        assert done["outcome"]["state"] == "completed", done
        tree = (await http.get(f"/v1/runs/{made}")).json()
        assert {one["agent"] for one in tree["children"]} == {"echo"}
        forked = await http.post(f"/v1/runs/{at.names['run']}/fork", json={"task": "other words"})
        done = (await http.get(f"{forked.headers['location']}/wait")).json()
        assert done["outcome"]["value"] == "other words"
        drawn = await http.get(f"/v1/runs/{made}/flow")
        assert drawn.headers["content-type"].startswith("image/svg+xml")
        assert "sandbox" in drawn.headers["content-security-policy"]


async def test_an_entry_is_changed_only_at_the_version_that_was_read():
    async with world() as at, client(at.app) as http:
        place = "/v1/context/notes/a%2Fb"
        tag = (await http.get(place)).headers["etag"]
        assert (await http.get(place, headers={"If-None-Match": tag})).status_code == 304
        assert (await http.put(place, json={"value": 2}, headers={"If-Match": '"0"'})).status_code == 409
        assert (await http.put(place, json={"value": 2}, headers={"If-Match": "2"})).status_code == 422
        assert (await http.put(place, json={"value": 2}, headers={"If-Match": tag})).status_code == 200
        assert (await http.put(place, json={"value": 3}, headers={"If-Match": tag})).status_code == 409
        assert (await http.get("/v1/context/notes?prefix=a/")).json()["entries"][0]["value"] == 2
        assert (await http.delete(place)).status_code == 204
        assert (await http.get(place)).status_code == 404


async def test_a_file_comes_back_as_it_was_saved_and_no_browser_shows_it():
    async with world() as at, client(at.app) as http:

        async def parts():
            yield b"<script>"
            yield b"x" * 100_000

        saved = await http.post(
            "/v1/artifacts?name=p%C3%A4ge.html", content=parts(), headers={"content-type": "text/html"}
        )
        got = await http.get(saved.headers["location"])
        assert got.content == b"<script>" + b"x" * 100_000
        assert got.headers["content-disposition"] == "attachment; filename*=UTF-8''p%C3%A4ge.html"
        assert got.headers["x-remit-trust"] == "untrusted"
        assert (await http.post("/v1/artifacts?name=..%2Fx", content=b"")).status_code == 422


async def test_the_description_has_every_route_and_the_page_loads_nothing():
    async with world() as at, client(at.app, "") as http:
        told = (await http.get("/v1/openapi.json")).json()
        assert {(path, method) for path, of in told["paths"].items() for method in of} == {
            (row.path, row.method.lower()) for row in ROWS
        }
        assert told == describe(RouteRows(ROWS))
        page = await http.get("/docs")
        assert page.headers["content-type"].startswith("text/html")
        assert "<script" not in page.text
        assert "http:" not in page.text.replace("https:", "http:")


def open_objects(schema: Any, path: str = "") -> Iterator[str]:
    """Yield the places of a schema at which an object may have other fields with any value."""
    parts = schema.items() if isinstance(schema, dict) else enumerate(schema) if isinstance(schema, list) else ()
    if isinstance(schema, dict) and schema.get("type") == "object" and "additionalProperties" not in schema:
        yield path
    for name, part in parts:
        yield from open_objects(part, f"{path}/{name}")


def fits(body: Any, schemas: dict[str, Any], model: str) -> bool:
    whole = {"$ref": f"#/components/schemas/{model}", "components": {"schemas": schemas}}
    return jsonschema_rs.is_valid(whole, body)


@pytest.mark.rule("http.nearly")
async def test_the_description_allows_no_field_with_a_value_that_the_parser_refuses():
    schemas = describe(RouteRows(ROWS))["components"]["schemas"]
    assert [*open_objects({name: one for name, one in schemas.items() if name != "Problem"})] == []
    async with world() as at, client(at.app) as http:
        given = {"threadId": "t", "runId": "r", "messages": [{"role": "user", "content": "hi", "at": 1.5}], "tools": []}
        assert (await http.post("/v1/ag-ui/echo", json=given)).status_code == 200
        for body in (given | {"state": 2**63}, given | {"messages": [{"role": "user", "content": "hi", "at": 2**63}]}):
            assert (await http.post("/v1/ag-ui/echo", json=body)).status_code == 400
            assert not fits(body, schemas, "AguiInput")
        assert fits(given, schemas, "AguiInput")
        for meta in ({"a\n": 1}, {"": 1}, {"a": None}, {"a": [1]}):
            body = {"agent": "echo", "task": "x", "meta": meta}
            assert (await http.post("/v1/tasks", json=body)).status_code == 422
            assert not fits(body, schemas, "SubmitBody")
        assert fits({"agent": "echo", "task": "x", "meta": {"a": 1, "b": True, "c": "x"}}, schemas, "SubmitBody")


@pytest.mark.rule("http.card")
async def test_a_key_of_an_agent_acts_as_its_card_and_sees_its_own_runs_only():
    async with world() as at:
        app = app_of(at.rt, caller("card", ADMIN, agent="guest"), caller("other", ADMIN, agent="guest"))
        at.rt.agent("guest", asks=["echo"], reads=["notes"])(echo)
        async with client(app, "card") as http, client(app, "other") as other:
            cards = (await http.get("/v1/agents")).json()["agents"]
            assert [one["name"] for one in cards] == ["echo"]
            made = await http.post("/v1/tasks", json={"agent": "echo", "task": "x"})
            refused = await http.post("/v1/tasks", json={"agent": "fails", "task": "x"})
            assert (refused.status_code, refused.json()["code"]) == (403, "refused")
            status = (await http.get(made.headers["location"])).json()
            assert (status["asker"], status["by"]) == ("guest", "access:card")
            assert [one["id"] for one in (await http.get("/v1/tasks")).json()["tasks"]] == [made.json()["id"]]
            place = made.headers["location"]
            for hidden in (place, f"{place}/wait?timeout=0", f"/v1/tasks/{at.names['task']}"):
                assert (await other.get(hidden)).status_code == 404, hidden
            assert (await other.post(f"{place}/cancel")).status_code == 404
            assert (await other.post(f"{place}/retry")).status_code == 404
            assert (await http.get("/v1/context/notes/a%2Fb")).json()["value"] == {"n": 1}
            assert (await http.put("/v1/context/notes/z", json={"value": 1})).status_code == 403
            for row in ROWS:
                if row.scope and not row.agents:
                    got = await http.request(row.method, at.path(row.path, id="x", name="x"))
                    assert got.status_code == 403, row.name


@pytest.mark.rule("http.nearly")
async def test_requests_that_are_nearly_right_never_fail_the_server():
    async with world() as at, client(at.app) as http:
        found = await tried(http, at, 400)
    assert found.accepted > 20, found


@pytest.mark.rule("http.nearly")
@pytest.mark.parametrize("store", ["memory", "postgres"])
async def test_nearly_right_requests_of_mcp_and_a2a_never_fail_the_server(store: str, request: pytest.FixtureRequest):
    place = ":memory:" if store == "memory" else request.getfixturevalue("address")
    async with world(place) as at, at.app.running(), client(at.app) as http:
        found = await tried(http, at, 150, 5, Strangers(http))
    assert found.accepted > 20, found


@pytest.mark.rule("http.prune")
async def test_old_runs_are_counted_and_deleted(tmp_path: Path):
    clock = FakeClock()
    with team(tmp_path / "a.db", clock=clock) as rt:
        rt.agent("echo")(echo)
        app = app_of(rt, caller(), caller("eve", RUN))
        await rt.run("echo", "x")
        clock.advance(2 * 86_400)
        async with client(app) as http, client(app, "eve") as other:
            assert (await http.get("/v1/prune?days=1")).json() == {"prunable": 1}
            assert (await http.get("/v1/prune?days=3")).json() == {"prunable": 0}
            assert (await other.post("/v1/prune", json={"days": 1})).status_code == 403
            assert (await http.post("/v1/prune", json={"days": 0})).status_code == 422
            assert (await http.post("/v1/prune", json={"days": 1})).json() == {"pruned": 1}
            assert (await http.get("/v1/prune?days=1")).json() == {"prunable": 0}
