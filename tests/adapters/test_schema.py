"""Schemas are the caller's, and nothing is fetched for them."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit import Plan, Runtime, Step, Turn
from remit.adapters.schema import check, check_schema
from remit.errors import BadInput

LOCAL = {
    "$id": "https://example.org/order",
    "$defs": {
        "line": {"$anchor": "line", "type": "object", "properties": {"parts": {"items": {"$ref": "#/$defs/line"}}}}
    },
    "properties": {"one": {"$ref": "#line"}, "two": {"$ref": "order#/$defs/line"}},
}


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """Listens, and would notice anyone who connects."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        yield listening


def elsewhere(server: socket.socket, path: Path) -> list[dict[str, object]]:
    path.write_text('{"type": "string"}')
    url = f"http://127.0.0.1:{server.getsockname()[1]}/s"
    return [
        {"$ref": url},
        {"$ref": path.as_uri()},
        {"$ref": "other.json"},
        {"$id": url, "properties": {"a": {"$ref": "b"}}},
        {"$dynamicRef": f"{url}#x"},
        {"allOf": [{"items": {"$ref": f"{url}#/$defs/a"}}]},
        {"properties": {"a": {"$id": f"{url}/", "$ref": "b"}}},
        {"$ref": "#/$defs/nobody"},
        {"$ref": "#nobody"},
        {"$ref": "http://[bad"},
    ]


@pytest.mark.rule("plan.schema-local")
def test_a_schema_that_refers_to_something_elsewhere_is_refused_and_nothing_is_fetched(server, tmp_path: Path):
    for schema in elsewhere(server, tmp_path / "s.json"):
        with pytest.raises(BadInput, match="which is not in it; nothing is fetched from elsewhere"):
            check_schema(schema)
    with pytest.raises(BlockingIOError):
        server.accept()


@pytest.mark.rule("plan.schema-local")
@pytest.mark.anyio
async def test_a_plan_with_such_a_schema_starts_nothing(rt: Runtime, server, tmp_path: Path):
    asked: list[str] = []

    @rt.agent
    async def ann(turn: Turn) -> dict[str, int]:
        asked.append(turn.task)
        return {"n": 1}

    for schema in elsewhere(server, tmp_path / "s.json"):
        steps = [Step("a", "A", agent="ann"), Step("b", "B", agent="ann", payload="structured", schema=schema)]
        with pytest.raises(BadInput, match="nothing is fetched from elsewhere"):
            await rt.run_plan(Plan(steps))
    with pytest.raises(BlockingIOError):
        server.accept()
    assert asked == []
    assert await rt.workspace.tasks.list() == []


@pytest.mark.rule("plan.schema-local")
def test_a_schema_refers_to_its_own_parts_and_to_the_drafts():
    for schema in (LOCAL, {"$ref": "https://json-schema.org/draft/2020-12/schema"}, {}):
        check_schema(schema)
    assert check(LOCAL, {"one": {"parts": [{}]}}) == []
    assert check(LOCAL, {"one": {"parts": [7]}}) == ["one.parts.0: 7 is not of type 'object'"]


def test_a_schema_that_never_ends_is_told_and_not_a_crash():
    endless = {"$ref": "#"}
    check_schema(endless)
    assert check(endless, 1) == ["its schema refers to itself without end"]
    deep: dict[str, object] = {}
    for _ in range(5_000):
        deep = {"not": deep}
    with pytest.raises(BadInput, match="not a JSON Schema"):
        check_schema(deep)
