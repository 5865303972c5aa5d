"""`/mcp` over streamable HTTP, behind everything that stands before every other path."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import httpx2
import pytest
from agents.mcp import MCPServerStreamableHttp
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult, InputRequiredResult

from adapters.outsiders.visiting import MODERN, MODES, add_agents, choose, shown_to, text_of, tour, value_of
from deep import some
from remit import Runtime
from remit.server.app import ServerSettings
from remit.server.callers import APPROVE, READ, RUN, Caller
from remit.server.serve import PortServer, listening
from server.serving import Keys, app_of, caller, client
from teams import team

pytestmark = pytest.mark.anyio

ANN = caller("ann")
VISITOR = Caller("vic", "default", frozenset((RUN, APPROVE)), "visitor", by="access:vic")


@pytest.fixture
def own():
    with team() as runtime:
        yield add_agents(runtime)


@asynccontextmanager
async def served(own: Runtime, *callers: Caller, hosts: bool = True) -> AsyncGenerator[tuple[str, PortServer, Keys]]:
    """A server on loopback: its address, itself, and its keys."""
    with listening("127.0.0.1", 0) as socket:
        port = socket.getsockname()[1]
        settings = ServerSettings(frozenset((f"127.0.0.1:{port}",)) if hosts else frozenset())
        keys = Keys(*callers or (ANN, VISITOR))
        server = PortServer(app_of(own, settings=settings, keys=keys), grace=1)
        serving = asyncio.create_task(server.serve([socket]))
        try:
            yield f"http://127.0.0.1:{port}/mcp", server, keys
        finally:
            server.end()
            await serving


@asynccontextmanager
async def connected(address: str, mode: str, access: str = "ann", elicit: Any = None) -> AsyncGenerator[Client]:
    headers = {"authorization": f"Bearer key-{access}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as web:
        pipe = streamable_http_client(address, http_client=web)
        async with Client(pipe, mode=mode, elicitation_callback=elicit or shown_to(choose("blue"))) as made:
            yield made


@pytest.mark.rule("outsiders.tools", "outsiders.http")
@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_makes_the_whole_tour_over_http(own: Runtime, mode: str):
    told: list[str] = []
    async with served(own) as (address, _, _), connected(address, mode) as made:
        await tour(made, told)
    runs = await own.workspace.tasks.runs()
    assert {(one.record.session, one.by) for one in runs} == {("mcp-ann", "access:ann")}


@pytest.mark.rule("outsiders.tools")
async def test_a_client_of_another_framework_lists_calls_and_is_refused(own: Runtime):
    async with served(own) as (address, _, _):
        where: Any = {"url": address, "headers": {"authorization": "Bearer key-vic"}}
        async with MCPServerStreamableHttp(where, client_session_timeout_seconds=30) as guest:
            assert "call_agent" in [tool.name for tool in await guest.list_tools()]
            done = await guest.call_tool("call_agent", {"agent": "writer", "task": "a song"})
            assert cast("Any", done.content[0]).text == "wrote a song"
            refused = await guest.call_tool("call_agent", {"agent": "failing", "task": "a song"})
            assert cast("Any", refused.content[0]).text.startswith("'visitor' may not ask 'failing'")


@pytest.mark.rule("outsiders.http")
async def test_a_session_belongs_to_the_key_that_opened_it(own: Runtime):
    async with app_of(own, ANN, VISITOR).running() as app, client(app) as ann, client(app, "vic") as vic:
        accept = {"accept": "application/json, text/event-stream"}
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
        opened = await ann.post("/mcp", json=opening, headers=accept)
        session = {**accept, "mcp-session-id": opened.headers["mcp-session-id"]}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert (await ann.post("/mcp", json=listing, headers=session)).status_code == 200
        theirs = await vic.post("/mcp", json=listing, headers=session)
        unknown = await vic.post("/mcp", json=listing, headers={**accept, "mcp-session-id": "0" * 32})
        assert (theirs.status_code, theirs.content) == (404, unknown.content)


@pytest.mark.rule("outsiders.http")
async def test_the_key_the_scope_the_host_and_strict_json_come_first(own: Runtime):
    reader = caller("rita", READ)
    settings = ServerSettings(frozenset(("remit.test",)))
    served_here = app_of(own, ANN, reader, settings=settings).running()
    async with served_here as app, client(app, "") as nobody, client(app, "rita") as rita, client(app) as ann:
        assert (await nobody.post("/mcp", json={})).status_code == 401
        assert (await rita.post("/mcp", json={})).status_code == 403
        assert (await ann.post("/mcp", json={}, headers={"host": "evil.test"})).status_code == 403
        json = {"content-type": "application/json"}
        assert (await ann.post("/mcp", content='{"a":1,"a":2}', headers=json)).status_code == 400
        assert (await ann.post("/mcp/elsewhere", json={})).status_code == 404


@pytest.mark.rule("outsiders.cancel", "outsiders.http")
@pytest.mark.parametrize("mode", some(MODES))
async def test_a_dropped_call_cancels_its_task_and_a_server_that_ends_does_not(own: Runtime, mode: str):
    begun = anyio.Event()

    async def progress(*_: Any) -> None:
        begun.set()

    async def call(made: Client, text: str) -> None:
        await made.call_tool("call_agent", {"agent": "endless", "task": text}, progress_callback=progress)

    async with served(own) as (address, server, _), connected(address, mode) as made:
        async with anyio.create_task_group() as group:
            group.start_soon(call, made, "dropped")
            await begun.wait()
            group.cancel_scope.cancel()
        (dropped,) = await own.workspace.tasks.list(agent="endless")
        outcome = await own.workspace.tasks.get(dropped.id).wait()
        assert str(outcome.error) == "'endless' was cancelled: cancelled by its caller"
        begun = anyio.Event()
        with anyio.move_on_after(60) as over:
            async with anyio.create_task_group() as group:

                async def until_the_end() -> None:
                    with pytest.raises(Exception):  # noqa: B017, PT011 - each revision ends in its own way
                        await call(made, "kept")

                group.start_soon(until_the_end)
                await begun.wait()
                server.end()
        assert not over.cancelled_caught
    (kept,) = [one for one in await own.workspace.tasks.list(agent="endless") if one.task == "kept"]
    assert kept.state == "running"
    await own.workspace.tasks.cancel(kept.id)


@pytest.mark.rule("outsiders.http")
@pytest.mark.parametrize("mode", some(MODES))
async def test_a_key_that_is_not_valid_any_more_ends_an_open_call(own: Runtime, mode: str):
    async with served(own) as (address, _, keys), connected(address, mode, "vic") as made:

        async def progress(*_: Any) -> None:
            keys.callers.pop("key-vic", None)

        call = made.call_tool("call_agent", {"agent": "endless", "task": "x"}, progress_callback=progress)
        with anyio.fail_after(20):
            result = await call
        assert (result.is_error, text_of(result)) == (True, "this needs a valid key, as `Authorization: Bearer <key>`")


@pytest.mark.rule("outsiders.questions")
@pytest.mark.parametrize("mode", some(MODES))
async def test_only_a_key_that_may_approve_lets_its_person_answer(own: Runtime, mode: str):
    runner = Caller("run", "default", frozenset((RUN,)), by="access:run")
    async with served(own, runner, VISITOR) as (address, _, _):
        async with connected(address, mode, "run") as made:
            found = value_of(await made.call_tool("call_agent", {"agent": "painter", "task": "x"}))
            assert found["state"] == "waiting"
        async with connected(address, mode, "vic") as made:
            assert text_of(await made.call_tool("call_agent", {"agent": "painter", "task": "x"})) == "painted it blue"


@pytest.mark.rule("outsiders.state")
async def test_the_state_of_one_workspace_is_unknown_in_another(own: Runtime):
    other = caller("olga", workspace="other")
    given = {"agent": "painter", "task": "x"}
    async with served(own, ANN, other) as (address, _, _):
        async with connected(address, MODERN) as made:
            result = await made.session.call_tool("call_agent", given, allow_input_required=True)
            assert isinstance(result, InputRequiredResult)
        async with connected(address, MODERN, "olga") as made:
            responses: Any = {"answer": ElicitResult(action="accept", content={"answer": "blue"})}
            with pytest.raises(MCPError, match="this requestState is unknown"):
                await made.session.call_tool(
                    "call_agent", given, input_responses=responses, request_state=result.request_state
                )
